//! Numbers of many digits, read in one counted pass: what is kept of them is short.

use base::work;

/// What is longer is read here first.
pub(crate) const LONG: usize = 16 << 10;

/// A number as it is written: `whole.fraction` times ten to the power of `exponent`.
pub(crate) struct LongNumber<'a> {
    pub(crate) negative: bool,
    /// Without the zeros in front.
    pub(crate) whole: &'a str,
    pub(crate) fraction: &'a str,
    /// As far as it fits.
    pub(crate) exponent: i64,
}

/// The bytes at the start of a text that are of a kind.
fn leading(text: &str, is: impl Fn(&u8) -> bool) -> usize {
    let mut at = 0;
    for part in text.as_bytes().chunks(1 << 10) {
        work::beat(part.len());
        match part.iter().position(|b| !is(b)) {
            Some(found) => return at + found,
            None => at += part.len(),
        }
    }
    at
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(leading(text, u8::is_ascii_digit))
}

/// Digits without the zeros in front.
fn significant(digits: &str) -> &str {
    &digits[leading(digits, |b| *b == b'0')..]
}

/// Digits, and what follows them, without the zeros in front but for one if nothing else is there.
pub(super) fn without_zeros(text: &str) -> &str {
    &text[leading(text, |b| *b == b'0').min(text.len().saturating_sub(1))..]
}

/// A text without the blanks around it.
pub(crate) fn trim(text: &str) -> &str {
    let is_blank = |c: char| {
        work::beat(1);
        c.is_ascii_whitespace() || c == '\x0b'
    };
    text.trim_matches(is_blank)
}

fn exponent(text: &str) -> Option<i64> {
    let written = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, rest) = digits(written);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let value = match significant(digits) {
        "" => 0,
        digits if digits.len() > 18 => i64::MAX / 4,
        digits => digits.parse().ok()?,
    };
    Some(if text.starts_with('-') { -value } else { value })
}

impl<'a> LongNumber<'a> {
    /// Reads a number with blanks around it; `None` if it is none, or no finite one.
    pub(crate) fn read(text: &'a str) -> Option<LongNumber<'a>> {
        let text = trim(text);
        let body = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, mut rest) = digits(body);
        let mut fraction = "";
        if let Some(behind) = rest.strip_prefix('.') {
            (fraction, rest) = digits(behind);
        }
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest.strip_prefix(['e', 'E']) {
            Some(text) => exponent(text)?,
            None if rest.is_empty() => 0,
            None => return None,
        };
        Some(LongNumber { negative: text.starts_with('-'), whole: significant(whole), fraction, exponent })
    }

    /// Whether it is 0.
    pub(crate) fn is_zero(&self) -> bool {
        self.whole.is_empty() && significant(self.fraction).is_empty()
    }

    /// A short text of a number that is rounded to the same float: no float needs more than 768 digits and whether one that is
    /// not 0 follows.
    pub(crate) fn for_float(&self) -> String {
        const KEPT: usize = 800;
        let fraction = if self.whole.is_empty() { significant(self.fraction) } else { self.fraction };
        let from_whole = &self.whole[..self.whole.len().min(KEPT)];
        let from_fraction = &fraction[..fraction.len().min(KEPT - from_whole.len())];
        let (more_whole, more) = (&self.whole[from_whole.len()..], &fraction[from_fraction.len()..]);
        let inexact = !significant(more_whole).is_empty() || !significant(more).is_empty();
        let last = if inexact { "1" } else { "0" };
        let power = self.exponent - self.fraction.len() as i64 + (more_whole.len() + more.len()) as i64 - 1;
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{from_whole}{from_fraction}{last}e{power}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Numeric;

    #[test]
    fn decimals_of_long_texts_are_those_of_short_ones() {
        let (zeros, shown) = ("0".repeat(LONG), |n: Numeric| format!("{n}"));
        for (long, short) in [
            (format!("-{zeros}12.50"), "-12.50"),
            (format!("{zeros}.125e2"), "12.5"),
            (format!("7e{zeros}3"), "7000"),
            (format!("7e-{zeros}3"), "0.007"),
            (format!("{zeros}.00"), "0.00"),
            (format!("{}5", " ".repeat(LONG)), "5"),
            (format!("{}-inf", " ".repeat(LONG)), "-Infinity"),
        ] {
            assert_eq!(shown(Numeric::parse(&long).unwrap()), short);
        }
        for wrong in [format!("0.{zeros}1"), format!("1{zeros}{zeros}{}", "0".repeat(131_072)), format!("{zeros}x")] {
            assert!(Numeric::parse(&wrong).is_err());
        }
    }

    #[test]
    fn floats_of_long_texts_are_those_of_short_ones() {
        for text in [
            "1",
            "-2.5e3",
            "0",
            ".5",
            "5.",
            "0.000e9",
            "00012.5e-2",
            "1e400",
            "-1e-400",
            " 7 ",
            "1e00000000000000000000003",
        ] {
            let short: f64 = LongNumber::read(text).unwrap().for_float().parse().unwrap();
            assert_eq!(short.to_bits(), text.trim().parse::<f64>().unwrap().to_bits(), "{text}");
        }
        // In the middle between two floats but for the last digit.
        let halfway = format!("9007199254740993.{}", "0".repeat(5000));
        for text in [
            halfway.clone(),
            format!("{halfway}1"),
            format!("{}1e-5000", "7".repeat(3000)),
            format!("0.{halfway}").replacen('.', "", 2),
        ] {
            let short: f64 = LongNumber::read(&text).unwrap().for_float().parse().unwrap();
            assert_eq!(short.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
        for text in ["", "-", ".", "e5", "1e", "1x", "1e5x", "--1", "nan"] {
            assert!(LongNumber::read(text).is_none(), "{text}");
        }
        assert!(LongNumber::read("0.0").unwrap().is_zero() && !LongNumber::read("0.01").unwrap().is_zero());
    }
}
