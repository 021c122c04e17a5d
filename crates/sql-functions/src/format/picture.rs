//! Numbers by pictures: `to_char`.
//!
//! The order of decisions in [`Writer::digit`] is PostgreSQL's, whose results for odd pictures follow from it.

use base::work::{self, Count};
use base::{Error, Result, SqlState};
use types::Numeric;

use super::parse::{Anchor, NODE_UNITS, Node, Picture};

/// More digits than any float has.
const DIGITS_MAX: i32 = 1100;
/// Width of a Roman numeral that is not in fill mode.
const ROMAN_WIDTH: usize = 15;

struct Writer<'a> {
    picture: Picture,
    /// Digits, perhaps with a point.
    number: &'a [u8],
    at: usize,
    sign: u8,
    sign_written: bool,
    pre_spaces: i32,
    count: i32,
    current: i32,
    /// Index of the last digit that is not a trailing zero, or of the point.
    last_relevant: Option<usize>,
    in_number: bool,
    out: String,
}

impl Writer<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.number.get(at).copied().unwrap_or(0)
    }

    fn ends_at_point(&self) -> bool {
        self.last_relevant.is_some_and(|at| self.byte(at) == b'.')
    }

    /// Whether this is the 0 before the point that a picture without `0` shows as a blank.
    fn is_blank_zero(&self) -> bool {
        !self.picture.zero && self.at == 0 && self.byte(0) == b'0' && self.picture.post != 0
    }

    fn write_sign(&mut self) {
        if self.picture.anchor != Anchor::None {
            if self.picture.anchor == Anchor::Before {
                self.out.push(if self.sign == b'-' { '-' } else { '+' });
                self.sign_written = true;
            }
        } else if self.picture.bracket {
            self.out.push(if self.sign == b'+' { ' ' } else { '<' });
            self.sign_written = true;
        } else if self.sign == b'+' {
            if !self.picture.fill {
                self.out.push(' ');
            }
            self.sign_written = true;
        } else if self.sign == b'-' {
            self.out.push('-');
            self.sign_written = true;
        }
    }

    fn digit(&mut self, node: &Node) {
        self.in_number = false;
        let zero_here = self.picture.zero && self.picture.zero_start <= self.current;
        let begins = self.current >= self.pre_spaces || (self.picture.zero && self.picture.zero_start == self.current);
        if !self.sign_written && begins && (!self.is_blank_zero() || self.ends_at_point()) {
            self.write_sign();
        }
        if self.current < self.pre_spaces && !zero_here {
            if !self.picture.fill {
                self.out.push(' ');
            }
        } else if self.current < self.pre_spaces {
            self.out.push('0');
            self.in_number = true;
        } else {
            self.digit_of_number(node);
        }
        let mut end = self.count + i32::from(self.pre_spaces != 0) + i32::from(self.picture.decimal);
        if self.last_relevant == Some(self.at) {
            end = self.current;
        }
        if self.current + 1 == end {
            if self.sign_written && self.picture.bracket {
                self.out.push(if self.sign == b'+' { ' ' } else { '>' });
            } else if self.picture.anchor == Anchor::After {
                self.out.push(if self.sign == b'-' { '-' } else { '+' });
            }
        }
        self.current += 1;
    }

    fn digit_of_number(&mut self, node: &Node) {
        let byte = self.byte(self.at);
        if byte == b'.' {
            if !self.ends_at_point() || self.picture.fill {
                self.out.push('.');
            }
        } else if self.last_relevant.is_some_and(|last| self.at > last) && *node != Node::Zero {
            // A trailing zero in fill mode.
        } else if self.is_blank_zero() {
            if !self.picture.fill {
                self.out.push(' ');
            } else if self.ends_at_point() {
                self.out.push('0');
            }
        } else {
            // Behind the number's last digit this is the end of the text, whatever the picture has left.
            self.out.push(byte as char);
            self.in_number = true;
        }
        if byte != 0 {
            self.at += 1;
        }
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let fill = self.picture.fill;
        match node {
            Node::Nine | Node::Zero | Node::Point => self.digit(node),
            Node::Comma | Node::Group if self.in_number => self.out.push(','),
            Node::Comma | Node::Group if !fill => self.out.push(' '),
            Node::Currency => self.out.push(' '),
            Node::Th | Node::ThLower if self.byte(0) != b'#' && self.sign != b'-' && !self.picture.decimal => {
                let th = ordinal(self.number)?;
                self.out.push_str(&if *node == Node::Th { th.to_ascii_uppercase() } else { th.to_string() });
            }
            Node::Minus if self.sign == b'-' => self.out.push('-'),
            Node::Plus if self.sign == b'+' => self.out.push('+'),
            Node::Minus | Node::Plus if !fill => self.out.push(' '),
            Node::Sign => self.out.push(self.sign as char),
            Node::Literal(c) => self.out.push(*c),
            _ => {}
        }
        Ok(())
    }
}

