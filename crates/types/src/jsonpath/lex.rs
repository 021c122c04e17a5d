//! Words of a path.

use base::work::{self, Count};
use base::{Error, Result, SqlState};

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    End,
    /// A name without quotes; keywords are names too.
    Name(String),
    /// `"…"`
    String(String),
    /// `$name`, `$"name"`
    Variable(String),
    Number(String),
    /// An operator or mark.
    Mark(&'static str),
}

/// Marks, longer ones first.
const MARKS: [&str; 30] = [
    "&&", "||", "==", "!=", "<>", "<=", ">=", "**", "<", ">", "!", "?", "(", ")", "[", "]", "{", "}", ".", ",", "*",
    "+", "-", "/", "%", "$", "@", "=", "&", "|",
];

/// Reads words one by one.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    /// Where the current word begins and ends.
    pub(super) start: usize,
    end: usize,
    /// What errors about the current word show instead of it.
    blank: Option<(usize, usize)>,
}

fn is_special(c: char) -> bool {
    "?%$.[]{}()|&!=<>@#,*:-+/\\\"".contains(c)
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, start: 0, end: 0, blank: None }
    }

    /// The error at the current word.
    #[cold]
    pub(super) fn error(&self, what: &str) -> Error {
        let (start, end) = self.blank.unwrap_or((self.start, self.end));
        let message = match start >= self.text.len() {
            true => format!("{what} at end of jsonpath input"),
            false => format!("{what} at or near \"{}\" of jsonpath input", &self.text[start..end]),
        };
        Error::new(SqlState::SYNTAX_ERROR, message)
    }

    fn rest(&self) -> &'a str {
        &self.text[self.end..]
    }

    fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            let blanks = rest.bytes().counted(1).take_while(|b| is_blank(char::from(*b))).count();
            let trimmed = &rest[blanks..];
            self.end += rest.len() - trimmed.len();
            if !trimmed.starts_with("/*") {
                return Ok(());
            }
            match trimmed.find("*/") {
                Some(at) => self.end += at + 2,
                None => {
                    self.start = self.text.len();
                    return Err(self.error("unexpected end of comment"));
                }
            }
        }
    }

    /// The next word.
    pub(super) fn next(&mut self) -> Result<Token> {
        work::step(16)?;
        self.blank = None;
        self.skip()?;
        self.start = self.end;
        let rest = self.rest();
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return Ok(Token::End) };
        let second = chars.next();
        if first == '"' {
            self.end += 1;
            return Ok(Token::String(self.quoted()?));
        }
        if first.is_ascii_digit() || (first == '.' && second.is_some_and(|c| c.is_ascii_digit())) {
            return self.number();
        }
        if first == '$' {
            if second == Some('"') {
                self.end += 2;
                return Ok(Token::Variable(self.quoted()?));
            }
            if second.is_some_and(|c| !is_special(c) && !is_blank(c)) {
                self.end += 1;
                return Ok(Token::Variable(self.name()?));
            }
        }
        if let Some(mark) = MARKS.iter().find(|m| rest.starts_with(**m)) {
            self.end += mark.len();
            return Ok(Token::Mark(mark));
        }
        if is_special(first) && first != '\\' {
            self.end += first.len_utf8();
            return Err(self.error("syntax error"));
        }
        let name = self.name()?;
        // PostgreSQL sees the end of a name in what follows it, and errors about the name show that.
        self.blank = Some(match self.rest().chars().next().filter(|c| is_blank(*c)) {
            Some(blank) => (self.end, self.end + blank.len_utf8()),
            None => (self.text.len(), self.text.len()),
        });
        Ok(Token::Name(name))
    }

    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        while let Some(c) = self.rest().chars().next() {
            work::step(8)?;
            if c == '\\' {
                self.end += 1;
                self.escape(&mut name)?;
            } else if is_special(c) || is_blank(c) {
                break;
            } else {
                name.push(c);
                self.end += c.len_utf8();
            }
        }
        Ok(name)
    }

    fn quoted(&mut self) -> Result<String> {
        let mut string = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                self.start = self.text.len();
                return Err(self.error("unexpected end of quoted string"));
            };
            work::step(4)?;
            self.end += c.len_utf8();
            match c {
                '"' => return Ok(string),
                '\\' => self.escape(&mut string)?,
                c => string.push(c),
            }
        }
    }

    fn hex(&mut self, least: usize, most: usize) -> Option<u32> {
        let digits = self.rest().bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
        if digits < least {
            return None;
        }
        let value = u32::from_str_radix(&self.rest()[..digits], 16).ok();
        self.end += digits;
        value
    }

    fn unicode(&mut self) -> Option<u32> {
        if let Some(rest) = self.rest().strip_prefix('{') {
            let digits = rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
            let value = u32::from_str_radix(&rest[..digits], 16).ok()?;
            rest[digits..].strip_prefix('}')?;
            self.end += digits + 2;
            return Some(value);
        }
        self.hex(4, 4)
    }

    /// What follows a backslash.
    fn escape(&mut self, out: &mut String) -> Result<()> {
        let backslash = self.end - 1;
        let Some(c) = self.rest().chars().next() else {
            self.blank = Some((backslash, self.end));
            return Err(self.error("unexpected end after backslash"));
        };
        self.end += c.len_utf8();
        // What was read of the sequence is shown.
        let invalid = |what: &str, lexer: &mut Lexer<'_>| {
            let most = if what.contains("hex") { 1 } else { 3 };
            let digits = lexer.rest().bytes().take(most).take_while(u8::is_ascii_hexdigit).count();
            lexer.blank = Some((backslash, lexer.end + digits));
            lexer.error(what)
        };
        let character = match c {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => match self.hex(2, 2) {
                Some(code) => char::from_u32(code).unwrap_or('\0'),
                None => return Err(invalid("invalid hex character sequence", self)),
            },
            'u' => {
                let Some(code) = self.unicode() else { return Err(invalid("invalid unicode sequence", self)) };
                self.character(code)?
            }
            other => other,
        };
        if character == '\0' {
            return Err(Error::new(SqlState::UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence")
                .detail("\\u0000 cannot be converted to text."));
        }
        out.push(character);
        Ok(())
    }

    /// The character of a code, which may be the first half of a pair.
    fn character(&mut self, code: u32) -> Result<char> {
        let invalid = |detail: &str| {
            Error::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type jsonpath").detail(detail)
        };
        if (0xd800..0xdc00).contains(&code) {
            let low = match self.rest().strip_prefix("\\u") {
                Some(_) => {
                    self.end += 2;
                    self.unicode()
                }
                None => None,
            };
            let low = low.filter(|l| (0xdc00..0xe000).contains(l));
            let low = low.ok_or_else(|| invalid("Unicode low surrogate must follow a high surrogate."))?;
            let code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            return Ok(char::from_u32(code).unwrap_or('\u{fffd}'));
        }
        char::from_u32(code).ok_or_else(|| invalid("Unicode low surrogate must follow a high surrogate."))
    }

    fn number(&mut self) -> Result<Token> {
        let bytes = self.text.as_bytes();
        let digits =
            |at: usize| bytes[at.min(bytes.len())..].iter().counted(1).take_while(|b| b.is_ascii_digit()).count();
        if bytes.get(self.start) == Some(&b'0') && bytes.get(self.start + 1).is_some_and(u8::is_ascii_digit) {
            self.end = self.start + 2;
            return Err(self.error("trailing junk after numeric literal"));
        }
        let mut at = self.end;
        at += digits(at);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            at += digits(at);
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            let sign = matches!(bytes.get(at + 1), Some(b'+' | b'-')) as usize;
            let exponent = digits(at + 1 + sign);
            if exponent > 0 {
                at += 1 + sign + exponent;
            }
        }
        self.end = at;
        if let Some(c) = self.rest().chars().next().filter(|c| !is_special(*c) && !is_blank(*c)) {
            self.end += c.len_utf8();
            return Err(self.error("trailing junk after numeric literal"));
        }
        Ok(Token::Number(self.text[self.start..at].to_string()))
    }
}
