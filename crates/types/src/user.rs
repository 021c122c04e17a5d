//! Types that statements made: enums and domains.
//!
//! Values are read, shown and compared where no catalog is at hand, so what that needs of a type is known to the whole
//! process by the type's OID, which is never used again. Which types there are for a statement, and under which names, is
//! the catalog's business.
//! Invariants: a definition is never taken back, so that what was read once can be shown; the order of a label never changes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, RwLock};

use base::{Error, Oid, Result, SqlState};
use rustc_hash::FxHashMap;

use crate::oid::TypeInfo;
use crate::{Datum, type_info};

/// OIDs below this are PostgreSQL's own.
pub const FIRST_OID: u32 = 16_384;

/// What a type is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum UserKind {
    /// Labels in the order of the type.
    Enum(Vec<Label>),
    /// A type with conditions.
    Domain {
        /// The type, which may be a domain too.
        base: Oid,
        /// Its modifier.
        typmod: i32,
    },
}

/// A label of an enum.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// What values hold. It never changes.
    pub mark: f32,
    /// Where the label stands, if the mark does not say it.
    pub path: Vec<f32>,
    /// The label.
    pub name: String,
}

/// A type as it is made known.
#[derive(Clone, Debug, PartialEq)]
pub struct UserType {
    /// Identity.
    pub oid: Oid,
    /// Identity of the type of arrays of it.
    pub array: Oid,
    /// Name.
    pub name: String,
    /// What it is made of.
    pub kind: UserKind,
}

struct Known {
    /// Of arrays of an enum it is the element's.
    definition: Arc<UserType>,
    info: &'static TypeInfo,
}

/// Set when the first domain is defined, so that nobody looks for domains where there are none.
static DOMAINS: AtomicBool = AtomicBool::new(false);

static TYPES: LazyLock<RwLock<FxHashMap<u32, Known>>> = LazyLock::new(RwLock::default);

