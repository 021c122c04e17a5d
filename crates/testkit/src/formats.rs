//! Random pairs of values and format patterns for `to_char`, `to_date`, `to_timestamp` and `to_number`.
//!
//! Patterns are strings of PostgreSQL's keywords with their prefixes and suffixes, quoted text and separators. For reading,
//! half of the inputs are what PostgreSQL's own `to_char` would write, some are damaged, and the rest are noise.

use crate::random::Random;

const DATE_WORDS: &[&str] = &[
    "HH", "HH12", "HH24", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "SSSS", "SSSSS", "AM",
    "am", "PM", "pm", "A.M.", "a.m.", "P.M.", "p.m.", "Y,YYY", "YYYY", "yyyy", "YYY", "YY", "Y", "IYYY", "IYY", "IY",
    "I", "BC", "bc", "AD", "ad", "B.C.", "b.c.", "A.D.", "a.d.", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM",
    "DAY", "Day", "day", "DY", "Dy", "dy", "DDD", "IDDD", "DD", "D", "ID", "W", "WW", "IW", "CC", "J", "Q", "RM", "rm",
    "TZ", "tz", "TZH", "TZM", "OF", "of", "dd", "hh24", "mi", "ss", "ddd", "Tz", "Am", "mM", "rM",
];

/// Words by which inputs are usually read.
const READ_WORDS: &[&str] = &[
    "YYYY", "MM", "DD", "HH24", "MI", "SS", "HH12", "AM", "MS", "US", "Mon", "Month", "DDD", "Dy", "Day", "YY", "IYYY",
    "IW", "ID", "IDDD", "TZH", "TZM", "FF3", "J", "CC", "BC", "Y,YYY", "RM", "SSSS", "Q", "WW", "W", "D", "YYY", "Y",
];

const SEPARATORS: &[&str] = &["-", "/", ":", " ", ".", ",", ";", "  ", "T", "x", "_", "#", "é"];

const QUOTED: &[&str] =
    &["\"at\"", "\" \"", "\"YYYY\"", "\"a\\\"b\"", "\"\\\\\"", "\\\"", "\"open", "\"\"", "\\n", "\\"];

const NUMBER_WORDS: &[&str] = &[
    "9", "9", "9", "99", "999", "0", "0", "00", ".", ".", "D", ",", "G", "PR", "S", "L", "MI", "PL", "SG", "RN", "rn",
    "TH", "th", "V", "EEEE", "eeee", "FM", "FM", "B", "C", "SP", "s", "d", "g", "mi", "pr", "pl", "sg", "l", "fm",
];

const TIMESTAMPS: &[&str] = &[
    "2024-02-29 12:34:56.789",
    "1970-01-01 00:00:00",
    "infinity",
    "-infinity",
    "0001-01-01 BC",
    "0044-03-15 23:59:59.5 BC",
    "1999-12-31 23:59:59.999999",
    "2021-01-03 06:05:04.030201",
    "2020-12-31 13:00",
    "12024-07-04 01:02:03",
    "0099-11-12 11:11:11",
    "0100-06-30",
    "1900-12-31 12:00",
    "4713-01-01 BC",
    "2001-01-01 00:00:00.1",
];

const INTERVALS: &[&str] = &[
    "0",
    "1 year 2 mons 3 days 04:05:06.7",
    "-1 year -2 mons -3 days -04:05:06.7",
    "36:00",
    "-36:30:15.123456",
    "40 days",
    "100 years",
    "-00:00:00.5",
    "1 mon -1 day",
    "2345 years 11 mons",
    "1000:00:00",
    "12 mons",
    "-25 mons",
    "12:00",
    "00:30",
];

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "12",
    "-12",
    "0.5",
    "-0.5",
    "485",
    "-485",
    "1485",
    "3.1",
    "148.5",
    "-148.5",
    "12.45",
    "0.1",
    "-0.1",
    "1234567.891",
    "3999",
    "4000",
    "-3",
    "0.005",
    "99.995",
    "999.9",
    "11",
    "21",
    "13",
    "112",
    "1e5",
    "-7.25",
    "0.00012",
    "100000000000000000",
    "12345678901234567890",
    "123.000",
    "-0.001",
];

const FLOATS: &[&str] =
    &["NaN", "Infinity", "-Infinity", "1e-10", "1e20", "1.7e308", "3.4e38", "-0", "0.1", "123456.789", "2.5", "3.5"];

const READ_NUMBERS: &[&str] = &[
    "12,454.8-",
    "-12.5",
    "<12>",
    "$12.34",
    "12",
    " 12 ",
    "+1.5",
    "1,234,567",
    "abc",
    "",
    "-",
    "1-2",
    "12th",
    "XII",
    "1.2.3",
    "  - 12.3",
    "12 -",
    "0001",
    "1e5",
    "é12",
    "12.",
    ".5",
    "$ 1,000.01",
    "<1.5",
    "12.3456",
    "123456789012345678901234567890",
    "1 2 3",
    "+-1",
    "--1",
    "NaN",
    "1,2",
];

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A pattern for dates and times.
fn date_pattern(random: &mut Random, words: &[&str], separated: bool) -> String {
    let mut out = String::new();
    if random.below(30) == 0 {
        out.push_str("FX");
    }
    for at in 0..1 + random.below(5) {
        if at > 0 && (separated || random.below(3) > 0) {
            out.push_str(random.pick(SEPARATORS));
        }
        if random.below(16) == 0 {
            out.push_str(random.pick(QUOTED));
        }
        out.push_str(match random.below(14) {
            0 | 1 => "FM",
            2 => "TM",
            3 if random.below(3) == 0 => "fm",
            4 if random.below(4) == 0 => "FMTM",
            5 if random.below(6) == 0 => "FX",
            _ => "",
        });
        out.push_str(random.pick(words));
        out.push_str(match random.below(16) {
            0 => "TH",
            1 => "th",
            2 if random.below(3) == 0 => "SP",
            3 if random.below(6) == 0 => "THth",
            _ => "",
        });
    }
    out
}

