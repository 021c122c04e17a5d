//! Writes inputs to start from into a folder per target: `cargo run -p fuzz --example seeds -- FOLDER`.
//!
//! They are real bytes: what a server writes, what clients send, statements of the tests in `tests/slt`.

#![forbid(unsafe_code)]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use env::Disk;
use env::sim::SimDisk;
use sandbox::Sandbox;

const SCHEMA: &str = "CREATE TABLE t (a int PRIMARY KEY, b text); CREATE TYPE e AS ENUM ('x', 'y'); CREATE SEQUENCE s";
const CHANGES: [&str; 6] = [
    "INSERT INTO t SELECT g, repeat('x', g) FROM generate_series(1, 40) g",
    "UPDATE t SET b = b || 'y' WHERE a < 10; SELECT nextval('s')",
    "DELETE FROM t WHERE a % 3 = 0",
    "BEGIN; INSERT INTO t VALUES (100, 'p'); PREPARE TRANSACTION 'p'",
    "BEGIN; INSERT INTO t VALUES (101, 'q'); SAVEPOINT a; INSERT INTO t VALUES (102, 'r'); ROLLBACK TO a; COMMIT",
    "TRUNCATE t; DROP TABLE t CASCADE",
];

/// Statements of the tests in `tests/slt`, in the form of a fuzzer's input.
const SQL_MAX: usize = 400;
const SQL_STEP: usize = 23;

struct Seeds(PathBuf);

impl Seeds {
    fn put(&self, target: &str, bytes: &[u8]) -> io::Result<()> {
        let folder = self.0.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("seed-{:08x}", crc32c::crc32c(bytes))), bytes)
    }
}

fn read(disk: &SimDisk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    let mut bytes = vec![0; file.len()? as usize];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Each segment behind its length, without the zeros at its end.
fn segments(disk: &SimDisk) -> io::Result<Vec<u8>> {
    let mut input = vec![1];
    for name in disk.list()?.iter().filter(|name| name.ends_with(".log")) {
        let mut bytes = read(disk, name)?;
        let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1).next_multiple_of(8);
        bytes.truncate(end.min(usize::from(u16::MAX)));
        input.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        input.extend_from_slice(&bytes);
    }
    Ok(input)
}

fn disk(seeds: &Seeds) -> io::Result<()> {
    let disk = SimDisk::new();
    let log = redo::FileOptions { segment_bytes: 64 << 10, batch_bytes_max: 16 << 10 };
    let mut sandbox = Sandbox::on(&disk, log, SCHEMA);
    for changes in CHANGES {
        if let Err(error) = sandbox.simple(changes) {
            eprintln!("{changes}: {error:?}");
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        seeds.put("log", &segments(&disk)?)?;
        let checkpoint = sandbox.shard().begin_checkpoint().ok_or_else(|| io::Error::other("no checkpoint"))?;
        let mut writer = checkpoint.writer(0)?;
        while writer.step()? {}
        let file = writer.finish()?;
        seeds.put("checkpoint", &[&[1], &read(&disk, &file.name)?[..]].concat())?;
        checkpoint.commit(vec![file])?;
        let manifest = read(&disk, "manifest")?;
        seeds.put("manifest", &[&[0], &manifest[..]].concat())?;
        seeds.put("manifest", &[&[1], &manifest[..manifest.len() - 10]].concat())?;
    }
    Ok(())
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

fn wire(seeds: &Seeds) -> io::Result<()> {
    let start =
        |code: u32, rest: &[u8]| [&(rest.len() as u32 + 8).to_be_bytes()[..], &code.to_be_bytes(), rest].concat();
    let session = [
        message(b'Q', b"SELECT 1\0"),
        message(b'P', b"a\0SELECT $1::int\0\0\x02\0\0\0\x17\0\0\0\0"),
        message(b'B', b"p\0a\0\0\x02\0\0\0\x01\0\x02\0\0\0\x0241\xff\xff\xff\xff\0\x01\0\x01"),
        message(b'D', b"Sa\0"),
        message(b'E', b"p\0\0\0\0\x0a"),
        message(b'C', b"Pp\0"),
        message(b'd', b"1\tone\n"),
        message(b'c', b""),
        message(b'f', b"no\0"),
        message(b'F', &[0; 10]),
        message(b'H', b""),
        message(b'S', b""),
        message(b'p', b"SCRAM-SHA-256\0\0\0\0\x08n,,n=,r="),
        message(b'X', b""),
    ];
    for one in &session {
        seeds.put("wire", one)?;
    }
    seeds.put("wire", &session.concat())?;
    for (code, rest) in [
        (0x0003_0000, &b"user\0postgres\0database\0postgres\0application_name\0psql\0\0"[..]),
        (0x0003_0002, b"user\0a\0_pq_.x\0y\0\0"),
        (80_877_103, b""),
        (80_877_104, b""),
        (80_877_102, b"\0\0\0\x01\0\0\0\x02"),
    ] {
        seeds.put("wire", &start(code, rest))?;
    }
    for text in [
        "n,,n=,r=rOprNGfwEbeRWgbNEkqO",
        "y,,n=,r=abc",
        "p=tls-server-end-point,,n=,r=abc",
        "c=biws,r=aAQEBAQEBAQEBAQEBAQEBAQEB,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "SCRAM-SHA-256$4096:AQEBAQEBAQEBAQEBAQEBAQ==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    ] {
        seeds.put("wire", text.as_bytes())?;
    }
    Ok(())
}

fn copy(seeds: &Seeds) -> io::Result<()> {
    let field = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat();
    let header = [&b"PGCOPY\n\xff\r\n\0"[..], &[0; 8]].concat();
    let two = [&header[..], b"\0\x02", &field(&[0, 0, 0, 7]), &field(b"seven"), b"\xff\xff"].concat();
    let one = [&header[..], b"\0\x01", &field(b"x"), b"\0\x01\xff\xff\xff\xff\xff\xff"].concat();
    let more =
        b"{\"a\": [1, null]}\t\\\\xdead\t1 day\t00000000-0000-0000-0000-000000000001\t1.5e3\n\\N\t\\N\t\\N\t\\N\t\\N\n";
    let inputs: [(u8, u8, &[u8]); 14] = [
        (0, 0, b"a\nb\\tc\n\\N\n\\x41\\101\\\\\n\\.\n"),
        (0, 1, b"a\n\"b,\"\"c\"\"\nd\"\n\n"),
        (0, 2, &one),
        (0, 3, b"a\n'it\\'s'\nnone\n'none'\n"),
        (0, 7, b"\xe9\n"),
        (1, 0, b"1\tone\n2\t\\N\n-3\t\n"),
        (1, 1, b"1,one\n2,\"two\r\nlines\"\n3,\n"),
        (1, 2, &two),
        (1, 4, b"1,one\n2,\n"),
        (1, 5, b"1;one\n\"\";\"\"\n"),
        (1, 6, b"a\tb\n1\tone\n"),
        (2, 0, b"1\t12.50\t2020-01-02 03:04:05+02\tt\t{1,NULL,-2}\n\\N\tNaN\tinfinity\tf\t{}\n"),
        (2, 1, b"1,1e10,epoch,true,\"{{1,2},{3,4}}\"\n"),
        (3, 0, more),
    ];
    for (table, form, data) in inputs {
        seeds.put("copy", &[&[table | form << 2, 100], data].concat())?;
        seeds.put("copy", &[&[table | form << 2, 2], data].concat())?;
    }
    Ok(())
}

fn sql(seeds: &Seeds) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let mut files: Vec<_> = fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "slt")) {
        let text = fs::read_to_string(file)?;
        let statements = text.lines().filter(|line| line.ends_with(';') && line.len() < SQL_MAX);
        for statement in statements.step_by(SQL_STEP) {
            seeds.put("sql", statement.as_bytes())?;
        }
    }
    Ok(())
}

