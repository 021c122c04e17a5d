//! `bench ceiling`: what the generator itself costs, measured against a server that answers with canned replies.
//!
//! Responsible for: the canned server, a process of its own so that its time is not the generator's, and is what receiving and
//! sending alone take; the rate that a server without any cost could have with this generator on this machine.
//! Not responsible for: right answers: a canned reply has the shape of a real one (as many columns, as many rows), not its content.
//! Invariants: the generator does exactly what it does against a real server, but for the load and the verification.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

use crate::command::Workload;
use crate::experiments::{At, Refusal, Session};
use crate::result::Point;
use crate::table::{figure, grouped};

/// Options of `bench ceiling`.
#[derive(Args, Clone, Debug)]
pub struct CeilingArgs {
    /// Only answer, until the standard input ends; the port is printed. Other generators of PostgreSQL's protocol may be measured
    /// against it as well, sysbench for one.
    #[arg(long)]
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

/// What a point says of the generator, and of what the system takes of any server to receive and to send.
pub fn told(point: &Point) -> String {
    let (each, cpus) = (point.client_us(), std::thread::available_parallelism().map_or(1, |n| n.get()));
    let most = cpus as f64 * 1e6 / each;
    let canned = point.server_us().map_or_else(String::new, |us| format!(", the canned replies {}", figure(us)));
    format!(
        "the generator takes {} us of processor time for a transaction{canned}; a server that cost nothing could have {} tx/s on {cpus} CPUs\n",
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

/// Answers every connection until the standard input ends, on a thread for each processor, as a server would.
fn serve() -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?.port());
    for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
        let listener = listener.try_clone()?;
        std::thread::spawn(move || {
            if let Err(error) = answer_all(&listener) {
                eprintln!("canned replies: {error}");
            }
        });
    }
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

/// Of the listener among the events; conversations have their numbers.
const LISTENER: u64 = u64::MAX;

/// Answers connections, as many as come to this thread.
fn answer_all(listener: &TcpListener) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let one_thread = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
    epoll::add(&epoll, listener, epoll::EventData::new_u64(LISTENER), one_thread)?;
    let (mut talks, mut events, mut out) = (Vec::<Option<Conversation>>::new(), Vec::with_capacity(64), Vec::new());
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let number = event.data.u64();
            if number != LISTENER {
                let talk = &mut talks[number as usize];
                // A client that goes away ends its conversation, and the socket leaves the poll with it.
                if !talk.as_mut().is_some_and(|talk| talk.go_on(&mut out).unwrap_or(false)) {
                    *talk = None;
                }
                continue;
            }
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nodelay(true)?;
                    epoll::add(&epoll, &stream, epoll::EventData::new_u64(talks.len() as u64), epoll::EventFlags::IN)?;
                    talks.push(Some(Conversation::new(stream)));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A connection that is answered.
struct Conversation {
    stream: TcpStream,
    input: Vec<u8>,
    filled: usize,
    greeted: bool,
    /// What is said of a statement's columns, and its reply, by its name.
    canned: Vec<(Vec<u8>, Reply)>,
    /// The statement of the unnamed portal.
    bound: Vec<u8>,
}

impl Conversation {
    fn new(stream: TcpStream) -> Conversation {
        let input = vec![0; 64 << 10];
        Conversation { stream, input, filled: 0, greeted: false, canned: Vec::new(), bound: Vec::new() }
    }

