//! From bytes to fields: lines, CSV rows, escapes.

use base::{Error, Result, SqlState, work};
use memchr::{memchr2, memchr2_iter};
use types::encoding::utf8_text as utf8;
use types::room;

use super::format::Format;
use super::from::Loader;

/// The fields of a line. Most are parts of it as it stands.
#[derive(Default)]
pub(super) struct Fields {
    places: Vec<FieldText>,
    /// Texts of fields that had escapes or quotes, one behind the other.
    plain: String,
}

/// Where the text of a field lies.
#[derive(Clone, Copy)]
enum FieldText {
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

    /// Adds one: there may be as many as bytes.
    fn push(&mut self, place: FieldText) -> Result<()> {
        work::step(2)?;
        if self.places.len() == self.places.capacity() {
            room::ask(2 * self.places.len() * size_of::<FieldText>())?;
        }
        self.places.push(place);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    fn text<'a>(&'a self, line: &'a str, place: FieldText) -> Option<&'a str> {
        match place {
            FieldText::Null => None,
            FieldText::Line(from, to) => Some(&line[from..to]),
            FieldText::Plain(from, to) => Some(&self.plain[from..to]),
        }
    }

    /// The texts, `None` for NULL, of the fields of `line`.
    pub fn of<'a>(&'a self, line: &'a str) -> impl ExactSizeIterator<Item = Option<&'a str>> {
        self.places.iter().map(move |place| self.text(line, *place))
    }
}

/// How far the end of a line has been looked for in the data at hand, which goes on when more has come.
#[derive(Default)]
pub(super) struct Search {
    /// There is none before; one more than there are bytes if the last one escapes what follows.
    upto: usize,
    /// It is inside of quotes there.
    quoted: bool,
}

impl Search {
    /// Where the line ends in `data`, which begins with it.
    fn find(&mut self, format: &Format, data: &[u8]) -> Option<usize> {
        if format.csv { self.find_csv(format, data) } else { self.find_newline(data) }
    }

    fn find_newline(&mut self, data: &[u8]) -> Option<usize> {
        let found = find2(b'\n', b'\n', &data[self.upto..]);
        let end = found.map(|found| self.upto + found);
        self.upto = data.len();
        end
    }

