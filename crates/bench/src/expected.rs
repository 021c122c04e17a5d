//! A number that the database must have at the end: what was there at first, and what was acknowledged since. What became of work
//! whose connection was lost is not known, so it may be there or not.

use std::fmt::Display;

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

/// Whether all are there that must be, and nobody else: those that must and those that may be there, and what was found, are
/// compared in rising order.
pub struct RollCall<'a, T> {
    must: &'a [T],
    may: &'a [T],
    at: usize,
    found: u64,
    lost: Vec<T>,
    invented: Vec<T>,
}

impl<'a, T: Ord + Clone + Display> RollCall<'a, T> {
    /// Both in rising order, each once.
    pub fn new(must: &'a [T], may: &'a [T]) -> RollCall<'a, T> {
        RollCall { must, may, at: 0, found: 0, lost: Vec::new(), invented: Vec::new() }
    }

    /// The next that was found.
    pub fn see(&mut self, found: &T) {
        self.found += 1;
        while self.must.get(self.at).is_some_and(|one| one < found) {
            self.lost.push(self.must[self.at].clone());
            self.at += 1;
        }
        match self.must.get(self.at) {
            Some(one) if one == found => self.at += 1,
            _ if self.may.binary_search(found).is_ok() => {}
            _ => self.invented.push(found.clone()),
        }
    }

    /// After the last.
    pub fn verdict(mut self, says: &str) -> Verdict {
        self.lost.extend_from_slice(&self.must[self.at..]);
        let name = |word: &str, all: &[T]| match all.first() {
            Some(first) => format!(", {} {word}, the first {first}", all.len()),
            None => String::new(),
        };
        let (must, may, found) = (self.must.len(), self.may.len(), self.found);
        let wanted = if may == 0 { must.to_string() } else { format!("{must}, and {may} whose end is not known") };
        let wrong = name("LOST", &self.lost) + &name("INVENTED", &self.invented);
        Verdict { says: says.into(), holds: wrong.is_empty(), found: format!("{found} of {wanted}{wrong}") }
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

    #[test]
    fn a_roll_call_names_who_is_missing_and_who_is_too_many() {
        let call = |found: &[i64]| {
            let mut roll = RollCall::new(&[2, 4, 6], &[5]);
            found.iter().for_each(|found| roll.see(found));
            let Verdict { holds, found, .. } = roll.verdict("all");
            (holds, found)
        };
        assert_eq!(call(&[2, 4, 6]), (true, "3 of 3, and 1 whose end is not known".into()));
        assert!(call(&[2, 4, 5, 6]).0);
        assert_eq!(call(&[2, 6]).1, "2 of 3, and 1 whose end is not known, 1 LOST, the first 4");
        assert_eq!(
            call(&[1, 2, 2, 4, 7]).1,
            "5 of 3, and 1 whose end is not known, 1 LOST, the first 6, 3 INVENTED, the first 1"
        );
        assert!(!call(&[]).0);
    }
}
