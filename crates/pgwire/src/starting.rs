//! The listener during a start: every client is told to try again later.
//!
//! What a client says first is read as it would be later, so that it understands the answer: a request to encrypt is answered,
//! and done where there is a certificate. A cancel request has no receiver.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Semaphore;

use crate::conn::Options;
use crate::proto::{self, Initial, backend};
use crate::server::{Accepted, Server};
use crate::timers;
use crate::tls::Greeted;

/// Clients that are being told at once; more wait to be accepted.
const TELLING_MAX: usize = 256;
/// How long a client may take to say who it is.
const HEARING: Duration = Duration::from_secs(10);
/// How long a client may take to take the answer.
const PARTING: Duration = Duration::from_secs(2);
/// Rest after an accept that failed, most likely for want of descriptors.
const REST: Duration = Duration::from_millis(20);

impl Server {
    /// Until `until` completes, answers every client with what `refusal` says then. Clients that come between this and
    /// [`run`](Server::run) wait for that. Must be called on the runtime of [`bind`](Server::bind), and answers its clients in
    /// tasks there, which may outlive this call.
    pub async fn refuse_until<T>(&self, refusal: impl Fn() -> Error, until: impl Future<Output = T>) -> T {
        let places = Arc::new(Semaphore::new(TELLING_MAX));
        let refuse = async {
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let next = poll_fn(|cx| {
                    let ready = self.listeners.iter().map(|listener| listener.poll_accept(cx)).find(Poll::is_ready);
                    ready.unwrap_or(Poll::Pending)
                });
                match next.await {
                    Ok(accepted) => {
                        let telling = tell(accepted, refusal(), self.config.connection.clone());
                        tokio::spawn(async move {
                            // A client that has gone again is no event.
                            let _ = telling.await;
                            drop(place);
                        });
                    }
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => {
                        tracing::warn!(%error, "could not accept a connection");
                        timers::sleep(REST).await;
                    }
                }
            }
        };
        let (mut refuse, mut until) = (pin!(refuse), pin!(until));
        loop {
            tokio::select! {
                biased;
                done = &mut until => return done,
                // Never: the places are not closed.
                () = &mut refuse => {}
            }
        }
    }
}

/// Tells one client.
async fn tell(accepted: Accepted, refusal: Error, options: Options) -> io::Result<()> {
    let hear = async {
        match accepted {
            Accepted::Unix(stream) => answer(stream, &refusal).await,
            Accepted::Tcp(stream, _) => match &options.tls {
                None => answer(stream, &refusal).await,
                Some(tls) => match tls.greet(stream).await? {
                    Greeted::Plain(stream) => answer(stream, &refusal).await,
                    Greeted::Encrypted(stream, _) => answer(stream, &refusal).await,
                },
            },
        }
    };
    timers::timeout(HEARING.min(options.login_timeout), hear).await?
}

/// Reads up to the start-up packet and answers it.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, refusal: &Error) -> io::Result<()> {
    let (mut ssl, mut gss) = (false, false);
    let mut input = Vec::new();
    let error = loop {
        let packet = match proto::initial(&input) {
            Err(wrong) => break wrong,
            Ok(None) => {
                // A start-up packet that is too long was refused by its length.
                if stream.read_buf(&mut input).await? == 0 {
                    return Ok(());
                }
                continue;
            }
            Ok(Some((packet, n))) => {
                input.drain(..n);
                packet
            }
        };
        match packet {
            Initial::Ssl if !ssl => ssl = true,
            Initial::GssEnc if !gss => gss = true,
            Initial::Ssl => break proto::repeated_request(true),
            Initial::GssEnc => break proto::repeated_request(false),
            Initial::Cancel { .. } => return Ok(()),
            Initial::Startup(_) => break refusal.clone(),
        }
        stream.write_all(b"N").await?;
    };
    let mut bytes = Vec::new();
    backend::report(&mut bytes, b'E', &error);
    let part = async {
        stream.write_all(&bytes).await?;
        stream.shutdown().await?;
        // What the client has sent and nobody reads would make the system discard the answer.
        while stream.read(&mut [0; 512]).await? > 0 {}
        Ok(())
    };
    timers::timeout(PARTING, part).await?
}
