//! From bytes to fields: lines, CSV rows, escapes.

use base::{Error, Result, SqlState};

use super::from::Loader;
use types::encoding::utf8_text as utf8;

impl Loader {
    /// The next line without its end, and the bytes it takes with it; `None` if it is not complete.
    pub(super) fn next_line<'a>(&self, data: &'a [u8], last: bool) -> Result<Option<(&'a [u8], usize)>> {
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
        let mut quoted = false;
        let mut i = 0;
        while i < data.len() {
            match data[i] {
                b if quoted && b == self.format.escape && self.format.escape != self.format.quote => i += 1,
                b if b == self.format.quote => quoted = !quoted,
                b'\n' if !quoted => return Some(i),
                _ => {}
            }
            i += 1;
        }
        None
    }

    pub(super) fn in_quotes(&self, line: &[u8]) -> bool {
        line.iter().filter(|&&b| b == self.format.quote).count() % 2 == 1
    }

    pub(super) fn text_fields(&self, line: &str) -> Result<Vec<Option<String>>> {
        let mut fields = Vec::with_capacity(self.tys.len());
        if self.tys.is_empty() && line.is_empty() {
            return Ok(fields);
        }
        let bytes = line.as_bytes();
        let mut start = 0;
        loop {
            let mut end = start;
            let mut escaped = false;
            while end < bytes.len() && bytes[end] != self.format.delimiter {
                if bytes[end] == b'\\' {
                    escaped = true;
                    end += 1;
                }
                end += 1;
            }
            let end = end.min(bytes.len());
            let raw = &line[start..end];
            fields.push(if raw == self.format.null {
                None
            } else if escaped {
                let plain = unescape(raw.as_bytes());
                Some(utf8(&plain)?.to_string())
            } else {
                Some(raw.to_string())
            });
            if end >= bytes.len() {
                return Ok(fields);
            }
            start = end + 1;
        }
    }

    pub(super) fn csv_fields(&self, line: &str) -> Result<Vec<Option<String>>> {
        let bytes = line.as_bytes();
        let mut fields = Vec::with_capacity(self.tys.len());
        let mut field: Vec<u8> = Vec::new();
        let (mut quoted, mut was_quoted) = (false, false);
        let mut i = 0;
        loop {
            let byte = bytes.get(i).copied();
            match byte {
                Some(b) if quoted => {
                    let next = bytes.get(i + 1).copied();
                    if b == self.format.escape && (next == Some(self.format.quote) || next == Some(self.format.escape))
                    {
                        field.push(next.expect("just seen"));
                        i += 1;
                    } else if b == self.format.quote {
                        quoted = false;
                    } else {
                        field.push(b);
                    }
                }
                Some(b) if b == self.format.quote => {
                    quoted = true;
                    was_quoted = true;
                }
                Some(b) if b != self.format.delimiter => field.push(b),
                _ => {
                    let text = utf8(&field)?.to_string();
                    let column = self.names.get(fields.len());
                    let listed = |list: &[String]| column.is_some_and(|name| list.contains(name));
                    let is_null = text == self.format.null
                        && if was_quoted {
                            listed(&self.format.force_null)
                        } else {
                            !listed(&self.format.force_not_null)
                        };
                    fields.push(if is_null { None } else { Some(text) });
                    field.clear();
                    was_quoted = false;
                    if byte.is_none() {
                        return Ok(fields);
                    }
                }
            }
            i += 1;
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
