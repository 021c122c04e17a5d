//! Types and expressions over the columns of a table.

use super::Writer;
use super::schema::{Column, Family, Made, Relation, Schema};

/// Columns that an expression may speak of, as it names them.
pub(super) type Names = Vec<(String, String, Family)>;

/// Columns by their names alone, or with the table's before them.
pub(super) fn names_of(columns: &[Column], table: Option<&str>) -> Names {
    let named = |name: &str| table.map_or_else(|| name.to_owned(), |table| format!("{table}.{name}"));
    columns.iter().map(|c| (named(&c.name), c.ty.clone(), c.family)).collect()
}

impl Writer<'_> {
    /// The name of a type that a statement made, now and then without its schema.
    pub(super) fn made_name(&mut self, made: &Made) -> String {
        self.qualified(&made.schema, &made.name)
    }

    fn made_of(&mut self, family: Family) -> Option<Made> {
        let fitting: Vec<Made> = self.schema.types.iter().filter(|t| t.family == family).cloned().collect();
        self.any(&fitting)
    }

    /// The type of a new column.
    pub(super) fn ty(&mut self) -> (String, Family) {
        let types = self.schema.types.clone();
        if self.below(5) < 2
            && let Some(made) = self.any(&types)
        {
            let name = self.made_name(&made);
            return if !made.domain && self.one_in(6) {
                (format!("{name}[]"), Family::Other)
            } else {
                (name, made.family)
            };
        }
        let (name, family) = match self.below(14) {
            0..=2 => ("int", Family::Number),
            3 => ("bigint", Family::Number),
            4 => ("numeric(8,2)", Family::Number),
            5 | 6 => ("text", Family::Text),
            7 => ("varchar(12)", Family::Text),
            8 => ("boolean", Family::Boolean),
            9 => ("date", Family::Date),
            10 => ("timestamp", Family::Date),
            11 => (self.pick(&["inet", "cidr"]), Family::Network),
            12 => (self.pick(&["bit varying(6)", "varbit"]), Family::Bits),
            _ => ("int[]", Family::Other),
        };
        (name.to_owned(), family)
    }

    /// As [`Writer::ty`], with its schema.
    pub(super) fn known_ty(&mut self) -> (String, Family) {
        let types = self.schema.types.clone();
        match self.any(&types) {
            Some(made) if self.one_in(2) => (made.full(), made.family),
            _ => {
                let plain = Schema::default();
                Writer { random: self.random, schema: &plain }.ty()
            }
        }
    }

    /// A column of a family.
    fn column_of(&mut self, names: &Names, family: Family) -> Option<String> {
        let fitting: Vec<String> = names.iter().filter(|(_, _, f)| *f == family).map(|(n, ..)| n.clone()).collect();
        self.any(&fitting)
    }

    /// A constant of a family; a type that a statement made is said.
    fn constant(&mut self, family: Family) -> String {
        let plain = match family {
            Family::Number => format!("{}", self.below(40)),
            Family::Text => format!("'{}'", self.pick(&["x", "yy", "zed", "it''s", ""])),
            Family::Boolean => self.pick(&["true", "false"]).to_owned(),
            Family::Date => format!("'2024-0{}-1{}'::date", 1 + self.below(9), self.below(9)),
            Family::Network => format!("'10.{}.0.0/16'::{}", self.below(9), self.pick(&["inet", "cidr"])),
            Family::Bits => self.pick(&["B'101'", "'0110'::varbit", "5::bit(4)", "X'5'"]).to_owned(),
            Family::Enum => {
                let Some(made) = self.made_of(Family::Enum) else { return "NULL".to_owned() };
                let label = self.label(&made.full());
                return format!("{label}::{}", self.made_name(&made));
            }
            Family::Other => return "'{}'".to_owned(),
        };
        if self.one_in(8)
            && let Some(made) = self.made_of(family)
        {
            let name = self.made_name(&made);
            return if self.one_in(2) { format!("({plain})::{name}") } else { format!("CAST({plain} AS {name})") };
        }
        plain
    }

    /// A label of a type, quoted.
    pub(super) fn label(&mut self, ty: &str) -> String {
        let labels = self.schema.labels(ty).to_vec();
        self.any(&labels).unwrap_or_else(|| "'none'".to_owned())
    }

    /// An expression of a family.
    pub(super) fn value(&mut self, names: &Names, family: Family, depth: usize) -> String {
        if depth == 0 || self.one_in(4) {
            return match self.column_of(names, family) {
                Some(column) if !self.one_in(3) => column,
                _ => self.constant(family),
            };
        }
        let depth = depth - 1;
        match family {
            Family::Number => self.number(names, depth),
            Family::Text => self.text(names, depth),
            Family::Boolean => self.condition(names, depth),
            Family::Date => match self.below(3) {
                0 => format!("{} + {}", self.value(names, Family::Date, 0), self.below(9)),
                1 => format!("coalesce({}, '2020-02-02')", self.value(names, Family::Date, depth)),
                _ => self.value(names, family, 0),
            },
            Family::Network => match self.below(3) {
                0 => format!("network({})", self.value(names, family, depth)),
                1 => format!("coalesce({}, '10.0.0.0/8')", self.value(names, family, depth)),
                _ => self.value(names, family, 0),
            },
            Family::Bits => match self.below(3) {
                0 => format!("substring({} FROM 2)", self.value(names, family, depth)),
                1 => format!("(~ {})", self.value(names, family, 0)),
                _ => self.value(names, family, 0),
            },
            Family::Enum | Family::Other => {
                let (test, then) = (self.condition(names, depth), self.value(names, family, 0));
                // Without ELSE there is a NULL of the type, which is not written.
                if self.one_in(3) { format!("CASE WHEN {test} THEN {then} ELSE {then} END") } else { then }
            }
        }
    }

    fn number(&mut self, names: &Names, depth: usize) -> String {
        match self.below(9) {
            0 | 1 => {
                let operator = self.pick(&["+", "-", "*"]);
                let (left, right) =
                    (self.value(names, Family::Number, depth), self.value(names, Family::Number, depth));
                format!("({left} {operator} {right})")
            }
            2 => match self.column_of(names, Family::Bits) {
                Some(column) => format!("length({column})"),
                None => format!("length({})", self.value(names, Family::Text, depth)),
            },
            3 => {
                let (first, second) =
                    (self.value(names, Family::Number, depth), self.value(names, Family::Number, depth));
                format!("coalesce({first}, {second})")
            }
            4 => {
                let test = self.condition(names, depth);
                let (then, other) =
                    (self.value(names, Family::Number, depth), self.value(names, Family::Number, depth));
                format!("CASE WHEN {test} THEN {then} ELSE {other} END")
            }
            5 => format!("abs({})", self.value(names, Family::Number, depth)),
            6 => {
                let ty = self.pick(&["int", "bigint", "numeric"]);
                format!("{}::{ty}", self.value(names, Family::Number, 0))
            }
            7 => match self.made_of(Family::Number) {
                Some(made) => {
                    let name = self.made_name(&made);
                    format!("({} + 0)::{name}", self.value(names, Family::Number, depth))
                }
                None => self.value(names, Family::Number, 0),
            },
            _ => format!("-{}", self.value(names, Family::Number, 0)),
        }
    }

    fn text(&mut self, names: &Names, depth: usize) -> String {
        match self.below(7) {
            0 | 1 => {
                let (left, right) = (self.value(names, Family::Text, depth), self.value(names, Family::Text, depth));
                format!("({left} || {right})")
            }
            2 => match self.column_of(names, Family::Text) {
                Some(column) if self.one_in(2) => self.digest(&column),
                Some(column) => format!("upper({column})"),
                None => format!("md5({})", self.value(names, Family::Text, depth)),
            },
            3 => format!("({})::text", self.value(names, Family::Number, depth)),
            4 => match self.column_of(names, Family::Network) {
                Some(column) => format!("{}({column})", self.pick(&["host", "abbrev", "text"])),
                None => format!("coalesce({}, 'none')", self.value(names, Family::Text, depth)),
            },
            5 => match self.column_of(names, Family::Enum) {
                Some(column) => format!("({column})::text"),
                None => self.value(names, Family::Text, 0),
            },
            _ => match self.made_of(Family::Text) {
                Some(made) => {
                    let name = self.made_name(&made);
                    format!("({} || '')::{name}", self.value(names, Family::Text, depth))
                }
                None => self.value(names, Family::Text, 0),
            },
        }
    }

    /// A call of an extension's function, if there is one.
    fn digest(&mut self, text: &str) -> String {
        let extensions = self.schema.extensions.clone();
        match self.any(&extensions) {
            Some((name, schema)) if name == "pgcrypto" => {
                let function = self.qualified(&schema, "digest");
                format!("encode({function}({text}, 'md5'), 'hex')")
            }
            Some((_, schema)) => {
                let (function, space) =
                    (self.qualified(&schema, "uuid_generate_v5"), self.qualified(&schema, "uuid_ns_url"));
                format!("{function}({space}(), {text})::text")
            }
            None => format!("upper({text})"),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, names: &Names, depth: usize) -> String {
        match self.below(14) {
            0..=2 => {
                let operator = self.pick(&["<", ">", "<>", ">=", "="]);
                let (left, right) = (self.value(names, Family::Number, depth), self.constant(Family::Number));
                format!("{left} {operator} {right}")
            }
            3 => format!("{} <> {}", self.value(names, Family::Text, depth), self.constant(Family::Text)),
            4 => {
                let all: Vec<String> = names.iter().map(|(name, ..)| name.clone()).collect();
                let column = self.any(&all).unwrap_or_else(|| "1".to_owned());
                let not = self.pick(&["", "NOT "]);
                format!("{column} IS {not}NULL")
            }
            5 => {
                let fitting: Vec<(String, String)> =
                    names.iter().filter(|n| n.2 == Family::Enum).map(|n| (n.0.clone(), n.1.clone())).collect();
                let Some((column, ty)) = self.any(&fitting) else { return self.constant(Family::Boolean) };
                let (first, second) = (self.label(&ty), self.label(&ty));
                match self.below(3) {
                    0 => format!("{column} IN ({first}, {second})"),
                    1 => format!("{column} > {first}::{ty}"),
                    _ => format!("{column} <> {first}"),
                }
            }
            6 if depth > 0 => {
                let word = self.pick(&["AND", "OR"]);
                let (left, right) = (self.condition(names, depth - 1), self.condition(names, depth - 1));
                format!("({left} {word} {right})")
            }
            7 if depth > 0 => format!("NOT ({})", self.condition(names, depth - 1)),
            8 => format!("{} BETWEEN 0 AND 50", self.value(names, Family::Number, depth)),
            9 => match self.column_of(names, Family::Network) {
                Some(column) => format!("{column} <<= '0.0.0.0/0'"),
                None => format!("{} > '2019-01-01'", self.value(names, Family::Date, depth)),
            },
            10 => self.value(names, Family::Boolean, 0),
            11 => {
                let (left, right) = (self.value(names, Family::Number, depth), self.value(names, Family::Text, depth));
                let rest = self.pick(&["< (3, 'm')", ">= (3, 'm')", "IS NOT NULL", "IS NULL"]);
                format!("ROW({left}, {right}) {rest}")
            }
            12 => {
                let (operand, other) = (self.value(names, Family::Number, depth), self.condition(names, 0));
                let when = self.pick(&["3", "4.5", "NULL"]);
                format!("CASE {operand} WHEN {when} THEN {other} WHEN 7 THEN true ELSE false END")
            }
            _ => format!("{} IN (1, 2, 3)", self.value(names, Family::Number, depth)),
        }
    }

    /// A default for a column of a family.
    pub(super) fn default(&mut self, family: Family, ty: &str) -> String {
        match family {
            Family::Number if self.one_in(2) => {
                let Some(sequence) = self.relation("S") else { return "nextval('none')".to_owned() };
                let name = self.named(&sequence);
                match self.below(4) {
                    0 => format!("nextval('{name}'::regclass)"),
                    1 => format!("nextval('{name}'::text)"),
                    2 => format!("nextval('{name}') + 1"),
                    _ => format!("nextval('{name}')"),
                }
            }
            Family::Enum => {
                let full = self.schema.types.iter().find(|t| t.name == ty || t.full() == ty).map(Made::full);
                let label = self.label(&full.unwrap_or_default());
                if self.one_in(2) { label } else { format!("{label}::{ty}") }
            }
            _ if family != Family::Other && self.one_in(8) => "NULL".to_owned(),
            // A literal takes the column's type: the same text stands for other values in other columns.
            Family::Number | Family::Text if self.random.aside().below(6) == 0 => {
                self.pick(&["'1'", "'2'", "' 1'"]).to_owned()
            }
            Family::Text if self.one_in(4) => "current_user".to_owned(),
            Family::Date if self.one_in(4) => "current_date".to_owned(),
            _ => self.value(&Names::new(), family, 2),
        }
    }

    /// A row for a table: some columns get values, the others their defaults.
    pub(super) fn insert(&mut self, table: &Relation) -> String {
        let full = table.full();
        if self.one_in(3) {
            return format!("INSERT INTO {full} DEFAULT VALUES");
        }
        let given: Vec<Column> = table.columns.iter().filter(|c| !c.computed).cloned().collect();
        let given: Vec<Column> = given.into_iter().filter(|_| !self.one_in(4)).collect();
        if given.is_empty() {
            return format!("INSERT INTO {full} DEFAULT VALUES");
        }
        let values: Vec<String> = given.iter().map(|column| self.of_column(column)).collect();
        let names: Vec<&str> = given.iter().map(|c| c.name.as_str()).collect();
        format!("INSERT INTO {full} ({}) VALUES ({})", names.join(", "), values.join(", "))
    }

    fn of_column(&mut self, column: &Column) -> String {
        match column.family {
            Family::Number => self.below(60).to_string(),
            Family::Text => format!("'{}'", self.pick(&["x", "yy", "zed", "none"])),
            Family::Boolean => self.pick(&["true", "false"]).to_owned(),
            Family::Date => format!("'2024-0{}-1{}'", 1 + self.below(9), self.below(9)),
            Family::Network => format!("'10.{}.0.0/16'", self.below(9)),
            Family::Bits => self.pick(&["'101'", "B'0110'"]).to_owned(),
            Family::Enum => self.label(&column.ty),
            Family::Other => "'{}'".to_owned(),
        }
    }
}
