//! Arrays: `{1,NULL,"a b"}`, their binary form, and the two vectors of the catalog.

use std::sync::Arc;

use base::{Error, Oid, Result, SqlState};

use crate::{Array, Datum, InputContext, OutputSettings, io, oid};

/// PostgreSQL's limit of dimensions.
const DIMENSIONS_MAX: usize = 6;

fn malformed(text: &str, detail: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\"")).detail(detail)
}

/// Parses an array literal.
pub(crate) fn parse(ty: Oid, typmod: i32, text: &str, cx: &InputContext<'_>) -> Result<Datum> {
    let element = oid::element_of(ty).ok_or_else(|| Error::internal("not an array type"))?;
    let body = text.trim();
    let (bounds, body) = match body.starts_with('[') {
        true => {
            let (dims, rest) = body.split_once('=').ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
            (Some(parse_bounds(dims, text)?), rest.trim())
        }
        false => (None, body),
    };
    if !body.starts_with('{') {
        return Err(malformed(text, "Array value must start with \"{\" or dimension information."));
    }
    let mut parser = Parser { text, bytes: body.as_bytes(), at: 0, lengths: Vec::new(), values: Vec::new() };
    parser.list(0, &mut |word| match word {
        None => Ok(Datum::Null),
        Some(word) => crate::apply_typmod(io::parse_text(element, typmod, word, cx)?, element, typmod, false),
    })?;
    parser.blanks();
    if parser.at != parser.bytes.len() {
        return Err(malformed(text, "Junk after closing right brace."));
    }
    let mut dims: Vec<(i32, i32)> = parser.lengths.iter().map(|n| (n.unwrap_or(0), 1)).collect();
    if parser.values.is_empty() {
        dims.clear();
    }
    if let Some(bounds) = bounds {
        if bounds.iter().map(|b| b.0).ne(dims.iter().map(|d| d.0)) {
            return Err(malformed(text, "Specified array dimensions do not match array contents."));
        }
        dims = bounds;
    }
    Ok(Datum::Array(Arc::new(Array { element, dims, values: parser.values })))
}

fn parse_bounds(dims: &str, text: &str) -> Result<Vec<(i32, i32)>> {
    let bad = || malformed(text, "Missing array dimension value.");
    let mut bounds = Vec::new();
    for part in dims.trim().split('[').skip(1) {
        let inner = part.trim().strip_suffix(']').ok_or_else(bad)?;
        let (lower, upper) = match inner.split_once(':') {
            Some((l, u)) => (l.trim().parse::<i32>().map_err(|_| bad())?, u.trim().parse::<i32>().map_err(|_| bad())?),
            None => (1, inner.trim().parse::<i32>().map_err(|_| bad())?),
        };
        let len = upper as i64 - lower as i64 + 1;
        if len < 0 || len > i32::MAX as i64 {
            return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound"));
        }
        bounds.push((len as i32, lower));
    }
    Ok(bounds)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Length of each dimension, once a list of it was read.
    lengths: Vec<Option<i32>>,
    values: Vec<Datum>,
}

