//! A client that does not speak UTF-8.

use crate::*;

/// Every kind of message that carries text, in this encoding.
fn converse(encoding: &str, word: &[u8]) {
    let mut pair = Pair::new(&[]);
    pair.query(&format!("SET client_encoding = '{encoding}'; SET client_min_messages = notice; SHOW client_encoding"));
    let quoted = [b"'", word, b"'"].concat();
    let sql = |parts: &[&[u8]]| query(&parts.concat());
    pair.same(
        &[sql(&[b"CREATE TABLE \"", word, b"\" (id int PRIMARY KEY, \"c", word, b"\" text, l text[], j jsonb)"])],
        1,
    );
    pair.same(
        &[sql(&[
            b"INSERT INTO \"",
            word,
            b"\" VALUES (1, ",
            &quoted,
            b", ARRAY[",
            &quoted,
            b", NULL], to_jsonb(",
            &quoted,
            b"::text))",
        ])],
        1,
    );
    let all =
        [b"SELECT \"c", word, b"\", l, j, id, convert_to(\"c", word, b"\", 'UTF8') FROM \"", word, b"\""].concat();
    // Column names, rows in text and in binary.
    let shown = pair.same(&[parse("", &all), bind("", &[], 0), describe(), execute(0), sync()], 1);
    assert!(shown.iter().any(|m| m.starts_with("D ") && m.contains(&word.escape_ascii().to_string())), "{shown:?}");
    pair.same(&[parse("", &all), bind("", &[], 1), execute(0), sync()], 1);
    // Parameters, text and binary; names of statements.
    let select = [b"SELECT $1::text, convert_to($1, 'UTF8'), $2::text[]".as_slice()].concat();
    pair.same(&[parse("", &select), bind("", &[word, &[b"{", word, b"}"].concat()], 0), execute(0), sync()], 1);
    let mut array = b"\0\0\0\x01\0\0\0\0\0\0\0\x19\0\0\0\x01\0\0\0\x01".to_vec();
    array.extend((word.len() as u32).to_be_bytes());
    array.extend(word);
    pair.same(&[parse("", &select), bind("", &[word, &array], 1), execute(0), sync()], 1);
    // Errors, notices, notifications.
    pair.same(&[sql(&[b"SELECT 1 FROM \"no", word, b"\""])], 1);
    pair.same(&[sql(&[b"DROP TABLE IF EXISTS \"no", word, b"\""])], 1);
    pair.same(&[sql(&[b"LISTEN \"", word, b"\""])], 1);
    pair.same(&[sql(&[b"NOTIFY \"", word, b"\", ", &quoted])], 1);
    // COPY in the client's encoding, in its own, in binary.
    let copy = |options: &str| sql(&[b"COPY \"", word, b"\" (id, \"c", word, b"\") ", options.as_bytes()]);
    pair.same(&[copy("TO STDOUT (FORMAT csv, HEADER)")], 1);
    pair.same(&[copy("TO STDOUT (ENCODING 'UTF8')")], 1);
    pair.same(&[copy("TO STDOUT (FORMAT binary)")], 1);
    for (id, options) in [("2", "FROM STDIN"), ("3", "FROM STDIN (DELIMITER ',')")] {
        let delimiter: &[u8] = if options.contains(',') { b"," } else { b"\t" };
        pair.same(&[copy(options), copy_data(&[id.as_bytes(), delimiter, word, b"\n"].concat())], 1);
    }
    // Cut in the middle of a character.
    let line = [b"4\t", word, b"\n"].concat();
    let at = line.len() - 2;
    let parts = [message(b'd', &line[..at]), message(b'd', &line[at..]), message(b'c', b"")];
    pair.same(&[[copy("FROM STDIN"), parts.concat()].concat()], 1);
    pair.same(&[sql(&[b"SELECT id, convert_to(\"c", word, b"\", 'UTF8') FROM \"", word, b"\" ORDER BY id"])], 1);
    // What the encoding lacks, in a row, a second row, an error.
    pair.same(&[sql(&[b"SELECT ", &quoted, b", U&'\\+01F600'"])], 1);
    pair.same(&[sql(&[b"SELECT CASE g WHEN 3 THEN U&'\\+01F600' END FROM generate_series(1, 5) AS g"])], 1);
    pair.same(&[sql(&[b"SELECT 1 FROM U&\"no\\+01F600\""])], 1);
    pair.same(&[sql(&[b"COPY (SELECT U&'\\+01F600') TO STDOUT"])], 1);
    // Back to UTF-8 amid a message, and by a rollback.
    pair.same(
        &[sql(&[b"SELECT ", &quoted, b"; SET client_encoding = utf8; SELECT convert_from('\\xc3a9', 'utf8')"])],
        1,
    );
    pair.query(&format!("BEGIN; SET client_encoding = '{encoding}'"));
    pair.same(&[sql(&[b"SELECT ", &quoted])], 1);
    pair.query("ROLLBACK");
    pair.query("SELECT convert_from('\\xc3a9', 'utf8')");
    // Within a pipeline it holds at once.
    let set = format!("SET client_encoding = '{encoding}'");
    let messages = [
        parse("", set.as_bytes()),
        bind("", &[], 0),
        execute(0),
        parse("", b"SELECT $1::text"),
        bind("", &[word], 0),
        execute(0),
        sync(),
    ];
    pair.same(&messages, 1);
}

#[test]
fn latin1() {
    converse("LATIN1", b"caf\xe9");
}

