//! A proxy between the lab and a PostgreSQL that lies once: it answers a COMMIT by itself, after a ROLLBACK in its place, so that the
//! client believes in a commit that never was. Only commits of transactions with an INSERT count, because a reader's can be left out
//! unnoticed.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// BindComplete, CommandComplete, ReadyForQuery outside of a transaction.
const FORGED: &[u8] = b"2\0\0\0\x04C\0\0\0\x0bCOMMIT\0Z\0\0\0\x05I";
/// Query.
const ROLLBACK: &[u8] = b"Q\0\0\0\x0dROLLBACK\0";

/// The proxy; its threads end with their connections.
pub struct Proxy {
    /// Where it listens.
    pub port: u16,
    lies: Arc<Lies>,
}

struct Lies {
    /// The commit of all that is dropped, from 1; 0 for none.
    which: u64,
    commits: AtomicU64,
    dropped: AtomicU64,
}

impl Proxy {
    /// In front of the server at `port`; drops commit number `which`, or none.
    pub fn start(port: u16, which: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let lies = Arc::new(Lies { which, commits: AtomicU64::new(0), dropped: AtomicU64::new(0) });
        let shared = lies.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
                serve(client, server, &shared).expect("streams can be cloned");
            }
        });
        Proxy { port: own, lies }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Commits that passed or were dropped, and those that were dropped.
    pub fn counts(&self) -> (u64, u64) {
        (self.lies.commits.load(Ordering::SeqCst), self.lies.dropped.load(Ordering::SeqCst))
    }
}

fn serve(client: TcpStream, server: TcpStream, lies: &Arc<Lies>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let forge = Arc::new(AtomicBool::new(false));
    let (from, to) = (BufReader::new(client.try_clone()?), server.try_clone()?);
    let (back_from, back_to, forges) = (BufReader::new(server), client, forge.clone());
    let lies = lies.clone();
    thread::spawn(move || {
        let end = to.try_clone();
        // Either side may go at any time.
        let _ = requests(from, to, &forge, &lies);
        end.map(|server| server.shutdown(Shutdown::Both))
    });
    thread::spawn(move || {
        let end = back_to.try_clone();
        let _ = answers(back_from, back_to, &forges);
        end.map(|client| client.shutdown(Shutdown::Both))
    });
    Ok(())
}

/// A message with its kind, as it was sent.
fn message(from: &mut impl Read, has_kind: bool) -> io::Result<Vec<u8>> {
    let head = if has_kind { 5 } else { 4 };
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes)?;
    let length = u32::from_be_bytes(bytes[head - 4..].try_into().expect("four bytes"));
    bytes.resize(head - 4 + length as usize, 0);
    from.read_exact(&mut bytes[head..])?;
    Ok(bytes)
}

/// The strings at the start of a message's body.
fn strings(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    message[5..].split(|&byte| byte == 0)
}

fn requests(mut from: BufReader<TcpStream>, mut to: TcpStream, forge: &AtomicBool, lies: &Lies) -> io::Result<()> {
    to.write_all(&message(&mut from, false)?)?;
    let mut texts = BTreeMap::new();
    let (mut wrote, mut dropping, mut out) = (false, false, Vec::new());
    loop {
        let message = message(&mut from, true)?;
        let mut parts = strings(&message).map(|part| String::from_utf8_lossy(part).into_owned());
        match message[0] {
            b'P' => {
                let name = parts.next();
                texts.insert(name, parts.next().unwrap_or_default());
            }
            // The portal's name, which is empty, and that of the statement.
            b'B' => match texts.get(&parts.nth(1)).map_or("", String::as_str) {
                "COMMIT" if wrote => {
                    dropping = lies.commits.fetch_add(1, Ordering::SeqCst) + 1 == lies.which;
                }
                text if text.starts_with("BEGIN") => wrote = false,
                text => wrote |= text.starts_with("INSERT"),
            },
            _ => {}
        }
        match (dropping, message[0]) {
            (false, _) => out.extend_from_slice(&message),
            (true, b'S') => {
                forge.store(true, Ordering::SeqCst);
                lies.dropped.fetch_add(1, Ordering::SeqCst);
                out.extend_from_slice(ROLLBACK);
                dropping = false;
            }
            (true, _) => {}
        }
        if from.buffer().is_empty() {
            to.write_all(&out)?;
            out.clear();
        }
    }
}

fn answers(mut from: BufReader<TcpStream>, mut to: TcpStream, forge: &AtomicBool) -> io::Result<()> {
    let mut out = Vec::new();
    loop {
        let message = message(&mut from, true)?;
        match (forge.load(Ordering::SeqCst), message[0]) {
            (false, _) => out.extend_from_slice(&message),
            (true, b'Z') => {
                out.extend_from_slice(FORGED);
                forge.store(false, Ordering::SeqCst);
            }
            (true, _) => {}
        }
        if from.buffer().is_empty() {
            to.write_all(&out)?;
            out.clear();
        }
    }
}
