//! Functions of addresses: `inet`, `cidr`, `macaddr`, `macaddr8`.

use base::{Error, Result, SqlState};
use types::network::Shown;
use types::oid::*;
use types::{Datum, Inet, written};

use super::entry::{immutable, mismatched, stable};
use super::{EvalContext, Function};

/// A function of one address.
macro_rules! one {
    (|$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Inet($a)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

/// A function of two addresses.
macro_rules! two {
    (|$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::Inet($a), Datum::Inet($b)] => Ok(Datum::from($value)),
            _ => mismatched(args),
        }
    };
}

/// A comparison of values that are held alike.
macro_rules! compared {
    ($kind:ident $op:tt) => {
        |_, args| match args {
            [Datum::$kind(a), Datum::$kind(b)] => Ok(Datum::Bool(a $op b)),
            _ => mismatched(args),
        }
    };
}

/// The order of two values as a number.
macro_rules! order {
    ($kind:ident) => {
        |_, args| match args {
            [Datum::$kind(a), Datum::$kind(b)] => Ok(Datum::Int4(a.cmp(b) as i32)),
            _ => mismatched(args),
        }
    };
}

/// A function of the bytes of one hardware address, or of the pairs of two.
macro_rules! bytewise {
    ($kind:ident, |$a:ident| $value:expr) => {
        |_, args| match args {
            [Datum::$kind(bytes)] => Ok(Datum::$kind(bytes.map(|$a| $value))),
            _ => mismatched(args),
        }
    };
    ($kind:ident, |$a:ident, $b:ident| $value:expr) => {
        |_, args| match args {
            [Datum::$kind(left), Datum::$kind(right)] => {
                let mut bytes = *left;
                bytes.iter_mut().zip(right).for_each(|(at, $b)| {
                    let $a = *at;
                    *at = $value;
                });
                Ok(Datum::$kind(bytes))
            }
            _ => mismatched(args),
        }
    };
}

fn shown(value: &Inet, how: Shown) -> Datum {
    let mut out = Vec::new();
    value.write(how, &mut out);
    Datum::from(written(out))
}

fn brief(value: &Inet) -> Datum {
    let mut out = Vec::new();
    value.write_brief(&mut out);
    Datum::from(written(out))
}

fn set_prefix(args: &[Datum], is_network: bool) -> Result<Datum> {
    match args {
        [Datum::Inet(value), Datum::Int4(bits)] => Ok(Datum::Inet(value.with_prefix(*bits)?.of_type(is_network))),
        _ => mismatched(args),
    }
}

fn plus(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Inet(value), Datum::Int8(number)] | [Datum::Int8(number), Datum::Inet(value)] => {
            Ok(Datum::Inet(value.plus((*number).into())?))
        }
        _ => mismatched(args),
    }
}

fn minus(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Inet(value), Datum::Int8(number)] => Ok(Datum::Inet(value.plus(number.wrapping_neg().into())?)),
        [Datum::Inet(value), Datum::Inet(other)] => Ok(Datum::Int8(value.minus(*other)?)),
        _ => mismatched(args),
    }
}

fn trunc(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Mac([a, b, c, ..])] => Ok(Datum::Mac([*a, *b, *c, 0, 0, 0])),
        [Datum::Mac8([a, b, c, ..])] => Ok(Datum::Mac8([*a, *b, *c, 0, 0, 0, 0, 0])),
        _ => mismatched(args),
    }
}

fn to_mac8(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Mac([a, b, c, d, e, f])] => Ok(Datum::Mac8([*a, *b, *c, 0xff, 0xfe, *d, *e, *f])),
        _ => mismatched(args),
    }
}

fn to_mac(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Mac8([a, b, c, 0xff, 0xfe, d, e, f])] => Ok(Datum::Mac([*a, *b, *c, *d, *e, *f])),
        [Datum::Mac8(_)] => {
            let message = "macaddr8 data out of range to convert to macaddr";
            Err(Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message).hint(
                "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
                 xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
            ))
        }
        _ => mismatched(args),
    }
}

