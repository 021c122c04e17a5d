//! Random scalar expressions over all types, made of every function and operator that both servers have.
//!
//! What there is to call is read from the servers' own catalogs, so a new function is tested without a line here. Values
//! are drawn from pools that hold the edges of each type; many expressions fail, and then the errors must be equal.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Connection;
use crate::overloads::OF_AGGREGATES;
use crate::random::Random;

/// A type with its values, as PostgreSQL reads them.
struct Type {
    oid: u32,
    name: &'static str,
    values: &'static [&'static str],
}

const INT4: u32 = 23;
const TEXT: u32 = 25;
const BOOL: u32 = 16;

/// Pseudo-types, which take what the rest of the call says.
const ANY_ELEMENT: [u32; 2] = [2283, 5077];
const ANY_ARRAY: [u32; 2] = [2277, 5078];
const ANY: u32 = 2276;

const TYPES: &[Type] = &[
    Type { oid: 21, name: "smallint", values: &["0", "1", "-1", "7", "32767", "-32768", "100"] },
    Type { oid: 23, name: "integer", values: &["0", "1", "2", "-3", "5", "42", "2147483647", "-2147483648", "1000"] },
    Type {
        oid: 20,
        name: "bigint",
        values: &["0", "1", "-2", "9", "9223372036854775807", "-9223372036854775808", "5000000000"],
    },
    Type {
        oid: 1700,
        name: "numeric",
        values: &["0", "1.5", "-2.25", "100", "0.001", "3.000", "99999999999999999999.5", "1e-20", "NaN", "Infinity"],
    },
    Type {
        oid: 700,
        name: "real",
        values: &["0", "1.5", "-2.25", "1e10", "3.4e38", "0.1", "NaN", "-Infinity", "1e-40"],
    },
    Type {
        oid: 701,
        name: "double precision",
        values: &["0", "-0", "1.5", "-2.25", "1e10", "1e308", "0.1", "NaN", "Infinity", "1e-310", "0.5", "2"],
    },
    Type { oid: 16, name: "boolean", values: &["t", "f", "yes", "off", "1"] },
    Type {
        oid: 25,
        name: "text",
        values: &["", "a", "abc", "a b  ", "É%_", "12", "-1.5", "\\", "{1,2}", "2024-02-29", "ab.*c", "1 day", "日本"],
    },
    Type { oid: 1043, name: "varchar(4)", values: &["", "ab", "abcd", "ab  ", "abcdefg", "é"] },
    Type { oid: 1042, name: "char(4)", values: &["", "ab", "abcd", "ab      ", "7"] },
    Type { oid: 17, name: "bytea", values: &["", "\\x00", "\\xdeadbeef", "abc", "\\x6162", "a\\\\b\\377"] },
    Type {
        oid: 1082,
        name: "date",
        values: &["2024-02-29", "1999-12-31", "2000-01-01", "infinity", "-infinity", "4713-01-01 BC", "0044-03-15 BC"],
    },
    Type { oid: 1083, name: "time", values: &["00:00", "24:00", "12:34:56.789", "23:59:59.999999", "01:02:03"] },
    Type { oid: 1266, name: "timetz", values: &["00:00+00", "12:34:56.789-08", "24:00+14:30", "01:02:03+05:30"] },
    Type {
        oid: 1114,
        name: "timestamp",
        values: &[
            "2024-02-29 12:34:56.789",
            "1970-01-01",
            "infinity",
            "2021-03-14 02:30",
            "0001-01-01 BC",
            "1999-12-31 23:59:59.5",
        ],
    },
    Type {
        oid: 1184,
        name: "timestamptz",
        values: &[
            "2024-02-29 12:34:56.789+03",
            "1970-01-01",
            "-infinity",
            "2021-03-14 02:30",
            "2021-11-07 01:30",
            "1890-01-01",
        ],
    },
    Type {
        oid: 1186,
        name: "interval",
        values: &[
            "0",
            "1 day",
            "-1 mon 2 days",
            "1 year 2 mons 3 days 04:05:06.7",
            "36:00",
            "-00:00:00.5",
            "40 days 30:00",
            "100 years",
        ],
    },
    Type {
        oid: 2950,
        name: "uuid",
        values: &["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
    },
    Type {
        oid: 869,
        name: "inet",
        values: &[
            "10.0.0.1",
            "10.0.0.0/8",
            "192.168.1.5/24",
            "255.255.255.255",
            "0.0.0.0/0",
            "::1",
            "::ffff:1.2.3.4/120",
        ],
    },
    Type { oid: 650, name: "cidr", values: &["10.0.0.0/8", "10.1.2.3", "192.168", "::/0", "2001:db8::/32"] },
    Type { oid: 829, name: "macaddr", values: &["08:00:2b:01:02:03", "0000.0000.0000", "ffffff-ffffff"] },
    Type { oid: 774, name: "macaddr8", values: &["08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03", "ffffffffffffffff"] },
    Type { oid: 1560, name: "bit(4)", values: &["1010", "0000", "1111", "xA", "b0001", "101"] },
    Type {
        oid: 1562,
        name: "bit varying",
        values: &["", "1", "101", "1010", "00000000", "1000000000000001", "xdeadbeef"],
    },
    Type {
        oid: 1007,
        name: "integer[]",
        values: &["{}", "{1,2,3}", "{NULL,1}", "{{1,2},{3,4}}", "[0:1]={5,6}", "{2147483647}"],
    },
    Type { oid: 1009, name: "text[]", values: &["{}", "{a,b,NULL}", "{\"a b\",\"\",\"NULL\"}", "{{x},{y}}", "{a,a}"] },
    Type { oid: 1231, name: "numeric[]", values: &["{1.5,2}", "{}", "{NaN,0}"] },
];

const ARRAYS: &[(u32, u32)] = &[(INT4, 1007), (TEXT, 1009), (1700, 1231)];

/// A function or operator that can be called.
#[derive(Debug, Clone)]
struct Call {
    name: String,
    arguments: Vec<u32>,
    result: u32,
    variadic: bool,
}

/// All that can be called.
pub struct Calls {
    functions: BTreeMap<u32, Vec<Call>>,
    operators: BTreeMap<u32, Vec<Call>>,
}

/// Names that ask for the server's state, the time or an object, or whose result is a matter of taste.
const STATE: &str = "^(pg_|has_|row_security|current|now$|set_config|to_reg|obj_|col_|format_type|statement_|transaction_|clock_|session|version|inet_(client|server)|getdatabase|hash|lo_|bpchar$|varchar$|bit$|varbit$|interval$|make_interval|txid|random|setseed|timeofday|nextval|currval|lastval|setval|unknown|shobj|enum_|array_(in|out|recv|send)|.*(in|out|send|recv|sel|joinsel|support|typmodin|typmodout)$)";

impl Calls {
    /// Reads the catalogs: PostgreSQL's, as far as the server under test has the functions too.
    ///
    /// PANICS if a catalog cannot be read.
    pub fn read(reference: &mut Connection, subject: &mut Connection) -> Calls {
        let known = numbers(subject, "SELECT oid FROM pg_proc");
        let wanted = format!(
            "SELECT oid, proname, prorettype, provariadic <> 0, proargtypes FROM pg_proc WHERE prokind = 'f' AND NOT proretset \
             AND provolatile <> 'v' AND pronamespace = 11 AND NOT (proname = 'age' AND pronargs = 1) AND NOT (proname ~ '^(time|numeric)' AND proname !~ '_' AND pronargs = 2 AND proname <> 'timezone') AND proname !~ '{STATE}'
             AND NOT {OF_AGGREGATES} ORDER BY oid"
        );
        let mut calls = Calls { functions: BTreeMap::new(), operators: BTreeMap::new() };
        for row in rows(reference, &wanted) {
            if known.contains(&number(&row[0])) {
                add(&mut calls.functions, &row[1..]);
            }
        }
        let wanted =
            "SELECT oprcode::oid, oprname, oprresult, false, oprleft || ' ' || oprright FROM pg_operator ORDER BY oid";
        for row in rows(reference, wanted) {
            if known.contains(&number(&row[0])) {
                add(&mut calls.operators, &row[1..]);
            }
        }
        calls
    }
}

fn add(to: &mut BTreeMap<u32, Vec<Call>>, row: &[String]) {
    let arguments: Vec<u32> =
        row[3].split(' ').filter(|part| !part.is_empty() && *part != "0").map(number_of).collect();
    let usable =
        |oid: &u32| *oid == ANY || ANY_ELEMENT.contains(oid) || ANY_ARRAY.contains(oid) || known_type(*oid).is_some();
    let result = number(&row[1]);
    if !arguments.is_empty() && arguments.iter().all(usable) && usable(&result) {
        to.entry(result).or_default().push(Call { name: row[0].clone(), arguments, result, variadic: row[2] == "t" });
    }
}

fn known_type(oid: u32) -> Option<&'static Type> {
    TYPES.iter().find(|t| t.oid == oid)
}

