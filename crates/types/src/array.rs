//! Arrays: `{1,NULL,"a b"}`, their binary form, and the two vectors of the catalog.

use std::sync::Arc;

use base::work::{self, Count};
use base::{Error, Oid, Result, SqlState};

use crate::io::about;
use crate::room::{self, Room as _};
use crate::{Array, Datum, InputContext, OutputSettings, Record, io, oid, user};

/// Dimensions of an array, at most.
pub const DIMENSIONS_MAX: usize = 6;
/// Bytes of a record in text form.
const RECORD_MAX: usize = 256 << 20;
/// PostgreSQL's limit of elements.
const ELEMENTS_MAX: i32 = 134_217_727;

fn malformed(text: &str, detail: &str) -> Error {
    Error::new(SqlState::INVALID_TEXT_REPRESENTATION, about("malformed array literal", text)).detail(detail)
}

/// Parses an array literal. Like PostgreSQL, first finds the shape and then reads the elements, so that a literal that is
/// malformed at its end is reported before an element that is no value.
pub(crate) fn parse(ty: Oid, typmod: i32, text: &str, cx: &InputContext<'_>) -> Result<Datum> {
    let element = oid::element_of(ty).ok_or_else(|| Error::internal("not an array type"))?;
    // Elements of a domain are held as what is under it.
    let (element, typmod) = user::plain_type(element, typmod);
    let (bounds, body) = parse_bounds(text)?;
    if !body.starts_with('{') {
        let detail = match bounds.is_empty() {
            true => "Array value must start with \"{\" or dimension information.",
            false => "Array contents must start with \"{\".",
        };
        return Err(malformed(text, detail));
    }
    let lengths = Shape::of(body)?;
    if !bounds.is_empty() && bounds.iter().map(|b| b.0).ne(lengths.iter().copied()) {
        return Err(malformed(text, "Specified array dimensions do not match array contents."));
    }
    let total = lengths.iter().try_fold(1i32, |n, len| n.checked_mul(*len)).filter(|n| *n <= ELEMENTS_MAX);
    let total = total.ok_or_else(too_large)? as usize;
    if lengths.is_empty() || total == 0 {
        return Ok(Datum::Array(Arc::new(Array { element, dims: Vec::new(), values: Vec::new() })));
    }
    // Each element of a variable length has a block of its own.
    let elements = total.min(body.len());
    room::for_list(elements, size_of::<Datum>())?;
    room::ask(elements * (size_of::<Datum>() + 16) + body.len())?;
    let mut values = Vec::with_capacity(elements);
    read_elements(body, cx.settings.array_nulls, |word| {
        values.push(match word {
            None => Datum::Null,
            Some(word) => crate::apply_typmod(io::parse_text(element, typmod, word, cx)?, element, typmod, false)?,
        });
        Ok(())
    })?;
    if values.len() != total {
        return Err(Error::new(SqlState::INVALID_TEXT_REPRESENTATION, about("malformed array literal", text)));
    }
    let dims = if bounds.is_empty() { lengths.into_iter().map(|len| (len, 1)).collect() } else { bounds };
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}

