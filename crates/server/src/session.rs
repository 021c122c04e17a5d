//! One client: the wire's messages become calls of the SQL session, its answers become messages.
//!
//! A statement flows without leaving its core: `pgwire` reads a batch of messages and calls this session for each; SQL runs
//! it against the shard and hands rows to [`Replies`], which encodes them into the connection's queue, together with the
//! gate they depend on; `pgwire` writes the queue once for the batch, up to the first gate that is not durable.

use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use base::{Error, Result, SqlState, work};
use env::strand::{Polled, Strand};
use pgwire::{Bind, CancelHandle, Format, Out, Parse, TransactionStatus, timers};
use smallvec::SmallVec;
use sql_session::{BoundValue, CancelToken, ResultFormats, Session};
use types::user::Current;

use crate::replies::{Replies, asked, describe};

/// How often a session that waits for another thread looks whether it should stop.
const LOOK_AFTER: Duration = Duration::from_millis(20);

/// Bytes of values that take microseconds to read.
const SHORT: usize = 4 << 10;

/// A client's session.
pub struct ClientSession {
    sql: Session,
    /// What its values are read by.
    types: Current,
}

/// Cancels the statement that a session runs.
struct Cancel(Arc<CancelToken>);

impl CancelHandle for Cancel {
    fn cancel(&self) {
        self.0.cancel();
    }
}

impl ClientSession {
    /// A session over this one, that begins with these types.
    pub fn new(sql: Session, types: Current) -> ClientSession {
        ClientSession { sql, types }
    }

    /// Reports what could not be encoded, as if the statement had failed by it.
    fn conclude(&mut self, result: Result<()>, failure: Result<()>) -> Result<()> {
        if result.is_ok() && failure.is_err() {
            self.sql.fail();
        }
        result.and(failure)
    }
}

/// Binds a portal, and answers whether that was done: see [`Session::bind`].
fn bind_portal(sql: &mut Session, bind: &Bind<'_>, at_once: bool) -> Result<bool> {
    let value = |(i, value): (usize, Option<_>)| match (value, bind.formats.get(i)) {
        (None, _) => BoundValue::Null,
        (Some(bytes), Format::Text) => BoundValue::Text(bytes),
        (Some(bytes), Format::Binary) => BoundValue::Binary(bytes),
    };
    let values = bind.values.iter().enumerate().map(value);
    sql.bind(bind.portal, bind.statement, values, asked(bind.results), at_once)
}

/// Runs a session's call as a strand: when its turn is over it is suspended wherever it is, and goes on when the other
/// connections of the core have had theirs. Values are read by `types` meanwhile.
///
/// A panic inside becomes the end of the session. It has been logged when this learns of it, and the session is dropped after
/// a FATAL error, which rolls back.
async fn guarded<T>(types: &mut Current, mut strand: Pin<&mut Strand<impl Future<Output = Result<T>>>>) -> Result<T> {
    let mut look: Option<Pin<Box<dyn Future<Output = ()>>>> = None;
    poll_fn(|cx| {
        loop {
            let polled = {
                let _entered = types.enter();
                strand.as_mut().poll(cx)
            };
            match polled {
                Polled::Ready(outcome) => return Poll::Ready(outcome.unwrap_or_else(|_| Err(broken()))),
                Polled::Pending => return Poll::Pending,
                Polled::Interrupted => {
                    // The task is woken behind the others, and behind new input. This is for that alone.
                    let _ = pin!(tokio::task::yield_now()).poll(cx);
                    return Poll::Pending;
                }
                Polled::Away => {
                    let timer = look.get_or_insert_with(|| Box::pin(timers::sleep(LOOK_AFTER)));
                    if timer.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    look = None;
                }
            }
        }
    })
    .await
}

/// Runs a call that is short on the connection's own stack, which costs less than a strand. A panic is as in [`guarded`].
async fn plainly<T>(types: &mut Current, mut call: Pin<&mut impl Future<Output = Result<T>>>) -> Result<T> {
    poll_fn(|cx| {
        let _entered = types.enter();
        let polled = catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(broken())))
    })
    .await
}

#[cold]
fn broken() -> Error {
    Error::fatal(SqlState::INTERNAL_ERROR, "terminating connection because of an internal error")
        .hint("The server's log says more. In a moment you should be able to reconnect and repeat your command.")
}

impl pgwire::Session for ClientSession {
    async fn simple_query(&mut self, sql: &str, out: &Out) -> Result<()> {
        let mut replies = Replies::simple(out);
        let result = guarded(&mut self.types, pin!(Strand::new(self.sql.simple_query(sql, &mut replies)))).await;
        let failure = replies.failure();
        self.conclude(result, failure)
    }

    async fn parse(&mut self, parse: Parse<'_>, out: &Out) -> Result<()> {
        let types: SmallVec<[_; 16]> = parse.types.iter().collect();
        let result = guarded(&mut self.types, pin!(Strand::new(self.sql.parse(parse.name, parse.sql, &types)))).await;
        self.sql.send_notices(&mut Replies::simple(out));
        result
    }

