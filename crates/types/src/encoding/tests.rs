use super::*;

fn conversion(name: &str) -> &'static Conversion {
    Encoding::from_name(name).and_then(Encoding::conversion).expect(name)
}

fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn names_are_compared_by_letters_and_digits() {
    let name = |written| Encoding::from_name(written).map(Encoding::name);
    for (written, expected) in [
        ("latin-1", "LATIN1"),
        ("ISO_8859-15", "LATIN9"),
        ("iso-8859-5", "ISO_8859_5"),
        ("Windows-1252", "WIN1252"),
        ("koi8", "KOI8R"),
        ("Shift_JIS", "SJIS"),
        ("unicode", "UTF8"),
        ("win949", "UHC"),
    ] {
        assert_eq!(name(written), Some(expected), "{written}");
    }
    assert_eq!(name("latin11"), None);
    assert_eq!(Encoding::from_number(35).map(Encoding::name), Some("SJIS"));
}

#[test]
fn every_code_comes_back() {
    for (number, name) in NAMES.iter().enumerate() {
        let Some(conversion) = Encoding(number as u8).conversion() else { continue };
        let mut characters = 0;
        for character in ('\u{80}'..='\u{ffff}').chain(['\u{10000}', '\u{1f600}']) {
            let Ok(bytes) = conversion.encoded(character.encode_utf8(&mut [0; 4])) else { continue };
            characters += 1;
            if bytes[0] < 0x80 || bytes == [0x80] {
                // SJIS writes a yen sign and an overline as their ASCII look-alikes, GBK a euro sign that it does not read.
                continue;
            }
            let back = conversion.decoded(&bytes).unwrap_or_else(|e| panic!("{name}: {character:?} {bytes:x?}: {e}"));
            let same = back == character.to_string();
            assert!(same || *name == "SJIS" || character == '\u{a6}', "{name}: {character:?} came back as {back:?}");
        }
        assert!(characters > 60, "{name}: {characters}");
    }
}

#[test]
fn postgresql_reads_and_writes_these_so() {
    for (encoding, bytes, text) in [
        ("LATIN1", &b"\xe9\x80"[..], "\u{e9}\u{80}"),
        ("LATIN9", b"\xa4", "\u{20ac}"),
        ("WIN1252", b"\x80", "\u{20ac}"),
        ("KOI8R", b"\xd0\xd2", "\u{43f}\u{440}"),
        ("SJIS", b"\x93\xfa\x96\x7b\xb1", "\u{65e5}\u{672c}\u{ff71}"),
        ("EUC_JP", b"\xc6\xfc\x8f\xb0\xa1\x8e\xb1", "\u{65e5}\u{4e02}\u{ff71}"),
        ("EUC_KR", b"\xc7\xd1\xb1\xdb", "\u{d55c}\u{ae00}"),
        ("UHC", b"\xc7\xd1\x81\x41", "\u{d55c}\u{ac02}"),
        ("BIG5", b"\xa4\xa4\xa4\xe5", "\u{4e2d}\u{6587}"),
        ("GBK", b"\xd6\xd0\xce\xc4", "\u{4e2d}\u{6587}"),
        ("EUC_CN", b"\xd6\xd0\xce\xc4", "\u{4e2d}\u{6587}"),
        ("GB18030", b"\xd6\xd0\x94\x39\xfc\x36\x81\x30\x81\x30", "\u{4e2d}\u{1f600}\u{80}"),
    ] {
        assert_eq!(conversion(encoding).decoded(bytes).unwrap(), text, "{encoding}");
        assert_eq!(conversion(encoding).encoded(text).unwrap(), bytes, "{encoding}");
    }
}

#[test]
fn errors_name_the_bytes() {
    let none = "has no equivalent in encoding";
    for (encoding, bytes, expected) in [
        (
            "WIN1252",
            &b"a\x81"[..],
            format!("ERROR 22P05: character with byte sequence 0x81 in encoding \"WIN1252\" {none} \"UTF8\""),
        ),
        ("EUC_JP", b"\xa4", "ERROR 22021: invalid byte sequence for encoding \"EUC_JP\": 0xa4".into()),
        ("EUC_JP", b"\xa4\xff", "ERROR 22021: invalid byte sequence for encoding \"EUC_JP\": 0xa4 0xff".into()),
        ("EUC_JP", b"\x8f\x41", "ERROR 22021: invalid byte sequence for encoding \"EUC_JP\": 0x8f 0x41".into()),
        ("SJIS", b"\xff\xa1", "ERROR 22021: invalid byte sequence for encoding \"SJIS\": 0xff 0xa1".into()),
        (
            "UHC",
            b"\x81\xff",
            format!("ERROR 22P05: character with byte sequence 0x81 0xff in encoding \"UHC\" {none} \"UTF8\""),
        ),
        ("LATIN1", b"A\0", "ERROR 22021: invalid byte sequence for encoding \"LATIN1\": 0x00".into()),
    ] {
        assert_eq!(message(conversion(encoding).decoded(bytes)), expected);
    }
    let expected =
        "character with byte sequence 0xc5 0x82 in encoding \"UTF8\" has no equivalent in encoding \"LATIN1\"";
    assert_eq!(message(conversion("LATIN1").encoded("a\u{142}")), format!("ERROR 22P05: {expected}"));
    assert_eq!(
        message(utf8(b"\xe2\x28\xa1")),
        "ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0xe2 0x28 0xa1"
    );
    assert_eq!(message(utf8_text(b"a\0")), "ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0x00");
}

#[test]
fn a_character_may_be_cut_by_the_end_of_a_piece() {
    let sjis = conversion("SJIS");
    let mut text = String::new();
    assert_eq!(sjis.decode_part(b"a\x93\xfa\x96", false, &mut text).unwrap(), 3);
    assert_eq!(text, "a\u{65e5}");
    assert!(sjis.decode_part(b"\x96", true, &mut text).is_err());
    let gb = conversion("GB18030");
    for cut in 1..4 {
        assert_eq!(gb.decode_part(&b"\x94\x39\xfc\x36"[..cut], false, &mut text).unwrap(), 0, "{cut}");
    }
}

#[test]
fn binary_values_are_converted_inside() {
    let latin1 = conversion("LATIN1");
    let convert = |bytes: &[u8]| latin1.decoded(bytes).map(String::into_bytes);
    let recode = |oid, bytes: &[u8]| recode_binary(oid, bytes, &convert).unwrap();
    assert_eq!(recode(crate::oid::TEXT, b"\xe9").unwrap(), "\u{e9}".as_bytes());
    assert_eq!(recode(crate::oid::JSONB, b"\x01\"\xe9\"").unwrap(), "\x01\"\u{e9}\"".as_bytes());
    assert_eq!(recode(crate::oid::INT4, b"\0\0\0\xe9"), None);
    let array = b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x01\xe9\xff\xff\xff\xff";
    let expected = b"\0\0\0\x01\0\0\0\x01\0\0\0\x19\0\0\0\x02\0\0\0\x01\0\0\0\x02\xc3\xa9\xff\xff\xff\xff";
    assert_eq!(recode(crate::oid::TEXT_ARRAY, array).unwrap(), expected);
}
