//! What is in a `jsonb`: keys (`?`) and other documents (`@>`).

use base::Result;
use base::work::{self, Count};
use types::Datum;
use types::json::{Value, parse};

use super::super::EvalContext;
use super::super::entry::text_of;
use super::strings;

/// A key of an object, a string of an array, or the string itself.
fn has(document: &Value, key: &str) -> bool {
    let is_key = |v: &Value| matches!(v, Value::String(s) if s == key);
    match document {
        Value::Object(_) => document.field(key).is_some(),
        Value::Array(elements) => elements.iter().counted(4).any(is_key),
        scalar => is_key(scalar),
    }
}

pub(super) fn exists(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(has(&parse(text_of(args, 0)?)?, text_of(args, 1)?)))
}

/// The strings of the second argument; NULLs are no keys.
fn keys(args: &[Datum]) -> Result<Vec<&str>> {
    match args.get(1) {
        Some(Datum::Array(array)) => Ok(array
            .values
            .iter()
            .counted(4)
            .filter_map(|v| if let Datum::Text(s) = v { Some(&**s) } else { None })
            .collect()),
        _ => Ok(strings(&args[1..])?.unwrap_or_default()),
    }
}

pub(super) fn exists_any(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let document = parse(text_of(args, 0)?)?;
    Ok(Datum::Bool(keys(args)?.iter().any(|k| has(&document, k))))
}

pub(super) fn exists_all(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let document = parse(text_of(args, 0)?)?;
    Ok(Datum::Bool(keys(args)?.iter().all(|k| has(&document, k))))
}

/// A part of a document in its text, which is in the one form that `jsonb` has: keys in order, nothing but what is needed between.
#[derive(Clone, Copy)]
struct Part<'t>(&'t str);

impl<'t> Part<'t> {
    fn is_scalar(self) -> bool {
        !self.0.starts_with(['{', '['])
    }

    /// Bytes of the value at the start of a text.
    fn length(text: &str) -> usize {
        let bytes = text.as_bytes();
        let (mut depth, mut at) = (0, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => {
                    at += 1;
                    while at < bytes.len() && bytes[at] != b'"' {
                        at += 1 + usize::from(bytes[at] == b'\\');
                    }
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => break,
                b'}' | b']' => depth -= 1,
                b',' | b':' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        work::beat(work::bytes(at));
        at.min(bytes.len())
    }

    /// The elements of an array, or the keys and values of an object in turns.
    fn parts(self) -> impl Iterator<Item = Part<'t>> {
        let mut rest = self.0.get(1..self.0.len().saturating_sub(1)).unwrap_or_default();
        std::iter::from_fn(move || {
            rest = rest.trim_start_matches([',', ':', ' ']);
            if rest.is_empty() {
                return None;
            }
            let (part, behind) = rest.split_at(Part::length(rest));
            rest = behind;
            (!part.is_empty()).then_some(Part(part))
        })
    }

    /// The fields of an object.
    fn fields(self) -> impl Iterator<Item = (Part<'t>, Part<'t>)> {
        let mut parts = self.parts();
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Whether two scalars are one: numbers by their values, others by their texts.
    fn is(self, other: Part<'_>) -> Result<bool> {
        let is_number = |part: Part<'_>| part.0.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        Ok(self.0 == other.0 || (is_number(self) && is_number(other) && parse(self.0)? == parse(other.0)?))
    }

    /// Whether this has the text of each field of an object whose value is a scalar of one text only: without one of them it cannot hold
    /// the object. Looking for a text takes a fraction of finding the parts.
    fn has_texts_of(self, other: Part<'_>) -> bool {
        if !other.0.starts_with('{') {
            return true;
        }
        let mut fields = other.fields();
        fields.all(|(key, value)| {
            let is_number = value.0.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if !value.is_scalar() || is_number {
                return true;
            }
            // Both lie in the object, the key before the value.
            let from = key.0.as_ptr().addr() - other.0.as_ptr().addr();
            let to = value.0.as_ptr().addr() - other.0.as_ptr().addr() + value.0.len();
            work::beat(work::bytes(self.0.len()));
            memchr::memmem::find(self.0.as_bytes(), &other.0.as_bytes()[from..to]).is_some()
        })
    }

    /// Whether this holds another part, both below the top.
    fn holds(self, other: Part<'_>) -> Result<bool> {
        work::step(4)?;
        if other.is_scalar() || self.is_scalar() {
            return if other.is_scalar() && self.is_scalar() { self.is(other) } else { Ok(false) };
        }
        if self.0.as_bytes().first() != other.0.as_bytes().first() {
            return Ok(false);
        }
        if self.0.starts_with('{') {
            for (key, value) in other.fields() {
                let mut found = None;
                for (own_key, own) in self.fields() {
                    work::step(4)?;
                    if own_key.0 == key.0 {
                        found = Some(own);
                        break;
                    }
                }
                match found {
                    Some(own) if own.holds(value)? => {}
                    _ => return Ok(false),
                }
            }
            return Ok(true);
        }
        for element in other.parts() {
            let mut found = false;
            for own in self.parts() {
                found = own.holds(element)?;
                if found {
                    break;
                }
            }
            if !found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a document holds another one. At the top an array also holds a scalar that is one of its elements.
pub(super) fn holds_at_top(a: &str, b: &str) -> Result<bool> {
    let (a, b) = (Part(a.trim()), Part(b.trim()));
    if !a.has_texts_of(b) {
        return Ok(false);
    }
    if a.0.starts_with('[') && b.is_scalar() {
        for element in a.parts() {
            if element.is_scalar() && element.is(b)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    a.holds(b)
}

pub(super) fn contains(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    holds_at_top(text_of(args, 0)?, text_of(args, 1)?).map(Datum::Bool)
}

pub(super) fn contained(_: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    holds_at_top(text_of(args, 1)?, text_of(args, 0)?).map(Datum::Bool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_in_the_text() {
        let parts = |text: &'static str| Part(text).parts().map(|part| part.0).collect::<Vec<_>>();
        assert_eq!(parts(r#"[1, "a,]\"", {"b": [2, 3]}, null]"#), ["1", r#""a,]\"""#, r#"{"b": [2, 3]}"#, "null"]);
        assert_eq!(parts(r#"{"a": 1, "b": {"c": []}}"#), [r#""a""#, "1", r#""b""#, r#"{"c": []}"#]);
        assert_eq!(parts("[]"), [""; 0]);
        assert_eq!(parts("{}"), [""; 0]);
    }
}
