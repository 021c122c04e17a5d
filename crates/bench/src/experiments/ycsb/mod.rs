//! YCSB's workloads A to F with the defaults of its core: records of ten fields with 100 bytes, keys by a scrambled Zipfian
//! distribution or, in D, the latest, scans of up to 100 records, one field changed by an update, all fields read.
//!
//! The workloads run on one table, one after the other, which D and E let grow. A read-modify-write is a read and an update without a
//! transaction around them, as YCSB's client has it.

mod client;
mod keys;
mod records;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::experiments::{At, Experiment, Lab, Refusal, measure};
use crate::options::Common;
use crate::result::{Load, Point, Verdict};
use crate::rng::Rng;
use crate::schema;
use client::{Client, KINDS, Records, push_field, statements};
use keys::{Distribution, key};
use records::Present;

const TABLE: &str = "usertable";
const FIELDS: usize = 10;
const FIELD_BYTES: usize = 100;
const LONGEST_SCAN: i64 = 100;

/// Options of `bench ycsb`.
#[derive(Args, Clone, Debug)]
pub struct YcsbArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Workloads, measured one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "a,b,c,d,e,f")]
    workload: Vec<Mix>,
    /// Records that are loaded.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    records: u64,
}

/// YCSB's core workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mix {
    /// Half reads, half updates.
    A,
    /// 95 of 100 reads, the others updates.
    B,
    /// Reads.
    C,
    /// 95 of 100 reads of the latest records, the others inserts.
    D,
    /// 95 of 100 scans, the others inserts.
    E,
    /// Half reads, half reads of a record that is then changed.
    F,
}

impl Mix {
    /// Of 100 operations: reads, updates, inserts, scans; the rest is read-modify-write.
    fn shares(self) -> [i64; 4] {
        match self {
            Mix::A => [50, 50, 0, 0],
            Mix::B => [95, 5, 0, 0],
            Mix::C => [100, 0, 0, 0],
            Mix::D => [95, 0, 5, 0],
            Mix::E => [0, 0, 5, 95],
            Mix::F => [50, 0, 0, 0],
        }
    }

    fn name(self) -> String {
        format!("workload {self:?}")
    }
}

/// The experiment.
pub struct Ycsb {
    args: YcsbArgs,
    /// The records from before the first point; `None` before they were looked at.
    start: Option<Present>,
    next: u64,
    /// Records of this run.
    acknowledged: Vec<u64>,
    unknown: Vec<u64>,
}

impl Ycsb {
    /// With these options.
    pub fn new(args: YcsbArgs) -> Ycsb {
        Ycsb { args, start: None, next: 0, acknowledged: Vec::new(), unknown: Vec::new() }
    }

    fn begin(&mut self, lab: &mut Lab) -> Result<(), Refusal> {
        if self.start.is_none() {
            let present = Present::read(&mut lab.connect()?)?;
            self.next = present.next();
            self.start = Some(present);
        }
        Ok(())
    }
}

impl Experiment for Ycsb {
    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let records = format!("{} of {FIELDS} x {FIELD_BYTES} bytes", self.args.records);
        BTreeMap::from([("records".to_string(), records)])
    }

    fn variants(&self) -> Vec<String> {
        self.args.workload.iter().map(|mix| mix.name()).collect()
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let found = schema::int_if_there(&mut lab.connect()?, &format!("SELECT count(*) FROM {TABLE}"))?;
        match (found.unwrap_or(0), self.args.records as i64) {
            (0, _) => Ok(false),
            // Earlier runs have inserted some.
            (found, wanted) if found < wanted => Err(schema::other_size("records", found, wanted, "--records")),
            _ => Ok(true),
        }
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let (mut connection, started) = (lab.connect()?, Instant::now());
        let names: Vec<String> = (0..FIELDS).map(|n| format!("field{n}")).collect();
        let fields: Vec<String> = names.iter().map(|name| format!("{name} varchar({FIELD_BYTES})")).collect();
        let table = format!("{TABLE} (ycsb_key varchar(64) NOT NULL PRIMARY KEY, {})", fields.join(", "));
        schema::create(lab, &mut connection, &table)?;
        let (mut rng, columns) = (Rng::new(lab.seed, 1 << 50), format!("{TABLE} (ycsb_key, {})", names.join(", ")));
        schema::fill(lab, &mut connection, &columns, self.args.records, |number, out| {
            out.extend_from_slice(key(number - 1).as_bytes());
            for _ in 0..FIELDS {
                out.push(b'\t');
                push_field(out, &mut rng);
            }
            out.push(b'\n');
        })?;
        Ok(schema::loaded(lab, &mut connection, &[TABLE], self.args.records, started)?)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &[TABLE])?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        self.begin(lab)?;
        let mix = self.args.workload.iter().copied().find(|mix| mix.name() == at.variant);
        let mix = mix.ok_or_else(|| Refusal::Options(format!("there is no {}", at.variant)))?;
        let inserting = if mix.shares()[2] > 0 { at.threads } else { 0 };
        let records = Arc::new(Records::new(self.next, inserting));
        let keys = match mix {
            Mix::D => Distribution::latest(self.next),
            _ => Distribution::scrambled(),
        };
        let client = |number| {
            let rng = at.rng(lab.seed, number);
            Client::new(number, mix, records.clone(), keys.clone(), rng)
        };
        let clients = (0..at.threads).map(client).collect();
        let (mut point, measured) = measure(lab, at, &KINDS, &statements(), clients)?;
        point.kinds.retain(|kind| kind.count > 0);
        let mut missed = 0;
        for client in measured.workers {
            self.acknowledged.extend(client.acknowledged);
            self.unknown.extend(client.unknown);
            missed += client.missed;
        }
        if missed > 0 {
            point.figures.insert("missed_records".into(), missed as f64);
        }
        self.next = records.next();
        Ok((point, measured.ended))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        let start = self.start.as_ref().map_or(&[][..], Present::numbers);
        Ok(vec![records::verdict(&mut lab.connect()?, start, &self.acknowledged, &self.unknown)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_the_rest_to_f() {
        for mix in Mix::value_variants() {
            let rest = 100 - mix.shares().iter().sum::<i64>();
            assert_eq!(rest, if *mix == Mix::F { 50 } else { 0 }, "{mix:?}");
        }
    }
}