fn number_pattern(random: &mut Random) -> String {
    let mut out = String::new();
    match random.below(4) {
        // As people write them, so that most are accepted.
        0 | 1 => {
            out.push_str(random.pick(&["", "", "FM", "S", "SG", "MI", "PL", "L", "FMS", "B"]));
            out.push_str(random.pick(&["9", "999", "0", "000", "9,999", "9G999", "990", "099", "9990", "99,90", ""]));
            out.push_str(random.pick(&["", ".9", ".99", "D99", ".00", ".90", ".09", "V99", ".999999", "D0", ".", "V"]));
            out.push_str(random.pick(&["", "", "", "S", "MI", "PR", "PL", "SG", "TH", "th", "EEEE", "L", "\" x\""]));
        }
        2 => {
            out.push_str(random.pick(&["RN", "FMRN", "rn", "FMrn", "RNth", "RN9", "9RN", "RN\"x\""]));
        }
        _ => {
            for _ in 0..1 + random.below(7) {
                out.push_str(random.pick(NUMBER_WORDS));
                if random.below(10) == 0 {
                    out.push_str(random.pick(QUOTED));
                }
                if random.below(12) == 0 {
                    out.push_str(random.pick(SEPARATORS));
                }
            }
        }
    }
    out
}

/// A text that a pattern might read: what `to_char` would write, perhaps damaged.
fn readable(random: &mut Random, pattern: &str) -> String {
    let written =
        format!("coalesce(to_char({}::timestamp, {}), 'x')", quoted(random.pick(TIMESTAMPS)), quoted(pattern));
    match random.below(9) {
        0 => format!("left({written}, {})", random.below(12)),
        1 => format!("overlay({written} placing {} from {})", quoted(random.pick(SEPARATORS)), 1 + random.below(10)),
        2 => format!(
            "overlay({written} placing {} from {})",
            quoted(random.pick(&["0", "9", "99", "-", "+"])),
            1 + random.below(10)
        ),
        3 => format!("replace({written}, {}, {})", quoted(random.pick(SEPARATORS)), quoted(random.pick(SEPARATORS))),
        4 => format!("' ' || {written}"),
        5 => format!("lower({written})"),
        _ => written,
    }
}

/// A statement that formats or reads one value.
pub fn statement(random: &mut Random) -> String {
    match random.below(10) {
        0 => {
            let pattern = date_pattern(random, DATE_WORDS, false);
            format!("SELECT to_char({}::timestamp, {})", quoted(random.pick(TIMESTAMPS)), quoted(&pattern))
        }
        1 => {
            let pattern = date_pattern(random, DATE_WORDS, false);
            format!("SELECT to_char({}::timestamptz, {})", quoted(random.pick(TIMESTAMPS)), quoted(&pattern))
        }
        2 => {
            let pattern = date_pattern(random, DATE_WORDS, false);
            format!("SELECT to_char({}::interval, {})", quoted(random.pick(INTERVALS)), quoted(&pattern))
        }
        3 | 4 => {
            let separated = random.below(2) == 0;
            let words = if random.below(5) == 0 { DATE_WORDS } else { READ_WORDS };
            let pattern = date_pattern(random, words, separated);
            let function = random.pick(&["to_date", "to_timestamp"]);
            format!("SELECT {function}({}, {})", readable(random, &pattern), quoted(&pattern))
        }
        5 => {
            let pattern = date_pattern(random, READ_WORDS, true);
            let function = random.pick(&["to_date", "to_timestamp"]);
            let mut input = String::new();
            for _ in 0..random.below(7) {
                let number =
                    [random.below(10), random.below(40), random.below(100), random.below(3000), random.below(999_999)];
                match random.below(8) {
                    0 => input.push_str(
                        random.pick(&["Jan", "december", "Sat", "MONDAY", "am", "p.m.", "BC", "xii", "IV", "th"]),
                    ),
                    1 => input.push_str(random.pick(&["+", "-", "+05", "-08:30"])),
                    _ => input.push_str(&number[random.below(5) as usize].to_string()),
                }
                input.push_str(random.pick(SEPARATORS));
            }
            format!("SELECT {function}({}, {})", quoted(&input), quoted(&pattern))
        }
        6 | 7 => {
            let pattern = number_pattern(random);
            let kind = random.pick(&["numeric", "numeric", "float8", "float4", "int", "int8"]);
            let number = match kind {
                "int" => {
                    random.pick(&["0", "1", "-1", "485", "-485", "12345", "2147483647", "-2147483648", "3999", "11"])
                }
                "int8" => random.pick(&["0", "-7", "9223372036854775807", "-9223372036854775808", "1485", "22"]),
                "numeric" if random.below(8) == 0 => random.pick(&["NaN", "Infinity", "-Infinity"]),
                "numeric" => random.pick(NUMBERS),
                _ if random.below(3) == 0 => random.pick(FLOATS),
                _ => random.pick(NUMBERS),
            };
            format!("SELECT to_char({}::{kind}, {})", quoted(number), quoted(&pattern))
        }
        8 => {
            let pattern = number_pattern(random);
            let number = quoted(random.pick(NUMBERS));
            format!("SELECT to_number(to_char({number}::numeric, {0}), {0})", quoted(&pattern))
        }
        _ => {
            let pattern = number_pattern(random);
            format!("SELECT to_number({}, {})", quoted(random.pick(READ_NUMBERS)), quoted(&pattern))
        }
    }
}
