//! The connection loop against a scripted session, over in-memory streams and real sockets.

mod it {
    pub mod fake;
    mod flow;
    mod hostile;
    mod login;
    mod sockets;
}
