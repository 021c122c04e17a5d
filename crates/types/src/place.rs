//! Places of an enum's labels in its order.
//!
//! A value holds a mark. Most marks are the place itself, a number. Where no number is left between two labels, the place of
//! the next one is a path: a number that was kept free there, then a place in an order of its own, and so on; the mark of
//! such a label only names it.
//! Invariants: a place never changes; no path is the beginning of another; between two numbers of one order that are in use
//! there is always one that is not.

use std::borrow::Cow;
use std::cmp::Ordering;

use base::Oid;

use crate::user;

/// The least mark that only names a label; no place is as large.
const FIRST_NAME: u32 = 0x7000_0000;

/// Whether a mark does not say where its label stands.
fn is_name(mark: f32) -> bool {
    (FIRST_NAME..f32::INFINITY.to_bits()).contains(&mark.to_bits())
}

/// The mark of the `n`th label with a path.
pub fn name(n: usize) -> f32 {
    f32::from_bits(FIRST_NAME + n as u32)
}

fn path(ty: Oid, mark: f32) -> Vec<f32> {
    let of_label = || user::of_label(ty, mark, |label| label.path.clone());
    if is_name(mark) { of_label().unwrap_or_else(|| vec![mark]) } else { vec![mark] }
}

fn compare_paths(a: &[f32], b: &[f32]) -> Ordering {
    let differing = a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne());
    differing.unwrap_or(a.len().cmp(&b.len()))
}

/// The order of two values of an enum.
pub fn compare(ty: Oid, a: f32, b: f32) -> Ordering {
    if is_name(a) || is_name(b) { compare_paths(&path(ty, a), &path(ty, b)) } else { a.total_cmp(&b) }
}

/// Appends bytes in the order of the values.
pub(crate) fn write_key(ty: Oid, mark: f32, out: &mut Vec<u8>) {
    let mut write = |number: f32| {
        let bits = number.to_bits();
        let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        out.extend_from_slice(&ordered.to_be_bytes());
    };
    if is_name(mark) { path(ty, mark).into_iter().for_each(write) } else { write(mark) }
}

/// A place between two that have none between them; `None` if there is no room, which is so only beside labels that were
/// placed before paths were known.
pub fn between(before: Option<&[f32]>, after: Option<&[f32]>) -> Option<Vec<f32>> {
    let (low, high) = match (before, after) {
        (None, None) => return Some(vec![1.0]),
        (Some(low), None) => return Some(vec![low.first()?.floor() + 1.0]),
        (None, Some(high)) => return Some(vec![high.first()?.ceil() - 1.0]),
        (Some(low), Some(high)) => (low, high),
    };
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let (a, b) = (*low.get(same)?, *high.get(same)?);
    // The end of an order below is free.
    if let Some(last) = low.get(same + 1) {
        return Some([&low[..=same], &[last.floor() + 1.0]].concat());
    }
    if let Some(first) = high.get(same + 1) {
        return Some([&high[..=same], &[first.ceil() - 1.0]].concat());
    }
    let middle = (a + b) / 2.0;
    let between = |x: f32| a < x && x < b;
    let roomy = a.next_up() < middle && middle < b.next_down();
    let number = [middle, a.next_up()].into_iter().find(|x| between(*x))?;
    let below: &[f32] = if roomy { &[] } else { &[1.0] };
    Some([Cow::Borrowed(&low[..same]), Cow::Owned(vec![number]), Cow::Borrowed(below)].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn there_is_always_a_place(steps in prop::collection::vec((any::<u16>(), 0usize..4), 0..400)) {
            let mut places: Vec<Vec<f32>> = vec![vec![1.0], vec![2.0]];
            let mut last = 1;
            for (at, how) in steps {
                // Beside the last one, on either side, or anywhere.
                let at = match how { 0 => last, 1 | 2 => last + 1, _ => at as usize % (places.len() + 1) };
                let before = at.checked_sub(1).and_then(|i| places.get(i));
                let place = between(before.map(Vec::as_slice), places.get(at).map(Vec::as_slice));
                places.insert(at, place.expect("a place"));
                last = at;
            }
            for pair in places.windows(2) {
                prop_assert!(compare_paths(&pair[0], &pair[1]).is_lt(), "{:?}", pair);
            }
            let begins = |a: &Vec<f32>, b: &Vec<f32>| a != b && b.starts_with(a);
            prop_assert!(!places.iter().any(|a| places.iter().any(|b| begins(a, b))));
        }
    }

    #[test]
    fn a_zigzag_finds_places() {
        let (mut low, mut high) = (vec![1.0], vec![2.0]);
        for step in 0..500 {
            let place = between(Some(&low), Some(&high)).expect("a place");
            assert!(compare_paths(&low, &place).is_lt() && compare_paths(&place, &high).is_lt());
            if step % 3 == 0 { low = place } else { high = place }
        }
    }
}