    /// Reads what has come and answers it; `false` if nothing more will.
    fn go_on(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let read = self.stream.read(&mut self.input[self.filled..])?;
        self.filled += read;
        out.clear();
        let (mut at, mut goes_on) = (0, read > 0);
        while let Some(length) = self.next_message(at) {
            let message = at..at + length;
            goes_on &= self.answer(message, out);
            at += length;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        if self.filled == self.input.len() {
            self.input.resize(2 * self.filled, 0);
        }
        self.stream.write_all(out)?;
        Ok(goes_on)
    }

    /// The length of the message at `at`, if it has come as a whole. It follows the kind, which the first messages have none of.
    fn next_message(&self, at: usize) -> Option<usize> {
        let (unread, kind) = (&self.input[at..self.filled], usize::from(self.greeted));
        let length = unread.get(kind..)?.first_chunk().map(|length| u32::from_be_bytes(*length) as usize + kind)?;
        (length >= 4 + kind && unread.len() >= length).then_some(length)
    }

    /// Answers a message; `false` if it is the last.
    fn answer(&mut self, place: Range<usize>, out: &mut Vec<u8>) -> bool {
        let bytes = &self.input[place];
        if !self.greeted {
            if bytes[4..] == ENCRYPT {
                out.push(b'N');
            } else {
                self.greeted = true;
                out.extend_from_slice(b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16server_version\x0015\0Z\0\0\0\x05I");
            }
            return true;
        }
        let body = &bytes[5..];
        let name =
            |at: usize| body.get(at..).and_then(|from| from.split(|&b| b == 0).next()).unwrap_or_default().to_vec();
        let find = |statement: &[u8]| self.canned.iter().find(|(of, _)| of == statement).map(|(_, reply)| reply);
        match bytes[0] {
            b'P' => {
                let statement = name(0);
                let sql = name(statement.len() + 1);
                self.canned.retain(|(of, _)| *of != statement);
                self.canned.push((statement, Reply::to(&String::from_utf8_lossy(&sql))));
                out.extend_from_slice(b"1\0\0\0\x04");
            }
            b'B' => {
                // The unnamed portal, then the statement.
                self.bound = name(1);
                out.extend_from_slice(b"2\0\0\0\x04");
            }
            b'D' if body.first() == Some(&b'S') => {
                if let Some(reply) = find(&name(1)) {
                    message(b't', &reply.parameters, out);
                    out.extend_from_slice(&reply.columns);
                }
            }
            b'D' => out.extend_from_slice(find(&self.bound).map_or(NO_DATA, |reply| &reply.columns)),
            b'E' => out.extend_from_slice(find(&self.bound).map_or(b"I\0\0\0\x04", |reply| &reply.rows)),
            b'Q' => {
                let reply = Reply::to(&String::from_utf8_lossy(&name(0)));
                if reply.columns != NO_DATA {
                    out.extend_from_slice(&reply.columns);
                }
                out.extend_from_slice(&reply.rows);
                out.extend_from_slice(b"Z\0\0\0\x05I");
            }
            b'S' => out.extend_from_slice(b"Z\0\0\0\x05I"),
            b'X' => return false,
            _ => {}
        }
        true
    }
}

/// What a client sends first that wants to encrypt: an SSLRequest.
const ENCRYPT: [u8; 4] = 80_877_103u32.to_be_bytes();

const NO_DATA: &[u8] = b"n\0\0\0\x04";

/// Rows of a range that is not told to have fewer.
const RANGE_ROWS: usize = 100;

/// The reply to a statement: rows of ones, as many and as wide as a real server's would be.
struct Reply {
    /// How many parameters, and the type of each: text.
    parameters: Vec<u8>,
    /// RowDescription, or NoData.
    columns: Vec<u8>,
    /// The rows, and that they are complete.
    rows: Vec<u8>,
}

impl Reply {
    fn to(sql: &str) -> Reply {
        let upper = sql.to_uppercase();
        let list = match (upper.strip_prefix("SELECT "), upper.split_once(" RETURNING ")) {
            (Some(rest), _) => rest.split(" FROM ").next(),
            (None, Some((_, list))) => Some(list),
            _ => None,
        };
        let columns = list.map_or(0, top_level_commas);
        let count = match list {
            None => 0,
            Some(list) if ["SUM(", "COUNT(", "MAX(", "MIN("].iter().any(|of| list.contains(of)) => 1,
            Some(_) if upper.contains(" IN (") => upper.matches('$').count().max(1),
            Some(_) if upper.contains(" BETWEEN ") && !upper.contains("+ 0 =") => RANGE_ROWS,
            Some(_) => 1,
        };
        let mut rows = Vec::new();
        for _ in 0..count {
            let values = b"\0\0\0\x011".repeat(columns);
            message(b'D', &[&(columns as u16).to_be_bytes()[..], &values].concat(), &mut rows);
        }
        message(b'C', if list.is_some() { b"SELECT 1\0" } else { b"UPDATE 1\0" }, &mut rows);
        let mut described = Vec::new();
        if list.is_some() {
            // Name, table, number in it, type (text), its length, its modifier, format (text).
            let column = b"c\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0".repeat(columns);
            message(b'T', &[&(columns as u16).to_be_bytes()[..], &column].concat(), &mut described);
        } else {
            described.extend_from_slice(NO_DATA);
        }
        let parameters = (1..).take_while(|n| upper.contains(&format!("${n}"))).count();
        let parameters = [&(parameters as u16).to_be_bytes()[..], &b"\0\0\0\x19".repeat(parameters)].concat();
        Reply { parameters, columns: described, rows }
    }
}

/// Appends a message.
fn message(kind: u8, body: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&((4 + body.len()) as u32).to_be_bytes());
    out.extend_from_slice(body);
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
        let rows = |sql: &str| Reply::to(sql).rows.iter().filter(|&&b| b == b'D').count();
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id = $1"), 1);
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id IN ($1,$2,$3)"), 3);
        assert_eq!(rows("SELECT sum(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2"), 1);
        assert_eq!(rows("SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c"), 100);
        let commit = Reply::to("COMMIT");
        assert_eq!(commit.columns, NO_DATA);
        assert_eq!(commit.rows, b"C\0\0\0\x0dUPDATE 1\0");
        let two = b"D\0\0\0\x10\0\x02\0\0\0\x011\0\0\0\x011C\0\0\0\x0dSELECT 1\0";
        let returning = Reply::to("UPDATE t SET a = 1 WHERE b = $1 RETURNING a, coalesce(b, 2)");
        assert_eq!(returning.rows, two);
        assert_eq!(returning.parameters, b"\0\x01\0\0\0\x19");
        assert_eq!((returning.columns[0], returning.columns.len()), (b'T', 1 + 4 + 2 + 2 * 20));
    }

