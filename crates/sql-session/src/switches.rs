//! The start-up parameter `options`: settings as switches of a command line, which PGOPTIONS is sent as.
//!
//! Responsible for: taking the switches apart.
//! Not responsible for: what a setting takes, and who may set it.

use base::{Error, Result, SqlState};

/// The start-up parameters with the settings of `options` first, so that parameters of their own go before.
///
/// # Errors
/// FATAL 42601 for a switch that PostgreSQL does not know either.
pub(super) fn expand(startup: &[(String, String)]) -> Result<Vec<(String, String)>> {
    let is_options = |(name, _): &&(String, String)| name == "options";
    let mut settings = Vec::with_capacity(startup.len());
    for (_, options) in startup.iter().filter(is_options) {
        let mut words = words(options).into_iter();
        while let Some(word) = words.next() {
            match word.strip_prefix("--") {
                Some(long) => settings.push(assignment(&format!("--{long}"), long)?),
                None => letters(&word, &mut words, &mut settings)?,
            }
        }
    }
    settings.extend(startup.iter().filter(|parameter| !is_options(parameter)).cloned());
    Ok(settings)
}

/// A word of switches of one letter, several of which may share one hyphen; one that takes a value takes the rest of the word or the next one.
fn letters(word: &str, more: &mut impl Iterator<Item = String>, settings: &mut Vec<(String, String)>) -> Result<()> {
    let Some(mut rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else { return Err(invalid(word)) };
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let mut set = |name: &str, value: &str| settings.push((name.to_owned(), value.to_owned()));
        match letter {
            'e' => set("datestyle", "euro"),
            'F' => set("fsync", "false"),
            'i' => set("listen_addresses", "*"),
            'l' => set("ssl", "true"),
            'n' | 'T' => {}
            'O' => set("allow_system_table_mods", "true"),
            'P' => set("ignore_system_indexes", "true"),
            's' => set("log_statement_stats", "true"),
            'B' | 'C' | 'c' | 'd' | 'f' | 'h' | 'k' | 'N' | 'p' | 'S' | 't' | 'W' => {
                let value = match std::mem::take(&mut rest) {
                    "" => more.next().ok_or_else(|| invalid(word))?,
                    value => value.to_owned(),
                };
                match letter {
                    'c' => settings.push(assignment(&format!("-c {value}"), &value)?),
                    'd' => debug(&value, settings),
                    _ => settings.extend(with_value(letter, value).ok_or_else(|| invalid(word))?),
                }
            }
            _ => return Err(invalid(word)),
        }
    }
    Ok(())
}

/// `-d level`: more is logged.
fn debug(level: &str, settings: &mut Vec<(String, String)>) {
    let digits = level.find(|c: char| !c.is_ascii_digit()).map_or(level, |end| &level[..end]);
    let level = digits.parse().unwrap_or(0);
    let mut set = |name: &str, value: String| settings.push((name.to_owned(), value));
    set("log_min_messages", if level > 0 { format!("debug{level}") } else { "notice".to_owned() });
    let also = [(2, "log_statement", "all"), (3, "debug_print_parse", "true"), (4, "debug_print_plan", "true")];
    for (_, name, value) in also.into_iter().filter(|(from, ..)| level >= *from) {
        set(name, value.to_owned());
    }
    if level >= 5 {
        set("debug_print_rewritten", "true".to_owned());
    }
}

/// What a switch with a value sets; `None` if it takes no such value.
fn with_value(letter: char, value: String) -> Option<Option<(String, String)>> {
    let name = match (letter, value.as_str()) {
        ('C', _) => return Some(None),
        ('B', _) => "shared_buffers",
        ('h', _) => "listen_addresses",
        ('k', _) => "unix_socket_directories",
        ('N', _) => "max_connections",
        ('p', _) => "port",
        ('S', _) => "work_mem",
        ('W', _) => "post_auth_delay",
        ('f', of) => {
            let method = match of.as_bytes().first()? {
                b's' => "enable_seqscan",
                b'i' => "enable_indexscan",
                b'o' => "enable_indexonlyscan",
                b'b' => "enable_bitmapscan",
                b't' => "enable_tidscan",
                b'n' => "enable_nestloop",
                b'm' => "enable_mergejoin",
                b'h' => "enable_hashjoin",
                _ => return None,
            };
            return Some(Some((method.to_owned(), "false".to_owned())));
        }
        (_, of) => {
            let figures = match of.as_bytes() {
                [b'p', b'a', ..] => "log_parser_stats",
                [b'p', b'l', ..] => "log_planner_stats",
                [b'e', ..] => "log_executor_stats",
                _ => return None,
            };
            return Some(Some((figures.to_owned(), "true".to_owned())));
        }
    };
    Some(Some((name.to_owned(), value)))
}

/// `name=value`.
fn assignment(switch: &str, text: &str) -> Result<(String, String)> {
    match text.split_once('=') {
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
        assert_eq!(of("-S 64 -efs"), given(&[("work_mem", "64"), ("datestyle", "euro"), ("enable_seqscan", "false")]));
        assert_eq!(of("-fx"), Err("invalid command-line argument for server process: -fx".into()));
        assert_eq!(of("-c"), Err("invalid command-line argument for server process: -c".into()));
        assert_eq!(of("role=x"), Err("invalid command-line argument for server process: role=x".into()));
    }
}