/// The ending of an ordinal number.
fn ordinal(number: &[u8]) -> Result<&'static str> {
    Ok(match number {
        [.., b'1', b'0'..=b'9'] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        [.., b'0'..=b'9'] => "th",
        other => {
            let message = format!("\"{}\" is not a number", String::from_utf8_lossy(other));
            return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
        }
    })
}

/// What was written, up to where it ends.
fn ended(mut out: String) -> String {
    if let Some(end) = out.find('\0') {
        out.truncate(end);
    }
    out
}

/// Index of the last digit after the point that is not 0, or of the point; `None` without a point.
fn last_relevant(number: &[u8]) -> Option<usize> {
    let point = number.iter().position(|&b| b == b'.')?;
    Some(number.iter().rposition(|&b| b != b'0').map_or(point, |at| at.max(point)))
}

/// Writes a number, given as text, by a picture.
fn write(mut picture: Picture, text: &str) -> Result<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (b'-', digits),
        None => (b'+', text),
    };
    let pre_len = digits.find('.').unwrap_or(digits.len()) as i32;
    let hashes;
    let mut number = digits.as_bytes();
    if pre_len > picture.pre {
        let mut all = vec![b'#'; (picture.pre + picture.post + 1) as usize];
        all[picture.pre as usize] = b'.';
        hashes = all;
        number = &hashes;
    }
    picture.zero_start -= i32::from(picture.zero_start > 0);
    let sign_written = if picture.plus || picture.minus {
        !picture.plus || picture.minus
    } else {
        if sign != b'-' && picture.fill {
            picture.bracket = false;
        }
        if picture.anchor == Anchor::Before && picture.pre == picture.pre_anchor {
            picture.anchor = Anchor::After;
        }
        sign == b'+' && picture.fill && picture.anchor == Anchor::None
    };
    let pre_spaces = (picture.pre - pre_len).max(0);
    let mut relevant = None;
    if picture.fill && picture.decimal {
        relevant = last_relevant(number);
        if let Some(at) = &mut relevant
            && picture.zero_end > pre_spaces
        {
            *at = (*at).max((number.len() - 1).min((picture.zero_end - pre_spaces) as usize));
        }
    }
    let count = picture.post + picture.pre - 1 + i32::from(!sign_written && pre_spaces == 0);
    let nodes = std::mem::take(&mut picture.nodes);
    let mut writer = Writer {
        picture,
        number,
        at: 0,
        sign,
        sign_written,
        pre_spaces,
        count,
        current: 0,
        last_relevant: relevant,
        in_number: false,
        out: String::new(),
    };
    for node in &nodes {
        work::step(NODE_UNITS)?;
        writer.node(node)?;
    }
    Ok(ended(writer.out))
}

