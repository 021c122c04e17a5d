//! From bytes to fields: lines, CSV rows, escapes.

use base::{Error, Result, SqlState};
use memchr::{memchr2, memchr2_iter};
use types::encoding::utf8_text as utf8;
use types::room;

use super::from::Loader;

/// The fields of a line. Most are parts of it as it stands.
#[derive(Default)]
pub(super) struct Fields {
    places: Vec<Place>,
    /// Texts of fields that had escapes or quotes, one behind the other.
    plain: String,
}

/// Where the text of a field lies.
#[derive(Clone, Copy)]
enum Place {
    Null,
    /// In the line: from, to.
    Line(usize, usize),
    /// In [`Fields::plain`]: from, to.
    Plain(usize, usize),
}

impl Fields {
    pub fn clear(&mut self) {
        self.places.clear();
        self.plain.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    fn text<'a>(&'a self, line: &'a str, place: Place) -> Option<&'a str> {
        match place {
            Place::Null => None,
            Place::Line(from, to) => Some(&line[from..to]),
            Place::Plain(from, to) => Some(&self.plain[from..to]),
        }
    }

    /// The texts, `None` for NULL, of the fields of `line`.
    pub fn of<'a>(&'a self, line: &'a str) -> impl ExactSizeIterator<Item = Option<&'a str>> {
        self.places.iter().map(move |place| self.text(line, *place))
    }
}

impl Loader {
    /// The next line without its end, and the bytes it takes with it; `None` if it is not complete.
    pub(super) fn next_line<'a>(&self, data: &'a [u8], last: bool) -> Result<Option<(&'a [u8], usize)>> {
        let line = self.find_line(data, last)?;
        if let Some((line, _)) = line {
            // The texts of its fields, and the row of them.
            room::ask(3 * line.len())?;
        }
        Ok(line)
    }

