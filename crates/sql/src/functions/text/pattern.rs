//! Regular expressions: PostgreSQL's "advanced" syntax translated to that of the `regex` crate, compiled once per thread.
//!
//! Weaker than PostgreSQL: back references and look-around are refused. Where several branches of an alternation match
//! at one place, the first one written wins instead of the longest.

use std::cell::RefCell;

use base::{Error, Result, SqlState};
use regex::{Regex, RegexBuilder};

/// Compiled expressions that a thread keeps.
const CACHED: usize = 32;

/// How an expression is read and matched.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::functions) struct Options {
    /// `i`
    pub ignore_case: bool,
    /// Dot and negated brackets do not match newlines (`n`, `p`).
    pub dot_excludes_newline: bool,
    /// `^` and `$` match at newlines (`n`, `w`).
    pub line_anchors: bool,
    /// `x`
    pub expanded: bool,
    /// `q`: not an expression but a text.
    pub literal: bool,
    /// `g`, for functions that allow it.
    pub global: bool,
}

impl Options {
    /// Reads a function's flags.
    pub(in crate::functions) fn parse(flags: &str) -> Result<Options> {
        let mut options = Options::default();
        for c in flags.chars() {
            options.set(c).map_err(|()| {
                let message = format!("invalid regular expression option: \"{c}\"");
                Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: char) -> Result<(), ()> {
        let newlines = |o: &mut Options, dot, anchors| (o.dot_excludes_newline, o.line_anchors) = (dot, anchors);
        match flag {
            'g' => self.global = true,
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => newlines(self, true, true),
            'p' => newlines(self, true, false),
            's' => newlines(self, false, false),
            'w' => newlines(self, false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' | 'b' => self.literal = false,
            _ => return Err(()),
        }
        Ok(())
    }
}

struct Compiled {
    pattern: Box<str>,
    options: Options,
    regex: Regex,
}

thread_local! {
    static CACHE: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// The compiled expression.
pub(in crate::functions) fn compiled(pattern: &str, options: Options) -> Result<Regex> {
    let options = Options { global: false, ..options };
    CACHE.with_borrow_mut(|cache| {
        if let Some(at) = cache.iter().position(|c| c.options == options && *c.pattern == *pattern) {
            // What is used often stays in front.
            if at > 0 {
                cache.swap(at, at - 1);
                return Ok(cache[at - 1].regex.clone());
            }
            return Ok(cache[0].regex.clone());
        }
        let regex = compile(pattern, options)?;
        cache.truncate(CACHED - 1);
        cache.push(Compiled { pattern: pattern.into(), options, regex: regex.clone() });
        Ok(regex)
    })
}

/// Whether the expression matches somewhere.
pub(in crate::functions) fn is_match(text: &str, pattern: &str, options: Options) -> Result<bool> {
    let options = Options { global: false, ..options };
    let hit = CACHE.with_borrow(|cache| {
        cache.first().filter(|c| c.options == options && *c.pattern == *pattern).map(|c| c.regex.is_match(text))
    });
    match hit {
        Some(matched) => Ok(matched),
        None => Ok(compiled(pattern, options)?.is_match(text)),
    }
}

#[cold]
fn invalid(what: &str) -> Error {
    Error::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
}

fn compile(pattern: &str, mut options: Options) -> Result<Regex> {
    let mut source = pattern;
    if let Some(rest) = source.strip_prefix("***=") {
        options.literal = true;
        source = rest;
    } else if let Some(rest) = source.strip_prefix("***:") {
        source = rest;
    }
    if !options.literal
        && let Some(rest) = source.strip_prefix("(?")
        && let Some(end) = rest.find(')')
        && end > 0
        && rest[..end].bytes().all(|b| b.is_ascii_lowercase())
    {
        for c in rest[..end].chars() {
            options.set(c).map_err(|()| invalid("invalid embedded option"))?;
        }
        source = &rest[end + 1..];
    }
    let translated = if options.literal { regex::escape(source) } else { Translator::new(source, options).run()? };
    RegexBuilder::new(&translated)
        .case_insensitive(options.ignore_case)
        .dot_matches_new_line(!options.dot_excludes_newline)
        .multi_line(options.line_anchors)
        .ignore_whitespace(false)
        .size_limit(16 << 20)
        .build()
        .map_err(|error| explained(&error.to_string()))
}

/// The error with PostgreSQL's words for it.
fn explained(error: &str) -> Error {
    const WORDS: [(&str, &str); 9] = [
        ("unclosed group", "parentheses () not balanced"),
        ("unopened group", "parentheses () not balanced"),
        ("unclosed character class", "brackets [] not balanced"),
        ("repetition operator missing expression", "quantifier operand invalid"),
        ("invalid character class range", "invalid character range"),
        ("invalid repetition count range", "invalid repetition count(s)"),
        ("unclosed counted repetition", "braces {} not balanced"),
        ("exceeds size limit", "regular expression is too complex"),
        ("nest limit", "regular expression is too complex"),
    ];
    let words = WORDS.iter().find(|(part, _)| error.contains(part)).map_or("invalid escape \\ sequence", |(_, w)| w);
    invalid(words)
}

struct Translator<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    options: Options,
    /// SUBSTRING … SIMILAR: the first part matches as little as possible, which `{1,1}?` does not say to the crate.
    shortest_prefix: bool,
    out: String,
}

impl<'a> Translator<'a> {
    fn new(source: &'a str, options: Options) -> Translator<'a> {
        Translator {
            rest: source.chars().peekable(),
            options,
            shortest_prefix: source.starts_with("^(?:") && source.contains("){1,1}?("),
            out: String::with_capacity(source.len() + 8),
        }
    }

    fn run(mut self) -> Result<String> {
        // A quantifier has nothing to repeat at the beginning and after another one.
        let mut quantified = true;
        let mut depth = 0u32;
        if self.shortest_prefix {
            self.out.push_str("^(?U:");
            self.rest.by_ref().take("^(?:".len()).for_each(drop);
            depth = 1;
        }
        while let Some(c) = self.rest.next() {
            let was_quantified = std::mem::replace(&mut quantified, false);
            match c {
                '\\' => self.escape()?,
                '[' => self.brackets()?,
                '(' => {
                    depth += 1;
                    self.group()?;
                    quantified = true;
                }
                ')' => {
                    depth = depth.checked_sub(1).ok_or_else(|| invalid("parentheses () not balanced"))?;
                    self.out.push(')');
                }
                '|' => {
                    self.out.push('|');
                    quantified = true;
                }
                '*' | '+' | '?' => {
                    if was_quantified {
                        return Err(invalid("quantifier operand invalid"));
                    }
                    self.out.push(c);
                    self.lazy();
                    quantified = true;
                }
                '{' if self.rest.peek().is_some_and(char::is_ascii_digit) => {
                    if was_quantified {
                        return Err(invalid("quantifier operand invalid"));
                    }
                    self.counts()?;
                    quantified = true;
                }
                '{' | '}' | ']' => {
                    self.out.push('\\');
                    self.out.push(c);
                }
                '#' if self.options.expanded => {
                    while self.rest.next_if(|&c| c != '\n').is_some() {}
                    quantified = was_quantified;
                }
                c if self.options.expanded && c.is_whitespace() => quantified = was_quantified,
                '^' => {
                    self.out.push('^');
                    quantified = true;
                }
                c => self.out.push(c),
            }
        }
        if depth > 0 { Err(invalid("parentheses () not balanced")) } else { Ok(self.out) }
    }

    fn lazy(&mut self) {
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
    }

    fn group(&mut self) -> Result<()> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        match self.rest.next() {
            Some(':') => self.out.push_str("?:"),
            Some('#') => {
                // A comment; it stands for nothing.
                while self.rest.next_if(|&c| c != ')').is_some() {}
                self.out.push_str("?:");
            }
            Some('=' | '!' | '<') => {
                return Err(Error::unsupported("look-around in regular expressions is not supported"));
            }
            _ => return Err(invalid("quantifier operand invalid")),
        }
        Ok(())
    }

    /// `{m}`, `{m,}`, `{m,n}`
    fn counts(&mut self) -> Result<()> {
        let mut text = String::new();
        loop {
            match self.rest.next() {
                Some('}') => break,
                Some(c) if c.is_ascii_digit() || (c == ',' && !text.contains(',')) => text.push(c),
                Some(_) => return Err(invalid("invalid repetition count(s)")),
                None => return Err(invalid("braces {} not balanced")),
            }
        }
        let (low, high) = text.split_once(',').map_or((text.as_str(), None), |(low, high)| (low, Some(high)));
        let count = |s: &str| s.parse::<u32>().ok().filter(|&n| n <= 255);
        let low = count(low).ok_or_else(|| invalid("invalid repetition count(s)"))?;
        if let Some(high) = high.filter(|h| !h.is_empty()) {
            count(high).filter(|&h| h >= low).ok_or_else(|| invalid("invalid repetition count(s)"))?;
        }
        self.out.push('{');
        self.out.push_str(&text);
        self.out.push('}');
        self.lazy();
        Ok(())
    }

    fn literal(&mut self, c: char) {
        self.out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4])));
    }