/// A Roman numeral, or what stands for a number that has none.
fn roman(number: Option<i32>) -> String {
    const PARTS: [(i32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let Some(mut rest) = number.filter(|n| (1..=3999).contains(n)) else { return "#".repeat(ROMAN_WIDTH) };
    let mut text = String::new();
    for (value, letters) in PARTS {
        while rest >= value {
            text.push_str(letters);
            rest -= value;
        }
    }
    text
}

fn write_roman(picture: &Picture, number: Option<i32>) -> String {
    let text = roman(number);
    let mut out = String::new();
    for node in picture.nodes.iter().counted(NODE_UNITS) {
        let numeral = match node {
            Node::Roman => text.clone(),
            Node::RomanLower => text.to_ascii_lowercase(),
            Node::Literal(c) => {
                out.push(*c);
                continue;
            }
            // There is no sign, and what is not there ends the text.
            Node::Sign => {
                out.push('\0');
                continue;
            }
            Node::Currency => {
                out.push(' ');
                continue;
            }
            Node::Comma | Node::Group | Node::Minus | Node::Plus => {
                out.push_str(if picture.fill { "" } else { " " });
                continue;
            }
            _ => continue,
        };
        if picture.fill {
            out.push_str(&numeral);
        } else {
            out.push_str(&format!("{numeral:>ROMAN_WIDTH$}"));
        }
    }
    ended(out)
}

/// What `EEEE` shows for a number that is not finite.
fn no_exponent(picture: &Picture) -> String {
    format!(" {}.{}", "#".repeat(picture.pre.max(0) as usize), "#".repeat((picture.post + 4).max(0) as usize))
}

/// C's `%+.*e`, with a blank for the plus.
fn float_exponent(value: f64, post: i32) -> String {
    // No float has more digits; those beyond would all be 0.
    let (post, zeros) = (post.clamp(0, DIGITS_MAX), (post - DIGITS_MAX).max(0) as usize);
    let text = format!("{value:.*e}", post as usize);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let blank = if value.is_sign_negative() { "" } else { " " };
    let zeros = "0".repeat(zeros);
    format!("{blank}{mantissa}{zeros}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn text_of(number: &Numeric) -> String {
    let mut out = Vec::new();
    number.write(&mut out);
    types::written(out)
}

/// A NUMERIC with one digit before the point and an exponent.
fn decimal_exponent(number: &Numeric, post: i32) -> Result<String> {
    let text = text_of(&number.abs());
    let digits: String = text.chars().counted(2).filter(char::is_ascii_digit).collect();
    let before = text.find('.').unwrap_or(text.len()) as i64;
    let first = digits.find(|c| c != '0').map_or(before - 1, |at| at as i64);
    let exponent = before - 1 - first;
    let scale = Numeric::new(10, 0).power(&Numeric::new(exponent.abs(), 0))?;
    let scaled = if exponent < 0 {
        number.mul(&scale)?
    } else {
        // The digits are the same, so moving the point is exact.
        let mut moved: String = digits[first as usize..].to_string();
        moved.insert(1.min(moved.len()), '.');
        let moved = Numeric::parse(&moved)?;
        if number.signum() < 0 { moved.neg() } else { moved }
    };
    let blank = if number.signum() < 0 { "" } else { " " };
    let mantissa = text_of(&scaled.round(post.max(0)));
    Ok(format!("{blank}{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()))
}

/// `to_char` of whole numbers. With `V`, products beyond a short one are cut to it, those beyond a long one are refused.
pub(super) fn whole(number: i64, short: bool, format: &str) -> Result<String> {
    let mut picture = Picture::parse(format)?;
    let exact = Numeric::new(number, 0);
    if picture.roman {
        return Ok(write_roman(&picture, Some(exact.to_i32()?)));
    }
    if picture.exponent {
        return Ok(float_exponent(exact.to_f64(), picture.post));
    }
    let mut number = number;
    if picture.times {
        let factor = 10f64.powi(picture.multi);
        number = match short {
            true => {
                let factor = if factor <= f64::from(i32::MAX) { factor as i32 } else { i32::MIN };
                i64::from((number as i32).wrapping_mul(factor))
            }
            false => number
                .checked_mul(factor as i64)
                .filter(|_| factor < i64::MAX as f64)
                .ok_or_else(|| Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
        };
        picture.pre += picture.multi;
    }
    let text = text_of(&Numeric::new(number, 0).round(picture.post));
    write(picture, &text)
}

/// `to_char(numeric, text)`
pub(super) fn decimal(number: &Numeric, format: &str) -> Result<String> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        return Ok(write_roman(&picture, Some(number.round(0).to_i32()?)));
    }
    if picture.exponent {
        return match number.is_finite() {
            false => Ok(no_exponent(&picture)),
            true => decimal_exponent(number, picture.post),
        };
    }
    let mut number = number.clone();
    if picture.times {
        number = number.mul(&Numeric::new(10, 0).power(&Numeric::new(picture.multi.into(), 0))?)?;
        picture.pre += picture.multi;
    }
    let text = text_of(&number.round(picture.post));
    write(picture, &text)
}

/// `to_char` of floats, which have so many reliable digits.
pub fn float(mut value: f64, digits: i32, format: &str) -> Result<String> {
    let mut picture = Picture::parse(format)?;
    if picture.roman {
        let rounded = value.round_ties_even();
        return Ok(write_roman(&picture, (rounded.abs() < 1e9).then_some(rounded as i32)));
    }
    if picture.exponent {
        return Ok(if value.is_finite() { float_exponent(value, picture.post) } else { no_exponent(&picture) });
    }
    if picture.times {
        value *= 10f64.powi(picture.multi);
        picture.pre += picture.multi;
    }
    let shown = |value: f64, post: usize| match value.is_finite() {
        true => format!("{value:.post$}"),
        false if value.is_nan() => "NaN".to_string(),
        false => format!("{}Infinity", if value < 0.0 { "-" } else { "" }),
    };
    let whole = shown(value.abs(), 0).len() as i32;
    if whole >= digits {
        picture.post = 0;
    } else if whole + picture.post > digits {
        picture.post = digits - whole;
    }
    let text = shown(value, picture.post as usize);
    write(picture, &text)
}
