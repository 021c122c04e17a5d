//! One query: its times, and whether two servers agree about its rows.

use std::time::Instant;

use serde::Serialize;

use super::queries::Query;
use crate::client::{Connection, Failure};
use crate::spread::Spread;

/// What a query did.
#[derive(Clone, Debug, Serialize)]
pub struct Timed {
    /// 1 to 22.
    pub number: usize,
    /// Rows of its result.
    pub rows: usize,
    /// Median of its runs.
    pub median_ms: Option<f64>,
    /// The fastest run.
    pub min_ms: Option<f64>,
    /// Why it did not run.
    pub error: Option<String>,
    /// Median on the server that results are compared with.
    pub other_ms: Option<f64>,
    /// How the results differ.
    pub difference: Option<String>,
}

/// Rows as text; `None` is NULL.
type Answer = Vec<Vec<Option<Vec<u8>>>>;

/// Runs a query.
///
/// # Errors
/// Those of a lost connection, and of the other server.
pub fn run(
    query: &Query,
    scale: f64,
    repeat: u16,
    connection: &mut Connection,
    other: Option<&mut Connection>,
) -> Result<Timed, Failure> {
    let sql = query.at(scale);
    let mut timed = Timed {
        number: query.number,
        rows: 0,
        median_ms: None,
        min_ms: None,
        error: None,
        other_ms: None,
        difference: None,
    };
    match measure(connection, &sql, repeat) {
        Ok(times) => {
            timed.rows = connection.row_count();
            (timed.median_ms, timed.min_ms) = (Some(times.median), Some(times.min));
        }
        Err(error @ Failure::Server { .. }) => {
            timed.error = Some(error.to_string());
            return Ok(timed);
        }
        Err(error) => return Err(error),
    }
    if let Some(other) = other {
        timed.other_ms = Some(measure(other, &sql, repeat)?.median);
        timed.difference = difference(query, &rows_of(connection), &rows_of(other));
    }
    Ok(timed)
}

/// Runs a text several times; the times in milliseconds.
fn measure(connection: &mut Connection, sql: &str, repeat: u16) -> Result<Spread, Failure> {
    let mut times = Vec::with_capacity(usize::from(repeat));
    for _ in 0..repeat {
        let started = Instant::now();
        connection.query(sql)?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Spread::of(times).unwrap_or_default())
}

/// The rows of the last answer.
fn rows_of(connection: &Connection) -> Answer {
    let row = |at| connection.row(at).cells().map(|cell| cell.map(<[u8]>::to_vec)).collect();
    (0..connection.row_count()).map(row).collect()
}

/// Where two results differ. Rows that ORDER BY holds for equal may be in any order.
fn difference(query: &Query, one: &Answer, other: &Answer) -> Option<String> {
    if one.len() != other.len() {
        return Some(format!("{} rows, not {}", one.len(), other.len()));
    }
    let show = |row: &[Option<Vec<u8>>]| {
        let cell =
            |cell: &Option<Vec<u8>>| cell.as_ref().map_or("NULL".into(), |c| String::from_utf8_lossy(c).into_owned());
        row.iter().map(cell).collect::<Vec<_>>().join("|")
    };
    let keys = |row: &Vec<Option<Vec<u8>>>| query.order.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
    let unordered = one.iter().zip(other).position(|(a, b)| keys(a) != keys(b));
    if let Some(at) = unordered {
        return Some(format!("row {}: {}, not {}", at + 1, show(&one[at]), show(&other[at])));
    }
    let (mut one, mut other) = (one.clone(), other.clone());
    one.sort();
    other.sort();
    let (a, b) = one.iter().zip(&other).find(|(a, b)| a != b)?;
    Some(format!("{}, not {}", show(a), show(b)))
}

#[cfg(test)]
mod tests {
    use super::super::queries::QUERIES;
    use super::*;

    fn rows(text: &str) -> Answer {
        let cell = |cell: &str| (cell != "-").then(|| cell.as_bytes().to_vec());
        text.lines().map(|line| line.split(' ').map(cell).collect()).collect()
    }

    #[test]
    fn rows_equal_in_their_keys_may_change_places_and_others_not() {
        let by_second = Query { order: &[1], ..QUERIES[4] };
        let one = rows("a 1\nb 1\nc 2");
        assert_eq!(difference(&by_second, &one, &rows("b 1\na 1\nc 2")), None);
        assert_eq!(difference(&by_second, &one, &rows("a 1\nc 2\nb 1")).as_deref(), Some("row 2: b|1, not c|2"));
        assert_eq!(difference(&by_second, &one, &rows("a 1\n- 1\nc 2")).as_deref(), Some("a|1, not NULL|1"));
        assert_eq!(difference(&by_second, &one, &rows("a 1")).as_deref(), Some("3 rows, not 1"));
    }
}
