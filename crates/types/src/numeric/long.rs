//! Arithmetic of long mantissas in steps: between two of them others of the thread may have their turn ([`base::work`]).
//!
//! Products are the library's, which are short even for the longest numbers; quotients and the change of base are cut into
//! pieces, each of which takes about a millisecond at most.

use base::work;
use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, Zero};

use super::pow10;

/// Steps of the schoolbook method, one for each pair of words, that one call may take.
const AT_ONCE: usize = 1 << 18;
/// Steps that are a unit of work.
const STEPS_PER_UNIT: usize = 4;
/// Digits whose change of base is done by one call.
const DIGITS_AT_ONCE: usize = 4096;
/// Words of numbers that are not counted.
const SHORT: usize = 16;

fn words(n: &BigInt) -> usize {
    n.bits() as usize / 64 + 1
}

/// Counts a product.
#[inline]
pub(super) fn will_multiply(a: &BigInt, b: &BigInt) {
    let (a, b) = (words(a), words(b));
    if a.min(b) > 1 && a.max(b) > SHORT {
        // Long products take fewer steps than one for each pair of words.
        work::beat(((a * b) as f64).powf(0.8) as usize / STEPS_PER_UNIT + 1);
    }
}

/// Quotient, cut towards zero, and remainder. REQUIRES a divisor that is not zero.
pub(super) fn div_rem(a: &BigInt, b: &BigInt) -> (BigInt, BigInt) {
    let (n, m) = (words(a), words(b));
    if m > n {
        return (BigInt::zero(), a.clone());
    }
    let steps = (n - m + 1) * m;
    if steps <= AT_ONCE {
        if n > SHORT {
            work::beat(steps / STEPS_PER_UNIT);
        }
        let quotient = a / b;
        let rest = a - &quotient * b;
        return (quotient, rest);
    }
    // Long division whose digits are many words.
    let (dividend, divisor) = (a.magnitude(), b.magnitude());
    let size = (AT_ONCE / m).max(1) * 64;
    let (mut quotient, mut rest) = (BigUint::zero(), BigUint::zero());
    let mask = (BigUint::from(1u8) << size) - 1u8;
    for place in (0..(n * 64).div_ceil(size)).rev() {
        work::beat(AT_ONCE / STEPS_PER_UNIT);
        rest = (rest << size) | ((dividend >> (place * size)) & &mask);
        let digit = &rest / divisor;
        rest -= &digit * divisor;
        quotient = (quotient << size) | digit;
    }
    let quotient = BigInt::from(quotient);
    let rest = BigInt::from(rest);
    let quotient = if a.is_negative() != b.is_negative() { -quotient } else { quotient };
    (quotient, if a.is_negative() { -rest } else { rest })
}

/// The decimal digits of the absolute value.
pub(super) fn digits(n: &BigInt) -> String {
    if words(n) * 19 <= DIGITS_AT_ONCE {
        return n.magnitude().to_str_radix(10);
    }
    let unit = pow10(DIGITS_AT_ONCE as u32);
    let mut pieces = Vec::new();
    let mut rest = n.abs();
    while !rest.is_zero() {
        let (quotient, piece) = div_rem(&rest, &unit);
        work::beat(DIGITS_AT_ONCE);
        pieces.push(piece.magnitude().to_str_radix(10));
        rest = quotient;
    }
    let mut out = String::with_capacity(pieces.len() * DIGITS_AT_ONCE);
    for (at, piece) in pieces.iter().rev().enumerate() {
        if at > 0 {
            out.extend(std::iter::repeat_n('0', DIGITS_AT_ONCE - piece.len()));
        }
        out.push_str(piece);
    }
    out
}

/// How many decimal digits the absolute value has; REQUIRES that it is not zero.
pub(super) fn count_of_digits(n: &BigInt) -> i64 {
    // Between the powers of two around it there is at most one power of ten.
    let least = ((n.bits() - 1) as f64 * std::f64::consts::LOG10_2) as i64;
    let least = (least - 1).max(0);
    let mut power = pow10(least as u32);
    let mut count = least;
    while *n.magnitude() >= *power.magnitude() {
        power *= 10u8;
        count += 1;
    }
    count.max(1)
}

/// The number that decimal digits write; `None` if they are none.
pub(super) fn parse(digits: &[u8]) -> Option<BigInt> {
    if digits.len() <= DIGITS_AT_ONCE {
        work::beat(digits.len());
        return BigInt::parse_bytes(digits, 10);
    }
    let (high, low) = digits.split_at(digits.len() / 2);
    let (power, high) = (pow10(low.len() as u32), parse(high)?);
    will_multiply(&power, &high);
    Some(high * power + parse(low)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(digits: usize, seed: u64) -> BigInt {
        let mut state = seed | 1;
        let next = std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            b'1' + (state >> 33) as u8 % 9
        });
        let text: Vec<u8> = next.take(digits.max(1)).collect();
        BigInt::parse_bytes(&text, 10).expect("digits")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn long_numbers_are_reckoned_as_the_library_does(n in 1usize..60_000, m in 1usize..60_000, seed: u64) {
            let (a, b) = (number(n, seed), -number(m, !seed));
            prop_assert_eq!(div_rem(&a, &b), (&a / &b, &a % &b));
            prop_assert_eq!(div_rem(&b, &a), (&b / &a, &b % &a));
            let text = a.magnitude().to_str_radix(10);
            prop_assert_eq!(&digits(&a), &text);
            prop_assert_eq!(count_of_digits(&b), m as i64);
            prop_assert_eq!(parse(text.as_bytes()), Some(a));
        }
    }

    #[test]
    fn powers_of_ten_are_counted_right() {
        for n in [0u32, 1, 18, 19, 20, 299, 300, 16_384] {
            let power = pow10(n);
            assert_eq!(count_of_digits(&power), i64::from(n) + 1);
            if n > 0 {
                assert_eq!(count_of_digits(&(power - 1)), i64::from(n));
            }
        }
        assert_eq!(digits(&pow10(10_000)).len(), 10_001);
    }
}
