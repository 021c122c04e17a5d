//! Numbers in bytes.

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Appends a number, seven bits to a byte, the low ones first.
pub(crate) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Takes a number off the front. `None` if there is none, or it is larger than any.
#[inline]
pub(crate) fn take(from: &mut &[u8]) -> Option<u64> {
    // Most are of a byte: the distance to the next row, a layout, a length.
    match from.split_first() {
        Some((first, rest)) if *first < 0x80 => {
            *from = rest;
            Some(u64::from(*first))
        }
        _ => take_long(from),
    }
}

fn take_long(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = from.split_first()?;
        *from = rest;
        let bits = u64::from(first & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        n |= bits << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip() {
        for n in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, n);
            let mut from = &out[..];
            assert_eq!((take(&mut from), from.len()), (Some(n), 0));
            assert_eq!(take(&mut &out[..out.len() - 1]), None);
        }
        assert_eq!(take(&mut &[0xff; 9][..]), None);
        assert_eq!(take(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
    }
}
