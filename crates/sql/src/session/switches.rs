//! The start-up parameter `options`: settings as switches of a command line, which PGOPTIONS is sent as.
//!
//! Responsible for: taking the switches apart.
//! Not responsible for: what a setting takes, and who may set it.

use base::{Error, Result, SqlState};

/// The start-up parameters with the settings of `options` first, so that parameters of their own go before.
///
/// # Errors
/// FATAL 42601 for any switch but `-c name=value` and `--name=value`.
pub(super) fn expand(startup: &[(String, String)]) -> Result<Vec<(String, String)>> {
    let is_options = |(name, _): &&(String, String)| name == "options";
    let mut settings = Vec::with_capacity(startup.len());
    for (_, options) in startup.iter().filter(is_options) {
        let mut words = words(options).into_iter();
        while let Some(word) = words.next() {
            settings.push(setting(&word, &mut words)?);
        }
    }
    settings.extend(startup.iter().filter(|parameter| !is_options(parameter)).cloned());
    Ok(settings)
}

fn setting(word: &str, more: &mut impl Iterator<Item = String>) -> Result<(String, String)> {
    let (switch, assignment) = if let Some(long) = word.strip_prefix("--") {
        (format!("--{long}"), long.to_owned())
    } else if let Some(rest) = word.strip_prefix("-c") {
        let rest = if rest.is_empty() { more.next().ok_or_else(|| invalid(word))? } else { rest.to_owned() };
        (format!("-c {rest}"), rest)
    } else {
        return Err(invalid(word));
    };
    match assignment.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.replace('-', "_"), value.to_owned())),
        _ => Err(Error::fatal(SqlState::SYNTAX_ERROR, format!("{switch} requires a value"))),
    }
}

#[cold]
fn invalid(word: &str) -> Error {
    Error::fatal(SqlState::SYNTAX_ERROR, format!("invalid command-line argument for server process: {word}"))
        .hint("Try \"postgres --help\" for more information.")
}

/// Words between white space; a backslash takes the next character as it is.
fn words(options: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut chars = options.chars();
    let mut inside = false;
    while let Some(c) = chars.next() {
        if c.is_ascii_whitespace() || c == '\x0b' {
            inside = false;
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            words.push(String::new());
        }
        let taken = if c == '\\' { chars.next() } else { Some(c) };
        if let (Some(word), Some(c)) = (words.last_mut(), taken) {
            word.push(c);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(options: &str) -> Result<Vec<(String, String)>, String> {
        expand(&[("DateStyle".into(), "ISO".into()), ("options".into(), options.into())])
            .map_err(|error| error.fields().message.clone())
    }

    fn given(pairs: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let last = [("DateStyle", "ISO")];
        Ok(pairs.iter().chain(&last).map(|(name, value)| (name.to_string(), value.to_string())).collect())
    }

    #[test]
    fn switches() {
        assert_eq!(of(""), given(&[]));
        assert_eq!(of(" -c work_mem=8MB\t-csearch_path=a,b "), given(&[("work_mem", "8MB"), ("search_path", "a,b")]));
        assert_eq!(of(r"--statement-timeout=5\ s -c a.b=\\"), given(&[("statement_timeout", "5 s"), ("a.b", r"\")]));
        assert_eq!(of("-c role=x=y"), given(&[("role", "x=y")]));
        assert_eq!(of("-c role"), Err("-c role requires a value".into()));
        assert_eq!(of("--role"), Err("--role requires a value".into()));
        assert_eq!(of("-c"), Err("invalid command-line argument for server process: -c".into()));
        assert_eq!(of("role=x"), Err("invalid command-line argument for server process: role=x".into()));
    }
}
