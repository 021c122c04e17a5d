//! Tests of the crate through its public face. With `RUSTFLAGS="--cfg shuttle"` the binary holds the random schedules
//! instead: one thread of the machine runs all tasks, and every shared access is a point to switch at.

#[cfg(not(shuttle))]
mod garbage;
#[cfg(not(shuttle))]
mod locks;
#[cfg(shuttle)]
mod schedules;
#[cfg(shuttle)]
mod serial;
#[cfg(not(shuttle))]
mod stress;
#[cfg_attr(shuttle, allow(dead_code))]
mod support;
#[cfg(not(shuttle))]
mod tables;
#[cfg(not(shuttle))]
mod transcripts;
#[cfg(not(shuttle))]
mod visibility;
#[cfg(not(shuttle))]
mod writers;