fn rows(connection: &mut Connection, sql: &str) -> Vec<Vec<String>> {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
    reply.rows().map(|row| row.iter().map(|value| value.clone().unwrap_or_default()).collect()).collect()
}

fn numbers(connection: &mut Connection, sql: &str) -> BTreeSet<u32> {
    rows(connection, sql).iter().map(|row| number(&row[0])).collect()
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or(0)
}

fn number_of(text: &str) -> u32 {
    number(text)
}

/// Statements that make the table `v`: a column of each type, named after its OID, and a row for each place in the pools.
pub fn table() -> Vec<String> {
    let columns = TYPES.iter().map(|t| format!("c{} {}", t.oid, t.name));
    let mut statements =
        vec![format!("CREATE TABLE v (id integer PRIMARY KEY, {})", columns.collect::<Vec<_>>().join(", "))];
    for place in 0..ROWS {
        let values = TYPES.iter().map(|t| match t.values.get(place as usize) {
            Some(value) => format!("{}::{}", quoted(value), t.name),
            None => "NULL".to_owned(),
        });
        statements.push(format!("INSERT INTO v VALUES ({place}, {})", values.collect::<Vec<_>>().join(", ")));
    }
    statements
}

const ROWS: u64 = 6;

/// A statement that computes one value, and the parameters it takes.
pub struct Computation {
    /// The statement.
    pub sql: String,
    /// Text values of `$1`, `$2`, ….
    pub parameters: Vec<Option<String>>,
}