fn too_large() -> Error {
    let message = format!("array size exceeds the maximum allowed ({ELEMENTS_MAX})");
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

/// 54000: more dimensions than an array can have.
pub fn too_many_dimensions(count: usize) -> Error {
    let message = format!("number of array dimensions ({count}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

fn is_blank(b: u8) -> bool {
    b.is_ascii_whitespace() || b == b'\x0b'
}

fn skip_blanks(text: &str) -> &str {
    let blanks = text.bytes().counted(1).take_while(|b| is_blank(*b)).count();
    &text[blanks..]
}

/// `atoi` of a run of digits and signs, saturating.
fn bound(text: &str) -> i32 {
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'-') => (-1i64, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit);
    let value = digits.fold(0i64, |n, b| (n * 10 + (b - b'0') as i64).min(1 << 40));
    (sign * value).clamp(i32::MIN as i64, i32::MAX as i64) as i32
}

/// Reads `[2:3][1]=` before an array's contents: (length, lower bound) of each dimension, and the contents.
fn parse_bounds(text: &str) -> Result<(Vec<(i32, i32)>, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || c == '-' || c == '+';
    let mut bounds = Vec::new();
    let mut rest = skip_blanks(text);
    while let Some(inner) = rest.strip_prefix('[') {
        if bounds.len() >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(bounds.len() + 1));
        }
        let (first, after) = inner.split_at(inner.find(|c| !is_number(c)).unwrap_or(inner.len()));
        if first.is_empty() {
            return Err(malformed(text, "\"[\" must introduce explicitly-specified array dimensions."));
        }
        let (lower, upper, after) = match after.strip_prefix(':') {
            None => (1, bound(first), after),
            Some(after) => {
                let (second, after) = after.split_at(after.find(|c| !is_number(c)).unwrap_or(after.len()));
                if second.is_empty() {
                    return Err(malformed(text, "Missing array dimension value."));
                }
                (bound(first), bound(second), after)
            }
        };
        rest = after.strip_prefix(']').ok_or_else(|| malformed(text, "Missing \"]\" after array dimensions."))?;
        rest = skip_blanks(rest);
        if upper == i32::MAX {
            let message = format!("array upper bound is too large: {upper}");
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if upper < lower {
            return Err(Error::new(SqlState::ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound"));
        }
        let length = i32::try_from(upper as i64 - lower as i64 + 1).map_err(|_| too_large())?;
        bounds.push((length, lower));
    }
    if !bounds.is_empty() {
        rest = rest.strip_prefix('=').ok_or_else(|| malformed(text, "Missing \"=\" after array dimensions."))?;
        rest = skip_blanks(rest);
    }
    Ok((bounds, rest))
}

/// What was read last, as far as it decides what may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    LevelStart,
    Element,
    QuotedStart,
    QuotedEnd,
    ElementDelimiter,
    LevelEnd,
    LevelDelimiter,
}

/// The shape of `{…}`, found without looking into the elements (`ArrayCount`).
struct Shape<'a> {
    text: &'a str,
    after: After,
    depth: usize,
    dimensions: usize,
    is_empty: bool,
    /// Elements or lists counted in each dimension: in the list being read, and in the last one that ended.
    counts: [i32; DIMENSIONS_MAX],
    last_counts: [i32; DIMENSIONS_MAX],
    lengths: [i32; DIMENSIONS_MAX],
}

impl Shape<'_> {
    /// Lengths of the dimensions; none for an array without elements.
    fn of(text: &str) -> Result<Vec<i32>> {
        let mut shape = Shape {
            text,
            after: After::Nothing,
            depth: 0,
            dimensions: 1,
            is_empty: true,
            counts: [1; DIMENSIONS_MAX],
            last_counts: [0; DIMENSIONS_MAX],
            lengths: [0; DIMENSIONS_MAX],
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            work::step(2)?;
            shape.is_empty &= !matches!(shape.after, After::Element | After::QuotedStart);
            let byte = *bytes.get(at).ok_or_else(|| shape.error("Unexpected end of input."))?;
            at += 1;
            let quoted = shape.after == After::QuotedStart;
            match byte {
                b'\\' => {
                    shape.escape()?;
                    if at == bytes.len() {
                        return Err(shape.error("Unexpected end of input."));
                    }
                    at += 1;
                }
                b'"' => shape.quote()?,
                _ if quoted => {}
                b'{' => shape.open()?,
                b'}' => {
                    shape.close()?;
                    if shape.depth == 0 {
                        break;
                    }
                }
                b',' => shape.delimiter()?,
                byte if is_blank(byte) => {}
                _ => shape.element()?,
            }
        }
        if !bytes[at..].iter().copied().counted(1).all(is_blank) {
            return Err(shape.error("Junk after closing right brace."));
        }
        Ok(if shape.is_empty { Vec::new() } else { shape.lengths[..shape.dimensions].to_vec() })
    }

    fn error(&self, detail: &str) -> Error {
        malformed(self.text, detail)
    }

    fn unexpected(&self, character: char) -> Error {
        self.error(&format!("Unexpected \"{character}\" character."))
    }

    fn escape(&mut self) -> Result<()> {
        match self.after {
            After::QuotedStart => {}
            After::LevelStart | After::Element | After::ElementDelimiter => self.after = After::Element,
            _ => return Err(self.unexpected('\\')),
        }
        Ok(())
    }

    fn quote(&mut self) -> Result<()> {
        self.after = match self.after {
            After::QuotedStart => After::QuotedEnd,
            After::LevelStart | After::ElementDelimiter => After::QuotedStart,
            _ => return Err(self.error("Unexpected array element.")),
        };
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        if !matches!(self.after, After::Nothing | After::LevelStart | After::LevelDelimiter) {
            return Err(self.unexpected('{'));
        }
        if self.depth >= DIMENSIONS_MAX {
            return Err(too_many_dimensions(self.depth + 1));
        }
        self.after = After::LevelStart;
        self.lengths[self.depth] = 0;
        self.depth += 1;
        self.dimensions = self.dimensions.max(self.depth);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let may_end = matches!(self.after, After::Element | After::QuotedEnd | After::LevelEnd);
        let is_empty = self.depth == 1 && self.after == After::LevelStart;
        if !may_end && !is_empty {
            return Err(self.unexpected('}'));
        }
        self.after = After::LevelEnd;
        self.depth -= 1;
        let depth = self.depth;
        if self.last_counts[depth] != 0 && self.counts[depth] != self.last_counts[depth] {
            return Err(self.error("Multidimensional arrays must have sub-arrays with matching dimensions."));
        }
        self.last_counts[depth] = self.counts[depth];
        self.counts[depth] = 1;
        match depth {
            0 => self.lengths[self.dimensions - 1] += 1,
            _ => self.lengths[depth - 1] += 1,
        }
        Ok(())
    }

    fn delimiter(&mut self) -> Result<()> {
        self.after = match self.after {
            After::Element | After::QuotedEnd => After::ElementDelimiter,
            After::LevelEnd => After::LevelDelimiter,
            _ => return Err(self.unexpected(',')),
        };
        self.lengths[self.dimensions - 1] += 1;
        self.counts[self.depth - 1] += 1;
        Ok(())
    }

    fn element(&mut self) -> Result<()> {
        match self.after {
            After::LevelStart | After::Element | After::ElementDelimiter => self.after = After::Element,
            _ => return Err(self.error("Unexpected array element.")),
        }
        Ok(())
    }
}

