//! Options of COPY.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::Node;
use sql_parse::{number_of, text_of};
use types::encoding::{Conversion, Encoding};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format {
    pub(super) binary: bool,
    pub(super) csv: bool,
    pub(super) header: bool,
    /// The header must have the columns' names.
    pub(super) match_header: bool,
    pub(super) delimiter: u8,
    pub(super) null: String,
    pub(super) quote: u8,
    pub(super) escape: u8,
    pub(super) force_quote_all: bool,
    /// Columns by name: quoted always; empty text instead of NULL; NULL also when quoted.
    pub(super) force_quote: Vec<String>,
    pub(super) force_not_null: Vec<String>,
    pub(super) force_null: Vec<String>,
    /// Instead of the client's.
    pub(super) encoding: Option<Encoding>,
}

impl Format {
    /// How the data's texts are converted, if the client's are by this.
    pub(super) fn conversion(&self, client: Option<&'static Conversion>) -> Option<&'static Conversion> {
        match self.encoding {
            None => client,
            Some(encoding) => encoding.conversion(),
        }
    }

    /// Reads the option list.
    pub(super) fn parse(options: &[Option<Node>], is_from: bool, sql: &str) -> Result<Format> {
        let mut given: Vec<&str> = Vec::new();
        let (mut csv, mut binary) = (false, false);
        let (mut header, mut match_header, mut force_quote_all) = (false, false, false);
        let (mut delimiter, mut null, mut quote, mut escape) = (None, None, None, None);
        let (mut force_quote, mut force_not_null, mut force_null) = (Vec::new(), Vec::new(), Vec::new());
        let mut encoding = None;
        for node in options.iter().flatten() {
            let Node::DefElem(option) = node else { continue };
            let name = option.defname.as_deref().unwrap_or_default();
            if given.contains(&name) {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
                    .at_byte(sql, option.location));
            }
            given.push(name);
            let names = || match &option.arg {
                Some(Node::List(list)) => Ok(list.iter().flatten().filter_map(text_of).collect()),
                _ => Err(invalid(format!("argument to option \"{name}\" must be a list of column names"))
                    .at_byte(sql, option.location)),
            };
            if option.arg.is_none() && !matches!(name, "header" | "freeze") {
                return Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} requires a parameter")));
            }
            let text = || option.arg.as_ref().and_then(text_of).unwrap_or_default();
            match option.defname.as_deref().unwrap_or_default() {
                "format" => match text().as_str() {
                    "text" => csv = false,
                    "csv" => csv = true,
                    "binary" => binary = true,
                    other => {
                        return Err(Error::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("COPY format \"{other}\" not recognized"),
                        )
                        .at_byte(sql, option.location));
                    }
                },
                "header" => {
                    (header, match_header) = header_choice(option.arg.as_ref())?;
                    if match_header && !is_from {
                        let message = "cannot use \"match\" with HEADER in COPY TO";
                        return Err(Error::new(SqlState::FEATURE_NOT_SUPPORTED, message));
                    }
                }
                "delimiter" => delimiter = Some(text()),
                "null" => null = Some(text()),
                "quote" => quote = Some(text()),
                "escape" => escape = Some(text()),
                "force_quote" if matches!(option.arg, Some(Node::A_Star(_))) => force_quote_all = true,
                "force_quote" => force_quote = names()?,
                "force_not_null" => force_not_null = names()?,
                "force_null" => force_null = names()?,
                // Rows are visible to nobody else before commit whatever this says.
                "freeze" => check_boolean(option.arg.as_ref(), "freeze")?,
                "encoding" => {
                    let message = "argument to option \"encoding\" must be a valid encoding name";
                    let given = Encoding::from_name(&text())
                        .ok_or_else(|| invalid(message.to_owned()).at_byte(sql, option.location))?;
                    if !given.is_plain() && given.conversion().is_none() {
                        return Err(Error::unsupported(format!("COPY in {} is not supported", given.name())));
                    }
                    encoding = Some(given);
                }
                other => {
                    let message = format!("option \"{other}\" not recognized");
                    return Err(Error::new(SqlState::SYNTAX_ERROR, message).at_byte(sql, option.location));
                }
            }
        }
        if binary {
            for (given, name) in [(delimiter.is_some(), "DELIMITER"), (null.is_some(), "NULL")] {
                if given {
                    return Err(Error::new(SqlState::SYNTAX_ERROR, format!("cannot specify {name} in BINARY mode")));
                }
            }
            if header {
                return Err(Error::unsupported("cannot specify HEADER in BINARY mode"));
            }
        }
        let byte = |text: Option<String>, default: u8, what: &str| match text {
            None => Ok(default),
            Some(t) if t.len() == 1 => Ok(t.as_bytes()[0]),
            Some(_) => Err(Error::unsupported(format!("COPY {what} must be a single one-byte character"))),
        };
        let for_csv_only = [
            (quote.is_some(), "quote"),
            (escape.is_some(), "escape"),
            (force_quote_all || !force_quote.is_empty(), "force quote"),
            (!force_not_null.is_empty(), "force not null"),
            (!force_null.is_empty(), "force null"),
        ];
        let delimiter = byte(delimiter, if csv { b',' } else { b'\t' }, "delimiter")?;
        if matches!(delimiter, b'\n' | b'\r') {
            return Err(invalid("COPY delimiter cannot be newline or carriage return".to_owned()));
        }
        if null.as_deref().is_some_and(|text| text.contains(['\n', '\r'])) {
            return Err(invalid("COPY null representation cannot use newline or carriage return".to_owned()));
        }
        if !csv
            && !binary
            && (delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit() || b"\\.".contains(&delimiter))
        {
            return Err(invalid(format!("COPY delimiter cannot be \"{}\"", delimiter as char)));
        }
        if let (false, Some((_, what))) = (csv, for_csv_only.iter().find(|(given, _)| *given)) {
            return Err(Error::unsupported(format!("COPY {what} available only in CSV mode")));
        }
        let quote = byte(quote, b'"', "quote")?;
        if csv && quote == delimiter {
            return Err(invalid("COPY delimiter and quote must be different".to_owned()));
        }
        if null.as_deref().is_some_and(|text| text.as_bytes().contains(&delimiter)) {
            return Err(Error::unsupported("COPY delimiter must not appear in the NULL specification"));
        }
        if csv && null.as_deref().is_some_and(|text| text.as_bytes().contains(&quote)) {
            return Err(Error::unsupported("CSV quote character must not appear in the NULL specification"));
        }
        if is_from && (force_quote_all || !force_quote.is_empty()) {
            return Err(Error::unsupported("COPY force quote only available using COPY TO"));
        }
        for (given, what) in [(!force_not_null.is_empty(), "force not null"), (!force_null.is_empty(), "force null")] {
            if given && !is_from {
                return Err(Error::unsupported(format!("COPY {what} only available using COPY FROM")));
            }
        }
        Ok(Format {
            binary,
            csv,
            header,
            match_header,
            delimiter,
            null: null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_string() }),
            quote,
            escape: byte(escape, quote, "escape")?,
            force_quote_all,
            force_quote,
            force_not_null,
            force_null,
            encoding,
        })
    }
}

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn check_boolean(arg: Option<&Node>, name: &str) -> Result<()> {
    let Some(arg) = arg else { return Ok(()) };
    let word = text_of(arg).unwrap_or_default().to_ascii_lowercase();
    let known = matches!(number_of(arg), Some(0 | 1)) || matches!(&*word, "true" | "on" | "false" | "off");
    if known { Ok(()) } else { Err(Error::new(SqlState::SYNTAX_ERROR, format!("{name} requires a Boolean value"))) }
}

/// `HEADER` with its word: whether there is a header, and whether it must match.
fn header_choice(arg: Option<&Node>) -> Result<(bool, bool)> {
    let Some(arg) = arg else { return Ok((true, false)) };
    match number_of(arg) {
        Some(0) => return Ok((false, false)),
        Some(1) => return Ok((true, false)),
        _ => {}
    }
    match text_of(arg).unwrap_or_default().to_ascii_lowercase().as_str() {
        "true" | "on" => Ok((true, false)),
        "false" | "off" => Ok((false, false)),
        "match" => Ok((true, true)),
        _ => Err(Error::new(SqlState::SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}