fn set_seventh_bit(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Mac8(bytes)] => {
            let mut bytes = *bytes;
            bytes[0] |= 2;
            Ok(Datum::Mac8(bytes))
        }
        _ => mismatched(args),
    }
}

/// The address of the client, without a network that it is in; NULL through a socket of the file system.
fn client_address(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(address(cx.identity().client_addr.as_deref()))
}

/// An address that the system gave.
pub fn address(text: Option<&str>) -> Datum {
    text.and_then(|text| text.parse().ok()).map_or(Datum::Null, |address| Datum::Inet(Inet::host(address)))
}

impl From<Address> for Datum {
    fn from(value: Address) -> Datum {
        Datum::Inet(value.0)
    }
}

/// An address that the macros above make a value of.
struct Address(Inet);

/// The table, by OID.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    immutable(598, "abbrev", &[INET], TEXT, one!(|a| shown(a, Shown::IfShorter))),
    immutable(599, "abbrev", &[CIDR], TEXT, one!(|a| brief(a))),
    immutable(605, "set_masklen", &[INET, INT4], INET, |_, a| set_prefix(a, false)),
    immutable(635, "set_masklen", &[CIDR, INT4], CIDR, |_, a| set_prefix(a, true)),
    immutable(683, "network", &[INET], CIDR, one!(|a| Address(a.network()))),
    immutable(696, "netmask", &[INET], INET, one!(|a| Address(a.netmask()))),
    immutable(697, "masklen", &[INET], INT4, one!(|a| i32::from(a.prefix()))),
    immutable(698, "broadcast", &[INET], INET, one!(|a| Address(a.broadcast()))),
    immutable(699, "host", &[INET], TEXT, one!(|a| shown(a, Shown::Never))),
    immutable(711, "family", &[INET], INT4, one!(|a| i32::from(a.family()))),
    immutable(730, "text", &[INET], TEXT, one!(|a| shown(a, Shown::Always))),
    immutable(753, "trunc", &[MACADDR], MACADDR, trunc),
    immutable(830, "macaddr_eq", &[MACADDR, MACADDR], BOOL, compared!(Mac ==)).leakproof(),
    immutable(831, "macaddr_lt", &[MACADDR, MACADDR], BOOL, compared!(Mac <)).leakproof(),
    immutable(832, "macaddr_le", &[MACADDR, MACADDR], BOOL, compared!(Mac <=)).leakproof(),
    immutable(833, "macaddr_gt", &[MACADDR, MACADDR], BOOL, compared!(Mac >)).leakproof(),
    immutable(834, "macaddr_ge", &[MACADDR, MACADDR], BOOL, compared!(Mac >=)).leakproof(),
    immutable(835, "macaddr_ne", &[MACADDR, MACADDR], BOOL, compared!(Mac !=)).leakproof(),
    immutable(836, "macaddr_cmp", &[MACADDR, MACADDR], INT4, order!(Mac)).leakproof(),
    immutable(920, "network_eq", &[INET, INET], BOOL, compared!(Inet ==)).leakproof(),
    immutable(921, "network_lt", &[INET, INET], BOOL, compared!(Inet <)).leakproof(),
    immutable(922, "network_le", &[INET, INET], BOOL, compared!(Inet <=)).leakproof(),
    immutable(923, "network_gt", &[INET, INET], BOOL, compared!(Inet >)).leakproof(),
    immutable(924, "network_ge", &[INET, INET], BOOL, compared!(Inet >=)).leakproof(),
    immutable(925, "network_ne", &[INET, INET], BOOL, compared!(Inet !=)).leakproof(),
    immutable(926, "network_cmp", &[INET, INET], INT4, two!(|a, b| a.order(b))).leakproof(),
    immutable(927, "network_sub", &[INET, INET], BOOL, two!(|a, b| b.contains_smaller(a))),
    immutable(928, "network_subeq", &[INET, INET], BOOL, two!(|a, b| b.contains(a))),
    immutable(929, "network_sup", &[INET, INET], BOOL, two!(|a, b| a.contains_smaller(b))),
    immutable(930, "network_supeq", &[INET, INET], BOOL, two!(|a, b| a.contains(b))),
    immutable(1362, "hostmask", &[INET], INET, one!(|a| Address(a.hostmask()))),
    immutable(1715, "cidr", &[INET], CIDR, one!(|a| Address(a.of_type(true)))),
    stable(2196, "inet_client_addr", &[], INET, client_address).lax(),
    immutable(2627, "inetnot", &[INET], INET, one!(|a| Address(a.inverted()))),
    immutable(2628, "inetand", &[INET, INET], INET, two!(|a, b| Address(a.combine(*b, "AND", |a, b| a & b)?))),
    immutable(2629, "inetor", &[INET, INET], INET, two!(|a, b| Address(a.combine(*b, "OR", |a, b| a | b)?))),
    immutable(2630, "inetpl", &[INET, INT8], INET, plus),
    immutable(2631, "int8pl_inet", &[INT8, INET], INET, plus),
    immutable(2632, "inetmi_int8", &[INET, INT8], INET, minus),
    immutable(2633, "inetmi", &[INET, INET], INT8, minus),
    immutable(3144, "macaddr_not", &[MACADDR], MACADDR, bytewise!(Mac, |a| !a)),
    immutable(3145, "macaddr_and", &[MACADDR, MACADDR], MACADDR, bytewise!(Mac, |a, b| a & b)),
    immutable(3146, "macaddr_or", &[MACADDR, MACADDR], MACADDR, bytewise!(Mac, |a, b| a | b)),
    immutable(3551, "network_overlap", &[INET, INET], BOOL, two!(|a, b| a.overlaps(b))),
    immutable(3562, "network_larger", &[INET, INET], INET, two!(|a, b| Address(*a.max(b)))),
    immutable(3563, "network_smaller", &[INET, INET], INET, two!(|a, b| Address(*a.min(b)))),
    immutable(4063, "inet_merge", &[INET, INET], CIDR, two!(|a, b| Address(a.merge(*b)?))),
    immutable(4071, "inet_same_family", &[INET, INET], BOOL, two!(|a, b| a.family() == b.family())),
    immutable(4112, "trunc", &[MACADDR8], MACADDR8, trunc),
    immutable(4113, "macaddr8_eq", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 ==)).leakproof(),
    immutable(4114, "macaddr8_lt", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 <)).leakproof(),
    immutable(4115, "macaddr8_le", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 <=)).leakproof(),
    immutable(4116, "macaddr8_gt", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 >)).leakproof(),
    immutable(4117, "macaddr8_ge", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 >=)).leakproof(),
    immutable(4118, "macaddr8_ne", &[MACADDR8, MACADDR8], BOOL, compared!(Mac8 !=)).leakproof(),
    immutable(4119, "macaddr8_cmp", &[MACADDR8, MACADDR8], INT4, order!(Mac8)).leakproof(),
    immutable(4120, "macaddr8_not", &[MACADDR8], MACADDR8, bytewise!(Mac8, |a| !a)),
    immutable(4121, "macaddr8_and", &[MACADDR8, MACADDR8], MACADDR8, bytewise!(Mac8, |a, b| a & b)),
    immutable(4122, "macaddr8_or", &[MACADDR8, MACADDR8], MACADDR8, bytewise!(Mac8, |a, b| a | b)),
    immutable(4123, "macaddr8", &[MACADDR], MACADDR8, to_mac8).leakproof(),
    immutable(4124, "macaddr", &[MACADDR8], MACADDR, to_mac),
    immutable(4125, "macaddr8_set7bit", &[MACADDR8], MACADDR8, set_seventh_bit),
];
