//! TPC-C's random values: clauses 2.1.6 (NURand), 4.3.2.2 (strings), 4.3.2.3 (last names), 4.3.2.7 (zip codes).

use crate::clock::civil;
use crate::rng::Rng;

/// Items, and stock rows per warehouse.
pub const ITEMS: i64 = 100_000;
/// Districts per warehouse.
pub const DISTRICTS: i64 = 10;
/// Customers per district, and orders per district after the load.
pub const CUSTOMERS: i64 = 3_000;

/// The constant C of last names while loading. Fixed, so that any later run can choose one that fits to it.
pub const LAST_NAME_C_LOAD: i64 = 157;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
const ALPHANUMERIC: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The constants C of NURand, one set for a whole run (clause 2.1.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    last_name: i64,
    customer: i64,
    item: i64,
}

impl Constants {
    /// Those of the load.
    pub fn load(rng: &mut Rng) -> Constants {
        Constants { last_name: LAST_NAME_C_LOAD, customer: rng.uniform(0, 1023), item: rng.uniform(0, 8191) }
    }

    /// Those of a run: its constant for last names must differ from the load's by 65 to 119, but not by 96 or 112.
    pub fn run(rng: &mut Rng) -> Constants {
        let last_name = loop {
            let candidate = rng.uniform(0, 255);
            let distance = (candidate - LAST_NAME_C_LOAD).abs();
            if (65..=119).contains(&distance) && distance != 96 && distance != 112 {
                break candidate;
            }
        };
        Constants { last_name, ..Constants::load(rng) }
    }

    /// The number behind a last name, 0 to 999.
    pub fn last_name(&self, rng: &mut Rng) -> i64 {
        nurand(rng, 255, self.last_name, 0, 999)
    }

    /// A customer of a district.
    pub fn customer(&self, rng: &mut Rng) -> i64 {
        nurand(rng, 1023, self.customer, 1, CUSTOMERS)
    }

    /// An item.
    pub fn item(&self, rng: &mut Rng) -> i64 {
        nurand(rng, 8191, self.item, 1, ITEMS)
    }
}

/// Non-uniform random: clause 2.1.6.
fn nurand(rng: &mut Rng, a: i64, c: i64, low: i64, high: i64) -> i64 {
    (((rng.uniform(0, a) | rng.uniform(low, high)) + c) % (high - low + 1)) + low
}

/// Appends the last name of a number from 0 to 999.
pub fn push_last_name(out: &mut Vec<u8>, number: i64) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[digit as usize].as_bytes());
    }
}

/// Appends a random a-string: letters and digits, of a length from `low` to `high`. None of them needs an escape in
/// COPY.
pub fn push_text(out: &mut Vec<u8>, rng: &mut Rng, low: i64, high: i64) {
    let length = rng.uniform(low, high);
    push_from(out, rng, ALPHANUMERIC, length);
}

/// Appends a random n-string of exactly `length` digits.
pub fn push_digits(out: &mut Vec<u8>, rng: &mut Rng, length: i64) {
    push_from(out, rng, &ALPHANUMERIC[..10], length);
}

/// Ten characters cost one step of the generator: loading is mostly this.
fn push_from(out: &mut Vec<u8>, rng: &mut Rng, alphabet: &[u8], length: i64) {
    let (mut bits, mut left) = (0u64, 0);
    out.extend((0..length).map(|_| {
        if left == 0 {
            (bits, left) = (rng.bits(), 5);
        }
        left -= 1;
        let twelve = bits & 0xfff;
        bits >>= 12;
        alphabet[(twelve as usize * alphabet.len()) >> 12]
    }));
}

/// Appends a zip code: four random digits and 11111.
pub fn push_zip(out: &mut Vec<u8>, rng: &mut Rng) {
    push_digits(out, rng, 4);
    out.extend_from_slice(b"11111");
}

