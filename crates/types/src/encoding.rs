//! Character encodings of clients, by PostgreSQL's names and numbers; the server's own is UTF-8.
//!
//! Responsible for: names, and text from and to each encoding with PostgreSQL's errors.
//! Not responsible for: which encoding a session has.
//! Invariant: UTF-8 has no [`Conversion`], so its clients pay for none of this.
//!
//! Encodings of one byte have tables of their own (`single`). Those of several bytes are `encoding_rs`'s with PostgreSQL's
//! differences (`exceptions`), laid out as tables when one is first used.

mod exceptions;
mod multi;
mod single;

use std::sync::OnceLock;

use base::work::{self, Count};
use base::{Error, Result, SqlState};

use multi::Multi;

/// An encoding, by PostgreSQL's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding(u8);

/// Names by number.
const NAMES: [&str; 42] = [
    "SQL_ASCII",
    "EUC_JP",
    "EUC_CN",
    "EUC_KR",
    "EUC_TW",
    "EUC_JIS_2004",
    "UTF8",
    "MULE_INTERNAL",
    "LATIN1",
    "LATIN2",
    "LATIN3",
    "LATIN4",
    "LATIN5",
    "LATIN6",
    "LATIN7",
    "LATIN8",
    "LATIN9",
    "LATIN10",
    "WIN1256",
    "WIN1258",
    "WIN866",
    "WIN874",
    "KOI8R",
    "WIN1251",
    "WIN1252",
    "ISO_8859_5",
    "ISO_8859_6",
    "ISO_8859_7",
    "ISO_8859_8",
    "WIN1250",
    "WIN1253",
    "WIN1254",
    "WIN1255",
    "WIN1257",
    "KOI8U",
    "SJIS",
    "BIG5",
    "GBK",
    "UHC",
    "GB18030",
    "JOHAB",
    "SHIFT_JIS_2004",
];

/// Other names, as they are compared: lower case, letters and digits only.
const ALIASES: [(&str, &str); 43] = [
    ("abc", "WIN1258"),
    ("alt", "WIN866"),
    ("iso88591", "LATIN1"),
    ("iso88592", "LATIN2"),
    ("iso88593", "LATIN3"),
    ("iso88594", "LATIN4"),
    ("iso88599", "LATIN5"),
    ("iso885910", "LATIN6"),
    ("iso885913", "LATIN7"),
    ("iso885914", "LATIN8"),
    ("iso885915", "LATIN9"),
    ("iso885916", "LATIN10"),
    ("koi8", "KOI8R"),
    ("mskanji", "SJIS"),
    ("shiftjis", "SJIS"),
    ("tcvn", "WIN1258"),
    ("tcvn5712", "WIN1258"),
    ("unicode", "UTF8"),
    ("vscii", "WIN1258"),
    ("win", "WIN1251"),
    ("win932", "SJIS"),
    ("win936", "GBK"),
    ("win949", "UHC"),
    ("win950", "BIG5"),
    ("windows1250", "WIN1250"),
    ("windows1251", "WIN1251"),
    ("windows1252", "WIN1252"),
    ("windows1253", "WIN1253"),
    ("windows1254", "WIN1254"),
    ("windows1255", "WIN1255"),
    ("windows1256", "WIN1256"),
    ("windows1257", "WIN1257"),
    ("windows1258", "WIN1258"),
    ("windows866", "WIN866"),
    ("windows874", "WIN874"),
    ("windows932", "SJIS"),
    ("windows936", "GBK"),
    ("windows949", "UHC"),
    ("windows950", "BIG5"),
    ("euccn", "EUC_CN"),
    ("eucjp", "EUC_JP"),
    ("euckr", "EUC_KR"),
    ("euctw", "EUC_TW"),
];

impl Encoding {
    /// Bytes as they are.
    pub const SQL_ASCII: Encoding = Encoding(0);
    /// The server's.
    pub const UTF8: Encoding = Encoding(6);

    /// By any of its names; case, hyphens and underscores do not matter.
    pub fn from_name(name: &str) -> Option<Encoding> {
        let plain = |name: &str| -> String {
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
        };
        // No name is that long, whatever it is written with.
        if name.len() > 256 {
            return None;
        }
        let wanted = plain(name);
        let wanted = ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted, |(_, name)| plain(name));
        NAMES.iter().position(|name| plain(name) == wanted).map(|at| Encoding(at as u8))
    }

    /// By PostgreSQL's number.
    pub fn from_number(number: i32) -> Option<Encoding> {
        u8::try_from(number).ok().filter(|n| usize::from(*n) < NAMES.len()).map(Encoding)
    }

    /// PostgreSQL's number.
    pub fn number(self) -> i32 {
        i32::from(self.0)
    }

    /// PostgreSQL's name.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    /// Whether text needs no conversion: UTF-8, or whatever the bytes are.
    pub fn is_plain(self) -> bool {
        matches!(self, Encoding::UTF8 | Encoding::SQL_ASCII)
    }

    /// Whether no database has it, since a character's second byte may be one of ASCII, a backslash for instance.
    pub fn is_client_only(self) -> bool {
        self.0 > KOI8U
    }

    /// The most bytes of one character.
    pub fn max_length(self) -> i32 {
        match self.name() {
            "UTF8" | "MULE_INTERNAL" | "GB18030" | "EUC_TW" => 4,
            "EUC_JP" | "EUC_CN" | "EUC_KR" | "EUC_JIS_2004" | "JOHAB" => 3,
            "SJIS" | "BIG5" | "GBK" | "UHC" | "SHIFT_JIS_2004" => 2,
            _ => 1,
        }
    }

    /// How text is converted. `None` if there is nothing to convert, or no way to.
    pub fn conversion(self) -> Option<&'static Conversion> {
        static MADE: [OnceLock<Option<Conversion>>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
        MADE[usize::from(self.0)].get_or_init(|| Conversion::of(self)).as_ref()
    }
}

