//! The text of an expression becomes a tree.

use base::work::{self, Count};
use base::{Error, Result, SqlState};

use super::class::{Class, Named};
use super::names::code_of;
use super::{Assert, Node, Parsed, Preference, Syntax};

/// Deepest nesting of parentheses.
const DEPTH_MAX: u32 = 250;
/// Largest count in braces.
const COUNT_MAX: u32 = 255;
/// Units of work that reading a part is.
const PART_UNITS: usize = 64;
/// Most parts that an expression may have.
const PARTS_MAX: u32 = 200_000;

/// An error of an expression, in PostgreSQL's words.
#[cold]
pub(crate) fn invalid(what: &str) -> Error {
    Error::new(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {what}"))
}

fn escape_error() -> Error {
    invalid("invalid escape \\ sequence")
}

fn quantifier_error() -> Error {
    invalid("quantifier operand invalid")
}

fn brackets_error() -> Error {
    invalid("brackets [] not balanced")
}

/// Reads an expression.
///
/// # Errors
/// 2201B
pub fn parse(text: &str, syntax: Syntax) -> Result<Parsed> {
    let mut chars: Vec<char> = text.chars().counted(2).collect();
    let mut syntax = syntax;
    let skipped = director(&chars, &mut syntax)?;
    chars.drain(..skipped);
    if syntax.literal {
        let classes = chars.iter().counted(PART_UNITS).map(|&c| Node::Class(Class::one(c.into(), syntax.ignore_case)));
        let node = Node::Concat(classes.collect());
        return Ok(Parsed { node, groups: 0, syntax, has_back: false, has_look: false });
    }
    let mut reader = Reader {
        rest: Cursor { chars, at: 0 },
        syntax,
        groups: 0,
        closed: Vec::new(),
        has_back: false,
        has_look: false,
        parts: 0,
    };
    let node = reader.alternatives(0, false)?;
    Ok(Parsed {
        node,
        groups: reader.groups,
        syntax: reader.syntax,
        has_back: reader.has_back,
        has_look: reader.has_look,
    })
}

/// Reads `***:`, `***=` and `(?options)` at the beginning; answers how many characters they are.
fn director(chars: &[char], syntax: &mut Syntax) -> Result<usize> {
    if syntax.literal {
        return Ok(0);
    }
    let mut at = 0;
    if chars.starts_with(&['*', '*', '*']) {
        match chars.get(3) {
            Some('=') => {
                *syntax = Syntax { ignore_case: syntax.ignore_case, literal: true, ..Syntax::default() };
                return Ok(4);
            }
            Some(':') => {
                syntax.extended = false;
                at = 4;
            }
            Some('?') => return Err(invalid("invalid regexp (reg version 0.8)")),
            _ => return Err(quantifier_error()),
        }
    }
    if syntax.extended
        || !chars[at..].starts_with(&['(', '?'])
        || !chars.get(at + 2).is_some_and(char::is_ascii_alphabetic)
    {
        return Ok(at);
    }
    at += 2;
    while let Some(c) = chars.get(at).filter(|c| c.is_ascii_alphabetic()) {
        let newlines = |s: &mut Syntax, dot, anchors| (s.dot_excludes_newline, s.line_anchors) = (dot, anchors);
        match c {
            'b' => return Err(Error::unsupported("basic regular expressions are not supported")),
            'c' => syntax.ignore_case = false,
            'e' => syntax.extended = true,
            'i' => syntax.ignore_case = true,
            'm' | 'n' => newlines(syntax, true, true),
            'p' => newlines(syntax, true, false),
            'q' => syntax.literal = true,
            's' => newlines(syntax, false, false),
            't' => syntax.expanded = false,
            'w' => newlines(syntax, false, true),
            'x' => syntax.expanded = true,
            _ => return Err(invalid("invalid embedded option")),
        }
        at += 1;
    }
    if chars.get(at) != Some(&')') {
        return Err(invalid("invalid embedded option"));
    }
    Ok(at + 1)
}

/// The characters that are left.
struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    fn peek(&self) -> Option<&char> {
        self.chars.get(self.at)
    }

    fn next(&mut self) -> Option<char> {
        work::beat(2);
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn next_if(&mut self, wanted: impl FnOnce(&char) -> bool) -> Option<char> {
        if self.peek().is_some_and(wanted) { self.next() } else { None }
    }

    fn next_if_eq(&mut self, wanted: &char) -> Option<char> {
        self.next_if(|c| c == wanted)
    }

    fn starts_with(&self, text: &str) -> bool {
        let mut at = self.at;
        text.chars().all(|c| {
            at += 1;
            self.chars.get(at - 1) == Some(&c)
        })
    }
}

struct Reader {
    rest: Cursor,
    syntax: Syntax,
    groups: u32,
    /// Whether a group's parenthesis was closed, by its number less one.
    closed: Vec<bool>,
    has_back: bool,
    has_look: bool,
    parts: u32,
}

/// What an escape stands for.
enum Escaped {
    Code(u32),
    Class(Named, bool),
    Assert(Assert),
    Back(u32),
}

impl Reader {
    fn advanced(&self) -> bool {
        !self.syntax.extended
    }

    /// Skips blanks and comments of expanded syntax, and comments in parentheses.
    fn skip(&mut self) {
        loop {
            if self.syntax.expanded {
                while self.rest.next_if(|&c| c.is_ascii_whitespace() || c == '\x0b').is_some() {}
                if self.rest.peek() == Some(&'#') {
                    while self.rest.next_if(|&c| c != '\n').is_some() {}
                    continue;
                }
            }
            if self.advanced() && self.ahead("(?#") {
                while self.rest.next_if(|&c| c != ')').is_some() {}
                self.rest.next();
                continue;
            }
            return;
        }
    }

    /// Whether these characters come next.
    fn ahead(&self, text: &str) -> bool {
        self.rest.starts_with(text)
    }

    fn alternatives(&mut self, depth: u32, in_look: bool) -> Result<Node> {
        if depth > DEPTH_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        let mut branches = vec![self.branch(depth, in_look)?];
        while self.rest.next_if_eq(&'|').is_some() {
            branches.push(self.branch(depth, in_look)?);
        }
        let node = if branches.len() == 1 { branches.swap_remove(0) } else { Node::Alternatives(branches) };
        if depth == 0 {
            return Ok(node);
        }
        match self.rest.next() {
            Some(')') => Ok(node),
            _ => Err(invalid("parentheses () not balanced")),
        }
    }

    fn branch(&mut self, depth: u32, in_look: bool) -> Result<Node> {
        let mut parts = Vec::new();
        loop {
            self.skip();
            match self.rest.peek() {
                None | Some('|') => break,
                Some(')') if depth > 0 => break,
                Some(_) => {}
            }
            work::step(PART_UNITS)?;
            self.parts += 1;
            if self.parts > PARTS_MAX {
                return Err(invalid("regular expression is too complex"));
            }
            let (node, is_atom) = self.atom(depth, in_look)?;
            let node = if is_atom { self.quantified(node)? } else { node };
            parts.push(node);
        }
        Ok(match parts.len() {
            0 => Node::Empty,
            1 => parts.swap_remove(0),
            _ => Node::Concat(parts),
        })
    }

    /// The next part, and whether a quantifier may follow.
    fn atom(&mut self, depth: u32, in_look: bool) -> Result<(Node, bool)> {
        let place = |assert| Ok((Node::Assert(assert), false));
        let Some(c) = self.rest.next() else { return Ok((Node::Empty, true)) };
        match c {
            '^' => place(if self.syntax.line_anchors { Assert::LineStart } else { Assert::TextStart }),
            '$' => place(if self.syntax.line_anchors { Assert::LineEnd } else { Assert::TextEnd }),
            '(' => self.parenthesis(depth, in_look),
            ')' if self.advanced() => Err(invalid("parentheses () not balanced")),
            '*' | '+' | '?' => Err(quantifier_error()),
            '{' => {
                self.skip();
                match self.rest.peek() {
                    Some(d) if d.is_ascii_digit() => Err(quantifier_error()),
                    _ => Ok((self.one('{'.into()), true)),
                }
            }
            '.' => Ok((Node::Class(Class::any(self.syntax.dot_excludes_newline)), true)),
            '[' if self.ahead("[:<:]]") || self.ahead("[:>:]]") => {
                let is_start = self.ahead("[:<:]]");
                self.rest.at += 6;
                place(if is_start { Assert::WordStart } else { Assert::WordEnd })
            }
            '[' => Ok((self.brackets()?, true)),
            '\\' => match self.escape()? {
                Escaped::Code(code) => Ok((self.one(code), true)),
                Escaped::Class(named, complement) => {
                    let mut class = Class::empty(false);
                    (class.named, class.negated) = (vec![(named, false)], complement);
                    Ok((Node::Class(class), true))
                }
                Escaped::Assert(assert) => place(assert),
                Escaped::Back(number) => {
                    let closed = self.closed.get(number as usize - 1).copied().unwrap_or(false);
                    if in_look || !closed {
                        return Err(invalid("invalid backreference number"));
                    }
                    self.has_back = true;
                    Ok((Node::Back(number), true))
                }
            },
            c => Ok((self.one(c.into()), true)),
        }
    }

    fn one(&self, code: u32) -> Node {
        Node::Class(Class::one(code, self.syntax.ignore_case))
    }

    fn parenthesis(&mut self, depth: u32, in_look: bool) -> Result<(Node, bool)> {
        if self.advanced() && self.rest.next_if_eq(&'?').is_some() {
            let (ahead, negated) = match self.rest.next() {
                Some(':') => {
                    let node = self.alternatives(depth + 1, in_look)?;
                    // A quantifier repeats the parentheses: no times, if the group of the back reference has not matched.
                    let is_back = matches!(node, Node::Back(_));
                    return Ok((if is_back { Node::Concat(vec![node]) } else { node }, true));
                }
                Some('=') => (true, false),
                Some('!') => (true, true),
                Some('<') => match self.rest.next() {
                    Some('=') => (false, false),
                    Some('!') => (false, true),
                    _ => return Err(quantifier_error()),
                },
                _ => return Err(quantifier_error()),
            };
            self.has_look = true;
            let node = Box::new(self.alternatives(depth + 1, true)?);
            return Ok((Node::Look { ahead, negated, node }, false));
        }
        if in_look {
            return Ok((self.alternatives(depth + 1, true)?, true));
        }
        self.groups += 1;
        let number = self.groups;
        self.closed.push(false);
        let node = self.alternatives(depth + 1, false)?;
        self.closed[number as usize - 1] = true;
        Ok((Node::Group(number, Box::new(node)), true))
    }

    /// The part with the quantifier that follows it.
    fn quantified(&mut self, node: Node) -> Result<Node> {
        self.skip();
        let (min, max) = match self.rest.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => return self.counted(node),
            _ => return Ok(node),
        };
        self.rest.next();
        let prefers = self.preference();
        Ok(Node::Repeat { node: Box::new(node), min, max, prefers })
    }

    fn preference(&mut self) -> Preference {
        match self.advanced() && self.rest.next_if_eq(&'?').is_some() {
            true => Preference::Short,
            false => Preference::Long,
        }
    }

    /// `{m}`, `{m,}`, `{m,n}`, or a brace that is itself.
    fn counted(&mut self, node: Node) -> Result<Node> {
        let before = self.rest.at;
        self.rest.next();
        self.bound_skip();
        if !self.rest.peek().is_some_and(char::is_ascii_digit) {
            self.rest.at = before;
            return Ok(node);
        }
        let min = self.count()?;
        let mut max = Some(min);
        let mut exact = true;
        if self.bound_next(',') {
            exact = false;
            self.bound_skip();
            max = match self.rest.peek() {
                Some(c) if c.is_ascii_digit() => Some(self.count()?),
                _ => None,
            };
            if max.is_some_and(|max| max < min) {
                return Err(invalid("invalid repetition count(s)"));
            }
        }
        self.bound_skip();
        match self.rest.next() {
            Some('}') => {}
            None => return Err(invalid("braces {} not balanced")),
            Some(_) => return Err(invalid("invalid repetition count(s)")),
        }
        let prefers = self.preference();
        let prefers = if exact { Preference::None } else { prefers };
        if min == 0 && max == Some(0) {
            return Ok(Node::Empty);
        }
        Ok(Node::Repeat { node: Box::new(node), min, max, prefers })
    }

    fn bound_skip(&mut self) {
        if self.syntax.expanded {
            while self.rest.next_if(char::is_ascii_whitespace).is_some() {}
        }
    }

    fn bound_next(&mut self, c: char) -> bool {
        self.bound_skip();
        self.rest.next_if_eq(&c).is_some()
    }

    fn count(&mut self) -> Result<u32> {
        let mut count = 0;
        loop {
            self.bound_skip();
            let Some(digit) = self.rest.next_if(char::is_ascii_digit) else { return Ok(count) };
            count = count * 10 + digit.to_digit(10).unwrap_or(0);
            if count > COUNT_MAX {
                return Err(invalid("invalid repetition count(s)"));
            }
        }
    }

    /// A number of at least and at most so many digits.
    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<u32> {
        let (mut value, mut read) = (0u32, 0);
        while read < most
            && let Some(c) = self.rest.next_if(|c| c.is_digit(radix))
        {
            value = value.wrapping_mul(radix).wrapping_add(c.to_digit(radix).unwrap_or(0));
            read += 1;
        }
        if read < least { Err(escape_error()) } else { Ok(value) }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<Escaped> {
        let c = self.rest.next().ok_or_else(escape_error)?;
        if !c.is_ascii_alphanumeric() || !self.advanced() {
            return Ok(Escaped::Code(c.into()));
        }
        let code = match c {
            'a' => 0x07,
            'b' => 0x08,
            'B' => '\\'.into(),
            'c' => u32::from(self.rest.next().ok_or_else(escape_error)?) & 0o37,
            'e' => 0x1b,
            'f' => 0x0c,
            'n' => 0x0a,
            'r' => 0x0d,
            't' => 0x09,
            'v' => 0x0b,
            'u' => self.code(4, 4)?,
            'U' => self.code(8, 8)?,
            'x' => self.code(1, 255)?,
            'A' => return Ok(Escaped::Assert(Assert::TextStart)),
            'Z' => return Ok(Escaped::Assert(Assert::TextEnd)),
            'm' => return Ok(Escaped::Assert(Assert::WordStart)),
            'M' => return Ok(Escaped::Assert(Assert::WordEnd)),
            'y' => return Ok(Escaped::Assert(Assert::WordEdge)),
            'Y' => return Ok(Escaped::Assert(Assert::NoWordEdge)),
            'd' => return Ok(Escaped::Class(Named::Digit, false)),
            'D' => return Ok(Escaped::Class(Named::Digit, true)),
            's' => return Ok(Escaped::Class(Named::Space, false)),
            'S' => return Ok(Escaped::Class(Named::Space, true)),
            'w' => return Ok(Escaped::Class(Named::Word, false)),
            'W' => return Ok(Escaped::Class(Named::Word, true)),
            '0' => self.octal(c)?,
            '1'..='9' => return self.back(c),
            _ => return Err(escape_error()),
        };
        Ok(Escaped::Code(code))
    }

    fn code(&mut self, least: usize, most: usize) -> Result<u32> {
        let code = self.digits(16, least, most)?;
        if code > 0x7fff_fffe { Err(escape_error()) } else { Ok(code) }
    }

    /// At most three octal digits, of which the first was read.
    fn octal(&mut self, first: char) -> Result<u32> {
        let Some(mut code) = first.to_digit(8) else { return Err(escape_error()) };
        for _ in 0..2 {
            let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(8)) else { break };
            if code * 8 + digit > 0xff {
                break;
            }
            code = code * 8 + digit;
            self.rest.next();
        }
        Ok(code)
    }

    /// One digit is a back reference; more are one if there are so many groups, else an octal number.
    fn back(&mut self, first: char) -> Result<Escaped> {
        let before = self.rest.at;
        let mut number = first.to_digit(10).unwrap_or(0);
        let mut single = true;
        while let Some(c) = self.rest.next_if(char::is_ascii_digit) {
            single = false;
            number = number.saturating_mul(10).saturating_add(c.to_digit(10).unwrap_or(0));
        }
        if single || number <= self.groups {
            return Ok(Escaped::Back(number));
        }
        self.rest.at = before;
        self.octal(first).map(Escaped::Code)
    }

    fn brackets(&mut self) -> Result<Node> {
        let mut class = Class::empty(self.syntax.ignore_case);
        class.negated = self.rest.next_if_eq(&'^').is_some();
        class.no_newline = class.negated && self.syntax.dot_excludes_newline;
        let mut first = true;
        loop {
            if !first && self.rest.next_if_eq(&']').is_some() {
                class.sort();
                return Ok(Node::Class(class));
            }
            self.bracket_part(&mut class, first)?;
            first = false;
        }
    }

    /// One range, character or class in brackets.
    fn bracket_part(&mut self, class: &mut Class, first: bool) -> Result<()> {
        let low = match self.bracket_item(first)? {
            Item::Range => return Err(invalid("invalid character range")),
            Item::Named(named, complement) => {
                let named = (self.folded(named), complement);
                if !class.named.contains(&named) {
                    class.named.push(named);
                }
                return Ok(());
            }
            Item::Equivalents(code) => {
                class.add(code, code);
                return Ok(());
            }
            Item::Code(code) => code,
        };
        let mut high = low;
        if self.is_range() {
            self.rest.next();
            high = match self.bracket_item(false)? {
                Item::Code(code) => code,
                Item::Range => '-'.into(),
                Item::Named(..) | Item::Equivalents(_) => return Err(invalid("invalid character range")),
            };
        }
        if low > high {
            return Err(invalid("invalid character range"));
        }
        class.add(low, high);
        Ok(())
    }

    /// Cases are all one to classes of cases.
    fn folded(&self, named: Named) -> Named {
        match named {
            Named::Lower | Named::Upper if self.syntax.ignore_case => Named::Alpha,
            other => other,
        }
    }

    /// Whether a hyphen comes that is not the last character.
    fn is_range(&self) -> bool {
        self.ahead("-") && !self.ahead("-]")
    }

    fn bracket_item(&mut self, first: bool) -> Result<Item> {
        if !first && self.is_range() {
            self.rest.next();
            return Ok(Item::Range);
        }
        let c = self.rest.next().ok_or_else(brackets_error)?;
        match c {
            '\\' if self.advanced() => match self.escape()? {
                Escaped::Code(code) => Ok(Item::Code(code)),
                Escaped::Class(named, complement) => Ok(Item::Named(named, complement)),
                Escaped::Assert(_) | Escaped::Back(_) => Err(escape_error()),
            },
            '[' => match self.rest.peek().copied() {
                None => Err(brackets_error()),
                Some(kind @ ('.' | '=' | ':')) => self.bracket_name(kind),
                Some(_) => Ok(Item::Code(c.into())),
            },
            c => Ok(Item::Code(c.into())),
        }
    }

    /// `[.x.]`, `[=x=]`, `[:x:]`
    fn bracket_name(&mut self, kind: char) -> Result<Item> {
        self.rest.next();
        let mut name = String::new();
        loop {
            let c = self.rest.next().ok_or_else(brackets_error)?;
            if c == kind && self.rest.next_if_eq(&']').is_some() {
                break;
            }
            name.push(c);
        }
        if kind == ':' {
            return match Named::of(&name) {
                Some(named) => Ok(Item::Named(named, false)),
                None => Err(invalid("invalid character class")),
            };
        }
        let code = code_of(&name).ok_or_else(|| invalid("invalid collating element"))?;
        Ok(if kind == '=' { Item::Equivalents(code) } else { Item::Code(code) })
    }
}

/// What may stand in brackets.
enum Item {
    Code(u32),
    Named(Named, bool),
    Equivalents(u32),
    /// A hyphen between two others.
    Range,
}
