//! What stands in a suite's file. An entry becomes the command line of its experiment and is read as that is, so
//! that every option exists here, and mistakes are told in the same words.

use clap::{ArgAction, Command, FromArgMatches, Subcommand, ValueEnum};
use toml::{Table, Value};

use crate::command::Workload;
use crate::servers::Product;
use crate::target::Target;

/// Keys of an entry that are not options.
const OWN: [&str; 2] = ["name", "targets"];
/// Options that the suite sets.
const TAKEN: [&str; 4] = ["target", "label", "json", "drop"];

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// In reports.
    pub name: String,
    /// Its address, or what is started for the suite.
    pub place: ServerAddress,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAddress {
    /// It is there.
    At(Target),
    /// It is started, and ended with the suite.
    Start(Product),
}

/// Reads `NAME=URL`.
pub fn target(text: &str) -> Result<Where, String> {
    let (name, url) = text.split_once('=').ok_or("a target looks like NAME=postgres://…")?;
    if name.is_empty() || name.contains("://") {
        return Err("a target looks like NAME=postgres://…".into());
    }
    Ok(Where { name: name.into(), place: ServerAddress::At(url.parse()?) })
}

/// An experiment with its options.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How messages call it.
    pub name: String,
    /// What it has been read from.
    pub words: Vec<String>,
    /// What to run.
    pub workload: Workload,
    /// Against what.
    pub targets: Vec<Where>,
}

impl Entry {
    /// Its experiment.
    pub fn experiment(&self) -> &str {
        &self.words[0]
    }
}

/// A whole file.
#[derive(Clone, Debug)]
pub struct Suite {
    /// What stands above the report.
    pub title: String,
    /// In the order of the file.
    pub entries: Vec<Entry>,
}

impl Suite {
    /// Reads a file. Targets that are given besides take the place of those with the same name, or are added.
    ///
    /// # Errors
    /// What is wrong, with the entry that it is wrong in.
    pub fn parse(text: &str, given: &[Where]) -> Result<Suite, String> {
        let all: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim().replace('\n', " "))?;
        if let Some(key) = all.keys().find(|key| !["title", "defaults", "target", "experiment"].contains(&key.as_str()))
        {
            return Err(format!("\"{key}\" is not known: there are title, defaults, target, experiment"));
        }
        let title = all.get("title").map_or(Ok("Measured by a suite"), |title| string("title", title))?.to_string();
        let targets = targets(&tables(&all, "target")?, given)?;
        let empty = Table::new();
        let defaults = match all.get("defaults") {
            None => &empty,
            Some(Value::Table(defaults)) => defaults,
            Some(_) => return Err("defaults is not a table".into()),
        };
        let experiments = tables(&all, "experiment")?;
        if experiments.is_empty() {
            return Err("there is no [[experiment]]".into());
        }
        let entry = |(at, entry): (usize, &&Table)| {
            let name = entry.get("name").map_or("without a name", |name| name.as_str().unwrap_or("?"));
            let title = format!("experiment {} ({name})", at + 1);
            read_entry(&title, entry, defaults, &targets).map_err(|why| format!("{title}: {why}"))
        };
        let entries: Vec<Entry> = experiments.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
        let used = |key: &String| entries.iter().any(|entry| option(&commands(), entry.experiment(), key).is_some());
        if let Some(key) = defaults.keys().find(|key| !used(key)) {
            return Err(format!("defaults: none of the experiments has the option \"{key}\""));
        }
        Ok(Suite { title, entries })
    }
}

fn string<'a>(name: &str, value: &'a Value) -> Result<&'a str, String> {
    value.as_str().ok_or_else(|| format!("{name} is not a string"))
}

