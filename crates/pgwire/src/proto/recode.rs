//! Messages of a client that does not speak UTF-8: the texts in them are converted before anything reads them.

use base::Result;
use types::encoding::Conversion;

use super::{Body, Frame};

/// The body of a message in UTF-8. What does not add up stays as it is, for the decoder to complain about.
///
/// Binary parameters are left alone: which of them are text is known where their types are.
pub(crate) fn recode(frame: Frame<'_>, conversion: &Conversion) -> Result<Vec<u8>> {
    let mut recoder = Recoder { body: Body::new(frame.body), conversion, out: Vec::with_capacity(frame.body.len()) };
    let whole = match frame.tag {
        b'Q' | b'f' | b'E' => recoder.string()?,
        b'D' | b'C' => recoder.copy(1) && recoder.string()?,
        b'P' => recoder.string()? && recoder.string()?,
        b'B' => recoder.bind()?,
        _ => true,
    };
    if !whole {
        return Ok(frame.body.to_vec());
    }
    recoder.out.extend_from_slice(recoder.body.rest());
    Ok(recoder.out)
}

struct Recoder<'a> {
    body: Body<'a>,
    conversion: &'a Conversion,
    out: Vec<u8>,
}

impl Recoder<'_> {
    fn copy(&mut self, n: usize) -> bool {
        self.body.bytes(n).map(|bytes| self.out.extend_from_slice(bytes)).is_ok()
    }

    fn string(&mut self) -> Result<bool> {
        let Ok(string) = self.body.cstr() else { return Ok(false) };
        let text = self.conversion.decoded(string)?;
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
        Ok(true)
    }

    fn count(&mut self) -> Option<usize> {
        let count = self.body.u16().ok()?;
        self.out.extend_from_slice(&count.to_be_bytes());
        Some(usize::from(count))
    }

    fn bind(&mut self) -> Result<bool> {
        let named = self.body.rest().first().is_some_and(|b| *b != 0);
        if !self.string()? {
            return Ok(false);
        }
        let portal = String::from_utf8_lossy(&self.out[..self.out.len() - 1]).into_owned();
        if !self.string()? {
            return Ok(false);
        }
        let Some(given) = self.count() else { return Ok(false) };
        let at = self.out.len();
        if !self.copy(given * 2) {
            return Ok(false);
        }
        let formats = self.out[at..].to_vec();
        let is_binary = |i: usize| {
            let i = if given == 1 { 0 } else { i };
            formats.get(i * 2 + 1) == Some(&1)
        };
        let Some(values) = self.count() else { return Ok(false) };
        for i in 0..values {
            let Ok(length) = self.body.i32() else { return Ok(false) };
            let value = usize::try_from(length).ok().map(|length| self.body.bytes(length));
            match value {
                None => self.out.extend_from_slice(&length.to_be_bytes()),
                Some(Err(_)) => return Ok(false),
                Some(Ok(bytes)) if is_binary(i) => self.value(bytes),
                Some(Ok(bytes)) => {
                    let text = self.conversion.decoded(bytes).map_err(|error| {
                        let portal = if named { format!("portal \"{portal}\"") } else { "unnamed portal".to_owned() };
                        error.context(format!("{portal} parameter ${}", i + 1))
                    })?;
                    self.value(text.as_bytes());
                }
            }
        }
        Ok(true)
    }

    fn value(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.out.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::encoding::Encoding;

    fn latin1(tag: u8, body: &[u8]) -> Result<Vec<u8>> {
        recode(Frame { tag, body }, Encoding::from_name("LATIN1").and_then(Encoding::conversion).unwrap())
    }

    #[test]
    fn texts_are_converted_and_the_rest_stays() {
        assert_eq!(latin1(b'Q', b"\xe9\0").unwrap(), b"\xc3\xa9\0");
        assert_eq!(latin1(b'P', b"s\0\xe9\0\0\x01\0\0\0\xe9").unwrap(), b"s\0\xc3\xa9\0\0\x01\0\0\0\xe9");
        assert_eq!(latin1(b'C', b"S\xe9\0").unwrap(), b"S\xc3\xa9\0");
        let bind = b"\0\0\0\x02\0\0\0\x01\0\x03\0\0\0\x01\xe9\0\0\0\x01\xe9\xff\xff\xff\xff\0\0";
        let expected = b"\0\0\0\x02\0\0\0\x01\0\x03\0\0\0\x02\xc3\xa9\0\0\0\x01\xe9\xff\xff\xff\xff\0\0";
        assert_eq!(latin1(b'B', bind).unwrap(), expected);
    }

    #[test]
    fn what_does_not_add_up_stays() {
        for cut in 0..26 {
            let bind = &b"\0\0\0\x02\0\0\0\x01\0\x03\0\0\0\x01\xe9\0\0\0\x01\xe9\xff\xff\xff\xff\0\0"[..cut];
            let recoded = latin1(b'B', bind).unwrap();
            assert!(recoded == bind || cut >= 24, "{cut}");
        }
    }
}