    /// The number of exactly (or at most) so many hexadecimal digits.
    fn hex(&mut self, least: usize, most: usize) -> Result<char> {
        let (mut n, mut digits) = (0u32, 0);
        while digits < most
            && let Some(c) = self.rest.next_if(char::is_ascii_hexdigit)
        {
            n = n << 4 | c.to_digit(16).unwrap_or(0);
            digits += 1;
        }
        let c = (digits >= least).then(|| char::from_u32(n)).flatten();
        c.ok_or_else(|| invalid("invalid escape \\ sequence"))
    }

    /// A character that an escape stands for, outside and inside of brackets.
    fn escaped_character(&mut self, c: char) -> Result<char> {
        Ok(match c {
            'a' => '\x07',
            'b' => '\x08',
            'B' => '\\',
            'e' => '\x1b',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'u' => self.hex(4, 4)?,
            'U' => self.hex(8, 8)?,
            'x' => self.hex(1, 8)?,
            'c' => {
                let c = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                char::from_u32(c as u32 & 0x1f).unwrap_or('\0')
            }
            '0' => {
                let mut n = 0;
                for _ in 0..2 {
                    let Some(d) = self.rest.next_if(|c| ('0'..='7').contains(c)) else { break };
                    n = n * 8 + d.to_digit(8).unwrap_or(0);
                }
                char::from_u32(n).unwrap_or('\0')
            }
            c if c.is_ascii_alphanumeric() => return Err(invalid("invalid escape \\ sequence")),
            c => c,
        })
    }

