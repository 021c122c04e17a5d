use super::*;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Frontend<'_>> {
    parse(frame(bytes)?.expect("complete"))
}

fn complaint(tag: u8, body: &[u8]) -> String {
    decode(&message(tag, body)).unwrap_err().to_string()
}

#[test]
fn incomplete_frames_say_how_much_they_need() {
    let bytes = message(b'Q', b"SELECT 1\0");
    assert_eq!(frame(&[]).unwrap().unwrap_err(), 5);
    assert_eq!(frame(&bytes[..4]).unwrap().unwrap_err(), 5);
    assert_eq!(frame(&bytes[..6]).unwrap().unwrap_err(), bytes.len());
    assert_eq!(frame(&bytes).unwrap().unwrap().total(), bytes.len());
}

#[test]
fn frames_that_cannot_be_trusted_are_fatal() {
    let fatal = |bytes: &[u8]| frame(bytes).unwrap_err().to_string();
    assert_eq!(fatal(b"\x51\0\0\0\x03"), "FATAL 08P01: invalid message length");
    assert_eq!(fatal(b"\x51\xff\xff\xff\xff"), "FATAL 08P01: invalid message length");
    assert_eq!(fatal(b"S\0\0\x27\x15"), "FATAL 08P01: invalid message length");
    assert_eq!(fatal(b"\x51\x40\0\0\x04"), "FATAL 08P01: invalid message length");
    assert_eq!(fatal(b"R"), "FATAL 08P01: invalid frontend message type 82");
    assert_eq!(fatal(b"p\0\0\0\x05\0"), "FATAL 08P01: invalid frontend message type 112");
}

#[test]
fn bind_is_read_in_place() {
    let body = b"p\0s\0\0\x01\0\x01\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0\0\x02\0\0\0\x01";
    let bytes = message(b'B', body);
    let Frontend::Bind(bind) = decode(&bytes).unwrap() else { panic!("not a Bind") };
    assert_eq!((bind.portal, bind.statement), ("p", "s"));
    assert_eq!(bind.values.iter().collect::<Vec<_>>(), [Some(&b"ab"[..]), None, Some(&b""[..])]);
    assert_eq!([0, 1, 2].map(|i| bind.formats.get(i)), [Format::Binary; 3]);
    assert_eq!([0, 1, 2].map(|i| bind.results.get(i)), [Format::Text, Format::Binary, Format::Text]);
}

#[test]
fn parse_carries_parameter_types() {
    let bytes = message(b'P', b"s\0SELECT $1\0\0\x02\0\0\0\x17\0\0\0\0");
    let Frontend::Parse(parse) = decode(&bytes).unwrap() else { panic!("not a Parse") };
    assert_eq!((parse.name, parse.sql), ("s", "SELECT $1"));
    assert_eq!(parse.types.iter().collect::<Vec<_>>(), [Oid(23), Oid(0)]);
}

#[test]
fn small_messages() {
    assert!(matches!(decode(&message(b'E', b"c\0\0\0\0\x05")), Ok(Frontend::Execute("c", 5))));
    assert!(matches!(decode(&message(b'E', b"\0\xff\xff\xff\xff")), Ok(Frontend::Execute("", 0))));
    assert!(matches!(decode(&message(b'D', b"Sx\0")), Ok(Frontend::Describe(Target::Statement("x")))));
    assert!(matches!(decode(&message(b'C', b"Px\0")), Ok(Frontend::Close(Target::Portal("x")))));
    assert!(matches!(decode(&message(b'd', b"1\t2\n")), Ok(Frontend::CopyData(b"1\t2\n"))));
    assert!(matches!(decode(&message(b'f', b"no\0")), Ok(Frontend::CopyFail("no"))));
}

#[test]
fn malformed_bodies_get_the_complaints_of_postgresql() {
    assert_eq!(complaint(b'Q', b"SELECT 1"), "ERROR 08P01: invalid string in message");
    assert_eq!(complaint(b'Q', b"SELECT 1\0x"), "ERROR 08P01: invalid message format");
    assert_eq!(complaint(b'S', b"x"), "ERROR 08P01: invalid message format");
    assert_eq!(complaint(b'D', b"Xx\0"), "ERROR 08P01: invalid DESCRIBE message subtype 88");
    assert_eq!(complaint(b'C', b"\0\0"), "ERROR 08P01: invalid CLOSE message subtype 0");
    assert_eq!(complaint(b'D', b""), "ERROR 08P01: no data left in message");
    assert_eq!(complaint(b'E', b"\0\0\0"), "ERROR 08P01: insufficient data left in message");
    assert_eq!(complaint(b'P', b"\0\0\0\x02\0\0\0\x17"), "ERROR 08P01: insufficient data left in message");
    assert_eq!(complaint(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe"), "ERROR 08P01: insufficient data left in message");
    assert_eq!(
        complaint(b'B', b"\0\0\0\x02\0\0\0\0\0\x01\xff\xff\xff\xff\0\0"),
        "ERROR 08P01: bind message has 2 parameter formats but 1 parameters"
    );
    assert_eq!(complaint(b'B', b"\0\0\0\x01\0\x02\0\0\0\0"), "ERROR 22023: unsupported format code: 2");
    assert_eq!(complaint(b'Q', b"\xff\0"), "ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0xff");
}
