//! The server around a session, as functions and the relations of the catalog see it.
//!
//! Responsible for: what they may ask of it, and do to it. Who may is their business.

use engine_api::{Engine, MemoryKind};
use types::encoding::Conversion;

use sql_parse::monitor::{Activity, Monitor};

/// What a statement that is run by a session sees of the server. Implemented by the session.
pub trait Server {
    /// The storage, for its figures.
    fn engine(&self) -> &dyn Engine;
    /// What all sessions are doing.
    fn monitor(&self) -> &Monitor;
    /// What this one is doing.
    fn activity(&self) -> &Activity;
    /// Bytes that a kind of memory may take, if it has a limit of its own.
    fn memory_limit_of(&self, kind: MemoryKind) -> Option<u64>;
    /// Memory of the process as the system counts it, if it tells.
    fn resident_bytes(&self) -> Option<u64>;
    /// The rules of logging in, as their file has them now.
    fn login_rules(&self) -> Vec<LoginRule>;
    /// How the client's texts are converted; `None` for UTF-8.
    fn conversion(&self) -> Option<&'static Conversion>;
    /// Reads the configuration's files again.
    fn reload(&self);
    /// Cancels the statement of a session; whether there is one with this number.
    fn cancel(&self, pid: i32) -> bool;
    /// Ends a session; whether there is one with this number.
    fn terminate(&self, pid: i32) -> bool;
}

/// One line of the file with the rules of logging in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginRule {
    /// Its number, from 1.
    pub line: i32,
    /// Kind of connection.
    pub kind: String,
    /// Databases, as the line names them.
    pub databases: Vec<String>,
    /// Roles, as the line names them.
    pub users: Vec<String>,
    /// Address, or what stands for addresses.
    pub address: Option<String>,
    /// Mask of the address.
    pub netmask: Option<String>,
    /// How a client proves who it is.
    pub method: String,
    /// What is wrong with the line; then nothing else is told of it.
    pub error: Option<String>,
}
