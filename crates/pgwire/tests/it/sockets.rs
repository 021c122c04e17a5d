//! The acceptor with real sockets and threads.

use std::sync::Arc;
use std::time::Duration;

use pgwire::{Registry, Server, ServerConfig};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

use super::fake::*;

/// Runs `test` against a server with two cores.
fn with_server(
    directory: Option<&std::path::Path>,
    max_connections: usize,
    test: impl AsyncFnOnce(std::net::SocketAddr, Arc<Registry>),
) {
    with_cores(2, directory, max_connections, test);
}

fn with_cores(
    cores: usize,
    directory: Option<&std::path::Path>,
    max_connections: usize,
    test: impl AsyncFnOnce(std::net::SocketAddr, Arc<Registry>),
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = ServerConfig {
            listen: vec![([127, 0, 0, 1], 0).into()],
            unix_directories: directory.map(Into::into).into_iter().collect(),
            max_connections,
            cores,
            ..ServerConfig::default()
        };
        let registry = Arc::new(Registry::new([3; 32]));
        let server = Server::bind(config).unwrap();
        let address = server.local_addresses()[0];
        let (stop, stopped) = oneshot::channel::<()>();
        let run = server.run(Arc::clone(&registry), |_| Fake(Arc::default()), async { _ = stopped.await });
        let client = async {
            test(address, registry).await;
            drop(stop);
        };
        let (ended, ()) = tokio::join!(run, client);
        ended.unwrap();
    });
}

async fn connect(address: std::net::SocketAddr) -> Client<TcpStream> {
    Client::new(TcpStream::connect(address).await.unwrap())
}

#[test]
fn queries_cancel_and_shutdown_over_tcp() {
    with_server(None, 100, async |address, registry| {
        let mut client = connect(address).await;
        client.send(&startup("user\0u\0")).await;
        let key = loop {
            let (tag, body) = client.next().await.unwrap();
            if tag == 'K' {
                break body;
            }
        };
        assert_eq!(client.until('Z').await, "Z");
        client.send(&query("cancelled")).await;
        let mut other = connect(address).await;
        other.send(&[&b"\0\0\0\x10\x04\xd2\x16\x2e"[..], &key].concat()).await;
        assert_eq!(other.rest_of_stream().await, "");
        assert_eq!(client.until('Z').await, "E(ERROR 57014: canceling statement due to user request)Z");
        client.send(&query("rows 100000")).await;
        assert_eq!(client.until('Z').await.len(), 100_003);
        registry.terminate_all();
        assert!(client.rest_of_stream().await.starts_with("E(FATAL 57P01"));
    });
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    with_server(None, 2, async |address, registry| {
        let (mut a, mut b) = (connect(address).await, connect(address).await);
        a.login().await;
        b.login().await;
        let mut c = connect(address).await;
        c.send(&startup("user\0u\0")).await;
        assert_eq!(c.rest_of_stream().await, "E(FATAL 53300: sorry, too many clients already)");
        a.send(&message(b'X', b"")).await;
        assert_eq!(a.rest_of_stream().await, "");
        while registry.len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        connect(address).await.login().await;
    });
}

#[test]
fn unix_sockets_come_and_go_with_the_server() {
    let directory = std::env::temp_dir().join(format!("pgwire-test-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join(".s.PGSQL.5432");
    // Left behind by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    with_server(Some(&directory), 10, async |_, _| {
        let mut client = Client::new(UnixStream::connect(&path).await.unwrap());
        client.login().await;
        client.send(&query("ONE")).await;
        assert_eq!(client.until('Z').await, "CZ");
    });
    assert!(!path.exists());
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Keeps this thread, and so what it sends, on a processor.
fn go_to(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    sched_setaffinity(None, &set).unwrap();
}

/// The thread that answers after so many questions that the connection could have moved.
async fn core_of(client: &mut Client<TcpStream>) -> String {
    let mut core = String::new();
    for _ in 0..400 {
        client.send(&[extended("core", 0), sync()].concat()).await;
        loop {
            match client.next().await.unwrap() {
                ('D', body) => core = String::from_utf8_lossy(&body[6..]).into_owned(),
                ('Z', _) => break,
                ('E', body) => panic!("{}", error_text(&body)),
                _ => {}
            }
        }
    }
    core
}

#[test]
fn connections_follow_their_packets() {
    let all = sched_getaffinity(None).unwrap();
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&i| all.is_set(i)).collect();
    if processors.len() < 2 {
        println!("skipped: there is one processor");
        return;
    }
    with_cores(processors.len(), None, 100, async |address, registry| {
        go_to(processors[0]);
        let mut client = connect(address).await;
        client.login().await;
        assert_eq!(core_of(&mut client).await, "core-0");
        go_to(processors[1]);
        assert_eq!(core_of(&mut client).await, "core-1");
        go_to(processors[0]);
        assert_eq!(core_of(&mut client).await, "core-0");
        assert_eq!(registry.len(), 1);
        sched_setaffinity(None, &all).unwrap();
        registry.terminate_all();
        assert!(client.rest_of_stream().await.starts_with("E(FATAL 57P01"));
    });
}