    async fn bind(&mut self, bind: Bind<'_>, _out: &Out) -> Result<()> {
        if bind.values.bytes() <= SHORT {
            let _entered = self.types.enter();
            let bound = catch_unwind(AssertUnwindSafe(|| bind_portal(&mut self.sql, &bind, true)));
            if bound.unwrap_or_else(|_| Err(broken()))? {
                return Ok(());
            }
        }
        guarded(&mut self.types, pin!(Strand::new(async { bind_portal(&mut self.sql, &bind, false).map(|_| ()) })))
            .await
    }

    async fn describe_statement(&mut self, name: &str, out: &Out) -> Result<()> {
        guarded(
            &mut self.types,
            pin!(Strand::new(async {
                let (types, columns) = self.sql.describe_statement(name)?;
                out.parameter_description(types.iter().copied());
                match columns {
                    Some(columns) => describe(out, &columns, &ResultFormats::TEXT),
                    None => {
                        out.no_data();
                        Ok(())
                    }
                }
            })),
        )
        .await
    }

    async fn describe_portal(&mut self, name: &str, out: &Out) -> Result<()> {
        plainly(
            &mut self.types,
            pin!(async {
                match self.sql.describe_portal(name)? {
                    Some(columns) => describe(out, &columns, &self.sql.formats_of(name)),
                    None => {
                        out.no_data();
                        Ok(())
                    }
                }
            }),
        )
        .await
    }

    async fn execute(&mut self, portal: &str, max_rows: u32, out: &Out) -> Result<()> {
        let formats = self.sql.formats_of(portal);
        let mut replies = Replies::extended(out, &formats);
        let result =
            guarded(&mut self.types, pin!(Strand::new(self.sql.execute(portal, u64::from(max_rows), &mut replies))))
                .await;
        let failure = replies.failure();
        self.conclude(result.map(|_| ()), failure)
    }

    async fn close_statement(&mut self, name: &str, _out: &Out) -> Result<()> {
        self.sql.close_statement(name);
        Ok(())
    }

    async fn close_portal(&mut self, name: &str, _out: &Out) -> Result<()> {
        self.sql.close_portal(name);
        Ok(())
    }

    async fn sync(&mut self, out: &Out) -> Result<()> {
        let mut replies = Replies::extended(out, &ResultFormats::TEXT);
        let result = match self.sql.has_deferred_checks() {
            false => plainly(&mut self.types, pin!(self.sql.sync(&mut replies))).await,
            // Checks of constraints may be many.
            true => guarded(&mut self.types, pin!(Strand::new(self.sql.sync(&mut replies)))).await,
        };
        self.conclude(result, Ok(()))
    }

    async fn fail(&mut self, _error: &Error) {
        self.sql.fail();
    }

    async fn report(&mut self, error: &Error, out: &Out) {
        let queued = async {
            out.error(error);
            Ok(())
        };
        let _: Result<()> = guarded(&mut self.types, pin!(Strand::new(queued))).await;
    }

    async fn elsewhere<T: Send + 'static>(&mut self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        guarded(&mut self.types, pin!(Strand::new(async { Ok(work::unstopped(|| work::elsewhere_unwound(work))) })))
            .await
    }

    async fn idle(&mut self, out: &Out) -> Result<()> {
        let timeout = self.sql.idle_timeout();
        if timeout.is_none() && !self.sql.is_listening() {
            return pending().await;
        }
        let mut timer = pin!(async {
            match timeout {
                None => pending().await,
                Some((ms, error)) => {
                    timers::sleep(Duration::from_millis(ms)).await;
                    error
                }
            }
        });
        let mut replies = Replies::simple(out);
        poll_fn(|cx| match timer.as_mut().poll(cx) {
            Poll::Pending => self.sql.poll_notifications(cx, &mut replies).map(Err),
            Poll::Ready(error) => Poll::Ready(Err(error)),
        })
        .await
    }

    async fn terminate(&mut self) {
        self.sql.undo_ahead(false).await;
        self.sql.terminate();
    }

    fn tell_settings(&self, out: &Out) {
        self.sql.send_parameters(&mut Replies::simple(out));
    }

    fn transaction_status(&self) -> TransactionStatus {
        match self.sql.transaction_status() {
            b'T' => TransactionStatus::InTransaction,
            b'E' => TransactionStatus::Failed,
            _ => TransactionStatus::Idle,
        }
    }

    fn cancel_handle(&self) -> Arc<dyn CancelHandle> {
        Arc::new(Cancel(self.sql.cancel_token()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Severity;

    #[test]
    fn a_panic_ends_the_session_only() {
        let mut types = Current::default();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let broken: Result<()> =
            runtime.block_on(guarded(&mut types, pin!(Strand::new(async { panic!("on purpose") }))));
        assert_eq!(broken.unwrap_err().fields().severity, Severity::Fatal);
        assert_eq!(runtime.block_on(guarded(&mut types, pin!(Strand::new(async { Ok(5) })))).unwrap(), 5);
    }
}
