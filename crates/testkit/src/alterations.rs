//! Random ALTER TABLE over tables with rows, constraints, keys and domains, several commands to a statement: what they do to the
//! rows does not depend on the order in which the rows are visited.

use crate::random::Random;

/// Columns that may be there.
const COLUMNS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Types that columns get.
const TYPES: [&str; 11] = [
    "int",
    "bigint",
    "text",
    "numeric(6,1)",
    "varchar(4)",
    "boolean",
    "with_default",
    "not_nullable",
    "positive",
    "small_default",
    "plain_domain",
];

/// Statements that make the domains, the table `t`, and the table `u` that points at it.
pub fn tables(random: &mut Random) -> Vec<String> {
    let mut writer = Writer { random };
    let check = writer.pick(&["a < 25", "a > 5", "a <> 30", "length(a || '') < 3"]);
    let mut statements: Vec<String> = [
        "CREATE DOMAIN with_default AS int DEFAULT 7",
        "CREATE DOMAIN not_nullable AS int NOT NULL",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE DOMAIN small_default AS bigint DEFAULT 3 CHECK (VALUE < 60)",
        "CREATE DOMAIN plain_domain AS text",
    ]
    .map(str::to_owned)
    .to_vec();
    statements.push(format!(
        "CREATE TABLE t (id int PRIMARY KEY, a int CHECK ({check}), b int UNIQUE, c text DEFAULT 'x', d numeric NOT NULL)"
    ));
    statements.push("CREATE TABLE u (id int PRIMARY KEY, k int REFERENCES t, b int REFERENCES t (b))".to_owned());
    statements.push("CREATE INDEX ON t (a) WHERE id > 2".to_owned());
    for id in 1..=4 {
        let [a, b, c, d] = [(); 4].map(|()| writer.below(9));
        // Keys that are never equal.
        statements.push(format!("INSERT INTO t (id, a, b, c, d) VALUES ({id}, 10 + {a}, {}, '{c}', {d})", b * 10 + id));
        statements.push(format!("INSERT INTO u VALUES ({id}, {id}, (SELECT b FROM t WHERE id = {id}))"));
    }
    statements
}

/// Queries that show a table's columns and its rows.
pub fn shown(table: &str) -> [String; 2] {
    [
        format!(
            "SELECT attname, format_type(atttypid, atttypmod), attnotnull, atthasdef FROM pg_attribute \
             WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attname"
        ),
        format!("SELECT to_jsonb({table}) FROM {table} ORDER BY id"),
    ]
}

/// One statement.
pub fn statement(random: &mut Random) -> String {
    let mut writer = Writer { random };
    match writer.below(12) {
        0 => {
            let (id, a, b) = (5 + writer.below(90), 10 + writer.below(20), writer.below(100));
            format!("INSERT INTO t (id, a, b, d) VALUES ({id}, {a}, {}, {b})", b * 100 + id)
        }
        1 => format!("UPDATE t SET {} = {} WHERE id < 4", writer.column(), writer.below(70)),
        2 => {
            let (column, ty) = (writer.pick(&["k", "b"]), writer.ty());
            let using = writer.pick(&["", " USING k + b", " USING b", " USING id"]);
            format!("ALTER TABLE u ALTER {column} TYPE {ty}{using}")
        }
        _ => {
            let count = 1 + writer.below(4) / 2;
            let commands: Vec<String> = (0..count).map(|_| writer.command()).collect();
            format!("ALTER TABLE t {}", commands.join(", "))
        }
    }
}

struct Writer<'a> {
    random: &'a mut Random,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len() as u64) as usize]
    }

    fn column(&mut self) -> &'static str {
        self.pick(&COLUMNS)
    }

    fn ty(&mut self) -> &'static str {
        self.pick(&TYPES)
    }

    /// A condition that most values of any type meet, and that says the same whichever type the column gets.
    fn condition(&mut self, column: &str) -> String {
        match self.below(3) {
            0 => format!("length({column} || '') < {}", 2 + self.below(4)),
            1 => format!("{column} IS NOT NULL"),
            _ => format!("{column} || '' <> '{}'", self.below(30)),
        }
    }

    /// An expression over columns of whatever types they have by now.
    fn value(&mut self) -> String {
        let column = self.pick(&["a", "b", "c", "d", "e", "id"]);
        match self.below(8) {
            0 => format!("length({column}::text)"),
            1 => format!("{column}::text"),
            2 => format!("id * {} + length(coalesce({column}::text, ''))", 1 + self.below(10)),
            3 => "NULL".to_owned(),
            4 => self.below(70).to_string(),
            5 => format!("{column}::text::numeric::int"),
            _ => column.to_owned(),
        }
    }

    fn command(&mut self) -> String {
        let column = self.column();
        match self.below(16) {
            0..=4 => format!("ALTER {column} TYPE {} USING {}", self.ty(), self.value()),
            5 => format!("ALTER {column} TYPE {}", self.ty()),
            6..=8 => {
                let default = match self.below(5) {
                    0 => format!(" DEFAULT {}", self.below(70)),
                    1 => " DEFAULT NULL".to_owned(),
                    2 => " DEFAULT length(current_user) + 1".to_owned(),
                    _ => String::new(),
                };
                let rest = match self.below(6) {
                    0 => " NOT NULL".to_owned(),
                    1 => format!(" CHECK ({})", self.condition(column)),
                    _ => String::new(),
                };
                format!("ADD COLUMN {column} {}{default}{rest}", self.ty())
            }
            9 | 10 => format!("DROP COLUMN {column}"),
            11 => format!("ALTER {column} SET DEFAULT {}", self.below(70)),
            12 => format!("ALTER {column} {}", self.pick(&["DROP DEFAULT", "DROP NOT NULL"])),
            13 => format!("ALTER {column} SET NOT NULL"),
            14 => format!("ADD CHECK ({})", self.condition(column)),
            _ => self.pick(&["DROP CONSTRAINT t_a_check", "ADD UNIQUE (a)", "ADD UNIQUE (b)"]).to_owned(),
        }
    }
}
