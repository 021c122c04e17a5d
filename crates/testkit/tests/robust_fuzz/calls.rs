//! Statements written from the server's own list of functions: every function, operator, cast and clause with values at the
//! ends of their types, most of them well typed, so that they run instead of being refused.

use testkit::{Connection, Random};

/// Types whose values are written, with those values.
const TYPES: [(&str, &[&str]); 26] = [
    ("bool", &["true", "false"]),
    ("int2", &["0", "1", "-1", "32767", "-32768", "7"]),
    ("int4", &["0", "1", "-1", "2", "3", "10", "100", "2147483647", "-2147483648", "-7", "65536"]),
    ("int8", &["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "4294967296", "1000000"]),
    (
        "numeric",
        &["0", "1", "-1", "0.1", "-2.50", "1e-30", "1e30", "NaN", "Infinity", "-Infinity", "99999.9999", "1e400"],
    ),
    ("float4", &["0", "1", "-1.5", "NaN", "Infinity", "-Infinity", "1e-40", "3.4e38", "-0"]),
    ("float8", &["0", "1", "-1.5", "NaN", "Infinity", "-Infinity", "1e-310", "1.7e308", "-0", "0.5"]),
    (
        "text",
        &[
            "",
            "a",
            "abc",
            "A b",
            "é",
            "\u{1F600}x",
            "100",
            "-1.5",
            "%_\\",
            "2024-02-29",
            "(a|b)*",
            "{1,2}",
            "\\x",
            "YYYY-MM-DD",
            "day",
            "UTC",
            "Europe/Berlin",
            "$.a",
            "i",
            "utf8",
            "hex",
            "999D99",
            "%s %I %L",
        ],
    ),
    ("varchar", &["", "abc", "xyz  "]),
    ("bpchar", &["", "abc  ", " "]),
    ("name", &["", "pg_class", "v"]),
    ("\"char\"", &["", "a", "\\001"]),
    ("bytea", &["", "\\x", "\\x00ff", "abc", "\\x0123456789"]),
    ("date", &["2024-02-29", "1970-01-01", "infinity", "-infinity", "4713-11-24 BC", "5874897-12-31", "0001-01-01"]),
    ("time", &["00:00", "24:00", "23:59:59.999999", "12:34:56.7"]),
    ("timetz", &["00:00+15:59", "24:00-15:59", "12:34:56.7+00"]),
    (
        "timestamp",
        &[
            "2024-02-29 12:34:56.789",
            "infinity",
            "-infinity",
            "4713-11-24 00:00 BC",
            "294276-12-31 23:59:59.999999",
            "1999-12-31 23:59:59",
        ],
    ),
    (
        "timestamptz",
        &["2024-02-29 12:34:56.789+02", "infinity", "-infinity", "4713-11-24 00:00+00 BC", "294276-12-31 23:59:59+00"],
    ),
    (
        "interval",
        &[
            "0",
            "1 day",
            "-1 month 2 days 03:04:05.6",
            "178000000 years",
            "-178000000 years",
            "2147483647 days",
            "0.000001 s",
            "1 year -13 months",
        ],
    ),
    ("uuid", &["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
    ("json", &["1", "\"x\"", "null", "[1,[2,{\"a\":null}]]", "{\"a\":{\"b\":[1,2]},\"c\":\"\\u00e9\"}", "{}", "[]"]),
    (
        "jsonb",
        &[
            "1",
            "\"x\"",
            "null",
            "[1,[2,{\"a\":null}]]",
            "{\"a\":{\"b\":[1,2]},\"c\":\"\\u00e9\"}",
            "{}",
            "[]",
            "-1e400",
        ],
    ),
    ("oid", &["0", "1", "4294967295", "1259"]),
    ("regclass", &["v", "pg_class", "0", "4294967295"]),
    (
        "int4[]",
        &[
            "{}",
            "{1}",
            "{1,NULL,3}",
            "{{1,2},{3,4}}",
            "[0:1]={5,6}",
            "[-2147483648:-2147483647]={1,2}",
            "[2147483646:2147483646]={9}",
        ],
    ),
    ("text[]", &["{}", "{a}", "{a,NULL,\"\"}", "{{a,b},{c,d}}", "{100,-1}"]),
];

/// Functions that wait, change the session, or look different at each call.
const LEFT_OUT: [&str; 4] = ["pg_sleep", "set_config", "array slice", "pg_terminate_backend"];

const OPERATORS: [&str; 46] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "&",
    "|",
    "#",
    "<<",
    ">>",
    "=",
    "<>",
    "<",
    ">",
    "<=",
    ">=",
    "||",
    "~",
    "~*",
    "!~",
    "!~*",
    "LIKE",
    "NOT LIKE",
    "ILIKE",
    "SIMILAR TO",
    "&&",
    "@>",
    "<@",
    "->",
    "->>",
    "#>",
    "#>>",
    "?",
    "?|",
    "?&",
    "#-",
    "AND",
    "OR",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
    "~~",
    "!~~",
    "^@",
    "AT TIME ZONE",
    "~>=~",
];

const AGGREGATES: [&str; 36] = [
    "count(*)",
    "count(#)",
    "sum(#)",
    "avg(#)",
    "min(#)",
    "max(#)",
    "count(DISTINCT #)",
    "sum(DISTINCT #)",
    "array_agg(#)",
    "array_agg(# ORDER BY #)",
    "string_agg(#::text, #::text)",
    "string_agg(DISTINCT #::text, ',')",
    "bool_and(#::bool)",
    "bool_or(#::bool)",
    "every(#::bool)",
    "bit_and(#::int)",
    "bit_or(#::int8)",
    "bit_xor(#::int)",
    "stddev(#)",
    "stddev_pop(#)",
    "variance(#)",
    "var_pop(#)",
    "corr(#::float8, #::float8)",
    "regr_slope(#::float8, #::float8)",
    "covar_pop(#::float8, #::float8)",
    "json_agg(#)",
    "jsonb_agg(#)",
    "json_object_agg(#::text, #)",
    "jsonb_object_agg(#::text, #)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY #::float8)",
    "percentile_disc(#::float8) WITHIN GROUP (ORDER BY #)",
    "mode() WITHIN GROUP (ORDER BY #)",
    "rank(#) WITHIN GROUP (ORDER BY #)",
    "sum(#) FILTER (WHERE #::bool)",
    "max(# || '')",
    "regr_count(#::float8, #::float8)",
];

const WINDOWS: [&str; 16] = [
    "row_number()",
    "rank()",
    "dense_rank()",
    "percent_rank()",
    "cume_dist()",
    "ntile(#::int)",
    "lag(#)",
    "lag(#, #::int)",
    "lead(#, #::int, NULL)",
    "first_value(#)",
    "last_value(#)",
    "nth_value(#, #::int)",
    "sum(#)",
    "count(*)",
    "array_agg(#)",
    "max(#)",
];

const FRAMES: [&str; 9] = [
    "",
    "ORDER BY #",
    "PARTITION BY # ORDER BY # DESC",
    "ORDER BY # ROWS BETWEEN #::int8 PRECEDING AND #::int8 FOLLOWING",
    "ORDER BY # ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ORDER BY # RANGE BETWEEN # PRECEDING AND # FOLLOWING",
    "ORDER BY # GROUPS BETWEEN 1 PRECEDING AND #::int8 FOLLOWING EXCLUDE TIES",
    "PARTITION BY #",
    "ORDER BY # ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
];

/// Where # is an expression of any type.
const SYNTAX: [&str; 34] = [
    "CASE WHEN #::bool THEN # ELSE # END",
    "CASE # WHEN # THEN # END",
    "coalesce(#, #)",
    "nullif(#, #)",
    "greatest(#, #, #)",
    "least(#, #)",
    "# IN (#, #)",
    "# NOT IN (SELECT # FROM v)",
    "# BETWEEN # AND #",
    "# = ANY (#)",
    "# < ALL (ARRAY[#, #])",
    "# IS NULL",
    "#::bool IS NOT TRUE",
    "ARRAY[#, #]",
    "ARRAY[[#], [#]]",
    "(#::int4[])[#::int4]",
    "(#::int4[])[#::int4:#::int4]",
    "(#::text[])[:#::int4]",
    "ROW(#, #)",
    "ROW(#, #) < ROW(#, #)",
    "(SELECT # FROM v LIMIT 1)",
    "EXISTS (SELECT # FROM v AS w WHERE #::bool)",
    "ARRAY(SELECT # FROM v)",
    "# = ANY (SELECT # FROM v)",
    "extract(epoch FROM #::timestamp)",
    "extract(week FROM #::date)",
    "substring(#::text FROM #::int FOR #::int)",
    "overlay(#::text PLACING #::text FROM #::int)",
    "trim(BOTH #::text FROM #::text)",
    "position(#::text IN #::text)",
    "(#::timestamp, #::interval) OVERLAPS (#::timestamp, #::timestamp)",
    "# COLLATE \"C\"",
    "to_char(#::numeric, #::text)",
    "to_char(#::timestamp, #::text)",
];

/// Where # is an expression.
const SHAPES: [&str; 40] = [
    "SELECT #",
    "SELECT #, #",
    "SELECT # FROM v",
    "SELECT # FROM v WHERE #::bool",
    "SELECT DISTINCT # FROM v",
    "SELECT DISTINCT ON (#) #, # FROM v ORDER BY #",
    "SELECT # FROM v ORDER BY # DESC NULLS LAST, #",
    "SELECT # FROM v ORDER BY 1 LIMIT #::int8 OFFSET #::int8",
    "SELECT @ FROM v",
    "SELECT # AS x, @ FROM v GROUP BY 1",
    "SELECT @, @ FROM v GROUP BY # HAVING #::bool",
    "SELECT @ FROM v GROUP BY ROLLUP (#, #)",
    "SELECT %, # FROM v",
    "SELECT %, % FROM v ORDER BY #",
    "SELECT % FROM (SELECT # AS x, @ FROM v GROUP BY 1) AS v2, v",
    "SELECT * FROM v AS a JOIN v AS b ON a.i = b.i AND #::bool",
    "SELECT a.i, # FROM v AS a LEFT JOIN v ON # = #",
    "SELECT a.i, x FROM v AS a, LATERAL (SELECT # AS x FROM v WHERE v.i = a.i) AS q",
    "SELECT # UNION SELECT #",
    "SELECT # FROM v EXCEPT ALL SELECT # FROM v",
    "(SELECT # FROM v ORDER BY 1) INTERSECT SELECT #",
    "WITH q AS (SELECT # AS x FROM v) SELECT x, # FROM q, v WHERE x = #",
    "VALUES (#), (#)",
    "WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 5 AND #::bool) SELECT n, # FROM q, v",
    "SELECT g, # FROM generate_series(#::int4, #::int4, #::int4) AS g, v LIMIT 20",
    "SELECT g FROM generate_series(#::timestamp, #::timestamp, #::interval) AS g LIMIT 20",
    "SELECT g FROM generate_series(#::numeric, #::numeric, #::numeric) AS g LIMIT 20",
    "SELECT unnest(#::int4[]), unnest(#::text[]) LIMIT 20",
    "SELECT * FROM jsonb_each(#::jsonb), jsonb_array_elements(#::jsonb)",
    "SELECT regexp_matches(#::text, #::text, 'g'), regexp_split_to_table(#::text, #::text) LIMIT 20",
    "INSERT INTO u (!) VALUES (#) RETURNING *",
    "INSERT INTO u (i, !) SELECT i, # FROM v ON CONFLICT DO NOTHING RETURNING #",
    "UPDATE u SET ! = # WHERE #::bool RETURNING #",
    "UPDATE u SET ! = # FROM v WHERE u.i = v.i AND #::bool",
    "DELETE FROM u WHERE #::bool RETURNING !, i",
    "INSERT INTO u (i, !) VALUES (1, #) ON CONFLICT (i) DO UPDATE SET ! = excluded.! WHERE u.i = 1 RETURNING *",
    "COPY (SELECT #, # FROM v) TO STDOUT (FORMAT csv)",
    "COPY (SELECT #, # FROM v) TO STDOUT (FORMAT binary)",
    "BEGIN; CREATE INDEX ON u ((#)); ALTER TABLE u ADD CHECK ((#)::bool); UPDATE u SET i = i; ROLLBACK",
    "BEGIN; ALTER TABLE u ADD COLUMN n text DEFAULT (#)::text; INSERT INTO u DEFAULT VALUES RETURNING *; ROLLBACK",
];

/// Encloses a column whose table depends on the statement around it.
const MARK: char = '\u{1}';

/// What expressions are made of.
pub struct Calls {
    /// Name, argument types and result type.
    functions: Vec<(String, Vec<String>, String)>,
}

/// Drops whatever has one of these names.
pub fn clear(connection: &mut Connection, names: &[&str]) {
    for name in names {
        for kind in ["TABLE", "VIEW", "MATERIALIZED VIEW", "SEQUENCE", "INDEX", "TYPE", "DOMAIN"] {
            // Only one of them can be there; the others are errors.
            connection.query(&format!("DROP {kind} IF EXISTS {name} CASCADE"));
        }
    }
}

impl Calls {
    /// Makes the tables `v`, with a column for each type, and `u` like it, and reads the list of functions.
    pub fn prepare(connection: &mut Connection) -> Calls {
        let columns: Vec<String> = TYPES.iter().map(|(name, _)| format!("{} {name}", column(name))).collect();
        clear(connection, &["u", "v"]);
        for table in ["v (i int", "u (i int PRIMARY KEY DEFAULT 0"] {
            let reply = connection.query(&format!("CREATE TABLE {table}, {})", columns.join(", ")));
            assert_eq!(reply.error(), None);
        }
        for row in 0..6 {
            let value = |values: &[&str]| match row {
                5 => "NULL".to_owned(),
                _ => quoted(values[row % values.len()]),
            };
            let values: Vec<String> = TYPES.iter().map(|(_, values)| value(values)).collect();
            for table in ["v", "u"] {
                let reply = connection.query(&format!("INSERT INTO {table} VALUES ({row}, {})", values.join(", ")));
                assert_eq!(reply.error(), None, "{values:?}");
            }
        }
        let types = connection.query("SELECT oid, format_type(oid, NULL) FROM pg_type");
        let name = |oid: &str| {
            let row = types.rows().find(|row| row[0].as_deref() == Some(oid));
            row.and_then(|row| row[1].clone()).unwrap_or_default()
        };
        let reply = connection.query("SELECT proname, proargtypes::text, prorettype FROM pg_proc");
        let mut functions: Vec<_> = reply
            .rows()
            .filter_map(|row| Some((row[0].clone()?, row[1].as_deref()?, row[2].as_deref()?)))
            .filter(|(function, _, _)| !LEFT_OUT.iter().any(|word| function.contains(word)))
            .map(|(function, arguments, result)| {
                (function, arguments.split_whitespace().map(name).collect(), name(result))
            })
            .collect();
        functions.sort();
        assert!(functions.len() > 500, "only {} functions", functions.len());
        Calls { functions }
    }

    /// A statement.
    pub fn statement(&self, random: &mut Random) -> String {
        let shape = pick(&SHAPES, random);
        let table = ["v AS a", "FROM v", " v ", "u "].iter().find(|words| shape.contains(**words));
        let sql = self.fill(shape, 1 + random.below(3), random);
        let part = |(number, part): (usize, &str)| match table {
            _ if number % 2 == 0 => part.to_owned(),
            Some(words) => format!("{}.{part}", words.trim().chars().last().unwrap_or('v')),
            None => format!("(SELECT {part} FROM v WHERE i = {number} % 6)"),
        };
        sql.split(MARK).enumerate().map(part).collect()
    }

    /// Puts expressions in the place of #, aggregates of @, window functions of %, one column of all !.
    fn fill(&self, shape: &str, depth: u64, random: &mut Random) -> String {
        let target = column(pick(&TYPES, random).0);
        let mut sql = String::new();
        for c in shape.chars() {
            match c {
                '#' => sql += &self.expression(depth, random),
                '@' => sql += &self.fill(pick(&AGGREGATES, random), depth.min(1), random),
                '%' => {
                    let function = self.fill(pick(&WINDOWS, random), depth.min(1), random);
                    sql += &format!("{function} OVER ({})", self.fill(pick(&FRAMES, random), depth.min(1), random));
                }
                '!' => sql += &target,
                _ => sql.push(c),
            }
        }
        sql
    }

    /// Any expression.
    fn expression(&self, depth: u64, random: &mut Random) -> String {
        if depth == 0 {
            return value(pick(&TYPES, random).0, random);
        }
        let depth = depth - 1;
        match random.below(10) {
            0 => value(pick(&TYPES, random).0, random),
            1 => format!("({})", self.fill(pick(&SYNTAX, random), depth, random)),
            2 | 3 => {
                let (left, operator) = (pick(&TYPES, random).0, pick(&OPERATORS, random));
                let right = if random.below(2) == 0 { left } else { pick(&TYPES, random).0 };
                let [left, right] = [left, right].map(|name| self.typed(name, depth, random));
                format!("({left} {operator} {right})")
            }
            4 => format!("CAST({} AS {})", self.expression(depth, random), self::cast_target(random)),
            5 => format!(
                "({} {})",
                pick(&["-", "~", "@", "|/", "||/", "NOT", "+"], random),
                self.expression(depth, random)
            ),
            _ => self.call(&self.functions[random.below(self.functions.len() as u64) as usize], depth, random),
        }
    }

    /// An expression of a type, if it is one with values.
    fn typed(&self, name: &str, depth: u64, random: &mut Random) -> String {
        if depth > 0 && random.below(2) == 0 {
            let fitting: Vec<_> = self.functions.iter().filter(|(_, _, result)| short(result) == short(name)).collect();
            if !fitting.is_empty() {
                return self.call(fitting[random.below(fitting.len() as u64) as usize], depth - 1, random);
            }
        }
        match TYPES.iter().find(|(known, _)| short(known) == short(name)) {
            Some((known, _)) => value(known, random),
            None => self.expression(depth, random),
        }
    }

    fn call(&self, (name, arguments, _): &(String, Vec<String>, String), depth: u64, random: &mut Random) -> String {
        let arguments: Vec<String> = arguments.iter().map(|argument| self.typed(argument, depth, random)).collect();
        let variadic = if random.below(30) == 0 { "VARIADIC " } else { "" };
        match arguments.split_last() {
            Some((last, first)) if !variadic.is_empty() => {
                let first: String = first.iter().map(|argument| format!("{argument}, ")).collect();
                format!("{name}({first}{variadic}{last})")
            }
            _ => format!("{name}({})", arguments.join(", ")),
        }
    }
}

/// A value as a constant, of its type or unknown, or a column.
fn value(name: &str, random: &mut Random) -> String {
    let (_, values) = TYPES.iter().find(|(known, _)| *known == name).expect("the type is in the list");
    let text = quoted(pick(values, random));
    match random.below(10) {
        0..5 => format!("{text}::{name}"),
        5 => text,
        6 => format!("NULL::{name}"),
        _ => format!("{MARK}{}{MARK}", column(name)),
    }
}

fn cast_target(random: &mut Random) -> &'static str {
    const MODIFIED: [&str; 8] = [
        "numeric(5,2)",
        "varchar(3)",
        "char(2)",
        "timestamp(0)",
        "interval(2)",
        "numeric(1000,999)",
        "time(3)",
        "numeric(3,-2)",
    ];
    if random.below(4) == 0 { pick(&MODIFIED, random) } else { pick(&TYPES, random).0 }
}

fn pick<T: Copy>(of: &[T], random: &mut Random) -> T {
    of[random.below(of.len() as u64) as usize]
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The column that holds a type.
fn column(name: &str) -> String {
    format!("c_{}", name.replace("[]", "s").replace('"', ""))
}

/// One of several names of a type.
fn short(name: &str) -> &str {
    match name {
        "boolean" => "bool",
        "smallint" => "int2",
        "integer" | "anyelement" | "anycompatible" => "int4",
        "bigint" => "int8",
        "real" => "float4",
        "double precision" => "float8",
        "character varying" => "varchar",
        "character" => "bpchar",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "anyarray" | "anycompatiblearray" | "integer[]" => "int4[]",
        other => other,
    }
}