fn quoted(name: &str) -> String {
    let plain = name
        .bytes()
        .enumerate()
        .all(|(i, b)| b.is_ascii_lowercase() || b == b'_' || b >= 0x80 || (i > 0 && (b.is_ascii_digit() || b == b'$')));
    if plain && !name.is_empty() { name.to_string() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Text for the rest of the process. A definition is made rarely, and lives as long as values of it may.
fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Makes a type known, or replaces what is known of it.
pub fn define(definition: UserType) {
    let base = match definition.kind {
        UserKind::Domain { base, .. } => type_info(base),
        UserKind::Enum(_) => None,
    };
    let Ok(mut types) = TYPES.write() else { return };
    if matches!(definition.kind, UserKind::Domain { .. }) {
        DOMAINS.store(true, Ordering::Release);
    }
    if types.get(&definition.oid.0).is_some_and(|known| *known.definition == definition) {
        return;
    }
    let (len, by_val, category, align) = base.map_or((4, true, 'E', 'i'), |b| (b.len, b.by_val, b.category, b.align));
    let (input, output, receive, send) = match base {
        Some(b) => ("domain_in", b.output, "domain_recv", b.send),
        None => ("enum_in", "enum_out", "enum_recv", "enum_send"),
    };
    let info = TypeInfo {
        oid: definition.oid,
        name: kept(definition.name.clone()),
        sql_name: kept(quoted(&definition.name)),
        len,
        by_val,
        category,
        preferred: false,
        align,
        element: Oid::INVALID,
        array: definition.array,
        input,
        output,
        receive,
        send,
    };
    let array = TypeInfo {
        oid: definition.array,
        name: kept(format!("_{}", definition.name)),
        sql_name: kept(format!("{}[]", quoted(&definition.name))),
        len: -1,
        by_val: false,
        category: 'A',
        preferred: false,
        align: if align == 'd' { 'd' } else { 'i' },
        element: definition.oid,
        array: Oid::INVALID,
        input: "array_in",
        output: "array_out",
        receive: "array_recv",
        send: "array_send",
    };
    let (oid, array_oid) = (definition.oid.0, definition.array.0);
    let definition = Arc::new(definition);
    types.insert(oid, Known { definition: Arc::clone(&definition), info: Box::leak(Box::new(info)) });
    types.insert(array_oid, Known { definition, info: Box::leak(Box::new(array)) });
}

/// What is known of a type.
pub fn definition(oid: Oid) -> Option<Arc<UserType>> {
    if oid.0 < FIRST_OID {
        return None;
    }
    let types = TYPES.read().ok()?;
    types.get(&oid.0).filter(|known| known.definition.oid == oid).map(|known| Arc::clone(&known.definition))
}

pub(crate) fn info(oid: Oid) -> Option<&'static TypeInfo> {
    if oid.0 < FIRST_OID {
        return None;
    }
    TYPES.read().ok()?.get(&oid.0).map(|known| known.info)
}

/// Whether a type is an enum.
pub fn is_enum(oid: Oid) -> bool {
    oid.0 >= FIRST_OID && matches!(definition(oid).map(|d| matches!(d.kind, UserKind::Enum(_))), Some(true))
}

/// Whether a type is a domain.
pub fn is_domain(oid: Oid) -> bool {
    oid.0 >= FIRST_OID && matches!(definition(oid).map(|d| matches!(d.kind, UserKind::Domain { .. })), Some(true))
}

/// Whether domains have been defined in this process.
pub fn any_domains() -> bool {
    DOMAINS.load(Ordering::Acquire)
}

/// The domain that a type is the type of arrays of.
pub fn domain_element(oid: Oid) -> Option<Oid> {
    if oid.0 < FIRST_OID || !any_domains() {
        return None;
    }
    let types = TYPES.read().ok()?;
    let known = types.get(&oid.0).filter(|known| known.definition.array == oid)?;
    matches!(known.definition.kind, UserKind::Domain { .. }).then_some(known.definition.oid)
}

/// The type that values are held as, with its modifier: what is under a domain, and for arrays of a domain the type of
/// arrays of what is under it. Of an array of a domain over arrays there is none.
pub fn plain_type(oid: Oid, typmod: i32) -> (Oid, i32) {
    let (oid, typmod) = base_type(oid, typmod);
    let Some(element) = domain_element(oid) else { return (oid, typmod) };
    let (under, typmod) = plain_type(element, -1);
    crate::array_of(under).map_or((oid, typmod), |array| (array, typmod))
}

/// The type under all domains, with its modifier. An array of a domain is a type of its own.
pub fn base_type(oid: Oid, typmod: i32) -> (Oid, i32) {
    let (mut oid, mut typmod) = (oid, typmod);
    while oid.0 >= FIRST_OID {
        match definition(oid).as_deref() {
            Some(UserType { kind: UserKind::Domain { base, typmod: own }, .. }) => (oid, typmod) = (*base, *own),
            _ => break,
        }
    }
    (oid, typmod)
}

/// The value of an enum that a label means.
///
/// # Errors
/// 22P02
pub fn parse_label(oid: Oid, text: &str) -> Result<Datum> {
    if let Some(definition) = definition(oid) {
        if let UserKind::Enum(labels) = &definition.kind
            && let Some(found) = labels.iter().find(|label| label.name == text)
        {
            return Ok(Datum::Enum(oid, found.mark));
        }
        let message = crate::io::about(&format!("invalid input value for enum {}", quoted(&definition.name)), text);
        return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message));
    }
    Err(Error::internal("a value of an enum that is not known"))
}

/// The label of an enum's value.
pub fn label(oid: Oid, mark: f32) -> Option<String> {
    let definition = definition(oid)?;
    let UserKind::Enum(labels) = &definition.kind else { return None };
    labels.iter().find(|label| label.mark == mark).map(|label| label.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_read_and_shown() {
        let label = |mark, name: &str| Label { mark, path: Vec::new(), name: name.to_string() };
        let labels = vec![label(1.0, "sad"), label(1.5, "so so"), label(2.0, "happy")];
        let (oid, array) = (Oid(4_000_000_001), Oid(4_000_000_002));
        define(UserType { oid, array, name: "Mood".to_string(), kind: UserKind::Enum(labels) });
        let value = parse_label(oid, "so so").unwrap();
        assert!(matches!(value, Datum::Enum(_, order) if super::label(oid, order).as_deref() == Some("so so")));
        assert!(parse_label(oid, "nope").is_err());
        assert_eq!(crate::format_type(array, -1), "\"Mood\"[]");
        assert_eq!(crate::element_of(array), Some(oid));
    }
}