/// The last encoding that a database may have.
const KOI8U: u8 = 34;

/// Between one encoding and UTF-8.
pub struct Conversion {
    encoding: Encoding,
    table: Table,
}

enum Table {
    /// The characters from 0x80 on, and the way back, by character.
    Single(Box<[char]>, Vec<(char, u8)>),
    Multi(Multi),
}

impl std::fmt::Debug for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.encoding.name())
    }
}

impl Conversion {
    /// See [`Encoding::is_client_only`].
    pub fn is_client_only(&self) -> bool {
        self.encoding.is_client_only()
    }

    fn of(encoding: Encoding) -> Option<Conversion> {
        if let Some(multi) = Multi::of(encoding.name()) {
            return Some(Conversion { encoding, table: Table::Multi(multi) });
        }
        let characters: Box<[char]> = single::characters(encoding.name())?.chars().collect();
        let mut back: Vec<(char, u8)> =
            (0x80..=0xffu8).zip(&characters).filter(|(_, c)| **c != '\u{fffd}').map(|(byte, c)| (*c, byte)).collect();
        back.sort_unstable();
        Some(Conversion { encoding, table: Table::Single(characters, back) })
    }

    /// Which encoding it is for.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Appends what `bytes` mean.
    ///
    /// # Errors
    /// 22021 for bytes that are no character, 22P05 for characters that Unicode lacks.
    pub fn decode(&self, bytes: &[u8], out: &mut String) -> Result<()> {
        self.decode_part(bytes, true, out).map(drop)
    }

    /// As [`decode`](Conversion::decode) for a piece of a stream: unless it is the last one, a character cut at its end is
    /// left. Answers the bytes used.
    pub fn decode_part(&self, bytes: &[u8], last: bool, out: &mut String) -> Result<usize> {
        out.reserve(bytes.len());
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            work::step(2)?;
            if byte < 0x80 {
                if byte == 0 {
                    return Err(self.invalid(&bytes[at..]));
                }
                out.push(char::from(byte));
                at += 1;
                continue;
            }
            let rest = &bytes[at..];
            let (length, decoded) = match &self.table {
                Table::Single(characters, _) => {
                    (1, Some(characters[usize::from(byte - 0x80)]).filter(|c| *c != '\u{fffd}'))
                }
                Table::Multi(multi) => {
                    if !last && rest.len() < 4 && rest.len() < multi.announced(rest) {
                        return Ok(at);
                    }
                    let length = multi.verify(rest).ok_or_else(|| self.invalid(rest))?;
                    (length, multi.decode(&rest[..length]))
                }
            };
            out.push(decoded.ok_or_else(|| untranslatable(&rest[..length], self.encoding, Encoding::UTF8))?);
            at += length;
        }
        Ok(at)
    }

    /// The text that `bytes` are.
    ///
    /// # Errors
    /// As [`decode`](Conversion::decode).
    pub fn decoded(&self, bytes: &[u8]) -> Result<String> {
        let mut text = String::new();
        self.decode(bytes, &mut text)?;
        Ok(text)
    }

    fn code(&self, c: char) -> Option<u32> {
        match &self.table {
            Table::Single(_, back) => {
                back.binary_search_by_key(&c, |entry| entry.0).ok().map(|at| u32::from(back[at].1))
            }
            Table::Multi(multi) => multi.code(c),
        }
    }

    /// Appends `text` in this encoding.
    ///
    /// # Errors
    /// 22P05 for a character that the encoding lacks.
    pub fn encode(&self, text: &str, out: &mut Vec<u8>) -> Result<()> {
        self.encode_or(text, out, |c| {
            Err(untranslatable(c.encode_utf8(&mut [0; 4]).as_bytes(), Encoding::UTF8, self.encoding))
        })
    }

    /// Appends `text` in this encoding, with `?` for what it lacks.
    pub fn encode_lossy(&self, text: &str, out: &mut Vec<u8>) {
        // Nothing can fail where everything has a substitute.
        let _ = self.encode_or(text, out, |_| Ok(u32::from(b'?')));
    }

    fn encode_or(&self, text: &str, out: &mut Vec<u8>, missing: impl Fn(char) -> Result<u32>) -> Result<()> {
        out.reserve(text.len());
        for c in text.chars().counted(2) {
            if c.is_ascii() {
                out.push(c as u8);
                continue;
            }
            let code = self.code(c).map_or_else(|| missing(c), Ok)?;
            let bytes = code.to_be_bytes();
            let first = bytes.iter().position(|b| *b != 0).unwrap_or(3);
            out.extend_from_slice(&bytes[first..]);
        }
        Ok(())
    }

    /// `text` in this encoding.
    ///
    /// # Errors
    /// As [`encode`](Conversion::encode).
    pub fn encoded(&self, text: &str) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode(text, &mut bytes)?;
        Ok(bytes)
    }

    #[cold]
    fn invalid(&self, rest: &[u8]) -> Error {
        let announced = match &self.table {
            Table::Single(..) => 1,
            Table::Multi(multi) => multi.announced(rest),
        };
        invalid_bytes(&rest[..announced.min(rest.len())], self.encoding)
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ")
}

