//! `pg_snapshot` and `txid_snapshot`: which transactions a view sees, by their numbers.
//!
//! Held as [`Datum::Text`](crate::Datum::Text) in its text form, `xmin:xmax:xip,xip…`.

use base::{Error, Result, SqlState, work};

use crate::io::binary::Input;
use crate::io::counted::strtoul;
use crate::room::Room as _;

/// What a view sees: each transaction whose number is below `xmax`, except those in `running`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Of all transactions with lower numbers, it sees those that have committed.
    pub xmin: u64,
    /// It sees no transaction from this number on.
    pub xmax: u64,
    /// Those between that were running; ascending, from `xmin` on and below `xmax`.
    pub running: Vec<u64>,
}

impl Snapshot {
    /// One that does not see these; `running` is ascending and below `xmax`.
    pub fn new(xmax: u64, running: Vec<u64>) -> Snapshot {
        Snapshot { xmin: running.first().copied().unwrap_or(xmax), xmax, running }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// 22P02
    pub fn parse(text: &str) -> Result<Snapshot> {
        let invalid = || crate::io::invalid_syntax("pg_snapshot", text);
        let (xmin, _, rest) = strtoul(text.as_bytes(), false);
        let rest = rest.strip_prefix(b":").ok_or_else(invalid)?;
        let (xmax, _, rest) = strtoul(rest, false);
        let mut rest = rest.strip_prefix(b":").ok_or_else(invalid)?;
        let mut snapshot = Snapshot::between(xmin, xmax).ok_or_else(invalid)?;
        while !rest.is_empty() {
            let (number, _, behind) = strtoul(rest, false);
            if number >= xmax {
                return Err(invalid());
            }
            snapshot.add(number)?.ok_or_else(invalid)?;
            rest = match behind {
                [b',', rest @ ..] => rest,
                [] => behind,
                _ => return Err(invalid()),
            };
        }
        Ok(snapshot)
    }

    fn between(xmin: u64, xmax: u64) -> Option<Snapshot> {
        // No transaction has a number whose lower half is 0.
        let is_valid = xmin as u32 != 0 && xmax as u32 != 0 && xmin <= xmax;
        is_valid.then(|| Snapshot { xmin, xmax, running: Vec::new() })
    }

    /// The next of those that were running, once; `None` if it is out of order.
    fn add(&mut self, number: u64) -> Result<Option<()>> {
        work::step(16)?;
        Ok(match self.running.last() {
            _ if number < self.xmin => None,
            Some(last) if number < *last => None,
            Some(last) if number == *last => Some(()),
            _ => {
                self.running.make_room(1)?;
                self.running.push(number);
                Some(())
            }
        })
    }

    /// Reads the binary form.
    ///
    /// # Errors
    /// 22P03, 08P01
    pub(crate) fn read_binary(input: &mut Input<'_>) -> Result<Snapshot> {
        let invalid = || Error::new(SqlState::INVALID_BINARY_REPRESENTATION, "invalid external pg_snapshot data");
        let count = usize::try_from(input.word()?).map_err(|_| invalid())?;
        let (xmin, xmax) = (input.long()? as u64, input.long()? as u64);
        let mut snapshot = Snapshot::between(xmin, xmax).ok_or_else(invalid)?;
        for _ in 0..count {
            let number = input.long()? as u64;
            if number >= xmax {
                return Err(invalid());
            }
            snapshot.add(number)?.ok_or_else(invalid)?;
        }
        Ok(snapshot)
    }

    /// Appends the binary form.
    ///
    /// # Errors
    /// Why the statement should stop, or that there is no room.
    pub(crate) fn write_binary(&self, out: &mut Vec<u8>) -> Result<()> {
        out.make_room(4 + 8 * (2 + self.running.len()))?;
        out.extend_from_slice(&(self.running.len() as i32).to_be_bytes());
        for number in [self.xmin, self.xmax].iter().chain(&self.running) {
            work::step(1)?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        Ok(())
    }

    /// The text form.
    ///
    /// # Errors
    /// As of [`Snapshot::write_binary`].
    pub fn text(&self) -> Result<String> {
        let mut text = format!("{}:{}:", self.xmin, self.xmax);
        let mut digits = itoa::Buffer::new();
        for (at, number) in self.running.iter().enumerate() {
            work::step(4)?;
            let number = digits.format(*number);
            text.make_room(1 + number.len())?;
            if at > 0 {
                text.push(',');
            }
            text.push_str(number);
        }
        Ok(text)
    }

    /// Whether it sees the transaction of this number, if that has committed.
    pub fn sees(&self, number: u64) -> bool {
        number < self.xmin || number < self.xmax && self.running.binary_search(&number).is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_binary_forms_agree() {
        for (text, shown) in [("12:13:", "12:13:"), ("12:18:14,16,16", "12:18:14,16"), (" 1: 5:1,", "1:5:1")] {
            let snapshot = Snapshot::parse(text).unwrap();
            assert_eq!(snapshot.text().unwrap(), shown);
            let mut bytes = Vec::new();
            snapshot.write_binary(&mut bytes).unwrap();
            assert_eq!(Snapshot::read_binary(&mut Input(&bytes)).unwrap(), snapshot);
            for len in 0..bytes.len() {
                assert!(Snapshot::read_binary(&mut Input(&bytes[..len])).is_err());
            }
        }
        for wrong in ["", "1", "1:", "0:1:", "31:12:", "12:16:14,13", "12:16:16", "12:16:11", "1:5:2x", "1:5:x"] {
            assert!(Snapshot::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_sees_what_was_over() {
        let snapshot = Snapshot::parse("12:20:13,15,18").unwrap();
        let seen: Vec<u64> = (10..22).filter(|number| snapshot.sees(*number)).collect();
        assert_eq!(seen, [10, 11, 12, 14, 16, 17, 19]);
    }
}