    fn escape(&mut self) -> Result<()> {
        let c = self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
        match c {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => {
                self.out.push('\\');
                self.out.push(c);
            }
            'A' => self.out.push_str("\\A"),
            'Z' => self.out.push_str("\\z"),
            'y' => self.out.push_str("\\b"),
            'Y' => self.out.push_str("\\B"),
            'm' => self.out.push_str("\\b{start}"),
            'M' => self.out.push_str("\\b{end}"),
            '1'..='9' => return Err(Error::unsupported("back references in regular expressions are not supported")),
            c => {
                let c = self.escaped_character(c)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    /// A bracket expression; what is special in brackets to the `regex` crate only is escaped.
    fn brackets(&mut self) -> Result<()> {
        let unbalanced = || invalid("brackets [] not balanced");
        let start = self.out.len();
        self.out.push('[');
        let negated = self.rest.next_if_eq(&'^').is_some();
        if negated {
            self.out.push('^');
            if self.options.dot_excludes_newline {
                self.out.push_str("\\n");
            }
        }
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(unbalanced)?;
            match c {
                ']' if !first => break,
                '[' if matches!(self.rest.peek(), Some(':' | '.' | '=')) => {
                    let kind = self.rest.next().unwrap_or(':');
                    let mut name = String::new();
                    loop {
                        let c = self.rest.next().ok_or_else(unbalanced)?;
                        if c == kind && self.rest.next_if_eq(&']').is_some() {
                            break;
                        }
                        name.push(c);
                    }
                    match (kind, name.as_str()) {
                        // Not classes but the edges of words.
                        (':', "<" | ">") if first && self.rest.next_if_eq(&']').is_some() => {
                            self.out.truncate(start);
                            self.out.push_str(if name == "<" { "\\b{start}" } else { "\\b{end}" });
                            return Ok(());
                        }
                        (':', "alpha") => self.out.push_str("\\p{Alphabetic}"),
                        (':', "alnum") => self.out.push_str("\\p{Alphabetic}\\p{Nd}"),
                        (':', "lower") => self.out.push_str("\\p{Lowercase}"),
                        (':', "upper") => self.out.push_str("\\p{Uppercase}"),
                        (':', "word") => self.out.push_str("\\w"),
                        (
                            ':',
                            "digit" | "space" | "blank" | "cntrl" | "graph" | "print" | "punct" | "xdigit" | "ascii",
                        ) => {
                            self.out.push_str(&format!("[:{name}:]"));
                        }
                        (':', _) => return Err(invalid("invalid character class")),
                        (_, name) if name.chars().count() == 1 => name.chars().for_each(|c| self.literal(c)),
                        _ => return Err(invalid("invalid collating element")),
                    }
                }
                '\\' => {
                    let c = self.rest.next().ok_or_else(unbalanced)?;
                    if matches!(c, 'd' | 'w' | 's' | 'D' | 'W' | 'S') {
                        self.out.push('\\');
                        self.out.push(c);
                    } else {
                        let c = self.escaped_character(c)?;
                        self.bracket_literal(c);
                    }
                }
                // A hyphen is literal at the ends, else it makes a range.
                '-' if !first && self.rest.peek() != Some(&']') => self.out.push('-'),
                c => self.bracket_literal(c),
            }
            first = false;
        }
        self.out.push(']');
        Ok(())
    }

    fn bracket_literal(&mut self, c: char) {
        // The crate takes `\<` and `\>` for edges of words.
        if c.is_ascii_punctuation() && c != '<' && c != '>' {
            self.out.push('\\');
        }
        self.out.push(c);
    }
}
