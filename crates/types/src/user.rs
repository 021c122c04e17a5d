//! Types that statements made: enums and domains.
//!
//! Responsible for: what reading, showing and comparing values needs of such a type, for each catalog ([`Types`]); which
//! catalog the thread reads values by ([`Current`]).
//! Not responsible for: which types a statement may name, and how (the catalog of `engine-api`).
//!
//! Values are read, shown and compared where no catalog is at hand. So a thread has current types: those of the catalog that
//! the running statement is bound to, and behind them those that are committed by now, for rows that were written since. Whoever
//! polls a session makes the session's own current for that time ([`Current::enter`]).
//! Invariants: an OID is never used again; the mark of a label never changes, and is never another label's.

use std::borrow::BorrowMut;
use std::cell::RefCell;
use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};
use rpds::RedBlackTreeMapSync;

use crate::oid::{TypeInfo, TypeRef};
use crate::quote::quote_name;
use crate::{Datum, type_info};

/// OIDs below this are PostgreSQL's own.
pub const FIRST_OID: u32 = 16_384;

/// What a type is made of.
#[derive(Debug)]
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
#[derive(Debug)]
pub struct Label {
    /// What values hold. It never changes.
    pub mark: f32,
    /// Where the label stands, if the mark does not say it.
    pub path: Vec<f32>,
    /// The label.
    pub name: String,
    /// It was added after the type was made.
    pub added: bool,
}

/// What values need of a type.
#[derive(Debug)]
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

/// A type with what `pg_type` says of it and of the type of its arrays.
#[derive(Debug)]
pub struct Made {
    definition: UserType,
    info: Arc<TypeInfo>,
    array: Arc<TypeInfo>,
}

/// The types of one catalog. Copies share what is alike.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// By their own OIDs and by those of the types of arrays of them.
    made: RedBlackTreeMapSync<u32, Arc<Made>>,
    domains: usize,
}

/// Where a thread looks for types that are younger than the statement that it runs.
pub trait Committed: Send + Sync {
    /// The types of the newest committed catalog.
    fn types(&self) -> Arc<Types>;
}

/// The types that values are read by.
#[derive(Default)]
pub struct Current {
    /// Those of the catalog that the statement is bound to.
    bound: Option<Arc<Types>>,
    committed: Option<Arc<dyn Committed>>,
}

/// Gives the thread back the types it had when it is dropped.
pub struct Entered<C: BorrowMut<Current>>(C);

thread_local! {
    static CURRENT: RefCell<Current> = const { RefCell::new(Current { bound: None, committed: None }) };
}

impl Made {
    /// A type of a catalog with these other types, among which is what a domain is made of.
    pub fn new(definition: UserType, others: &Types) -> Made {
        let base = match definition.kind {
            UserKind::Domain { base, .. } if base.0 < FIRST_OID => type_info(base),
            UserKind::Domain { base, .. } => others.made.get(&base.0).map(|made| made.info_of(base)),
            UserKind::Enum(_) => None,
        };
        let (len, by_val, category, align) =
            base.as_deref().map_or((4, true, 'E', 'i'), |b| (b.len, b.by_val, b.category, b.align));
        let (input, output, receive, send) = match base.as_deref() {
            Some(b) => ("domain_in", b.output, "domain_recv", b.send),
            None => ("enum_in", "enum_out", "enum_recv", "enum_send"),
        };
        let info = TypeInfo {
            oid: definition.oid,
            name: definition.name.clone().into(),
            sql_name: quote_name(&definition.name).into(),
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
            name: format!("_{}", definition.name).into(),
            sql_name: format!("{}[]", quote_name(&definition.name)).into(),
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
        Made { definition, info: Arc::new(info), array: Arc::new(array) }
    }

    /// Of the type, or of the type of arrays of it.
    fn info_of(&self, oid: Oid) -> TypeRef {
        TypeRef::Made(Arc::clone(if self.definition.oid == oid { &self.info } else { &self.array }))
    }

    fn is_domain(&self) -> bool {
        matches!(self.definition.kind, UserKind::Domain { .. })
    }

    fn labels(&self) -> &[Label] {
        match &self.definition.kind {
            UserKind::Enum(labels) => labels,
            UserKind::Domain { .. } => &[],
        }
    }

    fn label(&self, mark: f32) -> Option<&Label> {
        self.labels().iter().find(|label| label.mark == mark)
    }
}

impl Types {
    /// Adds or replaces a type.
    pub fn put(&mut self, made: &Arc<Made>) {
        self.remove(made.definition.oid);
        self.domains += usize::from(made.is_domain());
        for oid in [made.definition.oid, made.definition.array] {
            self.made.insert_mut(oid.0, Arc::clone(made));
        }
    }

