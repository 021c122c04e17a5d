//! The hinge between SQL and storage: what a statement may ask of a transactional engine, and the catalog's plain types.
//!
//! Responsible for: the traits [`Engine`], [`Txn`], [`Scan`]; the catalog ([`Catalog`], [`CatalogObject`]); [`Step`] and
//! [`Wait`], the two words of suspension.
//! Not responsible for: how rows are stored, what SQL is. One shard (`engine`) and many shards implement the same traits.
//! Invariants:
//! - No call blocks its thread (rule R9). What must wait returns [`Step::Wait`]; after the wait is over the caller makes
//!   *the same call again*, and calls are written so that repeating them is right.
//! - Tuples cross this border as bytes in the row codec of `types`; rows are named by ([`TableRef`], `RowId`).
//! - What depends on a commit that is not durable yet has raised [`Txn::gate`] before it is returned (rule R1).

#![forbid(unsafe_code)]

mod batch;
mod catalog;
mod engine;
mod expression;
mod index_code;
mod locks;
mod privileges;
mod shared;
mod wait;

pub use batch::{BatchRow, RowBatch};
pub use catalog::{
    Catalog, CatalogObject, CheckOption, ColumnDesc, ConstraintDesc, ConstraintKind, DatabaseDesc, DomainCheck,
    DomainDesc, EnumLabel, ExtensionDesc, ForeignKeyAction, Identity, IndexDesc, IndexExpression, IndexKey, LayoutDesc,
    LayoutField, MadeOnce, OnCommit, Persistence, SchemaDesc, SequenceDesc, TableDesc, TableKind, TypeDesc, TypeKind,
    ViewDesc, ViewRelation, oids,
};
pub use engine::{
    CommitOutcome, ConflictArbiter, Durability, Engine, InsertOutcome, Isolation, KeptView, KeyRange, MemoryKind,
    MemoryUse, PREPARED_MAX, PreparedTransaction, RowContent, RowLockMode, RowLockOutcome, Savepoint, Scan, ScanSpec,
    SequenceState, TableLockMode, TableMemoryUse, TableRef, Txn, TxnOptions, WaitPolicy,
};
pub use expression::{Expression, ExpressionPlace, Part, Reference};
pub use index_code::{IndexCode, IndexCompiler};
pub use locks::{AdvisoryKey, AdvisoryLocks, LockRow, Locked};
pub use privileges::{AclItem, DefaultPrivileges, Membership, Privileges, PrivilegesDesc, RoleDesc, RoleSetting};
pub use shared::Shared;
pub use wait::{Step, Wait, WaitCell};
