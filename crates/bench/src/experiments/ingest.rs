//! Ingestion, as MOT's paper measures it: many connections that insert short rows, ten by one statement, until all are in.
//!
//! Each point begins with an empty table and ends when no client has rows left; `--duration` and `--warmup` do not matter. Of
//! what a client gives up after an error nothing is sent again, so that what is in the table can be held against what was
//! acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, ValueEnum};

use crate::client::Param::{Int, Text};
use crate::client::{AsyncConnection, Failure, push_int};
use crate::drive::{Done, Worker};
use crate::expected::Expected;
use crate::experiments::{At, Experiment, Lab, Refusal, measure_all};
use crate::options::{Common, name};
use crate::result::{Load, Point, Verdict};
use crate::schema;
use crate::target::Dialect;

const TABLE: &str = "ingest_row";
/// A row: two numbers of eight bytes, and text.
const ROW_BYTES: usize = 200;
const TEXT_BYTES: usize = ROW_BYTES - 16;

/// Options of `bench ingest`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("threads", |arg| arg.default_value("500")))]
pub struct IngestArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Rows of each point; MOT's paper has 10 million.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rows: u64,
    /// Rows of an INSERT.
    #[arg(long, value_name = "ROWS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    batch: u16,
    /// INSERTs of a round trip in the mode "pipelined".
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    depth: u16,
    /// Rows of a COPY in the mode "copy".
    #[arg(long, value_name = "ROWS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    copy_rows: u32,
    /// How rows are sent; several modes are measured one after the other.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "insert")]
    mode: Vec<Mode>,
}

/// Ways to send rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// An INSERT a round trip.
    Insert,
    /// Several INSERTs a round trip, one transaction by PostgreSQL's protocol.
    Pipelined,
    /// A COPY, or LOAD DATA, at a time.
    Copy,
}

/// The experiment.
pub struct Ingest {
    args: IngestArgs,
    verdicts: Vec<Verdict>,
}

impl Ingest {
    /// With these options.
    pub fn new(args: IngestArgs) -> Ingest {
        Ingest { args, verdicts: Vec::new() }
    }

    /// Rows that go together, and those of an INSERT.
    fn portion(&self, mode: Mode) -> (u64, u64) {
        let batch = u64::from(self.args.batch);
        match mode {
            Mode::Insert => (batch, batch),
            Mode::Pipelined => (batch * u64::from(self.args.depth), batch),
            Mode::Copy => (u64::from(self.args.copy_rows), 1),
        }
    }

    /// A point's table goes with the next point, so it is looked at now.
    fn look(&mut self, lab: &Lab, at: &At, clients: &[Client]) -> Result<(), Refusal> {
        let (mut count, mut sum) = (Expected::default(), Expected::default());
        for Client { acknowledged, unknown, .. } in clients {
            count.add(acknowledged.rows, unknown.rows);
            sum.add(acknowledged.checksum, unknown.checksum);
        }
        let mut connection = lab.connect()?;
        connection.query(&format!("SELECT count(*), count(DISTINCT id), coalesce(sum(checksum), 0) FROM {TABLE}"))?;
        let row = connection.first("counts")?;
        let who = format!("{}, {} clients", at.variant, at.threads);
        self.verdicts.extend([
            count.verdict(&format!("{who}: rows"), row.int(0)?),
            count.verdict(&format!("{who}: keys"), row.int(1)?),
            sum.verdict(&format!("{who}: sum of their checksums"), row.int(2)?),
        ]);
        Ok(())
    }
}