fn tables<'a>(all: &'a Table, name: &str) -> Result<Vec<&'a Table>, String> {
    let wrong = || format!("{name} is not a list of tables: write [[{name}]]");
    match all.get(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(|value| value.as_table().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

fn targets(listed: &[&Table], given: &[Where]) -> Result<Vec<Where>, String> {
    let mut targets: Vec<Where> = Vec::new();
    for table in listed {
        let field = |name: &str| string(name, table.get(name).ok_or(format!("a target has no {name}"))?);
        if let Some(key) = table.keys().find(|key| !["name", "url", "start"].contains(&key.as_str())) {
            return Err(format!("a target has name and url or start, not \"{key}\""));
        }
        let name = field("name")?.to_string();
        if targets.iter().any(|target| target.name == name) {
            return Err(format!("two targets have the name \"{name}\""));
        }
        let place = match (table.get("url"), table.get("start")) {
            (None, Some(product)) => Product::from_str(string("start", product)?, true).map(ServerAddress::Start),
            (Some(url), None) => string("url", url)?.parse().map(ServerAddress::At),
            _ => Err("it has either url or start".into()),
        };
        targets.push(Where { place: place.map_err(|why| format!("target \"{name}\": {why}"))?, name });
    }
    for given in given {
        match targets.iter_mut().find(|target| target.name == given.name) {
            Some(target) => target.place = given.place.clone(),
            None => targets.push(given.clone()),
        }
    }
    if targets.is_empty() { Err("there is no [[target]]".into()) } else { Ok(targets) }
}

/// All experiments with their options.
fn commands() -> Command {
    Workload::augment_subcommands(Command::new("suite").no_binary_name(true).disable_help_subcommand(true))
}

/// What the command line calls an option, and whether it has a value.
fn option(commands: &Command, experiment: &str, key: &str) -> Option<(String, bool)> {
    let name = key.replace('_', "-");
    let command = commands.find_subcommand(experiment)?;
    let of = |arg: &&clap::Arg| {
        arg.get_long() == Some(name.as_str()) || arg.get_all_aliases().is_some_and(|all| all.contains(&name.as_str()))
    };
    let arg = command.get_arguments().find(of)?;
    Some((arg.get_long()?.to_string(), !matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)))
}

fn read_entry(title: &str, entry: &Table, defaults: &Table, targets: &[Where]) -> Result<Entry, String> {
    let name = string("name", entry.get("name").ok_or("it has no name")?)?;
    let commands = commands();
    if commands.find_subcommand(name).is_none() {
        let names: Vec<&str> = commands.get_subcommands().map(Command::get_name).collect();
        return Err(format!("there is no experiment \"{name}\"; there are: {}", names.join(", ")));
    }
    let mut words = vec![name.to_string()];
    let mut set: Vec<String> = Vec::new();
    for (key, value) in entry.iter().filter(|(key, _)| !OWN.contains(&key.as_str())) {
        let (option, has_value) = option(&commands, name, key).ok_or(format!("it has no option \"{key}\""))?;
        words.extend(word(&option, has_value, value).map_err(|why| format!("{key}: {why}"))?);
        set.push(option);
    }
    for (key, value) in defaults {
        let Some((option, has_value)) = option(&commands, name, key) else { continue };
        if !set.contains(&option) {
            words.extend(word(&option, has_value, value).map_err(|why| format!("defaults: {key}: {why}"))?);
            set.push(option);
        }
    }
    if let Some(taken) = set.iter().find(|option| TAKEN.contains(&option.as_str())) {
        return Err(format!("\"{taken}\" is not for a suite's file"));
    }
    let matches = commands.try_get_matches_from(&words).map_err(|error| in_a_line(&error))?;
    let workload = Workload::from_arg_matches(&matches).map_err(|error| in_a_line(&error))?;
    Ok(Entry { name: title.into(), words, workload, targets: chosen(entry.get("targets"), targets)? })
}

fn in_a_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ");
    first.trim_start_matches("error: ").to_string()
}

/// An option as it is typed; nothing if it is a flag that is not set.
fn word(option: &str, has_value: bool, value: &Value) -> Result<Option<String>, String> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(flag) => Ok(flag.to_string()),
        _ => Err("it is not a string, a number, true, false or a list of these".to_string()),
    };
    if !has_value {
        return match value {
            Value::Boolean(true) => Ok(Some(format!("--{option}"))),
            Value::Boolean(false) => Ok(None),
            _ => Err("it is true or false".into()),
        };
    }
    let text = match value {
        Value::Array(all) => all.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(","),
        single => one(single)?,
    };
    Ok(Some(format!("--{option}={text}")))
}

