//! Input forms of types. Properties: a value that was read from text is written as a text that reads as the same value, and so in
//! binary form; no bytes make a reader fail in another way than by its error.

use std::sync::Arc;

use base::{Oid, SqlState};
use types::{Datum, InputContext, OutputSettings, oid};

/// What an input's first byte chooses from.
pub(crate) const TYPES: [Oid; 34] = [
    oid::BOOL,
    oid::INT4,
    oid::INT8,
    oid::FLOAT4,
    oid::FLOAT8,
    oid::NUMERIC,
    oid::TEXT,
    oid::BYTEA,
    oid::UUID,
    oid::DATE,
    oid::TIME,
    oid::TIMETZ,
    oid::TIMESTAMP,
    oid::TIMESTAMPTZ,
    oid::INTERVAL,
    oid::JSON,
    oid::JSONB,
    oid::JSONPATH,
    oid::INT4_ARRAY,
    oid::TEXT_ARRAY,
    oid::NUMERIC_ARRAY,
    oid::TIMESTAMPTZ_ARRAY,
    oid::JSONB_ARRAY,
    oid::OID,
    oid::NAME,
    oid::INT2VECTOR,
    oid::INET,
    oid::CIDR,
    oid::MACADDR,
    oid::MACADDR8,
    oid::BIT,
    oid::VARBIT,
    oid::INET_ARRAY,
    oid::PG_SNAPSHOT,
];

fn text_of(value: &Datum, ty: Oid) -> Vec<u8> {
    let mut out = Vec::new();
    types::write_text(value.as_ref(), ty, &OutputSettings::default(), &mut out).expect("a value of its type");
    out
}

fn binary_of(value: &Datum, ty: Oid) -> Vec<u8> {
    let mut out = Vec::new();
    types::write_binary(value.as_ref(), ty, &mut out).expect("a value of its type");
    out
}

/// The first byte chooses the type; then its text form, or its binary one.
pub(crate) fn run(input: &[u8]) {
    let _entered = types::user::Current::by(&Arc::default()).entered();
    let Some((choice, bytes)) = input.split_first() else { return };
    let ty = TYPES[usize::from(*choice) % TYPES.len()];
    let settings = OutputSettings::default();
    let cx = InputContext { settings: &settings, now_micros: 0 };
    if let Ok(value) = types::read_binary(ty, -1, bytes) {
        let written = binary_of(&value, ty);
        let again = types::read_binary(ty, -1, &written).expect("what was written");
        assert_eq!(binary_of(&again, ty), written);
    }
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else { return };
    let Ok(value) = types::parse_text(ty, -1, text, &cx) else { return };
    let written = text_of(&value, ty);
    let text = std::str::from_utf8(&written).expect("texts are UTF-8");
    // An empty vector is written as PostgreSQL does, who does not read it.
    if ty == oid::INT2VECTOR && text.is_empty() {
        return;
    }
    let again = match types::parse_text(ty, -1, text, &cx) {
        // A zone such as x36 is written as -36, which PostgreSQL does not read either.
        Err(error) if ty == oid::TIMETZ && error.code() == SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE => return,
        again => again.expect("what was written"),
    };
    assert_eq!(text_of(&again, ty), written, "{}", types::format_type(ty, -1));
    let binary = binary_of(&value, ty);
    let again = types::read_binary(ty, -1, &binary).expect("what was written");
    assert_eq!(binary_of(&again, ty), binary);
}
