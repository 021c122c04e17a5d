//! Binary forms of values as functions: `int4send` and the like.

use base::{Oid, Result};
use types::encoding::recode_binary;
use types::oid::*;
use types::{Datum, write_binary};

use super::entry::{immutable, mismatched, stable};
use super::{EvalContext, Function, Server};

/// The binary form of a value of type `TYPE`, texts in the encoding of the client.
fn send<const TYPE: u32>(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let [value] = args else { return mismatched(args) };
    sent(cx, value, Oid(TYPE))
}

fn send_array(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [value @ Datum::Array(array)] => sent(cx, value, types::array_of(array.element).unwrap_or(ANYARRAY)),
        _ => mismatched(args),
    }
}

fn send_enum(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [value @ Datum::Enum(ty, _)] => sent(cx, value, *ty),
        _ => mismatched(args),
    }
}

fn sent(cx: &dyn EvalContext, value: &Datum, ty: Oid) -> Result<Datum> {
    let mut bytes = Vec::new();
    write_binary(value.as_ref(), ty, &mut bytes)?;
    let conversion = cx.server().and_then(Server::conversion);
    if let Some(conversion) = conversion {
        let encode = |text: &[u8]| conversion.encoded(types::encoding::utf8(text)?);
        bytes = recode_binary(ty, &bytes, &encode)?.unwrap_or(bytes);
    }
    Ok(Datum::from(bytes))
}

/// By name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    stable(2401, "array_send", &[ANYARRAY], BYTEA, send_array),
    immutable(2437, "boolsend", &[BOOL], BYTEA, send::<{ BOOL.0 }>),
    immutable(2457, "bit_send", &[BIT], BYTEA, send::<{ BIT.0 }>),
    stable(2431, "bpcharsend", &[BPCHAR], BYTEA, send::<{ BPCHAR.0 }>),
    immutable(2413, "byteasend", &[BYTEA], BYTEA, send::<{ BYTEA.0 }>),
    immutable(2435, "charsend", &[CHAR], BYTEA, send::<{ CHAR.0 }>),
    immutable(2443, "cidsend", &[CID], BYTEA, send::<{ CID.0 }>),
    immutable(2499, "cidr_send", &[CIDR], BYTEA, send::<{ CIDR.0 }>),
    immutable(2469, "date_send", &[DATE], BYTEA, send::<{ DATE.0 }>),
    stable(3533, "enum_send", &[ANYENUM], BYTEA, send_enum),
    immutable(2425, "float4send", &[FLOAT4], BYTEA, send::<{ FLOAT4.0 }>),
    immutable(2427, "float8send", &[FLOAT8], BYTEA, send::<{ FLOAT8.0 }>),
    immutable(2497, "inet_send", &[INET], BYTEA, send::<{ INET.0 }>),
    immutable(2405, "int2send", &[INT2], BYTEA, send::<{ INT2.0 }>),
    immutable(2411, "int2vectorsend", &[INT2VECTOR], BYTEA, send::<{ INT2VECTOR.0 }>),
    immutable(2407, "int4send", &[INT4], BYTEA, send::<{ INT4.0 }>),
    immutable(2409, "int8send", &[INT8], BYTEA, send::<{ INT8.0 }>),
    immutable(2479, "interval_send", &[INTERVAL], BYTEA, send::<{ INTERVAL.0 }>),
    immutable(324, "json_send", &[JSON], BYTEA, send::<{ JSON.0 }>),
    immutable(3803, "jsonb_send", &[JSONB], BYTEA, send::<{ JSONB.0 }>),
    immutable(4004, "jsonpath_send", &[JSONPATH], BYTEA, send::<{ JSONPATH.0 }>),
    immutable(3447, "macaddr8_send", &[MACADDR8], BYTEA, send::<{ MACADDR8.0 }>),
    immutable(2495, "macaddr_send", &[MACADDR], BYTEA, send::<{ MACADDR.0 }>),
    stable(2423, "namesend", &[NAME], BYTEA, send::<{ NAME.0 }>),
    immutable(2461, "numeric_send", &[NUMERIC], BYTEA, send::<{ NUMERIC.0 }>),
    immutable(2419, "oidsend", &[OID], BYTEA, send::<{ OID.0 }>),
    immutable(2421, "oidvectorsend", &[OIDVECTOR], BYTEA, send::<{ OIDVECTOR.0 }>),
    stable(2403, "record_send", &[RECORD], BYTEA, send::<{ RECORD.0 }>),
    immutable(2453, "regclasssend", &[REGCLASS], BYTEA, send::<{ REGCLASS.0 }>),
    immutable(4197, "regcollationsend", &[REGCOLLATION], BYTEA, send::<{ REGCOLLATION.0 }>),
    immutable(4088, "regnamespacesend", &[REGNAMESPACE], BYTEA, send::<{ REGNAMESPACE.0 }>),
    immutable(2451, "regoperatorsend", &[REGOPERATOR], BYTEA, send::<{ REGOPERATOR.0 }>),
    immutable(2449, "regopersend", &[REGOPER], BYTEA, send::<{ REGOPER.0 }>),
    immutable(2447, "regproceduresend", &[REGPROCEDURE], BYTEA, send::<{ REGPROCEDURE.0 }>),
    immutable(2445, "regprocsend", &[REGPROC], BYTEA, send::<{ REGPROC.0 }>),
    immutable(4095, "regrolesend", &[REGROLE], BYTEA, send::<{ REGROLE.0 }>),
    immutable(2455, "regtypesend", &[REGTYPE], BYTEA, send::<{ REGTYPE.0 }>),
    stable(2415, "textsend", &[TEXT], BYTEA, send::<{ TEXT.0 }>),
    immutable(2439, "tidsend", &[TID], BYTEA, send::<{ TID.0 }>),
    immutable(2471, "time_send", &[TIME], BYTEA, send::<{ TIME.0 }>),
    immutable(2475, "timestamp_send", &[TIMESTAMP], BYTEA, send::<{ TIMESTAMP.0 }>),
    immutable(2477, "timestamptz_send", &[TIMESTAMPTZ], BYTEA, send::<{ TIMESTAMPTZ.0 }>),
    immutable(2473, "timetz_send", &[TIMETZ], BYTEA, send::<{ TIMETZ.0 }>),
    immutable(2962, "uuid_send", &[UUID], BYTEA, send::<{ UUID.0 }>),
    immutable(2459, "varbit_send", &[VARBIT], BYTEA, send::<{ VARBIT.0 }>),
    stable(2433, "varcharsend", &[VARCHAR], BYTEA, send::<{ VARCHAR.0 }>),
    immutable(5058, "pg_snapshot_send", &[PG_SNAPSHOT], BYTEA, send::<{ PG_SNAPSHOT.0 }>),
    immutable(2942, "txid_snapshot_send", &[TXID_SNAPSHOT], BYTEA, send::<{ TXID_SNAPSHOT.0 }>),
    immutable(5083, "xid8send", &[XID8], BYTEA, send::<{ XID8.0 }>),
    immutable(2441, "xidsend", &[XID], BYTEA, send::<{ XID.0 }>),
];