    /// Removes a type; nothing happens if it is not there.
    pub fn remove(&mut self, oid: Oid) {
        let Some(made) = self.made.get(&oid.0).cloned() else { return };
        self.domains -= usize::from(made.is_domain());
        for oid in [made.definition.oid, made.definition.array] {
            self.made.remove_mut(&oid.0);
        }
    }
}

impl Current {
    /// No types but those that are committed there.
    pub fn of(committed: Arc<dyn Committed>) -> Current {
        Current { bound: None, committed: Some(committed) }
    }

    /// The types of a catalog, and no others.
    pub fn by(types: &Arc<Types>) -> Current {
        Current { bound: Some(Arc::clone(types)), committed: None }
    }

    /// The thread's, for another thread that works for the same statement.
    pub fn of_thread() -> Current {
        CURRENT.with_borrow(|current| Current { bound: current.bound.clone(), committed: current.committed.clone() })
    }

    /// Makes these the thread's for as long as it makes no others its own.
    pub fn stay(self) {
        CURRENT.set(self);
    }

    /// Makes these the thread's until the answer is dropped; what [`bind_by`] says meanwhile is kept for the next time.
    pub fn enter(&mut self) -> Entered<&mut Current> {
        self.swap();
        Entered(self)
    }

    /// As [`Current::enter`], for once.
    pub fn entered(mut self) -> Entered<Current> {
        self.swap();
        Entered(self)
    }

    fn swap(&mut self) {
        CURRENT.with_borrow_mut(|current| std::mem::swap(current, self));
    }
}

impl<C: BorrowMut<Current>> Drop for Entered<C> {
    fn drop(&mut self) {
        self.0.borrow_mut().swap();
    }
}

/// From now on the thread reads values by the types of this catalog.
pub fn bind_by(types: &Arc<Types>) {
    CURRENT.with_borrow_mut(|current| {
        if !current.bound.as_ref().is_some_and(|bound| Arc::ptr_eq(bound, types)) {
            current.bound = Some(Arc::clone(types));
        }
    });
}

/// Runs something that reads values by the types of a catalog, and of no other.
pub fn reading_by<R>(types: &Arc<Types>, run: impl FnOnce() -> R) -> R {
    let _entered = Current::by(types).entered();
    run()
}

/// The first answer that the thread's types give about a type.
fn ask<R>(oid: Oid, answer: impl Fn(&Arc<Made>) -> Option<R>) -> Option<R> {
    if oid.0 < FIRST_OID {
        return None;
    }
    CURRENT.with_borrow(|current| {
        debug_assert!(
            current.bound.is_some() || current.committed.is_some(),
            "a thread that reads values by no catalog"
        );
        let ask = |types: &Types| types.made.get(&oid.0).and_then(&answer);
        current.bound.as_deref().and_then(ask).or_else(|| ask(&current.committed.as_ref()?.types()))
    })
}

/// What is known of a type.
fn known(oid: Oid) -> Option<Arc<Made>> {
    ask(oid, |made| (made.definition.oid == oid).then(|| Arc::clone(made)))
}

pub(crate) fn info(oid: Oid) -> Option<TypeRef> {
    ask(oid, |made| Some(made.info_of(oid)))
}

/// Whether a type is an enum.
pub fn is_enum(oid: Oid) -> bool {
    known(oid).is_some_and(|made| !made.is_domain())
}

/// Whether a type is a domain.
pub fn is_domain(oid: Oid) -> bool {
    known(oid).is_some_and(|made| made.is_domain())
}

/// Whether there are domains, so that nobody looks for them where there are none.
pub fn any_domains() -> bool {
    CURRENT.with_borrow(|current| {
        let any = |types: &Types| types.domains > 0;
        match &current.bound {
            Some(bound) => any(bound),
            None => current.committed.as_ref().is_some_and(|committed| any(&committed.types())),
        }
    })
}

/// The domain that a type is the type of arrays of.
pub fn domain_element(oid: Oid) -> Option<Oid> {
    let of_arrays = |made: &Arc<Made>| made.definition.array == oid && made.is_domain();
    ask(oid, |made| of_arrays(made).then_some(made.definition.oid))
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
    while let Some(made) = known(oid)
        && let UserKind::Domain { base, typmod: own } = made.definition.kind
    {
        (oid, typmod) = (base, own);
    }
    (oid, typmod)
}

/// The type that a statement made, which this is, or is the type of arrays of.
pub fn made_type(oid: Oid) -> Option<Oid> {
    ask(oid, |made| Some(made.definition.oid))
}

/// The marks of an enum's labels, in their order; `None` if it is no enum.
pub fn marks(oid: Oid) -> Option<Vec<f32>> {
    let made = known(oid).filter(|made| !made.is_domain())?;
    Some(made.labels().iter().map(|label| label.mark).collect())
}

/// What is known of a label, if it is one of the enum's. A statement may meet labels that are younger than it.
pub(crate) fn of_label<R>(oid: Oid, mark: f32, answer: impl Fn(&Label) -> R) -> Option<R> {
    ask(oid, |made| made.label(mark).map(&answer))
}

/// Refuses a label that the transaction has added: no value holds it before that is committed.
///
/// # Errors
/// 55P04
pub fn check_safe(oid: Oid, mark: f32) -> Result<()> {
    let Some(Some(added)) = of_label(oid, mark, |label| label.added.then(|| label.name.clone())) else { return Ok(()) };
    let Some(committed) = CURRENT.with_borrow(|current| Some(current.committed.as_ref()?.types())) else {
        return Ok(());
    };
    match committed.made.get(&oid.0).and_then(|made| made.label(mark)) {
        Some(_) => Ok(()),
        None => Err(unsafe_label(&added, &crate::format_type(oid, -1))),
    }
}

/// 55P04: a label of an enum that is not committed.
#[cold]
pub fn unsafe_label(label: &str, shown: &str) -> Error {
    let message = format!("unsafe use of new value \"{label}\" of enum type {shown}");
    Error::new(SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE, message)
        .hint("New enum values must be committed before they can be used.")
}

/// The value of an enum that a label means.
///
/// # Errors
/// 22P02; 55P04 for a label that is not committed.
pub fn parse_label(oid: Oid, text: &str) -> Result<Datum> {
    let Some(made) = known(oid) else { return Err(Error::internal("a value of an enum that is not known")) };
    if let Some(found) = made.labels().iter().find(|label| label.name == text) {
        return check_safe(oid, found.mark).map(|()| Datum::Enum(oid, found.mark));
    }
    let message = crate::io::about(&format!("invalid input value for enum {}", made.info.sql_name), text);
    Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, message))
}

