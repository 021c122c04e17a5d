//! The error a client can see, with PostgreSQL's fields.

use crate::SqlState;
use std::fmt;

/// Result of anything that can fail towards a client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Severity field of an error or a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The statement fails; the session goes on.
    Error,
    /// The session ends.
    Fatal,
    /// Every session ends.
    Panic,
    /// Something is probably not as wanted.
    Warning,
    /// For information.
    Notice,
    /// Only on request.
    Debug,
    /// Of interest to an operator.
    Log,
    /// Asked for by the statement itself (VACUUM VERBOSE).
    Info,
}

impl Severity {
    /// The word of the `S`/`V` field.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
            Severity::Debug => "DEBUG",
            Severity::Log => "LOG",
            Severity::Info => "INFO",
        }
    }
}

/// The fields of PostgreSQL's ErrorResponse and NoticeResponse (protocol documentation, "Error and Notice Message Fields").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Severity.
    pub severity: Severity,
    /// SQLSTATE.
    pub code: SqlState,
    /// Primary message: one line, no full stop.
    pub message: String,
    /// Secondary message with more detail.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the statement, in *characters*, the first being 1.
    pub position: Option<u32>,
    /// Where in a text the server made up itself (a column default, a check), with that text.
    pub internal: Option<(u32, String)>,
    /// Context lines, innermost first, joined by newlines (`COPY t, line 3`).
    pub context: Option<String>,
    /// Schema of the object at fault.
    pub schema: Option<String>,
    /// Table at fault.
    pub table: Option<String>,
    /// Column at fault.
    pub column: Option<String>,
    /// Data type at fault.
    pub data_type: Option<String>,
    /// Constraint at fault.
    pub constraint: Option<String>,
    /// PostgreSQL's function, where clients look at it to tell errors of one code from each other.
    pub routine: Option<&'static str>,
}

/// An error a client can see. One pointer wide, so that `Result`s on hot paths stay small.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Fields>);

/// A notice or warning sent beside a result. Same fields as [`Error`].
pub type Notice = Error;

macro_rules! with {
    ($($(#[$doc:meta])* $method:ident => $field:ident),+ $(,)?) => {
        $($(#[$doc])* #[must_use] pub fn $method(mut self, text: impl Into<String>) -> Error {
            self.0.$field = Some(text.into());
            self
        })+
    };
}

impl Error {
    /// Names PostgreSQL's function.
    #[must_use]
    pub fn routine(mut self, name: &'static str) -> Error {
        self.0.routine = Some(name);
        self
    }

    /// An error of severity ERROR.
    #[cold]
    pub fn new(code: SqlState, message: impl Into<String>) -> Error {
        Error::with_severity(Severity::Error, code, message)
    }

    /// An error or notice of a given severity.
    #[cold]
    pub fn with_severity(severity: Severity, code: SqlState, message: impl Into<String>) -> Error {
        Error(Box::new(Fields {
            severity,
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            internal: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
        }))
    }

    /// A FATAL error: the session ends after it.
    #[cold]
    pub fn fatal(code: SqlState, message: impl Into<String>) -> Error {
        Error::with_severity(Severity::Fatal, code, message)
    }

    /// `0A000 feature_not_supported`, the answer of everything that is not there yet.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Error {
        Error::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// `XX000`: a broken expectation inside the server.
    #[cold]
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(SqlState::INTERNAL_ERROR, message)
    }

    with! {
        /// Sets the detail.
        detail => detail,
        /// Sets the hint.
        hint => hint,
        /// Sets the context.
        context => context,
        /// Sets the schema at fault.
        schema => schema,
        /// Sets the table at fault.
        table => table,
        /// Sets the column at fault.
        column => column,
        /// Sets the data type at fault.
        data_type => data_type,
        /// Sets the constraint at fault.
        constraint => constraint,
    }

    /// Points at a character of the statement (the first is 1). An error that already points somewhere keeps its place.
    #[must_use]
    pub fn at_character(mut self, position: u32) -> Error {
        self.0.position.get_or_insert(position);
        self
    }

    /// Points at a byte offset of `statement`, as parsers report it; negative offsets mean "unknown".
    #[must_use]
    pub fn at_byte(self, statement: &str, offset: i32) -> Error {
        let Ok(offset) = usize::try_from(offset) else { return self };
        let before = &statement.as_bytes()[..offset.min(statement.len())];
        let characters = before.iter().filter(|&&b| b & 0xc0 != 0x80).count();
        self.at_character(characters as u32 + 1)
    }

    /// Raises or lowers the severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Error {
        self.0.severity = severity;
        self
    }

    /// The SQLSTATE.
    pub fn code(&self) -> SqlState {
        self.0.code
    }

    /// All fields.
    pub fn fields(&self) -> &Fields {
        &self.0
    }

    /// All fields, to change.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.0
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self)?;
        for (name, value) in [("detail", &self.0.detail), ("hint", &self.0.hint), ("context", &self.0.context)] {
            if let Some(value) = value {
                write!(f, "; {name}: {value}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.severity.as_str(), self.0.code, self.0.message)
    }
}

impl std::error::Error for Error {}
