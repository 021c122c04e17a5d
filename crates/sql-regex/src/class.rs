//! Sets of characters, as the locale C.UTF-8 sees characters.

use std::sync::LazyLock;

use base::work;
use regex::Regex;

/// A named class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

impl Named {
    pub(super) fn of(name: &str) -> Option<Named> {
        Some(match name {
            "alnum" => Named::Alnum,
            "alpha" => Named::Alpha,
            "ascii" => Named::Ascii,
            "blank" => Named::Blank,
            "cntrl" => Named::Cntrl,
            "digit" => Named::Digit,
            "graph" => Named::Graph,
            "lower" => Named::Lower,
            "print" => Named::Print,
            "punct" => Named::Punct,
            "space" => Named::Space,
            "upper" => Named::Upper,
            "xdigit" => Named::Xdigit,
            "word" => Named::Word,
            _ => return None,
        })
    }

    /// The class in the syntax of the `regex` crate, to stand in brackets.
    pub(super) fn written(self) -> &'static str {
        match self {
            Named::Alnum => r"\p{Alphabetic}\p{Nd}",
            Named::Alpha => r"\p{Alphabetic}[\p{Nd}&&[^0-9]]",
            Named::Ascii => r"[:ascii:]",
            Named::Blank => r"\t\p{Zs}",
            Named::Cntrl => r"\p{Cc}\u{2028}\u{2029}",
            Named::Digit => "0-9",
            Named::Graph => r"[^\p{Z}\p{Cc}\p{Cn}]",
            Named::Lower => r"\p{Lowercase}",
            Named::Print => r"[^\p{Cc}\p{Cn}\u{2028}\u{2029}]",
            Named::Punct => r"[[^\p{Z}\p{Cc}\p{Cn}]&&[^\p{Alphabetic}\p{Nd}]]",
            Named::Space => r"[\p{White_Space}&&[^\u{85}\u{a0}\u{2007}\u{202f}]]",
            Named::Upper => r"\p{Uppercase}",
            Named::Xdigit => "0-9A-Fa-f",
            Named::Word => r"\p{Alphabetic}\p{Nd}_",
        }
    }

    fn holds(self, c: char) -> bool {
        if c.is_ascii() {
            return match self {
                Named::Alnum => c.is_ascii_alphanumeric(),
                Named::Alpha => c.is_ascii_alphabetic(),
                Named::Ascii => true,
                Named::Blank => c == ' ' || c == '\t',
                Named::Cntrl => c.is_ascii_control(),
                Named::Digit => c.is_ascii_digit(),
                Named::Graph => c.is_ascii_graphic(),
                Named::Lower => c.is_ascii_lowercase(),
                Named::Print => c == ' ' || c.is_ascii_graphic(),
                Named::Punct => c.is_ascii_punctuation(),
                Named::Space => c.is_ascii_whitespace() || c == '\x0b',
                Named::Upper => c.is_ascii_uppercase(),
                Named::Xdigit => c.is_ascii_hexdigit(),
                Named::Word => c.is_ascii_alphanumeric() || c == '_',
            };
        }
        match self {
            Named::Ascii | Named::Digit | Named::Xdigit => false,
            Named::Lower => c.is_lowercase(),
            Named::Upper => c.is_uppercase(),
            _ => TABLES[self as usize].is_match(c.encode_utf8(&mut [0; 4])),
        }
    }
}

/// The classes beyond ASCII, by the number of the class.
static TABLES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    (0..=Named::Word as usize)
        .map(|n| {
            let name = ALL[n].written();
            Regex::new(&format!("^[{name}]$")).expect("the classes are written in the crate's syntax")
        })
        .collect()
});

const ALL: [Named; 14] = [
    Named::Alnum,
    Named::Alpha,
    Named::Ascii,
    Named::Blank,
    Named::Cntrl,
    Named::Digit,
    Named::Graph,
    Named::Lower,
    Named::Print,
    Named::Punct,
    Named::Space,
    Named::Upper,
    Named::Xdigit,
    Named::Word,
];

/// Whether a character belongs to words.
pub(super) fn is_word(c: char) -> bool {
    Named::Word.holds(c)
}

/// A character in the other case, if there is one of one character.
pub(super) fn other_cases(c: char) -> (char, char) {
    let one = |mut chars: Box<dyn Iterator<Item = char>>| match (chars.next(), chars.next()) {
        (Some(one), None) => one,
        _ => c,
    };
    if c.is_ascii() {
        return (c.to_ascii_lowercase(), c.to_ascii_uppercase());
    }
    (one(Box::new(c.to_lowercase())), one(Box::new(c.to_uppercase())))
}

