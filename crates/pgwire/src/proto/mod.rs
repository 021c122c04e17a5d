//! Messages to and from bytes. Pure: no socket, no state beyond the buffers handed in.
//!
//! Lengths are checked as PostgreSQL does: a frame that cannot be trusted is FATAL, a body that does not add up is an
//! ERROR of that message only, because the next frame is still where it should be.

pub mod backend;
mod body;
mod frontend;
mod recode;
mod startup;

pub use backend::Column;
pub use body::Body;
pub(crate) use frontend::frame_within;
pub use frontend::{Bind, Format, Formats, Frame, Frontend, Long, ParamTypes, Parse, Target, Values, frame, parse};
pub(crate) use recode::recode;
pub(crate) use startup::repeated_request;
pub use startup::{Initial, MAX_STARTUP_LEN, Startup, initial};
pub use types::encoding::utf8 as text;

use base::{Error, SqlState, work};

/// Bytes that are looked through one by one: a look at many at once takes its time to begin.
const FEW: usize = 128;

/// Where the first zero byte is.
#[inline]
fn zero(bytes: &[u8]) -> Option<usize> {
    if bytes.len() <= FEW { bytes.iter().position(|&b| b == 0) } else { zero_of_many(bytes) }
}

/// As [`zero`]; what is long is counted. Nothing stops it: it is the server's own message as well.
#[inline(never)]
fn zero_of_many(bytes: &[u8]) -> Option<usize> {
    if bytes.len() <= work::STRETCH {
        return memchr::memchr(0, bytes);
    }
    bytes.chunks(work::STRETCH).enumerate().find_map(|(number, part)| {
        work::unstopped(|| work::beat(work::bytes(part.len())));
        memchr::memchr(0, part).map(|at| number * work::STRETCH + at)
    })
}

/// An `08P01` error with PostgreSQL's message.
#[cold]
pub(crate) fn violation(message: impl Into<String>) -> Error {
    Error::new(SqlState::PROTOCOL_VIOLATION, message)
}

/// An `08P01` error after which the connection cannot go on.
#[cold]
pub(crate) fn fatal_violation(message: impl Into<String>) -> Error {
    Error::fatal(SqlState::PROTOCOL_VIOLATION, message)
}
