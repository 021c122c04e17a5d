//! Compares with answers that PostgreSQL 15 gave: each line of `postgres/*.tsv` is a function with its arguments and the
//! expected text, or `ERR` with SQLSTATE, message and detail.

use types::{
    ColumnType, Datum, InputContext, Numeric, NumericRef, OutputSettings, RowLayout, RowRef, apply_typmod, format_type,
    oid, parse_text, read_binary, type_by_name, write_binary, write_text,
};

fn number(text: &str) -> base::Result<Numeric> {
    Numeric::parse(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn parse(ty: base::Oid, typmod: i32, text: &str) -> base::Result<Datum> {
    let settings = OutputSettings::default();
    parse_text(ty, typmod, text, &InputContext { settings: &settings, now_micros: 0 })
}

fn show(value: &Datum, ty: base::Oid) -> base::Result<String> {
    let mut out = Vec::new();
    write_text(value.as_ref(), ty, &OutputSettings::default(), &mut out)?;
    Ok(String::from_utf8(out).expect("text forms are UTF-8"))
}

fn numeric_of_one(function: &str, a: &Numeric) -> base::Result<String> {
    Ok(match function {
        "parse" => a.to_string(),
        "sqrt" => a.sqrt()?.to_string(),
        "exp" => a.exp()?.to_string(),
        "ln" => a.ln()?.to_string(),
        "log" => a.log10()?.to_string(),
        "ceil" => a.ceil().to_string(),
        "floor" => a.floor().to_string(),
        "trim" => a.trim_scale().to_string(),
        "f8" => show(&Datum::Float8(a.to_float8()?), oid::FLOAT8)?,
        "f4" => show(&Datum::Float4(a.to_float4()?), oid::FLOAT4)?,
        "i2" => a.to_i16()?.to_string(),
        "i4" => a.to_i32()?.to_string(),
        "i8" => a.to_i64()?.to_string(),
        "send" => {
            let (mut wire, mut row) = (Vec::new(), Vec::new());
            a.write_binary(&mut wire);
            assert_eq!(show(&read_binary(oid::NUMERIC, -1, &wire)?, oid::NUMERIC)?, a.to_string());
            a.encode(&mut row);
            assert_eq!(NumericRef::from_bytes(&row).get().to_string(), a.to_string());
            hex(&wire)
        }
        other => panic!("no function {other}"),
    })
}

fn numeric_of_two(function: &str, a: &Numeric, b: &str) -> base::Result<String> {
    if let "round" | "trunc" = function {
        let scale = b.parse().expect("a scale");
        return Ok(if function == "round" { a.round(scale) } else { a.trunc(scale) }.to_string());
    }
    let b = &number(b)?;
    Ok(match function {
        "add" => a.add(b)?.to_string(),
        "sub" => a.sub(b)?.to_string(),
        "mul" => a.mul(b)?.to_string(),
        "div" => a.div(b)?.to_string(),
        "mod" => a.rem(b)?.to_string(),
        "divt" => a.div_trunc(b)?.to_string(),
        "pow" => a.power(b)?.to_string(),
        "log2" => Numeric::log(a, b)?.to_string(),
        "gcd" => a.gcd(b).to_string(),
        "lcm" => a.lcm(b)?.to_string(),
        "cmp" => (a.cmp(b) as i32).to_string(),
        other => panic!("no function {other}"),
    })
}

/// Input, output, both wire forms and the row form of one value.
fn round_trip(ty: base::Oid, typmod: i32, text: &str, binary: bool) -> base::Result<String> {
    let value = apply_typmod(parse(ty, typmod, text)?, ty, typmod, false)?;
    let shown = show(&value, ty)?;
    let (mut wire, mut tuple) = (Vec::new(), Vec::new());
    write_binary(value.as_ref(), ty, &mut wire)?;
    // PostgreSQL writes the binary form of an empty vector of the catalog, but does not read it.
    if !(shown.is_empty() && [oid::INT2VECTOR, oid::OIDVECTOR].contains(&ty)) {
        assert_eq!(show(&read_binary(ty, typmod, &wire)?, ty)?, shown, "binary form of {text}");
    }
    let layout = RowLayout::new(&[ColumnType { oid: ty, typmod }]);
    layout.encode(&[value], &mut tuple)?;
    layout.validate(&tuple)?;
    assert_eq!(show(&RowRef::new(&layout, &tuple).get_owned(0), ty)?, shown, "row form of {text}");
    Ok(if binary { hex(&wire) } else { shown })
}

fn answer(fields: &[&str]) -> base::Result<String> {
    let int = |i: usize| fields[i].parse::<i32>().expect("a number");
    let ty = |i: usize| type_by_name(fields[i]).expect("a type").oid;
    match fields {
        ["io", ..] => round_trip(ty(1), int(2), fields[3], false),
        ["iob", ..] => round_trip(ty(1), int(2), fields[3], true),
        ["cast", ..] => show(&apply_typmod(parse(ty(1), -1, fields[3])?, ty(1), int(2), true)?, ty(1)),
        ["ft", ..] => Ok(format_type(base::Oid(fields[1].parse().expect("an OID")), int(2))),
        ["nf8", text] => match parse(oid::FLOAT8, -1, text)? {
            Datum::Float8(v) => Ok(Numeric::from_f64(v).to_string()),
            other => panic!("{other:?}"),
        },
        ["nf4", text] => match parse(oid::FLOAT4, -1, text)? {
            Datum::Float4(v) => Ok(Numeric::from_f32(v).to_string()),
            other => panic!("{other:?}"),
        },
        ["wb", a, low, high, _] => Ok(number(a)?.width_bucket(&number(low)?, &number(high)?, int(4))?.to_string()),
        ["typmod", a, ..] => Ok(number(a)?.apply_typmod(int(2), int(3))?.to_string()),
        [function, a] => numeric_of_one(function, &number(a)?),
        [function, a, b] => numeric_of_two(function, &number(a)?, b),
        other => panic!("no such line: {other:?}"),
    }
}

fn unescape(field: &str) -> String {
    let mut out = String::new();
    let mut characters = field.chars();
    while let Some(c) = characters.next() {
        out.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                other => other.expect("a character after the backslash"),
            },
            c => c,
        });
    }
    out
}