/// A random computation; one in four has parameters.
pub fn computation(random: &mut Random, calls: &Calls) -> Computation {
    let with_parameters = random.below(4) == 0;
    let mut writer = Writer { random, calls, parameters: with_parameters.then(Vec::new), columns: false };
    writer.columns = writer.below(3) == 0;
    let depth = 1 + writer.below(3) as u32;
    let oid = writer.any_type();
    let value = writer.value(oid, depth);
    let from = if writer.columns { format!(" FROM v WHERE id = {}", writer.below(ROWS)) } else { String::new() };
    let sql = format!("SELECT {value} AS x{from}");
    Computation { sql, parameters: writer.parameters.unwrap_or_default() }
}

struct Writer<'a> {
    random: &'a mut Random,
    calls: &'a Calls,
    /// Values of the parameters so far, if there may be any.
    parameters: Option<Vec<Option<String>>>,
    /// Whether columns of `v` may be named.
    columns: bool,
}

impl Writer<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len() as u64) as usize]
    }

    fn any_type(&mut self) -> u32 {
        self.pick(TYPES).oid
    }

    /// An expression of a type.
    fn value(&mut self, oid: u32, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(oid);
        }
        match self.below(12) {
            0 => self.leaf(oid),
            1 => {
                let from = self.any_type();
                let name = known_type(oid).map_or("text", |t| t.name);
                format!("({})::{name}", self.value(from, depth - 1))
            }
            2 => self.special(oid, depth),
            3..=6 => self.called(oid, depth, false).unwrap_or_else(|| self.leaf(oid)),
            _ => self.called(oid, depth, true).unwrap_or_else(|| self.leaf(oid)),
        }
    }

    fn special(&mut self, oid: u32, depth: u32) -> String {
        let first = self.value(oid, depth - 1);
        match self.below(6) {
            0 => format!(
                "CASE WHEN {} THEN {first} ELSE {} END",
                self.value(BOOL, depth - 1),
                self.value(oid, depth - 1)
            ),
            1 => format!("coalesce({first}, {})", self.value(oid, depth - 1)),
            2 => format!("nullif({first}, {})", self.value(oid, depth - 1)),
            3 => format!("greatest({first}, {})", self.value(oid, depth - 1)),
            4 => format!("least({first}, {})", self.leaf(oid)),
            _ => format!("(ARRAY[{first}, {}])[{}]", self.value(oid, depth - 1), self.below(4)),
        }
    }

    fn called(&mut self, oid: u32, depth: u32, operator: bool) -> Option<String> {
        let calls = if operator { &self.calls.operators } else { &self.calls.functions };
        let element = ARRAYS.iter().find(|(_, array)| *array == oid).map(|(element, _)| *element);
        let exact = calls.get(&oid).map_or(&[][..], Vec::as_slice);
        let generic: Vec<&Call> = match element {
            Some(_) => ANY_ARRAY.iter().filter_map(|any| calls.get(any)).flatten().collect(),
            None => ANY_ELEMENT.iter().filter_map(|any| calls.get(any)).flatten().collect(),
        };
        let all: Vec<&Call> = exact.iter().chain(generic).collect();
        if all.is_empty() {
            return None;
        }
        let call = (*self.pick(&all)).clone();
        let element = match element {
            Some(element) => element,
            None if ANY_ELEMENT.contains(&call.result) => oid,
            None => self.pick(ARRAYS).0,
        };
        let mut arguments: Vec<u32> = call.arguments.iter().map(|oid| self.concrete(*oid, element)).collect();
        if call.variadic && self.below(2) == 0 {
            arguments.push(*arguments.last()?);
        }
        let values: Vec<String> = arguments.iter().map(|oid| self.value(*oid, depth - 1)).collect();
        Some(match (operator, values.as_slice()) {
            (true, [only]) => format!("({} {only})", call.name),
            (true, [left, right]) => format!("({left} {} {right})", call.name),
            _ => format!("\"{}\"({})", call.name, values.join(", ")),
        })
    }

    fn concrete(&mut self, oid: u32, element: u32) -> u32 {
        if oid == ANY {
            return self.any_type();
        }
        if ANY_ELEMENT.contains(&oid) {
            return element;
        }
        if ANY_ARRAY.contains(&oid) {
            return ARRAYS.iter().find(|(e, _)| *e == element).map_or(ARRAYS[0].1, |(_, array)| *array);
        }
        oid
    }

    fn leaf(&mut self, oid: u32) -> String {
        let Some(kind) = known_type(oid) else { return "NULL".to_owned() };
        let chosen = *self.pick(kind.values);
        // Numbers beyond a thousand make repeat() and lpad() long and factorial() slow, so they come more rarely.
        let chosen = if chosen.len() > 3 && self.below(2) == 0 { kind.values[1] } else { chosen };
        let roll = self.below(16);
        if self.columns && roll < 8 {
            return format!("v.c{oid}");
        }
        if roll < 12
            && let Some(parameters) = &mut self.parameters
        {
            parameters.push((roll > 0).then(|| chosen.to_owned()));
            let number = parameters.len();
            return if roll.is_multiple_of(2) { format!("${number}::{}", kind.name) } else { format!("${number}") };
        }
        match roll {
            12 => format!("NULL::{}", kind.name),
            13 => quoted(chosen),
            14 if matches!(oid, 20 | 23 | 1700) && chosen.parse::<f64>().is_ok_and(f64::is_finite) => {
                format!("({chosen})")
            }
            _ => format!("{}::{}", quoted(chosen), kind.name),
        }
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
