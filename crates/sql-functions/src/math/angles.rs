//! Trigonometry in degrees, exact where the angle or the value makes it so.
//!
//! Each function divides by its own value at a known angle, so that the error cancels there; this is PostgreSQL's way,
//! and gives its digits.

/// One degree.
pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// Sine of 0 to 30 degrees.
fn small_sine(a: f64) -> f64 {
    (a * RADIANS_PER_DEGREE).sin() / (30.0 * RADIANS_PER_DEGREE).sin() / 2.0
}

/// Cosine of 0 to 60 degrees.
fn small_cosine(a: f64) -> f64 {
    let below_one = |a: f64| 1.0 - (a * RADIANS_PER_DEGREE).cos();
    1.0 - below_one(a) / below_one(60.0) / 2.0
}

/// Sine of 0 to 90 degrees.
fn quarter_sine(a: f64) -> f64 {
    if a <= 30.0 { small_sine(a) } else { small_cosine(90.0 - a) }
}

/// Cosine of 0 to 90 degrees.
fn quarter_cosine(a: f64) -> f64 {
    if a <= 60.0 { small_cosine(a) } else { small_sine(90.0 - a) }
}

/// The angle in the first quarter, and the signs that sine, cosine and tangent have for it.
fn quarter(a: f64) -> (f64, f64, f64) {
    let a = a % 360.0;
    let (mut sine, mut cosine) = (1.0, 1.0);
    let mut a = if a < 0.0 {
        sine = -1.0;
        -a
    } else {
        a
    };
    if a > 180.0 {
        a = 360.0 - a;
        sine = -sine;
    }
    if a > 90.0 {
        a = 180.0 - a;
        cosine = -1.0;
    }
    (a, sine, cosine)
}

pub(super) fn sind(a: f64) -> f64 {
    let (a, sign, _) = quarter(a);
    sign * quarter_sine(a)
}

pub(super) fn cosd(a: f64) -> f64 {
    let (a, _, sign) = quarter(a);
    sign * quarter_cosine(a)
}

/// Infinite at right angles, without an error.
pub(super) fn tand(a: f64) -> f64 {
    let (a, sine, cosine) = quarter(a);
    let value = sine * cosine * (quarter_sine(a) / quarter_cosine(a) / (quarter_sine(45.0) / quarter_cosine(45.0)));
    // Never minus zero.
    if value == 0.0 { 0.0 } else { value }
}

/// Infinite at 0, without an error.
pub(super) fn cotd(a: f64) -> f64 {
    let (a, sine, cosine) = quarter(a);
    let value = sine * cosine * (quarter_cosine(a) / quarter_sine(a) / (quarter_cosine(45.0) / quarter_sine(45.0)));
    if value == 0.0 { 0.0 } else { value }
}

/// Inverse sine of 0 to 1.
fn positive_asind(a: f64) -> f64 {
    if a <= 0.5 { a.asin() / 0.5f64.asin() * 30.0 } else { 90.0 - a.acos() / 0.5f64.acos() * 60.0 }
}

/// Inverse cosine of 0 to 1.
fn positive_acosd(a: f64) -> f64 {
    if a <= 0.5 { 90.0 - a.asin() / 0.5f64.asin() * 30.0 } else { a.acos() / 0.5f64.acos() * 60.0 }
}

pub(super) fn asind(a: f64) -> f64 {
    if a >= 0.0 { positive_asind(a) } else { -positive_asind(-a) }
}

pub(super) fn acosd(a: f64) -> f64 {
    if a >= 0.0 { positive_acosd(a) } else { 90.0 + positive_asind(-a) }
}

pub(super) fn atand(a: f64) -> f64 {
    a.atan() / 1f64.atan() * 45.0
}

pub(super) fn atan2d(a: f64, b: f64) -> f64 {
    a.atan2(b) / 1f64.atan() * 45.0
}