/// Appends a data string, in which one row of ten has "ORIGINAL" somewhere.
pub fn push_data(out: &mut Vec<u8>, rng: &mut Rng) {
    let start = out.len();
    push_text(out, rng, 26, 50);
    if rng.percent(10) {
        let room = (out.len() - start) as i64 - 8;
        let at = start + rng.uniform(0, room) as usize;
        out[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
}

/// Appends a time as `YYYY-MM-DD hh:mm:ss.ffffff`, in UTC.
pub fn push_time(out: &mut Vec<u8>, time: std::time::SystemTime) {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let second = since.as_secs() as i64 % 86_400;
    let [year, month, day] = civil(since.as_secs() / 86_400).map(|part| part as i64);
    push_padded(out, year, 4, b'-');
    push_padded(out, month, 2, b'-');
    push_padded(out, day, 2, b' ');
    push_padded(out, second / 3600, 2, b':');
    push_padded(out, second / 60 % 60, 2, b':');
    push_padded(out, second % 60, 2, b'.');
    push_padded(out, i64::from(since.subsec_micros()), 6, b' ');
    out.pop();
}

fn push_padded(out: &mut Vec<u8>, value: i64, width: u32, then: u8) {
    out.extend((0..width).rev().map(|place| b'0' + (value / 10i64.pow(place) % 10) as u8));
    out.push(then);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    fn string(push: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        push(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn last_names_are_three_syllables() {
        assert_eq!(string(|o| push_last_name(o, 371)), "PRICALLYOUGHT");
        assert_eq!(string(|o| push_last_name(o, 40)), "BARPRESBAR");
        assert_eq!(string(|o| push_last_name(o, 999)), "EINGEINGEING");
        let longest = (0..1000).map(|n| string(|o| push_last_name(o, n)).len()).max();
        assert_eq!(longest, Some(15), "c_last has room for 16");
    }

    #[test]
    fn nurand_stays_in_range_and_is_not_uniform() {
        let mut rng = Rng::new(7, 0);
        let constants = Constants::run(&mut rng);
        let mut hits = vec![0u32; CUSTOMERS as usize + 1];
        for _ in 0..300_000 {
            hits[constants.customer(&mut rng) as usize] += 1;
            assert!((1..=ITEMS).contains(&constants.item(&mut rng)));
            assert!((0..=999).contains(&constants.last_name(&mut rng)));
        }
        assert_eq!(hits[0], 0);
        let often = hits.iter().filter(|&&h| h > 400).count();
        let rarely = hits.iter().filter(|&&h| h < 20).count();
        assert!(often > 50 && rarely > 500, "a uniform draw would be near 100 everywhere: {often} {rarely}");
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance() {
        for seed in 0..500 {
            let distance = (Constants::run(&mut Rng::new(seed, 0)).last_name - LAST_NAME_C_LOAD).abs();
            assert!((65..=119).contains(&distance) && distance != 96 && distance != 112, "{distance}");
        }
    }

    #[test]
    fn strings_have_their_shape() {
        let mut rng = Rng::new(11, 0);
        let mut originals = 0;
        for _ in 0..10_000 {
            let text = string(|o| push_text(o, &mut rng, 14, 24));
            assert!((14..=24).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric()));
            let zip = string(|o| push_zip(o, &mut rng));
            assert!(zip.len() == 9 && zip.ends_with("11111") && zip.bytes().all(|b| b.is_ascii_digit()));
            let data = string(|o| push_data(o, &mut rng));
            assert!((26..=50).contains(&data.len()));
            originals += u32::from(data.contains("ORIGINAL"));
        }
        assert!((900..1100).contains(&originals), "{originals}");
    }

    #[test]
    fn times_are_civil() {
        let at = |seconds: u64, micros: u64| {
            string(|o| push_time(o, UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros)))
        };
        assert_eq!(at(0, 0), "1970-01-01 00:00:00.000000");
        assert_eq!(at(951_782_400, 5), "2000-02-29 00:00:00.000005");
        assert_eq!(at(1_798_761_599, 999_999), "2026-12-31 23:59:59.999999");
    }
}
