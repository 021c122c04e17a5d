//! A number that the database must have at the end: what was there at first, and what was acknowledged since. What became of work
//! whose connection was lost is not known, so it may be there or not.

use crate::result::Verdict;

/// A count, or a sum of what is never negative, that only work of this run changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// What was found before the first point; `None` before it was looked at.
    start: Option<i64>,
    /// Added by acknowledged work.
    acknowledged: i64,
    /// Added by other work, if that has happened.
    unknown: i64,
}

impl Expected {
    /// Looks at what is there, the first time it is called.
    pub fn begin<E>(&mut self, look: impl FnOnce() -> Result<i64, E>) -> Result<(), E> {
        if self.start.is_none() {
            self.start = Some(look()?);
        }
        Ok(())
    }

    /// Notes what a point has added.
    pub fn add(&mut self, acknowledged: u64, unknown: u64) {
        self.acknowledged += acknowledged as i64;
        self.unknown += unknown as i64;
    }

    /// Whether `found` can be.
    pub fn verdict(&self, says: &str, found: i64) -> Verdict {
        let least = self.start.unwrap_or(0) + self.acknowledged;
        let most = least + self.unknown;
        let wanted = if self.unknown == 0 { least.to_string() } else { format!("from {least} to {most}") };
        let verdict = match found {
            _ if found < least => format!(", {} LOST", least - found),
            _ if found > most => format!(", {} INVENTED", found - most),
            _ => String::new(),
        };
        Verdict {
            says: says.to_string(),
            holds: (least..=most).contains(&found),
            found: format!("{found} of {wanted}{verdict}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_may_be_there_or_not() {
        let mut expected = Expected::default();
        expected.begin(|| Ok::<_, ()>(10)).unwrap();
        expected.begin(|| Err(())).unwrap();
        expected.add(5, 0);
        let verdict = |expected: &Expected, found| expected.verdict("sum", found);
        assert_eq!(verdict(&expected, 15).found, "15 of 15");
        assert!(verdict(&expected, 15).holds && !verdict(&expected, 14).holds && !verdict(&expected, 16).holds);
        expected.add(1, 2);
        assert_eq!([15, 16, 17, 18, 19].map(|n| verdict(&expected, n).holds), [false, true, true, true, false]);
        assert_eq!(verdict(&expected, 15).found, "15 of from 16 to 18, 1 LOST");
        assert_eq!(verdict(&expected, 20).found, "20 of from 16 to 18, 2 INVENTED");
    }
}
