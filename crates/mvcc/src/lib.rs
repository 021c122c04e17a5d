//! mvcc