/// Hands each element of a well-formed array to `make`, in order; NULL as `None`, if the word means it.
fn read_elements(text: &str, nulls: bool, mut make: impl FnMut(Option<&str>) -> Result<()>) -> Result<()> {
    let mut word: Vec<u8> = Vec::new();
    // Where the word ends without its trailing blanks; whether there is an element at all, and one that is not plain.
    let (mut end, mut present, mut quoting, mut quoted) = (0, false, false, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        work::step(2)?;
        match byte {
            b'\\' => {
                word.extend(bytes.next());
                end = word.len();
                (present, quoting) = (true, true);
            }
            b'"' => {
                quoted = !quoted;
                end = word.len();
                (present, quoting) = (true, true);
            }
            byte if quoted => word.push(byte),
            b'{' => {}
            b'}' | b',' => {
                if present {
                    // Cut from UTF-8 at ASCII places, so it is UTF-8.
                    let value = String::from_utf8_lossy(&word[..end]);
                    let null = nulls && !quoting && value.eq_ignore_ascii_case("null");
                    make(if null { None } else { Some(&value) })?;
                }
                word.clear();
                (end, present, quoting) = (0, false, false);
            }
            byte if is_blank(byte) => {
                if present {
                    word.push(byte);
                }
            }
            byte => {
                word.push(byte);
                end = word.len();
                present = true;
            }
        }
    }
    Ok(())
}