/// Ranges that are added to a set before they are put among the others.
const ADDED_MAX: usize = 1024;

/// A set of characters.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// First and last code of each range, in order; no two touch.
    ranges: Vec<(u32, u32)>,
    /// Ranges that are not among them yet.
    added: Vec<(u32, u32)>,
    /// Named classes, and whether their complement is meant.
    pub(super) named: Vec<(Named, bool)>,
    /// The set is all but these.
    pub(super) negated: bool,
    /// Newline is not in it, whatever else says so.
    pub(super) no_newline: bool,
    /// Both cases of what is in it are in it.
    pub(super) ignore_case: bool,
}

impl Class {
    /// No character.
    pub(super) fn empty(ignore_case: bool) -> Class {
        Class { ignore_case, ..Class::default() }
    }

    /// One character.
    pub(super) fn one(code: u32, ignore_case: bool) -> Class {
        Class { ranges: vec![(code, code)], ignore_case, ..Class::default() }
    }

    /// Puts a range into the set, which is asked nothing before it is [`sorted`](Class::sort).
    pub(super) fn add(&mut self, low: u32, high: u32) {
        self.added.push((low, high));
        // A step is short for this, and each range is moved a few times only.
        if self.added.len() > ADDED_MAX.max(self.ranges.len() / 8) {
            self.sort();
        }
    }

    /// Brings the ranges into order.
    pub(super) fn sort(&mut self) {
        if self.added.is_empty() {
            return;
        }
        let mut added = std::mem::take(&mut self.added);
        work::beat(16 * added.len() + 2 * self.ranges.len());
        added.sort_unstable();
        let before = std::mem::take(&mut self.ranges);
        let (mut before, mut added) = (before.into_iter().peekable(), added.into_iter().peekable());
        loop {
            let next = match (before.peek(), added.peek()) {
                (Some(a), Some(b)) if a <= b => before.next(),
                (_, Some(_)) => added.next(),
                _ => before.next(),
            };
            let Some((low, high)) = next else { return };
            match self.ranges.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => self.ranges.push((low, high)),
            }
        }
    }

    /// First and last code of each range, in order.
    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        debug_assert!(self.added.is_empty(), "a set that is not in order");
        &self.ranges
    }

    /// Any character.
    pub(super) fn any(no_newline: bool) -> Class {
        Class { negated: true, no_newline, ..Class::default() }
    }

    /// States of a machine that reads bytes, about.
    pub(super) fn size(&self) -> usize {
        let ranges: usize = self.ranges().iter().map(|&(_, high)| if high < 0x80 { 1 } else { 12 }).sum();
        let whole = ranges + 300 * self.named.len() + if self.negated { 12 } else { 0 };
        whole.max(1) * if self.ignore_case { 2 } else { 1 }
    }

    /// Whether a character is in the set.
    pub(super) fn holds(&self, c: char) -> bool {
        if c == '\n' && self.no_newline {
            return false;
        }
        let mut within = self.within(c);
        if !within && self.ignore_case {
            let (lower, upper) = other_cases(c);
            within = (lower != c && self.within(lower)) || (upper != c && self.within(upper));
        }
        within != self.negated
    }

    fn within(&self, c: char) -> bool {
        let code = u32::from(c);
        let after = self.ranges().partition_point(|&(low, _)| low <= code);
        after.checked_sub(1).is_some_and(|at| code <= self.ranges[at].1)
            || self.named.iter().any(|&(class, complement)| class.holds(c) != complement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_are_a_set() {
        // The same for every run: a linear congruence.
        let mut state = 7u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        for (count, below) in [(3, 20), (40, 100), (5000, 9000), (20_000, 200_000)] {
            let mut class = Class::default();
            let mut holds = vec![false; below as usize + 8];
            for _ in 0..count {
                let low = random(below);
                let high = low + random(8);
                class.add(low, high);
                holds[low as usize..=high as usize].fill(true);
            }
            class.sort();
            assert!(class.ranges().windows(2).all(|two| two[0].1 + 1 < two[1].0));
            for (code, holds) in holds.iter().enumerate() {
                if let Some(c) = char::from_u32(code as u32) {
                    assert_eq!(class.holds(c), *holds, "{code} of {count}");
                }
            }
        }
    }
}
