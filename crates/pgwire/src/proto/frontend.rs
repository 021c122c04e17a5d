//! Messages of the client after start-up: framing first ([`frame`]), then bodies ([`parse`]), borrowed from the buffer.

use base::{Error, Oid, Result, SqlState};
use types::encoding::Conversion;

use super::{Body, fatal_violation, violation};

/// Longest body of a message that carries only names (PostgreSQL's `PQ_SMALL_MESSAGE_LIMIT`).
const SMALL: usize = 10_000;
/// Longest body of any other message (PostgreSQL's `PQ_LARGE_MESSAGE_LIMIT`).
const LARGE: usize = 0x3fff_ffff;

/// One complete message, its body not looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The type byte.
    pub tag: u8,
    /// What follows the length.
    pub body: &'a [u8],
}

impl Frame<'_> {
    /// Bytes the message takes in the stream.
    pub fn total(&self) -> usize {
        self.body.len() + 5
    }
}

/// The first message of `buf`, or `Err(n)` in the `Ok` position when at least `n` bytes in all are needed to tell.
///
/// Errors are FATAL: the type or the length makes no sense, so the next message cannot be found.
pub fn frame(buf: &[u8]) -> Result<std::result::Result<Frame<'_>, usize>> {
    let Some(&tag) = buf.first() else { return Ok(Err(5)) };
    let limit = match tag {
        b'Q' | b'P' | b'B' | b'F' | b'd' => LARGE,
        b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f' => SMALL,
        _ => return Err(fatal_violation(format!("invalid frontend message type {tag}"))),
    };
    frame_within(buf, limit)
}

/// Like [`frame`] for a tag whose meaning the caller checks, with a limit of its own (passwords).
pub(crate) fn frame_within(buf: &[u8], limit: usize) -> Result<std::result::Result<Frame<'_>, usize>> {
    let Some(header) = buf.first_chunk::<5>() else { return Ok(Err(5)) };
    let length = i32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    let length = usize::try_from(length).ok().filter(|n| (4..=limit + 4).contains(n));
    let length = length.ok_or_else(|| fatal_violation("invalid message length"))?;
    Ok(buf.get(5..length + 1).map(|body| Frame { tag: header[0], body }).ok_or(length + 1))
}

/// A decoded message.
#[derive(Clone, Copy, Debug)]
pub enum Frontend<'a> {
    /// Simple query.
    Query(&'a str),
    /// Prepare a statement.
    Parse(Parse<'a>),
    /// Make a portal.
    Bind(Bind<'a>),
    /// Describe a statement or portal.
    Describe(Target<'a>),
    /// Run a portal; at most so many rows, 0 being all.
    Execute(&'a str, u32),
    /// Forget a statement or portal.
    Close(Target<'a>),
    /// Send what there is.
    Flush,
    /// End of an extended-protocol batch.
    Sync,
    /// Function call by OID.
    FunctionCall,
    /// Data of COPY FROM STDIN.
    CopyData(&'a [u8]),
    /// End of COPY FROM STDIN.
    CopyDone,
    /// The client gives COPY FROM STDIN up, for this reason.
    CopyFail(&'a str),
    /// The client goes.
    Terminate,
}

/// What Describe and Close name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A prepared statement.
    Statement(&'a str),
    /// A portal.
    Portal(&'a str),
}

/// Body of Parse.
#[derive(Clone, Copy, Debug)]
pub struct Parse<'a> {
    /// Statement name; empty for the unnamed one.
    pub name: &'a str,
    /// The statement.
    pub sql: &'a str,
    /// Types of the first parameters; [`Oid::INVALID`] means "work it out".
    pub types: ParamTypes<'a>,
}

/// Body of Bind.
#[derive(Clone, Copy, Debug)]
pub struct Bind<'a> {
    /// Portal name; empty for the unnamed one.
    pub portal: &'a str,
    /// Statement name.
    pub statement: &'a str,
    /// Formats of the parameters.
    pub formats: Formats<'a>,
    /// The parameters.
    pub values: Values<'a>,
    /// Formats wanted for the result columns.
    pub results: Formats<'a>,
}

/// Parameter types of a Parse, in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParamTypes<'a>(&'a [u8]);

impl<'a> ParamTypes<'a> {
    /// How many were given.
    pub fn len(&self) -> usize {
        self.0.len() / 4
    }

    /// The types in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Oid> + 'a {
        self.0.chunks_exact(4).map(|b| Oid(u32::from_be_bytes([b[0], b[1], b[2], b[3]])))
    }
}

/// How a value is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As PostgreSQL's text output.
    #[default]
    Text,
    /// As PostgreSQL's `typsend`.
    Binary,
}

/// A list of format codes, in place: none means text for all, one stands for all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Formats<'a>(&'a [u8]);

impl Formats<'_> {
    /// How many codes were given.
    pub fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// The format of value `index`. Text if it is out of range.
    pub fn get(&self, index: usize) -> Format {
        let index = if self.0.len() == 2 { 0 } else { index };
        match self.0.get(index * 2 + 1) {
            Some(1) => Format::Binary,
            _ => Format::Text,
        }
    }

    fn check(self) -> Result<Self> {
        for code in self.0.chunks_exact(2) {
            let code = i16::from_be_bytes([code[0], code[1]]);
            if code != 0 && code != 1 {
                let message = format!("unsupported format code: {code}");
                return Err(Error::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        Ok(self)
    }
}

/// Parameter values of a Bind, in place. Made only by [`parse`], which has checked their lengths.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Their bytes, with four for the length of each.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The values in order; `None` is NULL.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + 'a {
        let mut body = Body::new(self.bytes);
        (0..self.count).map(move |_| value(&mut body).ok().flatten())
    }
}

fn value<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>> {
    match body.i32()? {
        -1 => Ok(None),
        n => body.bytes(usize::try_from(n).unwrap_or(usize::MAX)).map(Some),
    }
}

/// Decodes a frame. Errors concern this message only.
pub fn parse<'a>(frame: Frame<'a>) -> Result<Frontend<'a>> {
    let mut body = Body::new(frame.body);
    let message = match frame.tag {
        b'Q' => Frontend::Query(body.text()?),
        b'P' => parse_parse(&mut body).map(Frontend::Parse)?,
        b'B' => parse_bind(&mut body).map(Frontend::Bind)?,
        b'D' => Frontend::Describe(target(&mut body, "DESCRIBE")?),
        b'C' => Frontend::Close(target(&mut body, "CLOSE")?),
        b'E' => Frontend::Execute(body.text()?, u32::try_from(body.i32()?).unwrap_or(0)),
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(body.text()?),
        // These two are not read to their end: data is opaque, and calls by OID are refused.
        b'd' => return Ok(Frontend::CopyData(frame.body)),
        b'F' => return Ok(Frontend::FunctionCall),
        b'X' => return Ok(Frontend::Terminate),
        tag => return Err(fatal_violation(format!("invalid frontend message type {tag}"))),
    };
    body.end()?;
    Ok(message)
}

fn target<'a>(body: &mut Body<'a>, message: &str) -> Result<Target<'a>> {
    let kind = body.u8()?;
    let name = body.text()?;
    match kind {
        b'S' => Ok(Target::Statement(name)),
        b'P' => Ok(Target::Portal(name)),
        other => Err(violation(format!("invalid {message} message subtype {other}"))),
    }
}

