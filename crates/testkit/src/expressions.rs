//! Random regular expressions and subjects.

use crate::random::Random;

const ATOMS: &[&str] = &[
    "a",
    "b",
    "c",
    "ab",
    ".",
    "[ab]",
    "[^a]",
    "[a-c]",
    "\\w",
    "\\d",
    "\\s",
    "\\W",
    "[[:alpha:]]",
    "[[:digit:]-]",
    "\\.",
    "é",
    "x",
    "1",
    "[[.hyphen.]a]",
    "[[=a=]b]",
    "\\u0061",
    "\\x62",
    "[\\w-]",
    "B",
    "\n",
];

const PLACES: &[&str] = &["^", "$", "\\A", "\\Z", "\\m", "\\M", "\\y", "\\Y", "[[:<:]]", "[[:>:]]"];

const QUANTIFIERS: &[&str] = &[
    "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}", "{1,}", "{2}?", "{1,2}?", "{0,1}?", "{0,}?", "{0}",
    "{1,1}?", "{1}",
];

const SUBJECT_PARTS: &[&str] = &["a", "b", "c", "ab", "abc", "1", " ", "x", "-", ".", "é", "\n", "B", "aa", "_", "12"];

const BROKEN: &[&str] = &[
    "(",
    ")",
    "[",
    "a**",
    "*a",
    "a{2,1}",
    "a{256}",
    "a{",
    "a{1",
    "[b-a]",
    "\\",
    "[[:foo:]]",
    "[[.foo.]]",
    "(?z)a",
    "a|*",
    "(?",
    "\\2(a)",
    "(a\\1)",
    "a{1,2}{2}",
    "[a",
    "\\q",
    "(?=a",
    "[[:alpha:]-z]",
    "[a-[:digit:]]",
    "***",
    "***a",
    "^*",
    "(?<a)",
    "\\u12",
    "(*a)",
    "{1}",
    "a{,2}",
    "x{1",
    "x{1,",
    "x{1,a}",
    "[\\y]",
    "[]a]",
    "[^]a]",
    "a]",
    "a}",
    "{a",
    "()",
    "(|a)",
    "(a|)",
    "\\0",
    "\\12",
    "\\101",
    "(a)\\1",
    "[a\\-z]",
];

/// Groups written so far, those that are closed, and how deep it is nested.
struct Writer<'a> {
    random: &'a mut Random,
    groups: u64,
    closed: Vec<u64>,
    in_look: bool,
}

impl Writer<'_> {
    fn expression(&mut self, depth: u32) -> String {
        let branches = if self.random.below(4) == 0 { 2 + self.random.below(2) } else { 1 };
        (0..branches).map(|_| self.branch(depth)).collect::<Vec<_>>().join("|")
    }

    fn branch(&mut self, depth: u32) -> String {
        let mut out = String::new();
        for _ in 0..1 + self.random.below(4) {
            if self.random.below(12) == 0 {
                out.push_str(self.random.pick(PLACES));
                continue;
            }
            if depth > 0 && self.random.below(14) == 0 {
                let kind = self.random.pick(&["(?=", "(?!", "(?<=", "(?<!"]);
                let before = std::mem::replace(&mut self.in_look, true);
                out.push_str(&format!("{kind}{})", self.expression(0)));
                self.in_look = before;
                continue;
            }
            out.push_str(&self.atom(depth));
            if self.random.below(3) == 0 {
                out.push_str(self.random.pick(QUANTIFIERS));
            }
        }
        out
    }

    fn atom(&mut self, depth: u32) -> String {
        match self.random.below(10) {
            0..=2 if depth > 0 && !self.in_look => {
                self.groups += 1;
                let number = self.groups;
                let inner = self.expression(depth - 1);
                self.closed.push(number);
                format!("({inner})")
            }
            3 if depth > 0 => format!("(?:{})", self.expression(depth - 1)),
            4 if !self.closed.is_empty() && !self.in_look => {
                let at = self.random.below(self.closed.len() as u64) as usize;
                format!("\\{}", self.closed[at])
            }
            _ => self.random.pick(ATOMS).to_owned(),
        }
    }
}

/// A random expression; one in twelve is broken.
pub fn expression(random: &mut Random) -> String {
    if random.below(12) == 0 {
        return format!("{}{}", random.pick(&["", "", "a", "(?i)"]), random.pick(BROKEN));
    }
    let prefix = match random.below(20) {
        0 => "(?i)",
        1 => "(?n)",
        2 => "(?x) ",
        3 => "***:",
        4 => "(?w)",
        5 => "(?p)",
        6 => "***=",
        _ => "",
    };
    let mut writer = Writer { random, groups: 0, closed: Vec::new(), in_look: false };
    format!("{prefix}{}", writer.expression(2))
}

/// A random text to match.
pub fn subject(random: &mut Random) -> String {
    (0..random.below(8)).map(|_| random.pick(SUBJECT_PARTS)).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A statement with one expression and one subject.
pub fn statement(random: &mut Random) -> String {
    let (pattern, text) = (quoted(&expression(random)), quoted(&subject(random)));
    let flags = quoted(random.pick(&["", "", "i", "n", "x", "g", "p", "w", "gi", "q", "s"]));
    let count = random.below(4);
    match random.below(13) {
        0..=3 => format!("SELECT regexp_match({text}, {pattern})"),
        4 => format!("SELECT {text} ~ {pattern}, {text} !~* {pattern}"),
        5 => format!("SELECT regexp_matches({text}, {pattern}, 'g')"),
        6 => format!("SELECT regexp_replace({text}, {pattern}, '[\\1\\&\\2\\\\]', {flags})"),
        7 => format!("SELECT regexp_replace({text}, {pattern}, '<\\&>', {}, {count}, {flags})", 1 + random.below(3)),
        8 => format!("SELECT regexp_split_to_array({text}, {pattern}, {flags})"),
        9 => format!(
            "SELECT regexp_count({text}, {pattern}), regexp_instr({text}, {pattern}, 1, {}, {}, {flags}, {count}), regexp_like({text}, {pattern}, {flags})",
            1 + count,
            random.below(2)
        ),
        10 => format!("SELECT regexp_substr({text}, {pattern}, 1, {}, {flags}, {count})", 1 + random.below(3)),
        11 => format!("SELECT substring({text} from {pattern})"),
        _ => similar(random, &text),
    }
}

fn similar(random: &mut Random, text: &str) -> String {
    let words = [
        "a",
        "b",
        "%",
        "_",
        "(a|b)",
        "[ab]",
        "c*",
        "x+",
        "1?",
        "a{2}",
        "|",
        ".",
        "^",
        "$",
        "#\"",
        "##",
        "(ab)%",
        "\\",
        "[^a]",
        "[",
        "]",
        "[[:alpha:]_]",
        "[]%]",
        "[^]a]",
        "[[:digit:](]",
        "[a[:space:]^]",
    ];
    let pattern: String = (0..1 + random.below(6)).map(|_| random.pick(&words)).collect();
    match random.below(3) {
        0 => format!("SELECT {text} SIMILAR TO {} ESCAPE '#'", quoted(&pattern)),
        1 => format!("SELECT {text} NOT SIMILAR TO {}", quoted(&pattern.replace('#', ""))),
        _ => format!("SELECT substring({text} similar {} escape '#')", quoted(&pattern)),
    }
}