fn check(lines: &str) {
    let mut wrong = Vec::new();
    for line in lines.lines().filter(|l| !l.starts_with('#')) {
        let (call, expected) = line.split_once("\t=>\t").expect("a call and its answer");
        let fields: Vec<String> = call.split('\t').map(unescape).collect();
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        let got = answer(&fields).unwrap_or_else(|error| {
            let e = error.fields();
            let detail = e.detail.as_ref().map_or(String::new(), |d| format!(" | {d}"));
            format!("ERR {} {}{detail}", e.code, e.message)
        });
        if got != unescape(expected) {
            wrong.push(format!("{call}\n  got      {got}\n  expected {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// From now on the thread knows built-in types only.
fn no_made_types() {
    types::user::Current::by(&std::sync::Arc::default()).stay();
}

#[test]
fn numerics_are_those_of_postgres() {
    check(include_str!("postgres/numeric.tsv"));
}

#[test]
fn floats_are_those_of_postgres() {
    check(include_str!("postgres/float.tsv"));
}

#[test]
fn arrays_are_those_of_postgres() {
    check(include_str!("postgres/array.tsv"));
}

#[test]
fn simple_types_are_those_of_postgres() {
    no_made_types();
    check(include_str!("postgres/simple.tsv"));
}

#[test]
fn json_is_that_of_postgres() {
    check(include_str!("postgres/json.tsv"));
}

/// Bytes of any content, from a client or a damaged row, are read or refused, and what was read can be shown.
#[test]
fn no_bytes_panic() {
    no_made_types();
    let mut seed = 1u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for ty in types::all_types() {
        let layout = RowLayout::new(&[ColumnType { oid: ty.oid, typmod: -1 }]);
        for round in 0..400 {
            // Lengths and counts are mostly zeros, so half of the rounds are.
            let len = if ty.len > 0 { ty.len as usize } else { random() as usize % 40 };
            let bytes: Vec<u8> =
                (0..len).map(|_| if round % 2 == 0 && random() < 150 { 0 } else { random() }).collect();
            if let Ok(value) = read_binary(ty.oid, -1, &bytes) {
                let _ = show(&value, ty.oid);
                let mut key = Vec::new();
                types::encode_key(value.as_ref(), ty.oid, false, false, &mut key);
            }
            let tuple = [&[0][..], &bytes].concat();
            let valid = layout.validate(&tuple).is_ok();
            let value = RowRef::new(&layout, &tuple).get_owned(0);
            if valid {
                let mut key = Vec::new();
                types::encode_key(value.as_ref(), ty.oid, false, false, &mut key);
            }
        }
    }
}

#[test]
fn sums_are_exact_and_forget_what_is_taken_away() {
    let add = |texts: &[&str]| {
        let mut sum = types::NumericSum::ZERO;
        texts.iter().for_each(|t| sum.add(&number(t).unwrap()).unwrap());
        sum
    };
    assert_eq!(add(&["1.50", "2.25", "-0.75"]).total().unwrap().to_string(), "3.00");
    assert_eq!(add(&["1", "0.001", "99999999999999999999"]).total().unwrap().to_string(), "100000000000000000000.001");
    assert_eq!(add(&["1", "Infinity", "-Infinity"]).total().unwrap().to_string(), "NaN");
    let mut sum = add(&["1.5", "NaN", "2"]);
    sum.sub(&Numeric::NAN).unwrap();
    assert_eq!(sum.total().unwrap().to_string(), "3.5");
}