impl Parser<'_> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn error(&self, detail: &str) -> Error {
        malformed(self.text, detail)
    }

    /// Reads `{…}` at nesting depth `depth`.
    fn list(&mut self, depth: usize, make: &mut dyn FnMut(Option<&str>) -> Result<Datum>) -> Result<()> {
        if depth >= DIMENSIONS_MAX {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("number of array dimensions ({}) exceeds the maximum allowed ({DIMENSIONS_MAX})", depth + 1),
            ));
        }
        self.at += 1;
        if self.lengths.len() == depth {
            self.lengths.push(None);
        }
        let mut count = 0i32;
        loop {
            self.blanks();
            match self.bytes.get(self.at) {
                None => return Err(self.error("Unexpected end of input.")),
                Some(b'}') if count == 0 => {
                    self.at += 1;
                    break;
                }
                Some(b'{') => self.list(depth + 1, make)?,
                Some(_) => {
                    if self.lengths.len() > depth + 1 {
                        return Err(self.error("Unexpected array element."));
                    }
                    self.element(make)?;
                }
            }
            count += 1;
            self.blanks();
            match self.bytes.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                None => return Err(self.error("Unexpected end of input.")),
                Some(_) => return Err(self.error("Unexpected array element.")),
            }
        }
        match self.lengths[depth] {
            None => self.lengths[depth] = Some(count),
            Some(known) if known != count => {
                return Err(self.error("Multidimensional arrays must have sub-arrays with matching dimensions."));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn element(&mut self, make: &mut dyn FnMut(Option<&str>) -> Result<Datum>) -> Result<()> {
        let mut word: Vec<u8> = Vec::new();
        let quoted = self.bytes[self.at] == b'"';
        let mut escaped = false;
        if quoted {
            self.at += 1;
            loop {
                match self.bytes.get(self.at) {
                    None => return Err(self.error("Unexpected end of input.")),
                    Some(b'"') => break,
                    Some(b'\\') => {
                        self.at += 1;
                        word.push(*self.bytes.get(self.at).ok_or_else(|| self.error("Unexpected end of input."))?);
                    }
                    Some(&b) => word.push(b),
                }
                self.at += 1;
            }
            self.at += 1;
        } else {
            while let Some(&b) = self.bytes.get(self.at) {
                match b {
                    b',' | b'}' | b'{' | b'"' => break,
                    b'\\' => {
                        escaped = true;
                        self.at += 1;
                        word.push(*self.bytes.get(self.at).ok_or_else(|| self.error("Unexpected end of input."))?);
                    }
                    b => word.push(b),
                }
                self.at += 1;
            }
            while word.last().is_some_and(|b| b.is_ascii_whitespace()) {
                word.pop();
            }
            if word.is_empty() {
                let found = self.bytes.get(self.at).map(|b| (*b as char).to_string()).unwrap_or_default();
                return Err(self.error(&format!("Unexpected \"{found}\" character.")));
            }
        }
        let null = !quoted && !escaped && word.eq_ignore_ascii_case(b"null");
        // Taken from UTF-8 at ASCII places, so it is UTF-8.
        let word = String::from_utf8_lossy(&word);
        let value = make(if null { None } else { Some(&word) })?;
        self.values.push(value);
        Ok(())
    }
}

fn needs_quotes(text: &[u8]) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|b| b.is_ascii_whitespace() || b"{},\"\\\x0b".contains(b))
}

/// Appends the text form.
pub(crate) fn write(array: &Array, ty: Oid, settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    if [oid::INT2VECTOR, oid::OIDVECTOR].contains(&ty) {
        for (i, value) in array.values.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            io::write_text(value.as_ref(), array.element, settings, out)?;
        }
        return Ok(());
    }
    if array.values.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    if array.dims.iter().any(|d| d.1 != 1) {
        for (len, lower) in &array.dims {
            out.extend_from_slice(format!("[{lower}:{}]", lower + len - 1).as_bytes());
        }
        out.push(b'=');
    }
    let mut values = array.values.iter();
    let mut scratch = Vec::new();
    write_level(&array.dims, &mut values, array.element, settings, &mut scratch, out)
}

fn write_level(
    dims: &[(i32, i32)],
    values: &mut std::slice::Iter<'_, Datum>,
    element: Oid,
    settings: &OutputSettings,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    for i in 0..dims[0].0 {
        if i > 0 {
            out.push(b',');
        }
        if dims.len() > 1 {
            write_level(&dims[1..], values, element, settings, scratch, out)?;
            continue;
        }
        match values.next() {
            None | Some(Datum::Null) => out.extend_from_slice(b"NULL"),
            Some(value) => {
                scratch.clear();
                io::write_text(value.as_ref(), element, settings, scratch)?;
                if needs_quotes(scratch) {
                    out.push(b'"');
                    for &b in scratch.iter() {
                        if b == b'"' || b == b'\\' {
                            out.push(b'\\');
                        }
                        out.push(b);
                    }
                    out.push(b'"');
                } else {
                    out.extend_from_slice(scratch);
                }
            }
        }
    }
    out.push(b'}');
    Ok(())
}