impl Experiment for Ingest {
    fn name(&self) -> &'static str {
        "ingest"
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let args = &self.args;
        let mut settings = BTreeMap::from([
            ("rows".to_string(), format!("{} of {ROW_BYTES} bytes", args.rows)),
            ("batch".into(), args.batch.to_string()),
        ]);
        if args.mode.contains(&Mode::Pipelined) {
            settings.insert("depth".into(), args.depth.to_string());
        }
        if args.mode.contains(&Mode::Copy) {
            settings.insert("copy_rows".into(), args.copy_rows.to_string());
        }
        settings
    }

    fn variants(&self) -> Vec<String> {
        self.args.mode.iter().map(name).collect()
    }

    fn is_loaded(&self, lab: &mut Lab) -> Result<bool, Refusal> {
        let sql = format!("SELECT count(*) FROM {TABLE} WHERE id = 0");
        Ok(schema::int_if_there(&mut lab.connect()?, &sql)?.is_some())
    }

    fn load(&mut self, lab: &mut Lab) -> Result<Load, Refusal> {
        self.drop_tables(lab)?;
        let columns =
            format!("id bigint NOT NULL PRIMARY KEY, checksum bigint NOT NULL, payload varchar({TEXT_BYTES}) NOT NULL");
        schema::create(lab, &mut lab.connect()?, &format!("{TABLE} ({columns})"))?;
        Ok(Load::default())
    }

    fn drop_tables(&self, lab: &mut Lab) -> Result<(), Refusal> {
        Ok(schema::drop_all(&mut lab.connect()?, &[TABLE])?)
    }

    fn point(&mut self, lab: &mut Lab, at: &At) -> Result<(Point, Option<String>), Refusal> {
        lab.connect()?.query(&format!("TRUNCATE TABLE {TABLE}"))?;
        let mode = Mode::from_str(&at.variant, true).map_err(Refusal::Options)?;
        let (portion, batch) = self.portion(mode);
        let next = Arc::new(AtomicU64::new(0));
        let client = |_| Client {
            mode,
            portion,
            batch,
            rows: self.args.rows,
            next: next.clone(),
            present: 0..0,
            text: Vec::new(),
            is_atomic: mode != Mode::Pipelined || lab.target.dialect == Dialect::Postgres,
            acknowledged: Count::default(),
            unknown: Count::default(),
        };
        let clients = (0..at.threads).map(client).collect();
        // What is left over at the end of the rows is sent row by row.
        let statements = [insert(batch), insert(1)];
        let (mut point, measured) = measure_all(lab, at, &["insert"], &statements, clients)?;
        let mut figure = |name: &str, value: f64| point.figures.insert(name.into(), value);
        figure("mb_per_second", point.rows_per_second * ROW_BYTES as f64 / 1e6);
        if let Some(seconds) = point.usage.server_seconds().filter(|seconds| *seconds > 0.0) {
            figure("rows_per_core_second", measured.tally.rows as f64 / seconds);
            figure("server_cores", seconds / point.seconds);
        }
        if lab.common.verify {
            match self.look(lab, at, &measured.workers) {
                // A server that has gone cannot be asked.
                Err(_) if measured.ended.is_some() => {}
                looked => looked?,
            }
        }
        Ok((point, measured.ended))
    }

    fn verify(&mut self, _: &mut Lab) -> Result<Vec<Verdict>, Refusal> {
        Ok(self.verdicts.clone())
    }
}

/// An INSERT of so many rows.
fn insert(rows: u64) -> String {
    let row = |at: u64| format!("(${}, ${}, ${})", 3 * at + 1, 3 * at + 2, 3 * at + 3);
    let rows: Vec<String> = (0..rows).map(row).collect();
    format!("INSERT INTO {TABLE} (id, checksum, payload) VALUES {}", rows.join(", "))
}

/// Number of a row's checksum: below 2^31, so that a sum of all fits into a bigint.
fn checksum(id: u64) -> u64 {
    (id + 1).wrapping_mul(0x9e3779b97f4a7c15) >> 33
}

/// Letters that differ from row to row: each of 16 is four bits of a number.
fn push_text(id: u64, out: &mut Vec<u8>) {
    let mut mixed = id;
    let mut left = TEXT_BYTES;
    while left > 0 {
        mixed = mixed.wrapping_add(1).wrapping_mul(0xd1342543de82ef95);
        let letters = (u128::from(letters(mixed >> 32)) << 64 | u128::from(letters(mixed))).to_le_bytes();
        let taken = left.min(letters.len());
        out.extend_from_slice(&letters[..taken]);
        left -= taken;
    }
}

