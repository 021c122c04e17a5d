//! Keys of an enum whose labels have paths: every thread that enters or removes them must know the labels.

use std::sync::Arc;

use base::{LayoutId, Oid};
use engine::{Shard, inspect};
use engine_api::*;
use env::sim::SimDisk;
use types::user::Current;
use types::{ColumnType, Datum, RowLayout, oid};

use crate::support::*;

const MOOD: Oid = Oid(30_000);
const MOODS: Oid = Oid(30_010);
const BY_MOOD: Oid = Oid(30_011);

fn labels() -> Vec<EnumLabel> {
    let label =
        |n: usize| EnumLabel::new(Oid(30_020 + n as u32), format!("label {n}"), vec![1.0, 9.0 - n as f32], n as f32, n);
    (0..4).map(label).collect()
}

fn define_moods(shard: &Shard) {
    let kind = TypeKind::Enum(labels());
    let (schema, owner) = (oids::SCHEMA_PUBLIC, oids::ROLE_POSTGRES);
    let name = "mood".to_string();
    let made = MadeOnce::default();
    let mood = TypeDesc { oid: MOOD, array: Oid(30_001), schema, name, owner, kind, comment: None, made };
    let columns = vec![column(1, "id", oid::INT4), column(2, "mood", MOOD)];
    let mut table = TableDesc::new(MOODS, schema, "moods", owner, columns);
    let field = |column, ty| LayoutField { column, type_oid: types::stored_as(ty), typmod: -1 };
    table.layouts.push(LayoutDesc { id: LayoutId(1), fields: vec![field(1, oid::INT4), field(2, MOOD)] });
    let index = IndexDesc::new(BY_MOOD, schema, "moods_mood", MOODS, vec![IndexKey::ascending(2)]);
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Type(mood)));
    commit(shard, txn);
    let mut txn = begin(shard, Isolation::ReadCommitted);
    ready(txn.put_object(CatalogObject::Table(table)));
    ready(txn.put_object(CatalogObject::Index(index)));
    commit(shard, txn);
}

fn tuple_of(id: i32, mark: f32) -> Vec<u8> {
    let column = |oid| ColumnType { oid, typmod: -1 };
    let mut out = Vec::new();
    let layout = RowLayout::new(&[column(oid::INT4), column(MOOD)]);
    layout.encode(&[Datum::Int4(id), Datum::Enum(MOOD, mark)], &mut out).unwrap();
    out
}

#[test]
fn the_collector_removes_the_entries_of_labels_with_paths() {
    let disk = SimDisk::new();
    let shard = bank(&disk, 1);
    let mut session = Current::of(Arc::new(shard.clone()));
    let rows = {
        let _entered = session.enter();
        define_moods(&shard);
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let table = txn.open_table(MOODS).unwrap();
        let insert = |(id, label): (i32, EnumLabel)| {
            let tuple = tuple_of(id, label.order);
            match ready(txn.insert(&table, &tuple, ConflictArbiter::None)) {
                InsertOutcome::Inserted(row) => row,
                other => panic!("{other:?}"),
            }
        };
        let rows: Vec<_> = (1..).zip(labels()).map(insert).collect();
        commit(&shard, txn);
        inspect::check(&shard).unwrap();
        rows
    };
    // Nothing is freed while somebody may look.
    let mut old = begin(&shard, Isolation::RepeatableRead);
    assert_eq!(scan(&mut *old, None).len(), 1);
    {
        let _entered = session.enter();
        let mut txn = begin(&shard, Isolation::ReadCommitted);
        let table = txn.open_table(MOODS).unwrap();
        for row in &rows[..3] {
            ready(txn.lock_row(&table, *row, RowLockMode::Update, WaitPolicy::Block, &mut RowBatch::new()));
            txn.delete(&table, *row).unwrap();
        }
        commit(&shard, txn);
    }
    old.rollback();
    let collector = shard.clone();
    std::thread::spawn(move || (0..20).for_each(|_| collector.collect_garbage(100))).join().unwrap();
    let _entered = session.enter();
    inspect::check(&shard).unwrap();
}
