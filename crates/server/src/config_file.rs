//! The configuration file: options that neither the command line nor the environment gives.
//!
//! Each key is the long name of an option of `nyala serve`, and becomes that option; the table `settings` holds run-time
//! settings. So a key is checked as the option is, and an unknown one is refused as such.

use std::ffi::OsString;
use std::path::PathBuf;

use toml::{Table, Value};

/// The process's arguments, with those of the configuration file that `serve` was given, if it was.
///
/// # Errors
/// What is wrong with the file, in one line.
pub fn arguments() -> Result<Vec<OsString>, String> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if arguments.get(1).is_none_or(|verb| verb != "serve") {
        return Ok(arguments);
    }
    let Some(path) = given(&arguments, "config").or_else(|| std::env::var_os("NYALA_CONFIG").map(PathBuf::from)) else {
        return Ok(arguments);
    };
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let more = from_file(&text, &arguments, is_set).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(arguments.into_iter().chain(more.into_iter().map(OsString::from)).collect())
}

/// The value of an option on the command line.
fn given(arguments: &[OsString], option: &str) -> Option<PathBuf> {
    let (flag, joined) = (format!("--{option}"), format!("--{option}="));
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let Some(text) = argument.to_str() else { continue };
        if text == flag {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(value) = text.strip_prefix(&joined) {
            return Some(PathBuf::from(value));
        }
    }
    None
}

/// What a file adds to the arguments.
fn from_file(text: &str, arguments: &[OsString], is_set: impl Fn(&str) -> bool) -> Result<Vec<String>, String> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim().replace('\n', " "))?;
    let mut more = Vec::new();
    for (key, value) in &table {
        if key == "settings" {
            let Value::Table(settings) = value else { return Err("\"settings\" is not a table".to_string()) };
            for (name, value) in settings {
                more.push(format!("--set={name}={}", word(value).ok_or_else(|| no_word(name))?));
            }
            continue;
        }
        let option = key.replace('_', "-");
        if matches!(option.as_str(), "config" | "set" | "init") {
            return Err(format!("\"{key}\" has no place in a configuration file"));
        }
        let variable = format!("NYALA_{}", option.replace('-', "_").to_uppercase());
        if given(arguments, &option).is_some() || is_set(&variable) {
            continue;
        }
        match value {
            Value::Boolean(true) if is_flag(&option) => more.push(format!("--{option}")),
            Value::Boolean(false) if is_flag(&option) => {}
            Value::Array(values) => {
                for value in values {
                    more.push(format!("--{option}={}", word(value).ok_or_else(|| no_word(key))?));
                }
            }
            value => more.push(format!("--{option}={}", word(value).ok_or_else(|| no_word(key))?)),
        }
    }
    Ok(more)
}

/// Options that have no value.
fn is_flag(option: &str) -> bool {
    option == "tls-required"
}

fn no_word(key: &str) -> String {
    format!("\"{key}\" is neither a text nor a number nor a boolean")
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(yes) => Some(if *yes { "on" } else { "off" }.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str, arguments: &[&str], set: &[&str]) -> Result<Vec<String>, String> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        from_file(text, &arguments, |name| set.contains(&name))
    }

    #[test]
    fn a_file_says_what_nobody_else_does() {
        let text = "data = '/d'\nlisten = ['127.0.0.1:1', '[::1]:1']\nmax_connections = 7\ntls-required = true\n\
                    [settings]\nwork_mem = '8MB'\njit = false\n";
        let all = [
            "--data=/d",
            "--listen=127.0.0.1:1",
            "--listen=[::1]:1",
            "--max-connections=7",
            "--set=jit=off",
            "--set=work_mem=8MB",
            "--tls-required",
        ];
        let mut found = added(text, &["nyala", "serve"], &[]).unwrap();
        found.sort();
        assert_eq!(found, all);
        let found = added("data = '/d'\nhba = '/h'\nhttp = 'off'", &["nyala", "serve", "--data", "x", "--hba=y"], &[]);
        assert_eq!(found.unwrap(), ["--http=off"]);
        assert!(added("http = 'off'", &[], &["NYALA_HTTP"]).unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, wrong) in [
            ("settings = 5", "\"settings\" is not a table"),
            ("init = true", "\"init\" has no place in a configuration file"),
            ("config = 'x'", "\"config\" has no place in a configuration file"),
            ("data = {}", "\"data\" is neither a text nor a number nor a boolean"),
        ] {
            assert_eq!(added(text, &[], &[]).unwrap_err(), wrong);
        }
        assert!(added("data = ", &[], &[]).is_err());
    }
}