/// The low 32 bits as eight letters of four bits, the lowest first: the client must not cost what the server costs.
fn letters(bits: u64) -> u64 {
    let low = bits & 0xffff_ffff;
    let halves = (low | low << 16) & 0x0000_ffff_0000_ffff;
    let bytes = (halves | halves << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (bytes | bytes << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    nibbles + 0x6161_6161_6161_6161
}

#[derive(Clone, Copy, Default)]
struct Count {
    rows: u64,
    checksum: u64,
}

impl Count {
    fn add(&mut self, ids: &std::ops::Range<u64>) {
        self.rows += ids.end - ids.start;
        self.checksum += ids.clone().map(checksum).sum::<u64>();
    }
}

struct Client {
    mode: Mode,
    portion: u64,
    batch: u64,
    /// Of all clients.
    rows: u64,
    /// The first row that nobody has taken.
    next: Arc<AtomicU64>,
    /// Those of the present round trip.
    present: std::ops::Range<u64>,
    text: Vec<u8>,
    /// Whether a round trip that failed has inserted nothing.
    is_atomic: bool,
    acknowledged: Count,
    unknown: Count,
}

impl Client {
    async fn send(&mut self, connection: &mut AsyncConnection) -> Result<u64, Failure> {
        if self.mode == Mode::Copy {
            let mut ids = self.present.clone();
            connection.copy_in(&format!("{TABLE} (id, checksum, payload)"), |out| {
                if let Some(id) = ids.next() {
                    push_int(out, id as i64);
                    out.push(b'\t');
                    push_int(out, checksum(id) as i64);
                    out.push(b'\t');
                    push_text(id, out);
                    out.push(b'\n');
                }
                !ids.is_empty()
            })?;
            return Ok(1);
        }
        self.text.clear();
        self.present.clone().for_each(|id| push_text(id, &mut self.text));
        let texts: Vec<&[u8]> = self.text.chunks(TEXT_BYTES).collect();
        let (first, mut statements) = (self.present.start, 0);
        let mut from = first;
        while from < self.present.end {
            let whole = self.present.end - from >= self.batch;
            let count = if whole { self.batch } else { 1 };
            let row = |id: u64| [Int(id as i64), Int(checksum(id) as i64), Text(texts[(id - first) as usize])];
            let params: Vec<_> = (from..from + count).flat_map(row).collect();
            connection.bind(usize::from(!whole), &params);
            (from, statements) = (from + count, statements + 1);
        }
        connection.run().await?;
        Ok(statements)
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        let from = self.next.fetch_add(self.portion, Ordering::Relaxed);
        self.present = from..(from + self.portion).min(self.rows);
        (from < self.rows).then_some(0)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let sent = self.send(connection).await;
        match &sent {
            Ok(_) => self.acknowledged.add(&self.present),
            Err(Failure::Lost(_)) => self.unknown.add(&self.present),
            Err(_) if !self.is_atomic => self.unknown.add(&self.present),
            Err(_) => {}
        }
        Ok(Done::new(sent?, self.present.end - self.present.start))
    }

    fn blocks(&self) -> bool {
        self.mode == Mode::Copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_has_every_parameter_once() {
        assert_eq!(insert(2), "INSERT INTO ingest_row (id, checksum, payload) VALUES ($1, $2, $3), ($4, $5, $6)");
    }

    #[test]
    fn rows_have_their_length_and_differ() {
        let text = |id| {
            let mut out = Vec::new();
            push_text(id, &mut out);
            out
        };
        assert_eq!(text(7).len(), TEXT_BYTES);
        assert_ne!(text(7), text(8));
        assert_eq!(letters(0xf_0000_1210), u64::from_le_bytes(*b"abcbaaaa"), "higher bits do not count");
        assert!((0..1000).all(|id| checksum(id) < 1 << 31));
    }
}