/// The label of an enum's value.
pub fn label(oid: Oid, mark: f32) -> Option<String> {
    of_label(oid, mark, |label| label.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OID: Oid = Oid(4_000_000_001);
    const ARRAY: Oid = Oid(4_000_000_002);

    fn mood(labels: &[(f32, &str)]) -> Arc<Types> {
        let label = |&(mark, name): &(f32, &str)| Label { mark, path: Vec::new(), name: name.to_string(), added: true };
        let kind = UserKind::Enum(labels.iter().map(label).collect());
        let mut types = Types::default();
        let made = Made::new(UserType { oid: OID, array: ARRAY, name: "Mood".to_string(), kind }, &types);
        types.put(&Arc::new(made));
        Arc::new(types)
    }

    struct Fixed(Arc<Types>);

    impl Committed for Fixed {
        fn types(&self) -> Arc<Types> {
            Arc::clone(&self.0)
        }
    }

    #[test]
    fn a_label_is_read_and_shown() {
        reading_by(&mood(&[(1.0, "sad"), (1.5, "so so"), (2.0, "happy")]), || {
            let value = parse_label(OID, "so so").unwrap();
            assert!(matches!(value, Datum::Enum(_, order) if label(OID, order).as_deref() == Some("so so")));
            assert!(parse_label(OID, "nope").is_err());
            assert_eq!(crate::format_type(ARRAY, -1), "\"Mood\"[]");
            assert_eq!(crate::element_of(ARRAY), Some(OID));
        });
    }

    #[test]
    fn each_reads_by_its_own() {
        let committed: Arc<dyn Committed> = Arc::new(Fixed(mood(&[(1.0, "sad"), (2.0, "happy")])));
        let (mut one, mut other) = (Current::of(Arc::clone(&committed)), Current::of(committed));
        {
            let _entered = one.enter();
            bind_by(&mood(&[(1.0, "blue")]));
        }
        {
            let _entered = other.enter();
            assert_eq!(label(OID, 1.0).as_deref(), Some("sad"));
        }
        let _entered = one.enter();
        assert_eq!(label(OID, 1.0).as_deref(), Some("blue"));
        // A label that is younger than the statement.
        assert_eq!(label(OID, 2.0).as_deref(), Some("happy"));
        assert!(parse_label(OID, "happy").is_err());
        bind_by(&mood(&[(1.0, "blue"), (2.0, "happy"), (3.0, "new")]));
        assert!(parse_label(OID, "blue").is_ok());
        assert_eq!(parse_label(OID, "new").unwrap_err().code(), SqlState::UNSAFE_NEW_ENUM_VALUE_USAGE);
    }

    #[test]
    fn a_type_that_is_gone_takes_its_array_type_with_it() {
        let mut types = Types::clone(&mood(&[(1.0, "sad")]));
        types.remove(OID);
        reading_by(&Arc::new(types), || assert!(type_info(OID).is_none() && type_info(ARRAY).is_none()));
    }
}
