//! uuid-ossp: UUIDs of versions 1, 3, 4 and 5 (RFC 4122).

use std::sync::atomic::{AtomicU64, Ordering};

use base::Result;
use sha1::Digest;
use types::Datum;
use types::oid::*;

use super::super::entry::{immutable, mismatched, volatile};
use super::super::text::digest::feed;
use super::super::{EvalContext, Function};
use super::crypto::random;

/// The namespaces of RFC 4122, appendix C, differ in this byte.
const fn namespace(number: u8) -> [u8; 16] {
    [0x6b, 0xa7, 0xb8, number, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8]
}

/// With version and variant.
fn marked(mut bytes: [u8; 16], version: u8) -> Datum {
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Datum::Uuid(bytes)
}

fn first(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&bytes[..16]);
    out
}

/// The UUID of a name: a digest of namespace and name.
fn named<D: Digest>(args: &[Datum], version: u8) -> Result<Datum> {
    let [Datum::Uuid(space), Datum::Text(name)] = args else { return mismatched(args) };
    let mut digest = D::new();
    digest.update(space);
    feed(name.as_bytes(), |part| digest.update(part))?;
    Ok(marked(first(&digest.finalize()), version))
}

/// From 15 October 1582 to the year 2000, in units of 100 nanoseconds.
const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000 + 946_684_800 * 10_000_000;

/// A UUID of a time. All of a process differ: no two get the same time.
fn timed(cx: &dyn EvalContext, node: [u8; 6], clock: u16) -> Datum {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = GREGORIAN.wrapping_add_signed(cx.clock_timestamp().wrapping_mul(10));
    // Relaxed: each change is one step, and nothing else depends on it.
    let before = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
    let time = now.max(before.map_or(0, |last| last + 1));
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(time as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((time >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&((time >> 48) as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&clock.to_be_bytes());
    bytes[10..].copy_from_slice(&node);
    marked(bytes, 1)
}

/// Random bytes in the place of a hardware address; the bits of a multicast and of a local address say so.
fn node() -> Result<([u8; 6], u16)> {
    let [a, b, c, d, e, f, g, h] = random()?;
    Ok(([a | 3, b, c, d, e, f], u16::from_be_bytes([g, h])))
}

/// Of one node for the life of the process. It is no hardware address, which tells where an identifier was made.
fn uuid_generate_v1(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    static NODE: std::sync::OnceLock<([u8; 6], u16)> = std::sync::OnceLock::new();
    let (node, clock) = match NODE.get() {
        Some(own) => *own,
        None => {
            let made = node()?;
            *NODE.get_or_init(|| made)
        }
    };
    Ok(timed(cx, node, clock))
}

fn uuid_generate_v1mc(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    let (node, clock) = node()?;
    Ok(timed(cx, node, clock))
}

pub(super) fn uuid_generate_v4(_: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(marked(random()?, 4))
}

/// The table, by number.
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(15_001, "uuid_nil", &[], UUID, |_, _| Ok(Datum::Uuid([0; 16]))),
    immutable(15_002, "uuid_ns_dns", &[], UUID, |_, _| Ok(Datum::Uuid(namespace(0x10)))),
    immutable(15_003, "uuid_ns_url", &[], UUID, |_, _| Ok(Datum::Uuid(namespace(0x11)))),
    immutable(15_004, "uuid_ns_oid", &[], UUID, |_, _| Ok(Datum::Uuid(namespace(0x12)))),
    immutable(15_005, "uuid_ns_x500", &[], UUID, |_, _| Ok(Datum::Uuid(namespace(0x14)))),
    volatile(15_006, "uuid_generate_v1", &[], UUID, uuid_generate_v1),
    volatile(15_007, "uuid_generate_v1mc", &[], UUID, uuid_generate_v1mc),
    immutable(15_008, "uuid_generate_v3", &[UUID, TEXT], UUID, |_, args| named::<md5::Md5>(args, 3))
        .named(&["namespace", "name"]),
    volatile(15_009, "uuid_generate_v4", &[], UUID, uuid_generate_v4),
    immutable(15_010, "uuid_generate_v5", &[UUID, TEXT], UUID, |_, args| named::<sha1::Sha1>(args, 5))
        .named(&["namespace", "name"]),
];