/// Appends a row value: `(1,,"a b")`. Fields are shown by their own variant, as a record does not carry their types.
pub(crate) fn write_record(values: &[Datum], settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'(');
    let mut scratch = Vec::new();
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        scratch.clear();
        let ty = match value {
            Datum::Array(array) => oid::array_of(array.element).unwrap_or(oid::TEXT_ARRAY),
            _ => oid::TEXT,
        };
        io::write_text(value.as_ref(), ty, settings, &mut scratch)?;
        let quote = scratch.is_empty() || scratch.iter().any(|b| b.is_ascii_whitespace() || b"(),\"\\".contains(b));
        if quote {
            out.push(b'"');
        }
        for &b in &scratch {
            if b == b'"' || b == b'\\' {
                out.push(b);
            }
            out.push(b);
        }
        if quote {
            out.push(b'"');
        }
    }
    out.push(b')');
    Ok(())
}

/// Parses `int2vector` or `oidvector`: numbers with blanks between, counted from 0.
pub(crate) fn parse_vector(ty: Oid, text: &str, cx: &InputContext<'_>) -> Result<Datum> {
    let element = oid::element_of(ty).ok_or_else(|| Error::internal("not a vector type"))?;
    let mut values = Vec::new();
    for word in text.split_ascii_whitespace() {
        values.push(io::parse_text(element, -1, word, cx)?);
    }
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 0)] };
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}

/// Reads the binary form: dimensions, NULL flag, element type, (length, lower bound)…, (length, bytes)….
pub(crate) fn read_binary(ty: Oid, typmod: i32, bytes: &[u8]) -> Result<Datum> {
    let mut input = Words(bytes);
    let dimensions = input.word()?;
    if !(0..=DIMENSIONS_MAX as i32).contains(&dimensions) {
        return Err(bad_binary("invalid number of dimensions"));
    }
    if !(0..=1).contains(&input.word()?) {
        return Err(bad_binary("invalid array flags"));
    }
    let element = Oid(input.word()? as u32);
    let expected = oid::element_of(ty).unwrap_or(element);
    if element != expected {
        let name = |ty| oid::format_type(ty, -1);
        return Err(Error::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {element} ({}) instead of expected {expected} ({})",
                name(element),
                name(expected)
            ),
        ));
    }
    let mut dims = Vec::new();
    let mut total = if dimensions == 0 { 0usize } else { 1 };
    for _ in 0..dimensions {
        let (len, lower) = (input.word()?, input.word()?);
        let count = usize::try_from(len).map_err(|_| bad_binary("invalid array length"))?;
        total = total.checked_mul(count).ok_or_else(|| bad_binary("array size exceeds the maximum allowed"))?;
        dims.push((len, lower));
    }
    // Every element takes four bytes at least, so a length that lies is caught before anything is allocated.
    if total > bytes.len() / 4 {
        return Err(bad_binary("insufficient data left in message"));
    }
    let mut values = Vec::with_capacity(total);
    for _ in 0..total {
        values.push(match usize::try_from(input.word()?) {
            Err(_) => Datum::Null,
            Ok(len) => io::read_binary(element, typmod, input.bytes(len)?)?,
        });
    }
    if values.is_empty() {
        dims.clear();
    }
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}

fn bad_binary(what: &str) -> Error {
    Error::new(SqlState::INVALID_BINARY_REPRESENTATION, what)
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let split = self.0.split_at_checked(len);
        let (head, tail) = split.ok_or_else(|| bad_binary("insufficient data left in message"))?;
        self.0 = tail;
        Ok(head)
    }

    fn word(&mut self) -> Result<i32> {
        let b = self.bytes(4)?;
        Ok(i32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
}

/// Appends the binary form.
pub(crate) fn write_binary(array: &Array, _ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    let nulls = array.values.iter().any(Datum::is_null);
    for word in [array.dims.len() as i32, nulls as i32, array.element.0 as i32] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    for (len, lower) in &array.dims {
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&lower.to_be_bytes());
    }
    for value in &array.values {
        if value.is_null() {
            out.extend_from_slice(&(-1i32).to_be_bytes());
            continue;
        }
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        io::write_binary(value.as_ref(), array.element, out)?;
        let len = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    }
    Ok(())
}
