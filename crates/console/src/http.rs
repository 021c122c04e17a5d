//! The listener and its few pages.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::{Exposition, ServerState, Source};

/// How much clients may take of this side.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Connections; the oldest of more is ended.
    connections: usize,
    /// How long one may last, from its coming until its answer has been taken. It is good for one answer.
    lifetime: Duration,
}

const LIMITS: Limits = Limits { connections: 256, lifetime: Duration::from_secs(5) };
/// Bytes that are held of a request.
const REQUEST_MAX: usize = 16 << 10;
/// Connections that the system holds until they are accepted.
const BACKLOG: u32 = 1024;
/// Rest after an accept that failed, most likely for want of descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(50);

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A bound listener.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    limits: Limits,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn bind(address: SocketAddr) -> io::Result<Server> {
        // A socket whose backlog can be chosen is had inside of a runtime only; this one goes when it is made.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let _inside = runtime.enter();
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?.into_std()?;
        Ok(Server { listener, limits: LIMITS })
    }

    /// Where it listens, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests for ever. Runs inside a tokio runtime with IO and time.
    ///
    /// A connection is accepted at once, however many there are. What it wants is not known before it has said so, and health must be
    /// answered: so one that has been there long goes when there are too many, and health waits for figures that others asked
    /// for no longer than it takes to make them once.
    ///
    /// # Errors
    /// If the runtime does not take the listener.
    pub async fn run(self, source: Arc<dyn Source>) -> io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let figures = Arc::new(Semaphore::new(1));
        let mut open: VecDeque<Open> = VecDeque::new();
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "could not accept an HTTP connection");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            if open.len() >= self.limits.connections {
                open.retain(|connection| !connection.task.is_finished());
            }
            if open.len() >= self.limits.connections
                && let Some(one) = open.remove(one_to_go(&open))
            {
                one.task.abort();
            }
            let is_asking = Arc::new(AtomicBool::new(false));
            let connection = serve(stream, Arc::clone(&source), Arc::clone(&figures), Arc::clone(&is_asking));
            let lifetime = self.limits.lifetime;
            let task = tokio::spawn(async move { _ = tokio::time::timeout(lifetime, connection).await });
            open.push_back(Open { task: task.abort_handle(), is_asking });
        }
    }
}

/// A connection that is served.
struct Open {
    task: AbortHandle,
    /// A request of it is being answered.
    is_asking: Arc<AtomicBool>,
}

/// Which of several connections, the oldest first, goes for another one: the first that has not asked, or has its answer. Of the newer half
/// none goes so, as it may not have been heard yet: then it is the oldest.
fn one_to_go(open: &VecDeque<Open>) -> usize {
    let older = open.iter().take(open.len() / 2);
    older.map(|one| one.is_asking.load(Ordering::Relaxed)).position(|is_asking| !is_asking).unwrap_or(0)
}

