//! Pictures of numbers: reading them, and `to_number`.

use base::{Error, Result, SqlState, work};
use types::{Datum, Numeric};

/// An element of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Nine,
    Zero,
    Point,
    Comma,
    Group,
    Currency,
    Minus,
    Plus,
    Sign,
    Roman,
    RomanLower,
    Th,
    ThLower,
    /// Words that only set flags.
    Nothing,
    Literal(char),
}

/// Where an anchored sign goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Anchor {
    #[default]
    None,
    Before,
    After,
}

/// A picture, read.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) nodes: Vec<Node>,
    /// Digits before and after the point, and after `V`.
    pub(super) pre: i32,
    pub(super) post: i32,
    pub(super) multi: i32,
    pub(super) anchor: Anchor,
    pub(super) pre_anchor: i32,
    pub(super) zero_start: i32,
    pub(super) zero_end: i32,
    pub(super) decimal: bool,
    pub(super) fill: bool,
    pub(super) zero: bool,
    pub(super) bracket: bool,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) roman: bool,
    pub(super) times: bool,
    pub(super) exponent: bool,
    blank: bool,
}

/// Words by their spelling in upper case; of words with a common beginning the longer comes first.
const WORDS: [&str; 20] =
    [",", ".", "0", "9", "B", "C", "D", "EEEE", "FM", "G", "L", "MI", "PL", "PR", "RN", "SG", "SP", "S", "TH", "V"];

/// Units of work that reading or writing an element of a picture is.
pub(super) const NODE_UNITS: usize = 16;

fn syntax(message: &str) -> Error {
    Error::new(SqlState::SYNTAX_ERROR, message)
}

impl Picture {
    /// Reads a picture.
    pub(super) fn parse(format: &str) -> Result<Picture> {
        let mut picture = Picture::default();
        let mut rest = format;
        while let Some(c) = rest.chars().next() {
            work::step(NODE_UNITS)?;
            let is_small = |(small, p): (u8, u8)| small == p.to_ascii_lowercase();
            let starts = |word: &&&str| {
                rest.get(..word.len())
                    .is_some_and(|head| head == **word || head.bytes().zip(word.bytes()).all(is_small))
            };
            if let Some(word) = WORDS.iter().find(starts) {
                let lower = rest.starts_with(|c: char| c.is_ascii_lowercase());
                rest = &rest[word.len()..];
                picture.add(word, lower)?;
            } else if c == '"' {
                rest = picture.quoted(&rest[1..])?;
            } else {
                if c == '\\' && rest[1..].starts_with('"') {
                    rest = &rest[1..];
                }
                let c = rest.chars().next().unwrap_or(c);
                picture.nodes.push(Node::Literal(c));
                rest = &rest[c.len_utf8()..];
            }
        }
        Ok(picture)
    }