#[test]
fn shift_jis_whose_second_bytes_are_ascii() {
    // The second byte of this character is a backslash.
    converse("SJIS", b"\x95\x5c\x8e\xa6");
}

#[test]
fn gb18030_and_koi8() {
    let mut pair = Pair::new(&[("client_encoding", "GB18030")]);
    pair.same(&[query(b"SELECT '\xd6\xd0\x94\x39\xfc\x36', convert_to('\xd6\xd0\x94\x39\xfc\x36', 'utf8')")], 1);
    let mut pair = Pair::new(&[("client_encoding", "koi8-r")]);
    pair.same(&[query(b"SELECT '\xd0\xd2\xc9' AS \"\xd0\", 1 FROM \"\xd2\"")], 1);
    pair.same(&[query(b"SELECT '\xd0\xd2\xc9' AS \"\xd0\"")], 1);
}

#[test]
fn bytes_that_are_no_characters() {
    for (encoding, bad) in [
        ("UTF8", &b"\xe2\x28\xa1"[..]),
        ("UTF8", b"\xff"),
        ("WIN1252", b"\x81"),
        ("EUC_JP", b"\xa4 "),
        ("SQL_ASCII", b"\xe9"),
    ] {
        let mut pair = Pair::new(&[("client_encoding", encoding)]);
        pair.query("CREATE TABLE t (a text, b text)");
        let literal = [b"SELECT '", bad, b"'"].concat();
        let refused = pair.same(&[query(&literal)], 1);
        assert!(refused[0].contains("C22021") || refused[0].contains("C22P05"), "{refused:?}");
        pair.same(&[parse("", &literal), bind("", &[], 0), execute(0), sync()], 1);
        if encoding == "SQL_ASCII" {
            // PostgreSQL's COPY lets anything in here.
            continue;
        }
        let refused = pair.same(&[query(b"COPY t FROM STDIN"), copy_data(&[b"a\tb\nc\t", bad, b"\n"].concat())], 1);
        assert!(refused.iter().any(|m| m.contains("C22021") || m.contains("C22P05")), "{refused:?}");
        // In a transaction the error fails the block.
        pair.query("BEGIN");
        pair.same(&[query(&literal)], 1);
        pair.query("SELECT 1");
        pair.query("ROLLBACK");
        let refused = pair.same(&[parse("", b"SELECT $1::text"), bind("", &[bad], 0), execute(0), sync()], 1);
        assert!(refused.iter().any(|m| m.contains("C22021") || m.contains("C22P05")), "{refused:?}");
        let refused = pair.same(&[parse("", b"SELECT $1::text"), bind("", &[bad], 1), execute(0), sync()], 1);
        assert!(refused.iter().any(|m| m.contains("C22021") || m.contains("C22P05")), "{refused:?}");
        pair.query("SELECT count(*) FROM t");
    }
}

/// Labels are texts: in the client's encoding, in and out, in both forms.
#[test]
fn labels() {
    let mut pair = Pair::new(&[]);
    pair.query("CREATE TYPE mood AS ENUM ('fr\u{f6}hlich', 'tr\u{fc}be'); CREATE TABLE m (a mood, l mood[]); SET client_encoding = 'LATIN1'");
    let (first, second): (&[u8], &[u8]) = (b"fr\xf6hlich", b"tr\xfcbe");
    pair.same(&[query(&[b"INSERT INTO m VALUES ('", first, b"', ARRAY['", second, b"', NULL]::mood[])"].concat())], 1);
    let insert = b"INSERT INTO m (a) VALUES ($1) RETURNING a";
    for format in [0, 1] {
        for label in [first, second, b"tr\xc3\xbcbe", b"nothing", b"\xff", b""] {
            pair.same(&[parse("", insert), bind("", &[label], format), execute(0), sync()], 1);
        }
        // Binary arrays have the OID of their elements' type, which is the server's own.
        let columns: &[u8] = if format == 0 { b"a, l, enum_range(a), a::text" } else { b"a, a::text, l::text[]" };
        let select = [b"SELECT ", columns, b" FROM m"].concat();
        pair.same(&[parse("", &select), bind("", &[], format), execute(0), sync()], 1);
    }
    for copy in ["COPY m TO STDOUT", "COPY m TO STDOUT (FORMAT binary)", "COPY m TO STDOUT (FORMAT csv)"] {
        // The OID of the type is the server's own.
        if !copy.contains("binary") {
            pair.query(copy);
        }
    }
    pair.same(&[query(b"COPY m (a) FROM STDIN"), copy_data(&[second, b"\n"].concat())], 1);
    pair.same(&[query(b"COPY m (a) FROM STDIN"), copy_data(b"tr\xc3\xbcbe\n")], 1);
    let binary = |label: &[u8]| {
        let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01".to_vec();
        data.extend((label.len() as u32).to_be_bytes());
        data.extend([label, b"\xff\xff"].concat());
        data
    };
    pair.same(&[query(b"COPY m (a) FROM STDIN (FORMAT binary)"), copy_data(&binary(second))], 1);
    pair.same(&[query(b"COPY m (a) FROM STDIN (FORMAT binary)"), copy_data(&binary(b"no\xe9"))], 1);
    pair.same(&[query(&[b"SELECT '", second, b"'::mood::text, 'no\xe9'::mood"].concat())], 1);
    pair.query("SELECT a::text FROM m ORDER BY a");
    pair.query("ALTER TYPE mood ADD VALUE '\u{e9}'");
}
