//! `bench ceiling`: what the generator itself costs, measured against a server that answers with canned replies.
//!
//! Responsible for: the canned server, a process of its own so that its time is not the generator's; the rate that a server
//! without any cost could have with this generator on this machine.
//! Not responsible for: right answers: a canned reply has the shape of a real one (as many columns, as many rows), not its content.
//! Invariants: the generator does exactly what it does against a real server, but for the load and the verification.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;

use crate::command::Workload;
use crate::experiment::{At, Refusal, Session};
use crate::result::Point;
use crate::table::{figure, grouped};

/// Options of `bench ceiling`.
#[derive(Args, Clone, Debug)]
pub struct CeilingArgs {
    /// Only answer, until the standard input ends; the port is printed.
    #[arg(long, hide = true)]
    serve: bool,
    /// The experiment and its options.
    #[command(subcommand)]
    workload: Option<Workload>,
}

/// Measures the generator of each point of an experiment.
pub fn main(args: CeilingArgs) -> ExitCode {
    let done = match args.workload {
        _ if args.serve => serve().map_err(|error| Refusal::Output(format!("canned replies: {error}"))),
        Some(workload) => print_all(&workload),
        None => Err(Refusal::Options("name an experiment, as in: bench ceiling tpcc".into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => {
            eprintln!("ceiling: {refusal}");
            ExitCode::FAILURE
        }
    }
}

fn print_all(workload: &Workload) -> Result<(), Refusal> {
    let canned = Canned::start()?;
    let mut session = canned.session(workload)?;
    for at in session.places(1) {
        let told = told(&measure(&mut session, &at)?);
        print!("{} {} clients: {told}", at.variant, at.threads);
    }
    Ok(())
}

/// What the generator alone would allow at the first point.
pub fn first(workload: &Workload) -> Result<(At, Point), Refusal> {
    let canned = Canned::start()?;
    let mut session = canned.session(workload)?;
    let at = session.places(1).into_iter().next().ok_or_else(|| Refusal::Options("nothing is measured".into()))?;
    let point = measure(&mut session, &at)?;
    Ok((at, point))
}

fn measure(session: &mut Session, at: &At) -> Result<Point, Refusal> {
    let (point, ended) = session.experiment.point(&mut session.lab, at)?;
    session.lab.progress.clear();
    ended.map_or(Ok(point), |why| Err(Refusal::Options(why)))
}

/// What a point says of the generator.
pub fn told(point: &Point) -> String {
    let (each, cpus) = (point.client_us(), std::thread::available_parallelism().map_or(1, |n| n.get()));
    let most = cpus as f64 * 1e6 / each;
    format!(
        "the generator takes {} us of processor time for a transaction; a server that cost nothing could have {} tx/s on {cpus} CPUs\n",
        figure(each),
        grouped(most)
    )
}

/// The canned server's process; gone when dropped.
struct Canned {
    child: Child,
    port: u16,
}

impl Canned {
    fn start() -> Result<Canned, Refusal> {
        let wrong = |error: io::Error| Refusal::Output(format!("canned replies: {error}"));
        let own = std::env::current_exe().map_err(wrong)?;
        let mut command = Command::new(own);
        // The same command line, whatever the program is called: `nyala bench …`, or the lab alone.
        let name = std::env::args().nth(1).filter(|first| first == "bench");
        command.args(name).args(["ceiling", "--serve"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(wrong)?;
        let mut line = String::new();
        let said = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        let port = line.trim().parse().ok().filter(|_| matches!(said, Some(Ok(_))));
        let canned = Canned { child, port: port.unwrap_or(0) };
        port.map(|_| canned).ok_or_else(|| Refusal::Output("the server with canned replies did not start".into()))
    }

    /// The experiment against it, no longer than it needs to be.
    fn session(&self, workload: &Workload) -> Result<Session, Refusal> {
        let mut task = workload.clone().task();
        let (common, url) = (&mut task.common, format!("postgres://postgres@127.0.0.1:{}/postgres", self.port));
        common.target = url.parse().map_err(Refusal::Options)?;
        common.duration = common.duration.min(Duration::from_secs(5));
        common.warmup = common.warmup.min(Duration::from_secs(1));
        Session::open(task)
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers every connection until the standard input ends.
fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    println!("{}", listener.local_addr()?.port());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away ends its thread.
            std::thread::spawn(move || answer(stream));
        }
    });
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

/// Answers a client to its end.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut filled, mut out) = (vec![0; 64 << 10], 0, Vec::new());
    let (mut canned, mut bound, mut greeted) = (Vec::<(Vec<u8>, Vec<u8>)>::new(), Vec::new(), false);
    loop {
        let read = stream.read(&mut input[filled..])?;
        if read == 0 {
            return Ok(());
        }
        filled += read;
        let mut at = 0;
        // A message's length follows its kind, which the first has none of.
        while let Some(length) = input[at..filled].get(usize::from(greeted)..usize::from(greeted) + 4) {
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize + usize::from(greeted);
            let Some(message) = input[at..filled].get(..length) else { break };
            if !greeted {
                greeted = true;
                out.extend_from_slice(b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16server_version\x0015\0Z\0\0\0\x05I");
            } else {
                let body = &message[5..];
                let name = |from: &[u8]| from.split(|&b| b == 0).next().unwrap_or_default().to_vec();
                match message[0] {
                    b'P' => {
                        let statement = name(body);
                        let sql = name(&body[statement.len() + 1..]);
                        canned.push((statement, reply(&String::from_utf8_lossy(&sql))));
                        out.extend_from_slice(b"1\0\0\0\x04");
                    }
                    b'B' => {
                        // The unnamed portal, then the statement.
                        bound = name(&body[1..]);
                        out.extend_from_slice(b"2\0\0\0\x04");
                    }
                    b'E' => {
                        let reply = canned.iter().find(|(statement, _)| *statement == bound);
                        out.extend_from_slice(reply.map_or(&b"I\0\0\0\x04"[..], |(_, reply)| reply));
                    }
                    b'Q' => {
                        out.extend_from_slice(&reply(&String::from_utf8_lossy(&name(body))));
                        out.extend_from_slice(b"Z\0\0\0\x05I");
                    }
                    b'S' => out.extend_from_slice(b"Z\0\0\0\x05I"),
                    b'X' => return Ok(()),
                    _ => {}
                }
            }
            at += length;
        }
        input.copy_within(at..filled, 0);
        filled -= at;
        if filled == input.len() {
            input.resize(2 * filled, 0);
        }
        stream.write_all(&out)?;
        out.clear();
    }
}

/// Rows of a range that is not told to have fewer.
const RANGE_ROWS: usize = 100;

/// The reply to a statement: rows of ones, as many and as wide as a real server's would be.
fn reply(sql: &str) -> Vec<u8> {
    let upper = sql.to_uppercase();
    let list = match (upper.strip_prefix("SELECT "), upper.split_once(" RETURNING ")) {
        (Some(rest), _) => rest.split(" FROM ").next(),
        (None, Some((_, list))) => Some(list),
        _ => None,
    };
    let mut out = Vec::new();
    let columns = list.map_or(0, top_level_commas);
    let rows = match list {
        None => 0,
        Some(list) if ["SUM(", "COUNT(", "MAX(", "MIN("].iter().any(|of| list.contains(of)) => 1,
        Some(_) if upper.contains(" IN (") => upper.matches('$').count().max(1),
        Some(_) if upper.contains(" BETWEEN ") && !upper.contains("+ 0 =") => RANGE_ROWS,
        Some(_) => 1,
    };
    for _ in 0..rows {
        out.push(b'D');
        out.extend_from_slice(&((4 + 2 + columns * 5) as u32).to_be_bytes());
        out.extend_from_slice(&(columns as u16).to_be_bytes());
        (0..columns).for_each(|_| out.extend_from_slice(b"\0\0\0\x011"));
    }
    let tag: &[u8] = if list.is_some() { b"SELECT 1\0" } else { b"UPDATE 1\0" };
    out.push(b'C');
    out.extend_from_slice(&((4 + tag.len()) as u32).to_be_bytes());
    out.extend_from_slice(tag);
    out
}

/// Columns of a list: its commas outside parentheses, and one.
fn top_level_commas(list: &str) -> usize {
    let (mut depth, mut count) = (0, 1);
    for c in list.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_shape_of_real_ones() {
        let rows = |sql: &str| reply(sql).iter().filter(|&&b| b == b'D').count();
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id = $1"), 1);
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id IN ($1,$2,$3)"), 3);
        assert_eq!(rows("SELECT sum(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2"), 1);
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c"), 100);
        assert_eq!(reply("COMMIT"), b"C\0\0\0\x0dUPDATE 1\0");
        let two = b"D\0\0\0\x10\0\x02\0\0\0\x011\0\0\0\x011C\0\0\0\x0dSELECT 1\0";
        assert_eq!(reply("UPDATE t SET a = 1 WHERE b = $1 RETURNING a, coalesce(b, 2)"), two);
    }

    #[test]
    fn a_client_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || answer(listener.accept().unwrap().0));
        let target = format!("postgres://h@127.0.0.1:{port}/").parse().unwrap();
        let mut client = crate::client::Connection::open(&target).unwrap();
        client.prepare(&["SELECT a, b FROM t WHERE id = $1".into(), "COMMIT".into()]).unwrap();
        client.bind(0, &[crate::client::Param::Int(7)]);
        client.bind(1, &[]);
        client.run().unwrap();
        assert_eq!((client.row_count(), client.row(0).int(1).unwrap()), (1, 1));
        assert_eq!(client.query_one("SELECT count(*) FROM warehouse").unwrap().as_deref(), Some("1"));
    }
}