/// Bytes that are written with another one before them.
fn escapes(text: &[u8]) -> usize {
    text.iter().filter(|&&b| b == b'"' || b == b'\\').count()
}

fn needs_quotes(text: &[u8]) -> bool {
    text.is_empty()
        || text.eq_ignore_ascii_case(b"null")
        || text.iter().any(|&b| is_blank(b) || b"{},\"\\".contains(&b))
}

/// Appends the text form.
pub(crate) fn write(array: &Array, ty: Oid, settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    if [oid::INT2VECTOR, oid::OIDVECTOR].contains(&ty) {
        for (i, value) in array.values.iter().enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            out.make_room(16)?;
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
    let flat = [(array.values.len() as i32, 1)];
    let dims = if array.dims.is_empty() { &flat[..] } else { &array.dims };
    write_level(dims, &mut values, array.element, settings, &mut scratch, out)
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
        work::step(16)?;
        match values.next() {
            None | Some(Datum::Null) => {
                out.make_room(5)?;
                out.extend_from_slice(b"NULL");
            }
            Some(value) => {
                scratch.clear();
                io::write_text(value.as_ref(), element, settings, scratch)?;
                out.make_room(scratch.len() + 3)?;
                if needs_quotes(scratch) {
                    out.make_room(scratch.len() + escapes(scratch) + 3)?;
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

/// Appends a row value: `(1,,"a b")`.
///
/// # Errors
/// 54000 if it gets too long.
pub(crate) fn write_record(record: &Record, settings: &OutputSettings, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.push(b'(');
    let mut scratch = Vec::new();
    for (i, (value, ty)) in record.typed().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        scratch.clear();
        io::write_text(value.as_ref(), ty, settings, &mut scratch)?;
        let quote = scratch.is_empty() || scratch.iter().any(|&b| is_blank(b) || b"(),\"\\".contains(&b));
        out.make_room(scratch.len() + escapes(&scratch) + 3)?;
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
        // Quotes double with every level, so that a short statement could ask for more than any memory.
        if out.len() - start > RECORD_MAX {
            return Err(Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "out of memory")
                .detail("The text form of a record cannot be longer than 256 MB."));
        }
    }
    out.push(b')');
    Ok(())
}

/// Appends the binary form of a row value: number of fields, then (type, length, bytes) of each.
pub(crate) fn write_record_binary(record: &Record, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&(record.len() as i32).to_be_bytes());
    for (value, ty) in record.typed() {
        out.extend_from_slice(&ty.0.to_be_bytes());
        write_field(value, ty, out)?;
    }
    Ok(())
}

/// Appends length and bytes of a value, or the length -1 of NULL.
fn write_field(value: &Datum, ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    io::write_binary(value.as_ref(), ty, out)?;
    let len = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
    Ok(())
}

/// Parses `int2vector` or `oidvector`: numbers with blanks between, counted from 0.
pub(crate) fn parse_vector(ty: Oid, text: &str, cx: &InputContext<'_>) -> Result<Datum> {
    let element = oid::element_of(ty).ok_or_else(|| Error::internal("not a vector type"))?;
    let mut values = Vec::new();
    for word in text.split_ascii_whitespace() {
        values.make_room(1)?;
        values.push(io::parse_text(element, -1, word, cx)?);
    }
    let dims = if values.is_empty() { Vec::new() } else { vec![(values.len() as i32, 0)] };
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}

/// Reads the binary form: dimensions, NULL flag, element type, (length, lower bound)…, (length, bytes)….
pub(crate) fn read_binary(ty: Oid, typmod: i32, input: &mut io::Input<'_>) -> Result<Datum> {
    let dimensions = input.word()?;
    if dimensions < 0 {
        return Err(bad_binary(format!("invalid number of dimensions: {dimensions}")));
    }
    if dimensions > DIMENSIONS_MAX as i32 {
        return Err(beyond_limits(format!(
            "number of array dimensions ({dimensions}) exceeds the maximum allowed ({DIMENSIONS_MAX})"
        )));
    }
    if !(0..=1).contains(&input.word()?) {
        return Err(bad_binary("invalid array flags".into()));
    }
    let element = Oid(input.word()? as u32);
    let expected = oid::element_of(ty).unwrap_or(element);
    // Other types' numbers are another server's perhaps, and say nothing.
    if element != expected && element.0 < FIRST_UNSTABLE && expected.0 < FIRST_UNSTABLE {
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
    let (element, typmod) = user::plain_type(expected, typmod);
    let mut dims = Vec::new();
    for _ in 0..dimensions {
        dims.push((input.word()?, input.word()?));
    }
    let total = item_count(&dims)?;
    let mut values = Vec::new();
    for number in 1..=total {
        values.make_room(1)?;
        let length = input.word()?;
        if length < -1 || length > input.0.len() as i32 {
            return Err(bad_binary("insufficient data left in message".into()));
        }
        if length == -1 {
            values.push(Datum::Null);
            continue;
        }
        let mut field = io::Input(input.bytes(length as usize)?);
        let value = io::take(element, typmod, &mut field)?;
        if !field.0.is_empty() {
            return Err(bad_binary(format!("improper binary format in array element {number}")));
        }
        values.push(match element == expected {
            true => value,
            false => crate::apply_typmod(value, element, typmod, false)?,
        });
    }
    if values.is_empty() {
        dims.clear();
    }
    if let oid::INT2VECTOR | oid::OIDVECTOR = ty
        && (!matches!(dims.as_slice(), [(_, 0)]) || values.iter().any(Datum::is_null))
    {
        let name = oid::format_type(ty, -1);
        return Err(bad_binary(format!("invalid {name} data")));
    }
    Ok(Datum::Array(Arc::new(Array { element, dims, values })))
}

/// Numbers of types from here on differ between servers.
const FIRST_UNSTABLE: u32 = 10_000;

/// Number of elements of all dimensions.
fn item_count(dims: &[(i32, i32)]) -> Result<usize> {
    const ITEMS_MAX: i64 = 134_217_727;
    let mut total = i64::from(!dims.is_empty());
    for &(length, _) in dims {
        total *= i64::from(length);
        if length < 0 || total > ITEMS_MAX {
            return Err(beyond_limits(format!("array size exceeds the maximum allowed ({ITEMS_MAX})")));
        }
    }
    for &(length, lower) in dims {
        if lower.checked_add(length).is_none() {
            return Err(beyond_limits(format!("array lower bound is too large: {lower}")));
        }
    }
    Ok(total as usize)
}

fn bad_binary(what: String) -> Error {
    Error::new(SqlState::INVALID_BINARY_REPRESENTATION, what)
}

fn beyond_limits(what: String) -> Error {
    Error::new(SqlState::PROGRAM_LIMIT_EXCEEDED, what)
}

/// Appends the binary form.
pub(crate) fn write_binary(array: &Array, ty: Oid, out: &mut Vec<u8>) -> Result<()> {
    let nulls = array.values.iter().any(Datum::is_null);
    // A value of a binary-compatible array type keeps its elements' type: the column's says what they are now.
    let element = crate::type_info(ty).map(|info| info.element).filter(|e| e.is_valid()).unwrap_or(array.element);
    // A vector of the catalog has its dimension even when it is empty.
    let empty_vector = array.dims.is_empty() && matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR);
    for word in [array.dims.len() as i32 + i32::from(empty_vector), nulls as i32, element.0 as i32] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    if empty_vector {
        out.extend_from_slice(&[0; 8]);
    }
    for (len, lower) in &array.dims {
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&lower.to_be_bytes());
    }
    for value in &array.values {
        out.make_room(64)?;
        write_field(value, array.element, out)?;
    }
    Ok(())
}