/// Answers the first request of a connection. A client that vanishes or talks nonsense is no event.
async fn serve(stream: TcpStream, source: Arc<dyn Source>, figures: Arc<Semaphore>, is_asking: Arc<AtomicBool>) {
    let service = service_fn(|request| {
        let (source, figures, is_asking) = (Arc::clone(&source), Arc::clone(&figures), Arc::clone(&is_asking));
        async move {
            is_asking.store(true, Ordering::Relaxed);
            let response = answer(&request, &*source, &figures).await;
            is_asking.store(false, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).keep_alive(false).max_buf_size(REQUEST_MAX);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: &Request<Incoming>, source: &dyn Source, figures: &Semaphore) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "method not allowed\n".to_string());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => page(StatusCode::OK, TEXT, "ok\n".to_string()),
        "/readyz" => match source.state() {
            ServerState::Ready => page(StatusCode::OK, TEXT, "ready\n".to_string()),
            ServerState::NotReady(why) => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => {
            // One after the other: whoever waits here has gone behind those that want less.
            let _turn = figures.acquire().await;
            let mut out = Exposition::default();
            source.metrics(&mut out);
            page(StatusCode::OK, PROMETHEUS, out.into_text())
        }
        "/" => page(StatusCode::OK, TEXT, "nyala\n\n/healthz\n/readyz\n/metrics\n".to_string()),
        _ => page(StatusCode::NOT_FOUND, TEXT, "not found\n".to_string()),
    }
}

fn page(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::thread;

    struct Figures;

    impl Source for Figures {
        fn state(&self) -> ServerState {
            ServerState::NotReady("not yet".into())
        }

        fn metrics(&self, out: &mut Exposition) {
            for n in 0..100_000 {
                out.single("nyala_test", crate::FamilyKind::Gauge, "More than a socket holds.", n);
            }
        }
    }

    fn start(limits: Limits) -> SocketAddr {
        let server = Server { limits, ..Server::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap() };
        let address = server.local_address().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // It ends with the process.
        thread::spawn(move || runtime.block_on(server.run(Arc::new(Figures))));
        address
    }

    fn connect(address: SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        // Long enough for any machine: who waits so long waits in vain.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        stream
    }

    /// All that comes; nothing if the server ended the connection in the middle.
    fn answer(mut stream: TcpStream) -> String {
        let mut text = String::new();
        match stream.read_to_string(&mut text) {
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("no end: {error}"),
            _ => text,
        }
    }

    fn healthy(address: SocketAddr) {
        for (path, status) in [("healthz", "200"), ("readyz", "503")] {
            let text = answer(connect(address, format!("GET /{path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()));
            assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {text}");
        }
    }

    const FIGURES: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

    /// What hostile clients send, each many times.
    fn hostile(n: usize) -> Vec<u8> {
        match n % 5 {
            0 => Vec::new(),
            1 => b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ".to_vec(),
            2 => FIGURES.repeat(20),
            3 => b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n".to_vec(),
            _ => b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(20),
        }
    }

    #[test]
    fn health_is_answered_amid_clients_without_end() {
        // None of them would end by itself for as long as this takes.
        let address = start(Limits { connections: 20, lifetime: Duration::from_secs(3600) });
        let mut crowd = Vec::new();
        for n in 0..200 {
            crowd.push(connect(address, &hostile(n)));
            if n % 20 == 19 {
                healthy(address);
            }
        }
        drop(crowd);
        healthy(address);
    }

    #[test]
    fn slow_clients_and_those_that_do_not_read_end() {
        let address = start(Limits { connections: 20, lifetime: Duration::from_millis(200) });
        for n in 0..3 {
            answer(connect(address, &hostile(n)));
        }
        // One that does not read finds the rest of its answer gone.
        let mut lazy = connect(address, FIGURES);
        thread::sleep(Duration::from_millis(400));
        let mut bytes = Vec::new();
        let _ = lazy.read_to_end(&mut bytes);
        let patient = start(Limits { connections: 20, lifetime: Duration::from_secs(3600) });
        let whole = answer(connect(patient, FIGURES));
        assert!(whole.starts_with("HTTP/1.1 200"), "{whole}");
        assert!(bytes.len() < whole.len(), "{} of {} bytes", bytes.len(), whole.len());
    }

    #[test]
    fn who_is_being_answered_goes_last() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let goes = |asking: &[bool]| {
            let open = asking.iter().map(|is_asking| Open {
                task: runtime.spawn(std::future::pending::<()>()).abort_handle(),
                is_asking: Arc::new(AtomicBool::new(*is_asking)),
            });
            one_to_go(&open.collect())
        };
        assert_eq!(goes(&[false, false, false, false]), 0);
        assert_eq!(goes(&[true, false, true, false]), 1);
        assert_eq!(goes(&[true, true, false, false]), 0, "those of the newer half are perhaps not heard yet");
        assert_eq!(goes(&[true]), 0);
    }

    #[test]
    fn a_long_request_is_refused() {
        let address = start(LIMITS);
        let long = [&b"GET /healthz HTTP/1.1\r\nX-Long: "[..], &[b'x'; 64 << 10]].concat();
        assert!(answer(connect(address, &long)).starts_with("HTTP/1.1 431"));
        healthy(address);
    }
}
