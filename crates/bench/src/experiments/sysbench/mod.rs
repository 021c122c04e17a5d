//! sysbench's OLTP workloads, and what RonDB's paper varies in them: the number and the form of point reads, the kinds and
//! the size of ranges, a filter that returns one row of a hundred, reads by the secondary index, think time.
//!
//! Tables, statements and the distribution of keys are those of sysbench 1.0's `oltp_*.lua`, sent as libpq sends them, a
//! round trip a statement. A transaction that meets a duplicate key, which two clients that replace the same row
//! bring about, is run again, as sysbench does.

mod keys;
mod tables;
mod transaction;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::experiments::{At, Experiment, Lab, Refusal, measure};
use crate::options::{Common, duration, name};
use crate::result::{Load, Point, Verdict};
use keys::Distribution;
use transaction::{Client, Shape};

/// Options of `bench sysbench`.
#[derive(Args, Clone, Debug)]
pub struct SysbenchArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Workloads, measured one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "oltp_read_write")]
    workload: Vec<Workload>,
    /// Tables.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    tables: u16,
    /// Rows of each table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=2_000_000_000))]
    rows: u32,
    /// Each client works on one table only, the clients being divided among the tables, as several generators with a table each do.
    #[arg(long)]
    instances: bool,
    /// Point reads of a transaction [default: 10; 1 in oltp_point_select].
    #[arg(long, value_name = "N")]
    point_selects: Option<u16>,
    /// Read so many keys by one IN list instead of one key by each point read.
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u16).range(1..=1000))]
    in_list: Option<u16>,
    /// Ranges of each kind in a transaction: rows, sum, sorted, distinct.
    #[arg(long, value_name = "N", default_value_t = 1)]
    ranges: u16,
    /// Kinds of ranges.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "simple,sum,order,distinct")]
    range_kinds: Vec<Range>,
    /// Rows of a range.
    #[arg(long, value_name = "ROWS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    range_size: u32,
    /// Ranges, and point reads, by the secondary index.
    #[arg(long)]
    secondary: bool,
    /// Distribution of keys.
    #[arg(long, value_enum, default_value_t = Distribution::Special)]
    keys: Distribution,
    /// Mean time that a client waits before a transaction, with an exponential distribution.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    think: Duration,
}

/// Workloads, by sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    /// Reads and writes in a transaction.
    OltpReadWrite,
    /// Reads in a transaction.
    OltpReadOnly,
    /// Writes in a transaction.
    OltpWriteOnly,
    /// Point reads without a transaction.
    OltpPointSelect,
    /// One row's indexed column.
    OltpUpdateIndex,
    /// One row's other column.
    OltpUpdateNonIndex,
}

/// Kinds of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Range {
    /// The rows.
    Simple,
    /// The sum of a column.
    Sum,
    /// The rows in another order.
    Order,
    /// The different ones.
    Distinct,
    /// One row, found by looking at all.
    Filter,
}

impl SysbenchArgs {
    fn shape(&self, workload: Workload) -> Shape {
        use Workload::{
            OltpPointSelect, OltpReadOnly, OltpReadWrite, OltpUpdateIndex, OltpUpdateNonIndex, OltpWriteOnly,
        };
        let reads = matches!(workload, OltpReadWrite | OltpReadOnly);
        let writes = matches!(workload, OltpReadWrite | OltpWriteOnly);
        let points = match workload {
            OltpPointSelect => self.point_selects.unwrap_or(1),
            _ if reads => self.point_selects.unwrap_or(10),
            _ => 0,
        };
        Shape {
            in_transaction: reads || writes,
            points,
            keys_per_point: self.in_list.unwrap_or(0),
            ranges: if reads { self.ranges } else { 0 },
            range_kinds: self.range_kinds.clone(),
            range_size: self.range_size,
            secondary: self.secondary,
            index_updates: u16::from(writes || workload == OltpUpdateIndex),
            other_updates: u16::from(writes || workload == OltpUpdateNonIndex),
            replacements: u16::from(writes),
            rows: self.rows,
            keys: self.keys,
            think: self.think,
        }
    }
}

/// The experiment.
pub struct Sysbench {
    args: SysbenchArgs,
}

impl Sysbench {
    /// With these options.
    pub fn new(args: SysbenchArgs) -> Sysbench {
        Sysbench { args }
    }
}

impl Experiment for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let args = &self.args;
        let kinds: Vec<String> = args.range_kinds.iter().map(name).collect();
        let mut settings = BTreeMap::from([
            ("tables".to_string(), args.tables.to_string()),
            ("rows".into(), args.rows.to_string()),
            ("ranges".into(), format!("{} of each: {}; {} rows", args.ranges, kinds.join(","), args.range_size)),
            ("keys".into(), name(&args.keys)),
        ]);
        let mut set = |wanted: bool, name: &str, value: String| {
            if wanted {
                settings.insert(name.into(), value);
            }
        };
        set(args.instances, "instances", "a table each".into());
        set(args.secondary, "secondary", "true".into());
        set(args.point_selects.is_some(), "point_selects", args.point_selects.unwrap_or(0).to_string());
        set(args.in_list.is_some(), "in_list", args.in_list.unwrap_or(0).to_string());
        set(!args.think.is_zero(), "think", format!("{} s", args.think.as_secs_f64()));
        settings
    }

    fn variants(&self) -> Vec<String> {
        self.args.workload.iter().map(name).collect()
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        tables::are_there(lab, self.args.tables, self.args.rows)
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        tables::load(lab, self.args.tables, self.args.rows)
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        tables::drop(lab)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        let workload = Workload::from_str(&at.variant, true).map_err(Refusal::Options)?;
        let shape = self.args.shape(workload);
        let statements = shape.statements(self.args.tables);
        let clients = (0..at.threads).map(|number| {
            let own = self.args.instances.then_some(number % usize::from(self.args.tables));
            Client::new(&shape, self.args.tables, own, at.rng(lab.seed, number))
        });
        let clients = clients.collect();
        let (point, measured) = measure(lab, at, &["transaction"], &statements, clients)?;
        Ok((point, measured.ended))
    }

    fn verify(&mut self, lab: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        tables::verify(lab, self.args.tables, self.args.rows)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        args: SysbenchArgs,
    }

    fn shape(options: &[&str], workload: Workload) -> Shape {
        Options::parse_from([&["sysbench"], options].concat()).args.shape(workload)
    }

    #[test]
    fn workloads_have_the_statements_of_sysbench() {
        let count = |workload| shape(&[], workload).statements_of_a_transaction();
        assert_eq!(count(Workload::OltpReadWrite), 20);
        assert_eq!(count(Workload::OltpReadOnly), 16);
        assert_eq!(count(Workload::OltpWriteOnly), 6);
        assert_eq!(count(Workload::OltpPointSelect), 1);
        assert_eq!(count(Workload::OltpUpdateIndex), 1);
    }

    #[test]
    fn options_change_the_transaction() {
        let changed =
            shape(&["--point-selects", "3", "--range-kinds", "filter", "--ranges", "2"], Workload::OltpReadOnly);
        assert_eq!(changed.statements_of_a_transaction(), 2 + 3 + 2);
    }
}