fn values(seeds: &Seeds) -> io::Result<()> {
    let inputs: [(u8, &[&str]); 26] = [
        (0, &["t", "off", " yes "]),
        (1, &["-2147483648", " 12 "]),
        (2, &["9223372036854775807"]),
        (3, &["1.5e-30", "NaN", "-Infinity"]),
        (4, &["2.2250738585072014e-308", "1e308"]),
        (5, &["-123456789012345678901234567890.000123", "NaN", "1e-20", "Infinity"]),
        (6, &["text"]),
        (7, &["\\xdeadbeef", "a\\000\\\\b"]),
        (8, &["{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}"]),
        (9, &["2020-02-29", "J2451187", "Jan 8, 1999 BC", "infinity", "1999.008"]),
        (10, &["23:59:60", "040506.789", "04:05 PM"]),
        (11, &["04:05:06+02:30:15", "allballs"]),
        (12, &["2001-02-16 20:38:40.123456", "epoch", "294276-12-31", "4714-11-24 BC"]),
        (13, &["2001-02-16 20:38:40 America/New_York", "20010216T203840Z", "now"]),
        (14, &["1 year 2 mons -3 days 04:05:06.789", "P1Y2M3DT4H5M6S", "@ 1 minute ago", "1.5 weeks"]),
        (15, &["{\"a\": [1, 2.5e3, \"\\u00e9\\ud83d\\ude00\", null, true]}"]),
        (16, &["{\"b\": {}, \"a\": [[]], \"a\": 1e5}", "\"x\""]),
        (
            17,
            &["strict $.a[1 to last].b ? (@ > 1 && exists(@.c)).size()", "lax $.** ? (@ like_regex \"^a\" flag \"i\")"],
        ),
        (18, &["{1,NULL,-3}", "[0:1][2:3]={{1,2},{3,4}}", "{}"]),
        (19, &["{\"a b\",\"\\\"q\\\\\",null,\"NULL\",}", "{x,\" y \"}"]),
        (20, &["{1.5,NaN}"]),
        (21, &["{\"2001-02-16 20:38:40+00\",infinity}"]),
        (22, &["{\"{\\\"a\\\": 1}\",\"[]\"}"]),
        (23, &["4294967295"]),
        (24, &["name"]),
        (25, &["1 2 3"]),
    ];
    for (ty, texts) in inputs {
        for text in texts {
            seeds.put("values", &[&[ty], text.as_bytes()].concat())?;
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| io::Error::other("usage: seeds FOLDER"))?;
    let seeds = Seeds(folder.into());
    wire(&seeds)?;
    disk(&seeds)?;
    copy(&seeds)?;
    sql(&seeds)?;
    values(&seeds)
}