fn parse_parse<'a>(body: &mut Body<'a>) -> Result<Parse<'a>> {
    let (name, sql) = (body.text()?, body.text()?);
    let count = usize::from(body.u16()?);
    Ok(Parse { name, sql, types: ParamTypes(body.bytes(count * 4)?) })
}

fn parse_bind<'a>(body: &mut Body<'a>) -> Result<Bind<'a>> {
    let (portal, statement) = (body.text()?, body.text()?);
    let formats = formats(body)?;
    let count = usize::from(body.u16()?);
    if formats.len() > 1 && formats.len() != count {
        let given = formats.len();
        return Err(violation(format!("bind message has {given} parameter formats but {count} parameters")));
    }
    let start = body.rest();
    for _ in 0..count {
        value(body)?;
    }
    let values = Values { count, bytes: &start[..start.len() - body.rest().len()] };
    let results = self::formats(body)?;
    body.end()?;
    Ok(Bind { portal, statement, formats: formats.check()?, values, results: results.check()? })
}

fn formats<'a>(body: &mut Body<'a>) -> Result<Formats<'a>> {
    let count = usize::from(body.u16()?);
    Ok(Formats(body.bytes(count * 2)?))
}

/// A long message with the texts of its own: what another thread has decoded.
#[derive(Debug)]
pub enum Long {
    /// Simple query.
    Query(String),
    /// Prepare a statement: its name, its text, and the types of its parameters as they came.
    Parse(String, String, Vec<u8>),
}

impl Long {
    /// Whether messages of this type are among them.
    pub fn holds(tag: u8) -> bool {
        matches!(tag, b'Q' | b'P')
    }

    /// Decodes a frame for which [`Long::holds`].
    ///
    /// # Errors
    /// Those of [`parse`] and of the conversion; 53200 if there is no memory for the texts.
    pub fn decode(frame: Frame<'_>, conversion: Option<&Conversion>) -> Result<Long> {
        let recoded;
        let frame = match conversion {
            None => frame,
            Some(conversion) => {
                types::room::ask(4 * frame.body.len())?;
                recoded = super::recode(frame, conversion)?;
                Frame { tag: frame.tag, body: &recoded }
            }
        };
        types::room::ask(frame.body.len())?;
        match parse(frame)? {
            Frontend::Query(sql) => Ok(Long::Query(sql.to_owned())),
            Frontend::Parse(Parse { name, sql, types }) => {
                Ok(Long::Parse(name.to_owned(), sql.to_owned(), types.0.to_owned()))
            }
            _ => Err(Error::internal("a message that is not decoded apart")),
        }
    }

    /// The message.
    pub fn message(&self) -> Frontend<'_> {
        match self {
            Long::Query(sql) => Frontend::Query(sql),
            Long::Parse(name, sql, types) => Frontend::Parse(Parse { name, sql, types: ParamTypes(types) }),
        }
    }
}

#[cfg(test)]
mod tests;
