//! The listener and its few pages.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use crate::{Exposition, Source, State};

/// Connections beyond this wait to be accepted.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to say what it wants.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may last in all; a scraper makes a new one.
const CONNECTION_MAX: Duration = Duration::from_secs(300);
/// Rest after an accept that failed, most likely for want of descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(50);

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A bound listener.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn bind(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener })
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
    /// # Errors
    /// If the runtime does not take the listener.
    pub async fn run(self, source: Arc<dyn Source>) -> io::Result<Infallible> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let place = Arc::clone(&places).acquire_owned().await.map_err(io::Error::other)?;
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::debug!(%error, "could not accept an HTTP connection");
                    tokio::time::sleep(ACCEPT_REST).await;
                    continue;
                }
            };
            let source = Arc::clone(&source);
            tokio::spawn(async move {
                let service = service_fn(|request| {
                    let response = answer(&request, &*source);
                    async { Ok::<_, Infallible>(response) }
                });
                let mut builder = http1::Builder::new();
                builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                // A client that vanishes or talks nonsense is no event.
                let _ = tokio::time::timeout(CONNECTION_MAX, connection).await;
                drop(place);
            });
        }
    }
}

fn answer(request: &Request<Incoming>, source: &dyn Source) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "method not allowed\n".to_string());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => page(StatusCode::OK, TEXT, "ok\n".to_string()),
        "/readyz" => match source.state() {
            State::Ready => page(StatusCode::OK, TEXT, "ready\n".to_string()),
            State::NotReady(why) => page(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => {
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