    #[test]
    fn a_client_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || answer_all(&listener));
        let target = format!("postgres://h@127.0.0.1:{port}/").parse().unwrap();
        let mut client = crate::client::Connection::open(&target).unwrap();
        client.prepare(&["SELECT a, b FROM t WHERE id = $1".into(), "COMMIT".into()]).unwrap();
        client.bind(0, &[crate::client::Param::Int(7)]);
        client.bind(1, &[]);
        client.run().unwrap();
        assert_eq!((client.row_count(), client.row(0).int(1).unwrap()), (1, 1));
        assert_eq!(client.query_one("SELECT count(*) FROM warehouse").unwrap().as_deref(), Some("1"));
        // One that would encrypt, and asks for columns, as libpq does.
        let mut other = TcpStream::connect(("127.0.0.1", port)).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut expect = |sent: &[u8], answer: &[u8]| {
            let mut read = vec![0; answer.len()];
            other.write_all(sent).unwrap();
            other.read_exact(&mut read).unwrap();
            assert_eq!(read, answer);
        };
        expect(b"\0\0\0\x08\x04\xd2\x16\x2f", b"N");
        expect(b"\0\0\0\x08\0\x03\0\0", b"R\0\0\0\x08\0\0\0\0S\0\0\0\x16server_version\x0015\0Z\0\0\0\x05I");
        expect(b"P\0\0\0\x0fs\0COMMIT\0\0\0D\0\0\0\x07Ss\0", b"1\0\0\0\x04t\0\0\0\x06\0\0n\0\0\0\x04");
        expect(b"B\0\0\0\x0d\0s\0\0\0\0\0\0\0D\0\0\0\x06P\0", b"2\0\0\0\x04n\0\0\0\x04");
        expect(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04", b"C\0\0\0\x0dUPDATE 1\0Z\0\0\0\x05I");
    }
}