    /// Text in quotes, in which a backslash protects the next character.
    fn quoted<'a>(&mut self, text: &'a str) -> Result<&'a str> {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            work::step(2)?;
            match c {
                '"' => break,
                '\\' => match chars.next() {
                    Some(c) => self.nodes.push(Node::Literal(c)),
                    None => self.nodes.push(Node::Literal('\\')),
                },
                c => self.nodes.push(Node::Literal(c)),
            }
        }
        Ok(chars.as_str())
    }

    fn add(&mut self, word: &str, lower: bool) -> Result<()> {
        if self.exponent && word != "EEEE" {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        let node = match word {
            "9" | "0" => self.digit(word == "0")?,
            "." | "D" => self.point()?,
            "," => Node::Comma,
            "G" => Node::Group,
            "L" => Node::Currency,
            "S" | "MI" | "PL" | "SG" | "PR" => self.sign(word)?,
            "RN" => {
                self.roman = true;
                if lower { Node::RomanLower } else { Node::Roman }
            }
            "TH" if lower => Node::ThLower,
            "TH" => Node::Th,
            _ => self.flag(word)?,
        };
        self.nodes.push(node);
        Ok(())
    }

    fn digit(&mut self, zero: bool) -> Result<Node> {
        if self.bracket {
            let name = if zero { "0" } else { "9" };
            return Err(syntax(&format!("\"{name}\" must be ahead of \"PR\"")));
        }
        if zero {
            if !self.zero && !self.decimal {
                self.zero = true;
                self.zero_start = self.pre + 1;
            }
        } else if self.times {
            self.multi += 1;
            return Ok(Node::Nine);
        }
        if self.decimal {
            self.post += 1;
        } else {
            self.pre += 1;
        }
        if zero {
            self.zero_end = self.pre + self.post;
        }
        Ok(if zero { Node::Zero } else { Node::Nine })
    }

    fn point(&mut self) -> Result<Node> {
        if self.decimal {
            return Err(syntax("multiple decimal points"));
        }
        if self.times {
            return Err(syntax("cannot use \"V\" and decimal point together"));
        }
        self.decimal = true;
        Ok(Node::Point)
    }

    fn sign(&mut self, word: &str) -> Result<Node> {
        let anchored = self.anchor != Anchor::None;
        Ok(match word {
            "S" => {
                if anchored {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.bracket {
                    return Err(syntax("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together"));
                }
                self.anchor = if self.decimal { Anchor::After } else { Anchor::Before };
                if !self.decimal {
                    self.pre_anchor = self.pre;
                }
                Node::Nothing
            }
            "PR" => {
                if anchored || self.plus || self.minus {
                    return Err(syntax("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together"));
                }
                self.bracket = true;
                Node::Nothing
            }
            word => {
                if anchored {
                    return Err(syntax(&format!("cannot use \"S\" and \"{word}\" together")));
                }
                self.minus |= word != "PL";
                self.plus |= word != "MI";
                match word {
                    "MI" => Node::Minus,
                    "PL" => Node::Plus,
                    _ => Node::Sign,
                }
            }
        })
    }

    fn flag(&mut self, word: &str) -> Result<Node> {
        match word {
            "FM" => self.fill = true,
            "B" if self.pre == 0 && self.post == 0 && !self.zero => self.blank = true,
            "V" => {
                if self.decimal {
                    return Err(syntax("cannot use \"V\" and decimal point together"));
                }
                self.times = true;
            }
            "EEEE" => {
                if self.exponent {
                    return Err(syntax("cannot use \"EEEE\" twice"));
                }
                let signed = self.anchor != Anchor::None || self.bracket || self.minus || self.plus;
                if self.blank || self.fill || signed || self.roman || self.times {
                    return Err(syntax("\"EEEE\" is incompatible with other formats")
                        .detail("\"EEEE\" may only be used together with digit and decimal point patterns."));
                }
                self.exponent = true;
            }
            _ => {}
        }
        Ok(Node::Nothing)
    }
}

/// Reading a number by a picture.
struct Reader<'a> {
    picture: &'a Picture,
    input: &'a [u8],
    at: usize,
    sign: Option<u8>,
    digits: String,
    read_pre: i32,
    read_post: i32,
    read_point: bool,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.input.get(self.at).copied().unwrap_or(0)
    }

    fn done(&self) -> bool {
        self.at >= self.input.len()
    }

    /// Steps over characters that cannot belong to a number.
    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            if self.done() || b"0123456789.,+-".contains(&self.peek()) {
                break;
            }
            self.step();
        }
    }

    /// Steps over one character, which may have several bytes.
    fn step(&mut self) {
        self.at += 1;
        while !self.done() && self.peek() & 0xc0 == 0x80 {
            self.at += 1;
        }
    }

    /// A digit or the point, with the sign before or after the number.
    fn digit(&mut self, is_digit: bool) {
        if self.peek() == b' ' {
            self.at += 1;
        }
        if self.done() {
            return;
        }
        let anchored = self.picture.anchor != Anchor::None;
        if self.sign.is_none() && is_digit && self.read_pre + self.read_post == 0 {
            let simple = !(anchored && self.picture.anchor == Anchor::Before);
            match self.peek() {
                b'-' => self.take_sign(b'-'),
                b'<' if simple && self.picture.bracket => self.take_sign(b'-'),
                b'+' => self.take_sign(b'+'),
                _ => {}
            }
        }
        if self.done() {
            return;
        }
        let mut read = false;
        if self.peek().is_ascii_digit() {
            if self.read_point && self.read_post == self.picture.post {
                return;
            }
            self.digits.push(self.peek() as char);
            if self.read_point {
                self.read_post += 1;
            } else {
                self.read_pre += 1;
            }
            read = true;
        } else if self.picture.decimal && !self.read_point && self.peek() == b'.' {
            self.digits.push('.');
            self.read_point = true;
            read = true;
        }
        if self.sign.is_none() && self.read_pre + self.read_post > 0 {
            self.trailing_sign(read, anchored);
        }
    }

    fn take_sign(&mut self, sign: u8) {
        self.sign = Some(sign);
        self.at += 1;
    }

    fn trailing_sign(&mut self, read: bool, anchored: bool) {
        let next = self.input.get(self.at + 1).copied();
        if anchored && read {
            if let Some(sign @ (b'-' | b'+')) = next {
                self.at += 1;
                self.sign = Some(sign);
            }
        } else if !read
            && !anchored
            && (self.picture.plus || self.picture.minus)
            && let sign @ (b'-' | b'+') = self.peek()
        {
            self.sign = Some(sign);
        }
    }

    /// Reads what one node of the picture stands for.
    fn node(&mut self, node: &Node) {
        match node {
            Node::Nine | Node::Zero | Node::Point => self.digit(*node != Node::Point),
            Node::Comma | Node::Group => {
                if self.peek() != b',' {
                    return;
                }
            }
            Node::Currency => return self.skip(1),
            Node::Th | Node::ThLower => return self.skip(2),
            Node::Minus | Node::Plus | Node::Sign => {
                let wanted: &[u8] = match node {
                    Node::Minus => b"-",
                    Node::Plus => b"+",
                    _ => b"+-",
                };
                if !wanted.contains(&self.peek()) {
                    return self.skip(1);
                }
                self.sign = Some(self.peek());
            }
            Node::Literal(_) => return self.step(),
            Node::Roman | Node::RomanLower | Node::Nothing => return,
        }
        self.at += 1;
    }
}

