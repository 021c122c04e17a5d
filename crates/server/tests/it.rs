//! The real binary: how it starts, refuses to start, serves and ends.

#![forbid(unsafe_code)]

#[path = "it/client.rs"]
mod client;
#[path = "it/coldstart.rs"]
mod coldstart;
#[path = "it/extended.rs"]
mod extended;
#[path = "it/life.rs"]
mod life;
#[path = "it/login.rs"]
mod login;
#[path = "it/node.rs"]
mod node;
#[path = "it/security.rs"]
mod security;