#[cold]
fn invalid_bytes(bytes: &[u8], encoding: Encoding) -> Error {
    let message = format!("invalid byte sequence for encoding \"{}\": {}", encoding.name(), shown(bytes));
    Error::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
}

#[cold]
fn untranslatable(bytes: &[u8], from: Encoding, to: Encoding) -> Error {
    let message = format!(
        "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
        shown(bytes),
        from.name(),
        to.name()
    );
    Error::new(SqlState::UNTRANSLATABLE_CHARACTER, message)
}

/// The bytes as UTF-8, or 22021 naming the first that are not: as many as the first one announces, whether or not they
/// belong to the character.
///
/// # Errors
/// 22021.
pub fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|e| {
        let rest = &bytes[e.valid_up_to()..];
        let announced = match rest.first() {
            Some(b) if b & 0xe0 == 0xc0 => 2,
            Some(b) if b & 0xf0 == 0xe0 => 3,
            Some(b) if b & 0xf8 == 0xf0 => 4,
            _ => 1,
        };
        invalid_bytes(&rest[..announced.min(rest.len())], Encoding::UTF8)
    })
}

/// As [`utf8`]; a zero byte is no character of text.
///
/// # Errors
/// 22021.
pub fn utf8_text(bytes: &[u8]) -> Result<&str> {
    let text = utf8(bytes)?;
    // A look at all of them, and no branch: they are many at a time.
    if bytes.iter().fold(u8::MAX, |least, byte| least.min(*byte)) == 0 {
        return Err(invalid_bytes(&[0], Encoding::UTF8));
    }
    Ok(text)
}

/// Whether the binary form of a type that is no domain is text, and the bytes before it.
fn text_at(type_oid: base::Oid) -> Option<usize> {
    use crate::oid::{BPCHAR, JSON, JSONB, JSONPATH, NAME, TEXT, UNKNOWN, VARCHAR};
    match type_oid {
        TEXT | VARCHAR | BPCHAR | NAME | JSON | UNKNOWN => Some(0),
        JSONB | JSONPATH => Some(1),
        // A label.
        made if crate::user::is_enum(made) => Some(0),
        _ => None,
    }
}

/// Converts the texts in a value's binary form: a text's own, those of an array's elements. `None` if there are none.
///
/// # Errors
/// What `convert` answers.
pub fn recode_binary(
    type_oid: base::Oid,
    bytes: &[u8],
    convert: &dyn Fn(&[u8]) -> Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let type_oid = crate::user::plain_type(type_oid, -1).0;
    if let Some(at) = text_at(type_oid) {
        let Some((head, text)) = bytes.split_at_checked(at) else { return Ok(None) };
        return Ok(Some([head, &convert(text)?].concat()));
    }
    match crate::element_of(type_oid) {
        Some(element) if text_at(element).is_some() => Ok(recode_array(element, bytes, convert)?),
        _ => Ok(None),
    }
}

/// What is not an array is left to its reader to refuse.
fn recode_array(
    element: base::Oid,
    bytes: &[u8],
    convert: &dyn Fn(&[u8]) -> Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>> {
    let int = |at: usize| Some(i32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let Some(dimensions) = int(0).filter(|n| (0..=6).contains(n)) else { return Ok(None) };
    let mut at = 12 + 8 * dimensions as usize;
    let Some(head) = bytes.get(..at) else { return Ok(None) };
    let mut out = head.to_vec();
    while let Some(length) = int(at) {
        at += 4;
        let Ok(length) = usize::try_from(length) else {
            out.extend_from_slice(&length.to_be_bytes());
            continue;
        };
        let Some(value) = bytes.get(at..at.saturating_add(length)) else { return Ok(None) };
        let value = recode_binary(element, value, convert)?.unwrap_or_else(|| value.to_vec());
        out.extend_from_slice(&(value.len() as u32).to_be_bytes());
        out.extend_from_slice(&value);
        at += length;
    }
    Ok((at == bytes.len()).then_some(out))
}

#[cfg(test)]
mod tests;
