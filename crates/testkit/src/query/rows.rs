//! Queries that make rows per row (LATERAL, set-returning functions, arrays and documents), and changes that are rolled back.

use super::{ExpressionKind, Writer};

/// All columns of a table, in a total order.
const ALL: &str = "i, j, n, x, b, d";

impl Writer<'_> {
    /// Subqueries that read the rows beside them.
    pub(super) fn lateral(&mut self) -> String {
        let (outer, inner, third) = (self.any_table(), self.any_table(), self.any_table());
        let join = self.pick(&["JOIN", "LEFT JOIN"]);
        let compare = self.pick(&["e.i = o.i", "e.j < o.i", "e.x = o.x AND e.b", "e.d >= o.d"]);
        let take = match self.below(3) {
            0 => format!(" ORDER BY {ALL} LIMIT {}", self.below(4)),
            1 => format!(" ORDER BY {ALL} OFFSET {}", self.below(3)),
            _ => String::new(),
        };
        let value =
            self.pick(&["e.j + o.i", "coalesce(o.x, e.x)", "e.n", "(SELECT max(z.j) FROM r z WHERE z.i = o.i)"]);
        let more = match self.below(3) {
            0 => format!(
                " CROSS JOIN LATERAL (SELECT count(*) AS c FROM {third} f WHERE f.i = o.i OR f.x = l.v::text) m"
            ),
            1 => " CROSS JOIN LATERAL generate_series(1, o.i % 3) AS m (c)".to_owned(),
            _ => " CROSS JOIN LATERAL (SELECT o.i * 2 AS c, l.v) m".to_owned(),
        };
        format!(
            "SELECT o.i, o.j, l.v, m.c FROM {outer} o {join} LATERAL (SELECT {value} AS v FROM {inner} e WHERE {compare}{take}) l \
             ON {}{more} ORDER BY 1, 2, 3, 4",
            self.pick(&["true", "l.v IS NOT NULL", "o.b"])
        )
    }

    /// Rows that take numbers from a sequence: which of them do, and in which order, shows.
    pub(super) fn numbered(&mut self) -> String {
        let table = format!("(SELECT DISTINCT {ALL} FROM {})", self.any_table());
        self.scope.push("e".to_owned());
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let (key, value) = (self.any_column(), self.any(1));
        let order = self.total_order();
        self.scope.clear();
        let number =
            self.pick(&["nextval('num')", "nextval('num') * 10 + e.i", "CASE WHEN e.b THEN nextval('num') END"]);
        let limit = match self.below(4) {
            0 => String::new(),
            1 => format!(" OFFSET {}", self.below(5)),
            2 => format!(" FETCH FIRST {} ROWS WITH TIES", self.below(5)),
            _ => format!(" LIMIT {} OFFSET {}", self.below(8), self.below(3)),
        };
        let from = format!("FROM {table} AS e{filter}");
        let query = match self.below(5) {
            0 => format!("SELECT {key}, count(*), nextval('num') {from} GROUP BY {key} ORDER BY {key}{limit}"),
            1 => format!("SELECT DISTINCT ON ({key}) {key}, {value}, {number} {from} ORDER BY {key}, {order}{limit}"),
            2 => {
                format!("SELECT {value}, {number}, row_number() OVER (ORDER BY {order}) {from} ORDER BY {order}{limit}")
            }
            3 => format!("SELECT s.* FROM (SELECT {value}, {number} {from} ORDER BY {order}{limit}) AS s"),
            _ => format!("SELECT {value}, {number} {from} ORDER BY {order}{limit}"),
        };
        format!("SELECT setval('num', 1); {query}; SELECT last_value FROM num")
    }

    /// Set-returning functions in a select list: plain, nested, over groups, beside windows.
    pub(super) fn set_returning(&mut self) -> String {
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let series = |writer: &mut Self, bound: &str| match writer.below(4) {
            0 => format!("generate_series(1, generate_series(1, {bound} % 3))"),
            1 => format!("generate_series({bound} % 4, 3) * 10"),
            2 => format!("unnest(ARRAY[{bound}, 7, NULL])"),
            _ => format!("generate_series(1, {bound} % 5)"),
        };
        let sql = match self.below(5) {
            0 => {
                let (one, two) = (series(self, "e.i"), series(self, "e.j"));
                format!("SELECT e.i, e.j, {one}, {two} FROM {table} e{filter} ORDER BY 1, 2, 3, 4")
            }
            1 => {
                let (one, key) = (series(self, "count(*)"), self.any_column());
                format!("SELECT {key}, {one}, sum(e.i) FROM {table} e{filter} GROUP BY {key} ORDER BY 1, 2, 3")
            }
            2 => {
                let one = series(self, "e.i");
                format!("SELECT {one} AS g, count(*), min(e.x) FROM {table} e{filter} GROUP BY g ORDER BY 1, 2, 3")
            }
            3 => {
                let one = series(self, "e.i");
                format!("SELECT e.i, rank() OVER (ORDER BY e.i), {one} FROM {table} e{filter} ORDER BY 1, 2, 3")
            }
            _ => {
                let one = series(self, "e.i");
                format!("SELECT DISTINCT {one} FROM {table} e{filter} ORDER BY 1 LIMIT {}", self.below(6))
            }
        };
        self.scope.clear();
        sql
    }

    /// Arrays and documents made of rows, and taken apart again.
    pub(super) fn documents(&mut self) -> String {
        let table = self.any_table();
        self.scope.push("e".to_owned());
        let filter = if self.below(2) == 0 { format!(" WHERE {}", self.boolean(1)) } else { String::new() };
        let sql = match self.below(6) {
            0 => format!("SELECT e.b, array_agg(e.i ORDER BY {ALL}) FROM {table} e{filter} GROUP BY e.b ORDER BY 1"),
            1 => format!(
                "SELECT e.i, u.v, u.o FROM (SELECT i, array_agg(j ORDER BY {ALL}) AS a FROM {table} GROUP BY i) e, \
                 unnest(e.a) WITH ORDINALITY AS u (v, o) ORDER BY 1, 3"
            ),
            2 => format!(
                "SELECT jsonb_agg(jsonb_build_object('i', e.i, 'x', e.x, 'b', e.b) ORDER BY {ALL}) FROM {table} e{filter}"
            ),
            3 => format!(
                "SELECT p.i, p.x, p.d, e.j FROM {table} e, jsonb_to_record(to_jsonb(e)) AS p (i int, x text, d date){filter} \
                 ORDER BY 1, 2, 3, 4"
            ),
            4 => format!("SELECT row_to_json(e) FROM (SELECT * FROM {table} e{filter} ORDER BY {ALL}) e"),
            _ => {
                let list = (0..2).map(|_| self.of(ExpressionKind::Int, 1)).collect::<Vec<_>>().join(", ");
                let other = self.of(ExpressionKind::Int, 1);
                format!(
                    "SELECT ARRAY[{list}], ARRAY[{list}] || {other}, {other} = ANY (ARRAY[{list}]), (ARRAY[{list}])[1:1] \
                     FROM {table} e{filter} ORDER BY 1, 2, 3"
                )
            }
        };
        self.scope.clear();
        sql
    }

    /// Rows compared with rows.
    pub(super) fn row_comparisons(&mut self) -> String {
        let (table, other) = (self.any_table(), self.any_table());
        let operator = self.pick(&["<", "<=", ">", ">=", "=", "<>"]);
        let quantifier = self.pick(&["ANY", "ALL"]);
        let condition = self.pick(&["f.b", "f.i > 7", "f.i = e.i", "f.j > e.j AND f.b"]);
        let pair = self.pick(&["i, j", "x, i", "d, n"]);
        let qualified = |alias: &str| pair.split(", ").map(|c| format!("{alias}.{c}")).collect::<Vec<_>>().join(", ");
        format!(
            "SELECT {pair}, ({}) {operator} {quantifier} (SELECT {} FROM {other} f WHERE {condition}) AS r, \
             ({}) {operator} (3, 20) AS s FROM {table} e ORDER BY 1, 2, 3, 4",
            qualified("e"),
            qualified("f"),
            "e.i, e.j",
        )
    }

    /// Changes of a table and what is in it then; nothing stays.
    pub(super) fn changes(&mut self) -> String {
        let table = self.pick(&super::TABLES);
        self.scope.push("e".to_owned());
        let condition = self.boolean(2);
        let (int, text) = (self.of(ExpressionKind::Int, 1), self.of(ExpressionKind::Text, 1));
        self.scope.clear();
        let other = self.pick(&super::TABLES);
        let change = match self.below(6) {
            0 => format!("UPDATE {table} e SET i = {int} WHERE {condition} RETURNING e.*"),
            1 => format!(
                "UPDATE {table} e SET (x, j) = (SELECT {text}, count(*) FROM {other} f WHERE f.i = e.i) WHERE {condition} RETURNING e.*"
            ),
            2 => format!("DELETE FROM {table} e WHERE {condition} RETURNING e.*"),
            3 => format!("DELETE FROM {table} e USING {other} f WHERE f.i = e.j AND {condition} RETURNING e.*"),
            4 => format!("INSERT INTO {table} SELECT j, i, n, x, b, d FROM {other} e WHERE {condition} RETURNING *"),
            _ => format!(
                "INSERT INTO {table} (i, x) SELECT generate_series(1, 3), max(x) FROM {other} e WHERE {condition} RETURNING *"
            ),
        };
        let merge = match self.below(2) {
            0 => String::new(),
            _ => {
                let (matched, missing) = (
                    self.pick(&[
                        "UPDATE SET j = m.j, x = m.x || coalesce(e.x, '-')",
                        "DELETE",
                        "DO NOTHING",
                        "UPDATE SET (n, d) = (m.n, DEFAULT)",
                    ]),
                    self.pick(&["INSERT VALUES (m.i, m.j)", "INSERT (x, i) VALUES (m.x, m.i + 1)", "DO NOTHING"]),
                );
                let first = self.pick(&["", "AND e.b ", "AND m.j > e.j "]);
                let source = format!("(SELECT DISTINCT ON (i) * FROM {other} ORDER BY {ALL}) m");
                format!(
                    " MERGE INTO {table} e USING {source} ON e.i = m.i{} WHEN MATCHED {first}THEN {matched} \
                     WHEN NOT MATCHED AND m.b THEN {missing};",
                    self.pick(&["", " + 1", " AND e.b IS NOT TRUE"])
                )
            }
        };
        format!(
            "BEGIN; WITH c AS ({change}) SELECT * FROM c ORDER BY {ALL};{merge} SELECT * FROM {table} ORDER BY {ALL}; ROLLBACK"
        )
    }
}
