//! Statements about rows: reading, changing, copying, locking.

use super::{ObjectKind, Relation, Writer};

const LOCKS: [&str; 8] = [
    "ACCESS SHARE",
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
];

impl Writer<'_> {
    /// A statement that reads.
    pub(super) fn reading(&mut self) -> String {
        match self.below(12) {
            0 => {
                let name = self.one_relation();
                format!("TABLE {name}")
            }
            1 => {
                let query = self.select();
                let analyze = self.pick(&["", "(COSTS off) "]);
                // What a plan looks like is each server's own.
                format!("EXPLAIN {analyze}{query}")
            }
            2 => {
                let (first, second) = (self.select(), self.select());
                format!("WITH w AS ({first}), v AS MATERIALIZED ({second}) SELECT count(*) FROM w, v")
            }
            3 => {
                let relation = self.relation();
                let (name, column) = (self.name_of(&relation), self.column(&relation));
                let (inner, of_type) = (self.select_one(), self.type_name());
                self.pick(&[
                    format!("SELECT x.id FROM {name} x WHERE NULL::{of_type} IS NULL").as_str(),
                    format!("SELECT ARRAY[]::{of_type}[] IS NULL, x.{column} FROM {name} x").as_str(),
                    format!("SELECT (SELECT count(*) FROM {name} x WHERE x.{column} IS NOT NULL), 1").as_str(),
                    format!("SELECT {column} FROM {name} WHERE EXISTS ({inner})").as_str(),
                    format!("SELECT id FROM {name} WHERE id IN ({inner})").as_str(),
                    format!("SELECT (SELECT max(x.id) FROM {name} x) AS m FROM ({inner}) y").as_str(),
                ])
                .to_owned()
            }
            _ => self.select(),
        }
    }

    fn one_relation(&mut self) -> String {
        let relation = self.relation();
        self.name_of(&relation)
    }

    /// A query of one integer column.
    fn select_one(&mut self) -> String {
        let relation = self.relation();
        let name = self.name_of(&relation);
        format!("SELECT i.id FROM {name} i")
    }

    /// A condition on columns of what is called `alias`.
    pub(super) fn condition(&mut self, relation: &Relation, alias: &str) -> String {
        let column = self.column(relation);
        match column {
            "id" | "a" => {
                let number = self.below(4);
                self.pick(&[
                    format!("{alias}.{column} = {number}").as_str(),
                    format!("{alias}.{column} > {number}").as_str(),
                    format!("{alias}.{column} IS NOT NULL").as_str(),
                ])
                .to_owned()
            }
            _ => self
                .pick(&[
                    format!("{alias}.{column}::text = 'one'").as_str(),
                    format!("{alias}.{column} IS NOT NULL").as_str(),
                    format!("{alias} IS NOT NULL").as_str(),
                ])
                .to_owned(),
        }
    }

    pub(super) fn select(&mut self) -> String {
        let relation = self.relation();
        let name = self.name_of(&relation);
        let (first, second) = (self.column(&relation), self.column(&relation));
        let filter = if self.once_in(2) { format!(" WHERE {}", self.condition(&relation, "x")) } else { String::new() };
        match self.below(12) {
            0 => format!("SELECT * FROM {name} x{filter}"),
            1 => format!("SELECT x::text FROM {name} x{filter}"),
            2 => format!("SELECT count(*) FROM {name} x{filter}"),
            3 => format!("SELECT 1 FROM {name} x{filter}"),
            4 => format!("SELECT x.{first} FROM {name} x{filter} ORDER BY x.{second} LIMIT 1"),
            5 => {
                // What cannot be locked is refused at a moment of each server's own.
                let relation = self.of_kind(&[ObjectKind::Table, ObjectKind::Simple]);
                let (name, first) = (self.name_of(&relation), self.column(&relation));
                let strength = self.pick(&["UPDATE", "NO KEY UPDATE", "SHARE", "KEY SHARE"]);
                let of = self.pick(&["", " OF x", " NOWAIT", " SKIP LOCKED"]);
                format!("SELECT x.{first} FROM {name} x{filter} FOR {strength}{of}")
            }
            6 => {
                let other = self.relation();
                let (named, column) = (self.name_of(&other), self.column(&other));
                let join = self.pick(&["JOIN", "LEFT JOIN", "FULL JOIN"]);
                let lock = self.pick(&["", "", " FOR UPDATE OF y", " FOR SHARE"]);
                let lockable = |relation: &Relation| matches!(relation.kind, ObjectKind::Table | ObjectKind::Simple);
                let lock = if join == "JOIN" && lockable(&relation) && lockable(&other) { lock } else { "" };
                format!("SELECT x.{first}, y.{column} FROM {name} x {join} {named} y ON x.id = y.id{filter}{lock}")
            }
            7 => format!("SELECT x.{first}, count(x.{second}) FROM {name} x{filter} GROUP BY x.{first}"),
            8 => {
                let relation = self.of_kind(&[ObjectKind::Table]);
                let (name, column) = (self.name_of(&relation), self.column(&relation));
                let column = format!("x.{column}");
                let target = self.pick(&["count(*)", &column, "x::text", "*", "1"]);
                let lock =
                    if target.starts_with("count") { "" } else { self.pick(&["", "", " FOR UPDATE", " FOR SHARE"]) };
                format!("SELECT {target} FROM {name} x TABLESAMPLE BERNOULLI (100){lock}")
            }
            9 => format!("SELECT x.{first}, row_number() OVER (ORDER BY x.id) FROM {name} x{filter}"),
            _ => format!("SELECT x.{first}, x.{second} FROM {name} x{filter}"),
        }
    }

    /// A value for a column.
    fn value(&mut self, column: &str) -> String {
        match column {
            "id" => (20 + self.below(5)).to_string(),
            "a" => self.pick(&["11", "2", "NULL", "5000", "1"]).to_owned(),
            "b" => self.pick(&["'x'", "NULL", "''"]).to_owned(),
            _ => self.pick(&["'low'", "'mid'", "NULL"]).to_owned(),
        }
    }

    /// Some columns of a relation, `id` mostly among them.
    fn some_columns(&mut self, relation: &Relation) -> Vec<&'static str> {
        let mut columns: Vec<_> = relation.columns.iter().copied().filter(|_| self.below(2) == 0).collect();
        if columns.is_empty() {
            columns.push("id");
        }
        columns
    }

    fn returning(&mut self, relation: &Relation, alias: &str) -> String {
        let column = self.column(relation);
        match self.below(6) {
            0 => format!(" RETURNING {alias}.{column}"),
            1 => " RETURNING *".to_owned(),
            2 => " RETURNING 1".to_owned(),
            _ => String::new(),
        }
    }

    /// What is written to: tables, and views that can be. That others cannot is said at a moment of each server's own.
    fn target(&mut self) -> Relation {
        if self.once_in(2) { self.table() } else { self.of_kind(&[ObjectKind::Simple, ObjectKind::Table]) }
    }

    /// A statement that changes rows.
    pub(super) fn writing(&mut self) -> String {
        match self.below(20) {
            0..=5 => self.insert(),
            6..=10 => self.update(),
            11..=13 => self.delete(),
            14..=16 => self.merge(),
            17 => {
                let (change, select) = (self.change_with_rows(), self.select());
                // PostgreSQL asks for no rights on what lies under a UNION ALL of which only the number of rows is counted, unused.
                format!("WITH w AS ({change}) SELECT count(s) FROM w, ({select}) AS s")
            }
            18 => format!("EXPLAIN {}", self.change_with_rows()),
            _ => self.truncate(),
        }
    }

    fn change_with_rows(&mut self) -> String {
        let relation = self.target();
        let (name, column) = (self.name_of(&relation), self.column(&relation));
        let value = self.value(column);
        match self.below(3) {
            0 => format!("INSERT INTO {name} AS x ({column}) VALUES ({value}) RETURNING {column}"),
            1 => format!("UPDATE {name} x SET {column} = {value} WHERE x.id = 2 RETURNING x.id"),
            _ => format!("DELETE FROM {name} x WHERE x.id = 3 RETURNING 1"),
        }
    }

    fn insert(&mut self) -> String {
        let relation = self.target();
        let name = self.name_of(&relation);
        let columns = self.some_columns(&relation);
        let listed = columns.join(", ");
        let source = match self.below(6) {
            0 => return format!("INSERT INTO {name} AS x DEFAULT VALUES{}", self.returning(&relation, "x")),
            1 => {
                let from = self.relation();
                let from_name = self.name_of(&from);
                let values = columns.iter().map(|column| match from.columns.contains(column) && *column != "c" {
                    true if *column == "id" => "y.id + 20".to_owned(),
                    true => format!("y.{column}"),
                    false => self.value(column),
                });
                format!("SELECT {} FROM {from_name} y ORDER BY y.id", values.collect::<Vec<_>>().join(", "))
            }
            _ => {
                let values: Vec<_> = columns.iter().map(|column| self.value(column)).collect();
                format!("VALUES ({})", values.join(", "))
            }
        };
        let column = self.column(&relation);
        let conflict = match self.below(6) {
            0 => " ON CONFLICT DO NOTHING".to_owned(),
            1 => " ON CONFLICT (id) DO NOTHING".to_owned(),
            2 => {
                let value = self.value(column);
                let set =
                    self.pick(&[value.as_str(), &format!("excluded.{column}"), &format!("x.{column}")]).to_owned();
                let filter =
                    if self.once_in(3) { format!(" WHERE {}", self.condition(&relation, "x")) } else { String::new() };
                format!(" ON CONFLICT (id) DO UPDATE SET {column} = {set}{filter}")
            }
            _ => String::new(),
        };
        let overriding = self.pick(&["", "", "", " OVERRIDING SYSTEM VALUE", " OVERRIDING USER VALUE"]);
        let returning = self.returning(&relation, "x");
        format!("INSERT INTO {name} AS x ({listed}){overriding} {source}{conflict}{returning}")
    }

    /// An assignment to a column, from what may have to be read.
    fn assignment(&mut self, relation: &Relation) -> String {
        let column = self.column(relation);
        let value = self.value(column);
        match self.below(6) {
            // Through a view that is NULL in PostgreSQL.
            0 if relation.kind == ObjectKind::Table => format!("{column} = DEFAULT"),
            1 => format!("{column} = x.{column}"),
            2 if relation.columns.contains(&"a") => "a = x.id".to_owned(),
            3 if relation.columns.contains(&"b") => {
                let from = self.relation();
                let (name, column) = (self.name_of(&from), self.column(&from));
                format!("b = (SELECT max(z.{column}::text) FROM {name} z)")
            }
            _ => format!("{column} = {value}"),
        }
    }

    fn update(&mut self) -> String {
        let relation = self.target();
        let name = self.name_of(&relation);
        let set = self.assignment(&relation);
        let returning = self.returning(&relation, "x");
        match self.below(6) {
            0 => {
                let other = self.relation();
                let (named, column) = (self.name_of(&other), self.column(&other));
                format!(
                    "UPDATE {name} x SET {set} FROM {named} y WHERE y.id = x.id AND y.{column} IS NOT NULL{returning}"
                )
            }
            // No row, and no constant: PostgreSQL forgets what is behind a security barrier beside it (COMPATIBILITY.md).
            1 if set.starts_with("id") => format!("UPDATE {name} x SET {set} WHERE random() > 2{returning}"),
            1 | 2 => format!("UPDATE {name} x SET {set}{returning}").replace("SET id =", "SET b ="),
            _ => format!("UPDATE {name} x SET {set} WHERE x.id = 2{returning}"),
        }
    }

    fn delete(&mut self) -> String {
        let relation = self.target();
        let name = self.name_of(&relation);
        let returning = self.returning(&relation, "x");
        match self.below(5) {
            0 => format!("DELETE FROM {name} x{returning}"),
            1 => {
                let other = self.relation();
                let (named, column) = (self.name_of(&other), self.column(&other));
                format!("DELETE FROM {name} x USING {named} y WHERE y.id = x.id AND y.{column} IS NOT NULL{returning}")
            }
            2 => format!("DELETE FROM {name} x WHERE {}{returning}", self.condition(&relation, "x")),
            3 => {
                let inner = self.select_one();
                format!("DELETE FROM {name} x WHERE x.id IN ({inner}){returning}")
            }
            _ => format!("DELETE FROM {name} x WHERE x.id = 2{returning}"),
        }
    }

    /// MERGE: into tables, views are refused by both.
    fn merge(&mut self) -> String {
        let relation = if self.once_in(12) { self.view() } else { self.table() };
        let name = self.name_of(&relation);
        let source = self.relation();
        let from = match self.below(4) {
            0 => {
                let column = self.column(&source);
                let named = self.name_of(&source);
                format!("(SELECT i.id, i.{column} AS w FROM {named} i) y")
            }
            1 => "(VALUES (2, 'x')) AS y (id, w)".to_owned(),
            _ => format!("{} y", self.name_of(&source)),
        };
        let mut actions = Vec::new();
        for _ in 0..1 + self.below(2) {
            let condition = match self.below(4) {
                0 => " AND y.id < 100".to_owned(),
                1 => format!(" AND {}", self.condition(&relation, "x")),
                _ => String::new(),
            };
            let action = match self.below(6) {
                0 => format!("WHEN MATCHED{condition} THEN DELETE"),
                1 | 2 => {
                    let set = self.assignment(&relation);
                    let set = if from.ends_with(" y") && self.once_in(3) { "a = y.id".to_owned() } else { set };
                    format!("WHEN MATCHED{condition} THEN UPDATE SET {set}")
                }
                3 => "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (y.id, 12)".to_owned(),
                4 => "WHEN NOT MATCHED AND y.id = 3 THEN INSERT DEFAULT VALUES".to_owned(),
                _ => format!("WHEN MATCHED{condition} THEN DO NOTHING"),
            };
            actions.push(action);
        }
        format!("MERGE INTO {name} x USING {from} ON x.id = y.id {}", actions.join(" "))
    }

    fn truncate(&mut self) -> String {
        let (first, second) = (self.table(), self.relation());
        let name = self.name_of(&first);
        let more = if self.once_in(4) { format!(", {}", second.full()) } else { String::new() };
        let options = self.pick(&["", " CASCADE", " RESTART IDENTITY CASCADE", " RESTART IDENTITY"]);
        format!("TRUNCATE {name}{more}{options}")
    }

    /// COPY, both ways. What comes in is given by the test: two lines for `id` alone.
    pub(super) fn copying(&mut self) -> String {
        let relation = if self.once_in(6) { self.relation() } else { self.table() };
        let name = self.name_of(&relation);
        let columns = self.some_columns(&relation).join(", ");
        match self.below(6) {
            0 => format!("COPY {name} TO STDOUT"),
            1 => format!("COPY {name} ({columns}) TO STDOUT"),
            2 => format!("COPY ({} ORDER BY i.id) TO STDOUT", self.select_one()),
            // What is wrong with a value is said with the name of its type.
            3 => format!("COPY {name} (a) FROM STDIN"),
            4 => format!("COPY {name} FROM STDIN"),
            _ => format!("COPY {name} (id) FROM STDIN"),
        }
    }

    pub(super) fn locking(&mut self) -> String {
        let relation = self.relation();
        let name = self.name_of(&relation);
        let mode = self.pick(&LOCKS);
        let only = if self.once_in(8) { "ONLY " } else { "" };
        let more = if self.once_in(6) { format!(", {}", self.relation().full()) } else { String::new() };
        format!("LOCK TABLE {only}{name}{more} IN {mode} MODE")
    }

    pub(super) fn of_sequence(&mut self) -> String {
        let sequence = self.sequence();
        match self.below(9) {
            0 | 1 => format!("SELECT nextval('{sequence}')"),
            2 => format!("SELECT currval('{sequence}')"),
            3 => "SELECT lastval()".to_owned(),
            4 => format!("SELECT setval('{sequence}', 12)"),
            5 => format!("SELECT last_value, is_called FROM {sequence}"),
            6 => format!("SELECT is_called FROM {sequence}"),
            7 => format!("SELECT count(*) FROM {sequence}"),
            _ => format!("SELECT setval('{sequence}', 12, false)"),
        }
    }
}