    fn find_csv(&mut self, format: &Format, data: &[u8]) -> Option<usize> {
        let (quote, escape) = (format.quote, format.escape);
        loop {
            let rest = data.get(self.upto..)?;
            let sought = if self.quoted { escape } else { b'\n' };
            let Some(found) = find2(quote, sought, rest) else {
                self.upto = data.len();
                return None;
            };
            self.upto += found;
            match rest[found] == quote {
                true => self.quoted = !self.quoted,
                false if !self.quoted => return Some(self.upto),
                // What is escaped is passed over.
                false => self.upto += 1,
            }
            self.upto += 1;
        }
    }
}

/// As [`memchr2`], counted.
#[inline]
fn find2(one: u8, other: u8, data: &[u8]) -> Option<usize> {
    let mut start = 0;
    for part in data.chunks(work::STRETCH) {
        let found = memchr2(one, other, part);
        work::beat(1 + work::bytes(found.unwrap_or(part.len())));
        if let Some(found) = found {
            return Some(start + found);
        }
        start += part.len();
    }
    None
}

impl Loader {
    /// The next line without its end, and the bytes it takes with it; `None` if it is not complete.
    pub(super) fn next_line<'a>(&mut self, data: &'a [u8], last: bool) -> Result<Option<(&'a [u8], usize)>> {
        let end = self.search.find(&self.format, data);
        if end.is_none() && !last {
            return Ok(None);
        }
        let search = std::mem::take(&mut self.search);
        let (line, used) = end.map_or((data, data.len()), |end| (&data[..end], end + 1));
        if end.is_none() && search.quoted {
            let at = self.line + 1 + self.breaks(line.strip_suffix(b"\n").unwrap_or(line));
            let context = format!("COPY {}, line {at}: \"{}\"", self.table, String::from_utf8_lossy(line));
            let error = Error::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field");
            return Err(error.context(context));
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        // The texts of its fields, and the row of them.
        room::ask(3 * line.len())?;
        Ok(Some((line, used)))
    }

    /// Line breaks inside of a CSV row: errors count lines of the file.
    pub(super) fn breaks(&self, line: &[u8]) -> u64 {
        if !self.format.csv {
            return 0;
        }
        let count = |part: &[u8]| {
            work::beat(work::bytes(part.len()));
            memchr::memchr_iter(b'\n', part).count() as u64
        };
        line.chunks(work::STRETCH).map(count).sum()
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
        work::beat(work::bytes(bytes.len()));
        for found in memchr2_iter(delimiter, b'\\', bytes) {
            if bytes[found] != delimiter {
                return self.escaped_fields(line, start, fields);
            }
            fields.push(self.place_as_is(line, start, found))?;
            start = found + 1;
        }
        fields.push(self.place_as_is(line, start, bytes.len()))
    }

    /// Where a field is that has nothing to undo.
    #[inline]
    fn place_as_is(&self, line: &str, from: usize, to: usize) -> FieldText {
        if line[from..to] == self.format.null { FieldText::Null } else { FieldText::Line(from, to) }
    }

    /// Finds the fields from `start` on, which may have backslashes.
    fn escaped_fields(&self, line: &str, mut start: usize, fields: &mut Fields) -> Result<()> {
        let bytes = line.as_bytes();
        let delimiter = self.format.delimiter;
        loop {
            let (mut end, mut escaped) = (start, false);
            while let Some(found) = find2(delimiter, b'\\', &bytes[end..]) {
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
            let place = if raw == self.format.null {
                FieldText::Null
            } else if escaped {
                let from = fields.plain.len();
                work::append_text(&mut fields.plain, utf8(&unescape(raw.as_bytes()))?);
                FieldText::Plain(from, fields.plain.len())
            } else {
                FieldText::Line(start, end)
            };
            fields.push(place)?;
            if end == bytes.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }

    /// Finds the fields of a row in CSV.
    pub(super) fn csv_fields(&self, line: &str, fields: &mut Fields) -> Result<()> {
        fields.clear();
        let bytes = line.as_bytes();
        let (delimiter, quote) = (self.format.delimiter, self.format.quote);
        let mut start = 0;
        loop {
            let mut end = find2(delimiter, quote, &bytes[start..]).map_or(bytes.len(), |found| start + found);
            let was_quoted = bytes.get(end) == Some(&quote);
            let place = if was_quoted {
                let from = fields.plain.len();
                end = self.unquote(line, start, &mut fields.plain);
                FieldText::Plain(from, fields.plain.len())
            } else {
                FieldText::Line(start, end)
            };
            let column = self.columns.get(fields.len());
            let listed = |list: &[String]| column.is_some_and(|column| list.contains(&column.name));
            let is_null = fields.text(line, place) == Some(&*self.format.null)
                && if was_quoted { listed(&self.format.force_null) } else { !listed(&self.format.force_not_null) };
            fields.push(if is_null { FieldText::Null } else { place })?;
            if end == bytes.len() {
                return Ok(());
            }
            start = end + 1;
        }
    }

    /// Appends the field that begins at `at` without its quotes. Answers where it ends.
    fn unquote(&self, line: &str, mut at: usize, out: &mut String) -> usize {
        let bytes = line.as_bytes();
        let (delimiter, quote, escape) = (self.format.delimiter, self.format.quote, self.format.escape);
        loop {
            let end = find2(delimiter, quote, &bytes[at..]).map_or(bytes.len(), |found| at + found);
            work::append_text(out, &line[at..end]);
            if bytes.get(end) != Some(&quote) {
                return end;
            }
            at = end + 1;
            loop {
                let Some(found) = find2(quote, escape, &bytes[at..]) else {
                    work::append_text(out, &line[at..]);
                    return bytes.len();
                };
                let end = at + found;
                work::append_text(out, &line[at..end]);
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
    while let Some(found) = find2(b'\\', b'\\', &raw[i..]) {
        work::append(&mut out, &raw[i..i + found]);
        i += found + 1;
        if i == raw.len() {
            // Nothing follows it: it stands for itself.
            i -= 1;
            break;
        }
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
    work::append(&mut out, &raw[i..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_found_however_the_data_comes() {
        let text = Format::parse(&[], true, "").unwrap();
        let csv = Format { csv: true, delimiter: b',', ..text.clone() };
        let escaped = Format { escape: b'\\', ..csv.clone() };
        let mut seed = 1u32;
        for round in 0..3_000 {
            let data: Vec<u8> = std::iter::repeat_with(|| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                b"a\"\\,\n"[(seed >> 16) as usize % 5]
            })
            .take(12)
            .collect();
            for format in [&text, &csv, &escaped] {
                let at_once = Search::default().find(format, &data);
                let mut search = Search::default();
                let in_parts = (0..=data.len()).find_map(|there| search.find(format, &data[..there]));
                assert_eq!(at_once, in_parts, "round {round}: {:?} by {format:?}", String::from_utf8_lossy(&data));
            }
        }
    }
}