    fn find_line<'a>(&self, data: &'a [u8], last: bool) -> Result<Option<(&'a [u8], usize)>> {
        let end = match self.format.csv {
            false => memchr::memchr(b'\n', data),
            true => self.csv_line_end(data),
        };
        let (line, used) = match end {
            Some(end) => (&data[..end], end + 1),
            None if last => (data, data.len()),
            None => return Ok(None),
        };
        if end.is_none() && self.format.csv && self.in_quotes(line) {
            let at = self.line + 1 + self.breaks(line.strip_suffix(b"\n").unwrap_or(line));
            let context = format!("COPY {}, line {at}: \"{}\"", self.table, String::from_utf8_lossy(line));
            let error = Error::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
            return Err(error.context(context));
        }
        Ok(Some((line.strip_suffix(b"\r").unwrap_or(line), used)))
    }

    /// Line breaks inside of a CSV row: errors count lines of the file.
    pub(super) fn breaks(&self, line: &[u8]) -> u64 {
        if self.format.csv { memchr::memchr_iter(b'\n', line).count() as u64 } else { 0 }
    }

    pub(super) fn csv_line_end(&self, data: &[u8]) -> Option<usize> {
        let (quote, escape) = (self.format.quote, self.format.escape);
        let mut at = 0;
        loop {
            at += memchr2(quote, b'\n', &data[at..])?;
            if data[at] != quote {
                return Some(at);
            }
            // To the end of what is quoted.
            at += 1;
            loop {
                at += memchr2(quote, escape, data.get(at..)?)? + 1;
                if data[at - 1] == quote {
                    break;
                }
                at += 1;
            }
        }
    }

    pub(super) fn in_quotes(&self, line: &[u8]) -> bool {
        line.iter().filter(|&&b| b == self.format.quote).count() % 2 == 1
    }

    /// Finds the fields of a line of the text format.
    pub(super) fn text_fields(&self, line: &str, fields: &mut Fields) -> Result<()> {
        fields.clear();
        if self.columns.is_empty() && line.is_empty() {
            return Ok(());
        }
        let bytes = line.as_bytes();
        let delimiter = self.format.delimiter;
        let mut start = 0;
        // Fields as they stand, up to the first that has a backslash.
        for found in memchr2_iter(delimiter, b'\\', bytes) {
            if bytes[found] != delimiter {
                return self.escaped_fields(line, start, fields);
            }
            fields.places.push(self.place_as_is(line, start, found));
            start = found + 1;
        }
        fields.places.push(self.place_as_is(line, start, bytes.len()));
        Ok(())
    }

    /// Where a field is that has nothing to undo.
    #[inline]
    fn place_as_is(&self, line: &str, from: usize, to: usize) -> Place {
        if line[from..to] == self.format.null { Place::Null } else { Place::Line(from, to) }
    }

    /// Finds the fields from `start` on, which may have backslashes.
    fn escaped_fields(&self, line: &str, mut start: usize, fields: &mut Fields) -> Result<()> {
        let bytes = line.as_bytes();
        let delimiter = self.format.delimiter;
        loop {
            let (mut end, mut escaped) = (start, false);
            while let Some(found) = memchr2(delimiter, b'\\', &bytes[end..]) {
                end += found;
                if bytes[end] == delimiter {
                    break;
                }
                escaped = true;
                end = bytes.len().min(end + 2);
            }
            if bytes.get(end) != Some(&delimiter) {
                end = bytes.len();
            }
            let raw = &line[start..end];
            fields.places.push(if raw == self.format.null {
                Place::Null
            } else if escaped {
                let from = fields.plain.len();
                fields.plain.push_str(utf8(&unescape(raw.as_bytes()))?);
                Place::Plain(from, fields.plain.len())
            } else {
                Place::Line(start, end)
            });
            if end == bytes.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }

    /// Finds the fields of a row in CSV.
    pub(super) fn csv_fields(&self, line: &str, fields: &mut Fields) {
        fields.clear();
        let bytes = line.as_bytes();
        let (delimiter, quote) = (self.format.delimiter, self.format.quote);
        let mut start = 0;
        loop {
            let mut end = memchr2(delimiter, quote, &bytes[start..]).map_or(bytes.len(), |found| start + found);
            let was_quoted = bytes.get(end) == Some(&quote);
            let place = if was_quoted {
                let from = fields.plain.len();
                end = self.unquote(line, start, &mut fields.plain);
                Place::Plain(from, fields.plain.len())
            } else {
                Place::Line(start, end)
            };
            let column = self.columns.get(fields.len());
            let listed = |list: &[String]| column.is_some_and(|column| list.contains(&column.name));
            let is_null = fields.text(line, place) == Some(&*self.format.null)
                && if was_quoted { listed(&self.format.force_null) } else { !listed(&self.format.force_not_null) };
            fields.places.push(if is_null { Place::Null } else { place });
            if end == bytes.len() {
                return;
            }
            start = end + 1;
        }
    }

    /// Appends the field that begins at `at` without its quotes. Answers where it ends.
    fn unquote(&self, line: &str, mut at: usize, out: &mut String) -> usize {
        let bytes = line.as_bytes();
        let (delimiter, quote, escape) = (self.format.delimiter, self.format.quote, self.format.escape);
        loop {
            let end = memchr2(delimiter, quote, &bytes[at..]).map_or(bytes.len(), |found| at + found);
            out.push_str(&line[at..end]);
            if bytes.get(end) != Some(&quote) {
                return end;
            }
            at = end + 1;
            loop {
                let Some(found) = memchr2(quote, escape, &bytes[at..]) else {
                    out.push_str(&line[at..]);
                    return bytes.len();
                };
                let end = at + found;
                out.push_str(&line[at..end]);
                let next = bytes.get(end + 1).copied().filter(|next| [quote, escape].contains(next));
                at = end + 1;
                match next {
                    Some(next) if bytes[end] == escape => {
                        out.push(next as char);
                        at += 1;
                    }
                    _ if bytes[end] == quote => break,
                    _ => out.push(escape as char),
                }
            }
        }
    }
}

/// Backslash sequences of COPY's text format.
pub(super) fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut i = 0;
    while i < raw.len() {
        if raw[i] != b'\\' || i + 1 == raw.len() {
            out.push(raw[i]);
            i += 1;
            continue;
        }
        i += 1;
        let digits = |from: usize, most: usize, hex: bool| {
            let is = |b: &u8| if hex { b.is_ascii_hexdigit() } else { (b'0'..=b'7').contains(b) };
            raw[from..].iter().take(most).take_while(|b| is(b)).count()
        };
        match raw[i] {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let n = digits(i, 3, false);
                let value = raw[i..i + n].iter().fold(0u32, |v, b| v * 8 + (b - b'0') as u32);
                out.push(value as u8);
                i += n - 1;
            }
            b'x' if digits(i + 1, 2, true) > 0 => {
                let n = digits(i + 1, 2, true);
                let text = std::str::from_utf8(&raw[i + 1..i + 1 + n]).unwrap_or("0");
                out.push(u8::from_str_radix(text, 16).unwrap_or(0));
                i += n;
            }
            other => out.push(other),
        }
        i += 1;
    }
    out
}
