//! SQL values: PostgreSQL's types, their text and binary forms, how rows and index keys are laid out in bytes.
//!
//! Responsible for: [`Datum`], the type table, text and binary input and output, arithmetic of the types that need more
//! than the machine's (NUMERIC, dates, intervals), the row codec, the order-preserving key codec.
//! Not responsible for: storage, expressions, which cast applies where (`sql`).
//! Invariants: text output equals PostgreSQL 15's byte for byte; bytes from a client, the log or a row never panic;
//! for any two values of one type, the byte order of their keys is the order of the values.

#![forbid(unsafe_code)]

mod datum;

pub use datum::{Array, Datum, DatumRef, Interval};
