//! Which records are asked for, by YCSB's own generators, and what their keys are.

use crate::rng::Rng;

/// How uneven: YCSB's constant.
const THETA: f64 = 0.99;
/// Over so many items YCSB draws before it scatters them over the records, and what their zeta is.
const SCATTERED_ITEMS: u64 = 10_000_000_000;
const SCATTERED_ZETA: f64 = 26.469_028_201_783_02;

/// The key of record `number`, from 0: inserts of rising numbers go to places all over the table.
pub fn key(number: u64) -> String {
    format!("user{}", hash(number))
}

/// FNV-1a of the eight bytes, without its sign, as YCSB has it.
fn hash(number: u64) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    (hash as i64).unsigned_abs()
}

/// Numbers from 0, the small ones more often, after Gray and others, "Quickly generating billion-record synthetic databases".
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Over so many numbers, at least 2. The first call costs a step for each.
    pub fn new(items: u64) -> Zipfian {
        Zipfian { items: 0, zeta: 0.0, eta: 0.0 }.grown(items)
    }

    /// Over ten billion, whose sum is known.
    fn scattered() -> Zipfian {
        let (items, zeta) = (SCATTERED_ITEMS, SCATTERED_ZETA);
        Zipfian { items, zeta, eta: eta(items, zeta) }
    }

    /// The same over more numbers.
    pub fn grown(self, items: u64) -> Zipfian {
        if items <= self.items {
            return self;
        }
        let more: f64 = (self.items + 1..=items).map(|number| (number as f64).powf(-THETA)).sum();
        let zeta = self.zeta + more;
        Zipfian { items, zeta, eta: eta(items, zeta) }
    }

    /// The next number.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5_f64.powf(THETA) {
            return 1;
        }
        let share = (self.eta * unit - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }
}

fn eta(items: u64, zeta: f64) -> f64 {
    let of_two = 1.0 + 0.5_f64.powf(THETA);
    (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - of_two / zeta)
}

/// Which of the records that are there.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// Few are asked for often, and these lie anywhere.
    Scrambled(Zipfian),
    /// Those inserted last are asked for most.
    Latest(Zipfian),
}

impl Distribution {
    /// Anywhere.
    pub fn scrambled() -> Distribution {
        Distribution::Scrambled(Zipfian::scattered())
    }

    /// The last of `records`.
    pub fn latest(records: u64) -> Distribution {
        Distribution::Latest(Zipfian::new(records))
    }

    /// A number below `records`.
    pub fn draw(&mut self, records: u64, rng: &mut Rng) -> u64 {
        match self {
            Distribution::Scrambled(zipfian) => hash(zipfian.draw(rng)) % records,
            Distribution::Latest(zipfian) => {
                if records > zipfian.items {
                    *zipfian = zipfian.clone().grown(records);
                }
                records - 1 - zipfian.draw(rng).min(records - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_ycsb() {
        assert_eq!(key(0), "user6284781860667377211");
        assert_eq!(key(1), "user8517097267634966620");
    }

    #[test]
    fn the_sum_of_ten_billion_continues_that_of_few() {
        // An integral in the place of the sum from a million on.
        let million = Zipfian::new(1_000_000);
        let rest = ((SCATTERED_ITEMS as f64).powf(0.01) - 1e6_f64.powf(0.01)) / 0.01;
        assert!((million.zeta + rest - SCATTERED_ZETA).abs() < 0.001, "{}", million.zeta + rest);
        let grown = Zipfian::new(1000).grown(1_000_000);
        assert!((grown.zeta - million.zeta).abs() < 1e-6 && (grown.eta - million.eta).abs() < 1e-6);
    }

    #[test]
    fn small_numbers_come_as_often_as_they_should() {
        let (zipfian, mut rng) = (Zipfian::new(1000), Rng::new(1, 0));
        let mut hits = vec![0u32; 1000];
        for _ in 0..1_000_000 {
            hits[zipfian.draw(&mut rng) as usize] += 1;
        }
        // The first two exactly, those after by an approximation.
        for (at, tolerance) in [(0, 0.02), (1, 0.02), (10, 0.25), (500, 0.25)] {
            let share = f64::from(hits[at]) / 1e6;
            let right = (at as f64 + 1.0).powf(-THETA) / zipfian.zeta;
            assert!((share / right - 1.0).abs() < tolerance, "{at}: {share} {right}");
        }
    }

    #[test]
    fn every_record_can_be_drawn_and_no_other() {
        let mut rng = Rng::new(2, 0);
        for mut keys in [Distribution::scrambled(), Distribution::latest(50)] {
            let drawn: std::collections::BTreeSet<u64> = (0..20_000).map(|_| keys.draw(60, &mut rng)).collect();
            assert!(drawn.len() > 55 && drawn.iter().all(|&number| number < 60), "{drawn:?}");
        }
        let last = (0..1000).filter(|_| Distribution::latest(50).draw(50, &mut rng) == 49).count();
        assert!(last > 150, "{last}");
    }
}