/// `to_number`
pub(super) fn to_number(text: &str, format: &str) -> Result<Datum> {
    if format.is_empty() {
        return Ok(Datum::Null);
    }
    let picture = Picture::parse(format)?;
    if picture.roman {
        return Err(Error::unsupported("\"RN\" not supported for input"));
    }
    if picture.exponent {
        return Err(Error::unsupported("\"EEEE\" not supported for input"));
    }
    let mut reader = Reader {
        picture: &picture,
        input: text.as_bytes(),
        at: 0,
        sign: None,
        digits: String::new(),
        read_pre: 0,
        read_post: 0,
        read_point: false,
    };
    for node in &picture.nodes {
        if reader.done() {
            break;
        }
        work::step(4)?;
        reader.node(node);
    }
    let sign = reader.sign.map_or(' ', char::from);
    let digits = reader.digits.strip_suffix('.').unwrap_or(&reader.digits);
    let number = Numeric::parse(&format!("{sign}{digits}"))?;
    let (precision, scale) = (picture.pre + picture.multi + reader.read_post, reader.read_post);
    let number = number.apply_typmod(precision, scale)?;
    if picture.times {
        let factor = Numeric::new(10, 0).power(&Numeric::new(-i64::from(picture.multi), 0))?;
        return Ok(Datum::Numeric(number.mul(&factor)?));
    }
    Ok(Datum::Numeric(number))
}
