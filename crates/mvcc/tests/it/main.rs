//! Tests of the crate through its public face.

mod garbage;
mod locks;
mod stress;
mod support;
mod visibility;