fn chosen(names: Option<&Value>, targets: &[Where]) -> Result<Vec<Where>, String> {
    let Some(names) = names else { return Ok(targets.to_vec()) };
    let wrong = "targets is not a list of names";
    let find = |name: &Value| {
        let name = name.as_str().ok_or(wrong)?;
        let found = targets.iter().find(|target| target.name == name);
        found.cloned().ok_or_else(|| format!("there is no target \"{name}\""))
    };
    let chosen: Vec<Where> = names.as_array().ok_or(wrong)?.iter().map(find).collect::<Result<_, String>>()?;
    if chosen.is_empty() { Err("it has no targets".into()) } else { Ok(chosen) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGETS: &str =
        "[[target]]\nname = 'a'\nurl = 'postgres://h/d'\n[[target]]\nname = 'b'\nurl = 'mysql://h/d'\n";

    fn parse(text: &str) -> Result<Suite, String> {
        Suite::parse(&format!("{text}\n{TARGETS}"), &[])
    }

    #[test]
    fn an_entry_is_the_command_line_of_its_experiment() {
        let suite = parse(
            "title = 'T'\n[defaults]\nduration = '2s'\nload = true\nrows = 500\n\
             [[experiment]]\nname = 'sysbench'\nthreads = [1, 8]\nworkload = ['oltp_read_only', 'oltp_write_only']\n\
             range_size = 10\nsecondary = true\nload = false\nclients = '4'\n",
        );
        assert!(suite.unwrap_err().contains("cannot be used multiple times"));
        let suite = parse(
            "title = 'T'\n[defaults]\nduration = '2s'\nload = true\nrows = 500\n\
             [[experiment]]\nname = 'sysbench'\nclients = [1, 8]\nworkload = ['oltp_read_only', 'oltp_write_only']\n\
             range_size = 10\nsecondary = true\nload = false\ntargets = ['b']\n",
        )
        .unwrap();
        let entry = &suite.entries[0];
        let words = "sysbench --threads=1,8 --range-size=10 --secondary --workload=oltp_read_only,oltp_write_only \
                     --duration=2s --rows=500";
        assert_eq!(entry.words.join(" "), words);
        assert_eq!(entry.targets.len(), 1);
        let task = entry.workload.clone().task();
        assert_eq!((task.experiment.threads(&task.common), task.experiment.variants().len()), (vec![1, 8], 2));
    }

    #[test]
    fn mistakes_are_told_with_the_entry_they_are_in() {
        let refused = |text: &str| parse(text).unwrap_err();
        let good = "[[experiment]]\nname = 'sysbench'\n";
        for (text, said) in [
            (String::new(), "there is no [[experiment]]"),
            ("x = 1".into(), "\"x\" is not known: there are title, defaults, target, experiment"),
            (format!("[defaults]\nspeed = 1\n{good}"), "defaults: none of the experiments has the option \"speed\""),
            (format!("{good}colour = 1"), "experiment 1 (sysbench): it has no option \"colour\""),
            (
                format!("{good}[[experiment]]\nname = 'x'"),
                "experiment 2 (x): there is no experiment \"x\"; there are: ",
            ),
            (format!("{good}rows = 1"), "experiment 1 (sysbench): invalid value '1' for '--rows <ROWS>'"),
            (format!("{good}secondary = 1"), "experiment 1 (sysbench): secondary: it is true or false"),
            (format!("{good}targets = ['c']"), "experiment 1 (sysbench): there is no target \"c\""),
            (format!("{good}json = 'x'"), "experiment 1 (sysbench): \"json\" is not for a suite's file"),
            (format!("{good}{TARGETS}"), "two targets have the name \"a\""),
        ] {
            let why = refused(&text);
            assert!(why.starts_with(said) && !why.contains('\n'), "{text}: {why}");
        }
        assert_eq!(Suite::parse(good, &[]).unwrap_err(), "there is no [[target]]");
    }

    #[test]
    fn targets_can_be_given_besides() {
        let given = [target("b=postgres://other/x").unwrap(), target("c=postgres://third/x").unwrap()];
        let suite = Suite::parse(&format!("{TARGETS}[[experiment]]\nname = 'sysbench'\n"), &given).unwrap();
        let place = |target: &Where| match &target.place {
            ServerAddress::At(url) => format!("{} {url}", target.name),
            ServerAddress::Start(product) => format!("{} starts {}", target.name, product.label()),
        };
        let all: Vec<String> = suite.entries[0].targets.iter().map(place).collect();
        let urls = [
            "a postgres://postgres@h:5432/d",
            "b postgres://postgres@other:5432/x",
            "c postgres://postgres@third:5432/x",
        ];
        assert_eq!(all, urls);
        assert!(target("postgres://h/d?host=/x").is_err() && target("a").is_err());
    }

    #[test]
    fn every_suite_that_is_shipped_can_be_read() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/suites");
        let mut count = 0;
        for file in std::fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            let suite = Suite::parse(&std::fs::read_to_string(&path).unwrap(), &[]);
            assert!(suite.as_ref().is_ok_and(|suite| !suite.entries.is_empty()), "{}: {suite:?}", path.display());
            count += 1;
        }
        assert!(count > 0);
    }
}
