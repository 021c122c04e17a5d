//! SQL values: PostgreSQL's types, their text and binary forms, how rows and index keys are laid out in bytes.
//!
//! Responsible for: [`Datum`], the type table, text and binary input and output, arithmetic of the types that need more
//! than the machine's (NUMERIC, dates, intervals), the row codec, the order-preserving key codec.
//! Not responsible for: storage, expressions, which cast applies where (`sql-bind`).
//! Invariants: text output equals PostgreSQL 15's byte for byte; bytes from a client, the log or a row never panic;
//! for any two values of one type, the byte order of their keys is the order of the values.

#![forbid(unsafe_code)]

mod array;
pub mod bits;
pub mod cmp;
pub mod datetime;
mod datum;
pub mod encoding;
pub mod interval;
pub mod io;
pub mod json;
pub mod jsonpath;
pub mod key;
pub mod mac;
pub mod network;
pub mod numeric;
pub mod oid;
pub mod place;
pub mod quote;
pub mod room;
pub mod row;
mod settings;
mod snapshot;
mod typmod;
pub mod user;

pub use array::{DIMENSIONS_MAX, too_many_dimensions};
pub use cmp::{abbreviate, compare, compare_as, compare_text_bytes, hash_as, hash_datum, trimmed};
pub use datum::{
    Array, ArrayRef, Datum, DatumRef, Interval, LONG, Record, copied, relabelled, shared, type_of, written,
};
pub use io::{
    LEFT_OVER, is_held_as_number, is_sent_as_text, parse_text, plain_int, read_binary, write_binary, write_text,
};
pub use io::{tid, tid_parts, xid8, xid8_number};
pub use key::{decode_key, encode_key, key_says_all, split_key};
pub use network::Inet;
pub use numeric::{Numeric, NumericRef, NumericSum};
pub use oid::{TypeInfo, TypeRef, all_types, array_of, element_of, format_type, type_by_name, type_info, type_named};
pub use row::{ColumnType, RowLayout, RowRef, stored_as};
pub use settings::{ByteaOutput, DateOrder, DateStyle, InputContext, IntervalStyle, OutputSettings, TimeZone};
pub use snapshot::Snapshot;
pub use typmod::{apply_typmod, fits_as_it_is};
