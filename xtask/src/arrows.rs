//! Arrows between the rooms of a crate: the files and folders just below its `src`.
//!
//! Responsible for: which rooms a file speaks of by `crate::…` or `super::…`, in code, re-exports and macros; whether the list of rooms lets it.
//! Not responsible for: arrows between crates, which Cargo knows; those of tests, which may look at everything.
//! Invariants: a room speaks only of rooms to its left, so that there is no cycle. What points the other way is in a list, which only
//! becomes shorter: an arrow in it that is not there any more is a fault, too.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// A crate with rooms that stand in an order.
pub struct House {
    pub name: &'static str,
    /// Each may speak of those before it.
    pub rooms: &'static [&'static str],
    /// Arrows against the order that are still to be cut: from, to.
    pub wrong: &'static [(&'static str, &'static str)],
}

/// A module's path from the crate's root.
type Module = Vec<String>;

/// What the files of a house say.
#[derive(Default)]
struct Said {
    /// Which room is spoken of in which module, and where: the file and the line.
    arrows: Vec<(Module, String, String)>,
    /// Modules that only tests have.
    tests: BTreeSet<Module>,
    faults: Vec<String>,
}

/// What is wrong with the arrows of a house whose files are these, by their names below `src`.
pub fn check(house: &House, files: &[(String, String)]) -> Vec<String> {
    let mut said = Said::default();
    for (name, code) in files.iter().filter(|(name, _)| name.ends_with(".rs")) {
        let file = format!("crates/{}/src/{name}", house.name);
        match code.parse::<TokenStream>() {
            Ok(tokens) => Reader { file: &file, module: module(name), said: &mut said }.read(tokens),
            Err(error) => said.faults.push(format!("{file} cannot be read: {error}")),
        }
    }
    let Said { arrows, tests, mut faults } = said;
    let is_test = |module: &Module| (1..=module.len()).any(|depth| tests.contains(&module[..depth]));
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (module, to, place) in arrows.iter().filter(|(module, ..)| !is_test(module)) {
        if let Some(from) = module.first().filter(|from| *from != to) {
            places.entry((from, to)).or_default().push(place);
        }
    }
    let rooms: BTreeSet<String> = files.iter().filter_map(|(name, _)| module(name).into_iter().next()).collect();
    let order = |room: &str| house.rooms.iter().position(|known| *known == room);
    let homeless = rooms.iter().filter(|room| order(room).is_none());
    faults.extend(homeless.map(|room| format!("`{room}` has no place in the order of the rooms of `{}`", house.name)));
    for (arrow @ (from, to), places) in &places {
        if !rooms.contains(*to) {
            faults.push(format!("`{to}` is no room of `{}`: {}", house.name, places.join(", ")));
        } else if order(from) <= order(to) && !house.wrong.contains(arrow) {
            faults.push(format!("`{from}` of `{}` must not speak of `{to}`: {}", house.name, places.join(", ")));
        }
    }
    let cut = house.wrong.iter().filter(|arrow| !places.contains_key(*arrow));
    faults.extend(cut.map(|(from, to)| {
        format!("`{from}` of `{}` does not speak of `{to}` any more: take it from the list", house.name)
    }));
    faults
}

/// The path of a file's module, from the crate's root.
fn module(file: &str) -> Module {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" || path == "main" { Vec::new() } else { path.split('/').map(str::to_string).collect() }
}

struct Reader<'r> {
    file: &'r str,
    /// The module that is read.
    module: Module,
    said: &'r mut Said,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if is_test(&tokens[at..]) {
                let item = item(&tokens[at..]);
                if let [.., TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(_)] = item
                    && word == "mod"
                {
                    self.said.tests.insert(self.inner(name));
                }
                at += item.len();
                continue;
            }
            if let TokenTree::Ident(word) = token {
                match word.to_string().as_str() {
                    "crate" if is_path(&tokens[at + 1..]) => self.spoken(&[], &tokens[at + 3..]),
                    "super" if is_path(&tokens[at + 1..]) => at = self.above(&tokens, at),
                    "macro_use" | "macro_export" => {
                        let place = self.place(token);
                        self.said.faults.push(format!("{place}: a macro without a path is an arrow that nobody sees"));
                    }
                    "mod" => {
                        if let [TokenTree::Ident(name), TokenTree::Group(body), ..] = &tokens[at + 1..] {
                            let module = self.inner(name);
                            Reader { module, file: self.file, said: self.said }.read(body.stream());
                            at += 3;
                            continue;
                        }
                    }
                    _ => {}
                }
            }
            if let TokenTree::Group(group) = token {
                self.read(group.stream());
            }
            at += 1;
        }
    }

    /// Reads `super::super::…` from `at`; the last token of it that was read.
    fn above(&mut self, tokens: &[TokenTree], mut at: usize) -> usize {
        let mut module = self.module.clone();
        module.pop();
        while matches!(tokens.get(at + 3), Some(TokenTree::Ident(word)) if word == "super")
            && is_path(&tokens[at + 4..])
        {
            module.pop();
            at += 3;
        }
        self.spoken(&module, &tokens[at + 3..]);
        at
    }

    /// What follows a path's beginning, which means `module`: a name, or a list of names or further paths.
    fn spoken(&mut self, module: &[String], rest: &[TokenTree]) {
        match rest.first() {
            Some(TokenTree::Ident(name)) if name == "self" => {}
            Some(token @ TokenTree::Ident(name)) => {
                let to = module.first().cloned().unwrap_or_else(|| name.to_string());
                let place = self.place(token);
                self.said.arrows.push((self.module.clone(), to, place));
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
                for part in tokens.split(is_comma) {
                    self.spoken(module, part);
                }
            }
            _ => {}
        }
    }

    fn place(&self, token: &TokenTree) -> String {
        format!("{}:{}", self.file, token.span().start().line)
    }

    /// A module in the one that is read.
    fn inner(&self, name: &Ident) -> Module {
        self.module.iter().cloned().chain([name.to_string()]).collect()
    }
}

/// Whether the tokens begin with `::`.
fn is_path(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':');
    matches!(tokens, [first, second, ..] if is_colon(first) && is_colon(second))
}

/// Whether the tokens begin with `#[cfg(test)]`.
fn is_test(tokens: &[TokenTree]) -> bool {
    let [TokenTree::Punct(mark), TokenTree::Group(attribute), ..] = tokens else { return false };
    mark.as_char() == '#' && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// The tokens of an item: up to its body or its semicolon.
fn item(tokens: &[TokenTree]) -> &[TokenTree] {
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    tokens.iter().position(is_end).map_or(tokens, |end| &tokens[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUSE: House = House { name: "sql", rooms: &["names", "bind", "exec"], wrong: &[] };

    /// The faults of a house with one file in each room, and `code` in a file of `bind`.
    fn faults(house: &House, file: &str, code: &str) -> Vec<String> {
        let files = [
            ("lib.rs", "mod names; mod bind; mod exec;"),
            ("names.rs", ""),
            ("exec/mod.rs", ""),
            ("bind/rows.rs", "use crate::names;"),
            (file, code),
        ];
        check(house, &files.map(|(name, code)| (name.to_string(), code.to_string())))
    }

    #[test]
    fn an_arrow_of_each_kind_to_the_right_is_found() {
        let planted = [
            "use crate::exec::Row;",
            "use crate::{names::quote, exec::{Row, Rows}};",
            "fn f(_: &crate::exec::Row) {}",
            "pub(crate) use crate::exec::Row;",
            "macro_rules! row { () => { $crate::exec::Row }; }",
            "use super::super::exec::Row;",
            "use super::super::{names, exec};",
            "mod inner { use super::super::super::exec::Row; }",
            "fn f() { g(|| [super::super::exec::row()]) }",
            "#[cfg(not(test))] use crate::exec::Row;",
            "#[macro_use] mod macros;",
        ];
        for code in planted {
            assert_eq!(faults(&HOUSE, "bind/from.rs", code).len(), 1, "{code}");
        }
        assert_eq!(faults(&HOUSE, "bind/mod.rs", "use super::exec;").len(), 1);
        assert_eq!(
            faults(&HOUSE, "bind/mod.rs", "fn f() {}\nuse super::exec;"),
            ["`bind` of `sql` must not speak of `exec`: crates/sql/src/bind/mod.rs:2"]
        );
    }

    #[test]
    fn what_is_no_arrow_to_the_right_is_none() {
        let fine = [
            "use crate::names::quote; use super::super::names;",
            "use super::rows::Row; use super::exec::Row; use crate::bind::{self, Row};",
            "// crate::exec\n/// [`crate::exec::Row`]\nfn f() { g(\"crate::exec\") }",
            "pub(crate) fn f() {} pub(in crate::bind) fn g() {}",
            "#[cfg(test)] mod tests { use crate::exec::Row; }",
            "#[cfg(test)] use crate::exec::Row;\nfn f() {}",
            "#[cfg(test)] mod rows;",
        ];
        for code in fine {
            assert_eq!(faults(&HOUSE, "bind/from.rs", code), Vec::<String>::new(), "{code}");
        }
    }

    #[test]
    fn a_file_of_tests_may_look_at_everything() {
        let faults = |declared: &str| {
            let files = [
                ("names.rs", ""),
                ("exec.rs", ""),
                ("bind/mod.rs", declared),
                ("bind/rows.rs", "use crate::exec::Row;"),
            ];
            check(&HOUSE, &files.map(|(name, code)| (name.to_string(), code.to_string()))).len()
        };
        assert_eq!(faults("#[cfg(test)]\nmod rows;"), 0);
        assert_eq!(faults("mod rows;"), 1);
    }

    #[test]
    fn the_list_only_becomes_shorter() {
        let house = House { wrong: &[("bind", "exec")], ..HOUSE };
        assert_eq!(faults(&house, "bind/from.rs", "use crate::exec::Row;"), Vec::<String>::new());
        assert_eq!(faults(&house, "bind/from.rs", "").len(), 1);
    }

    #[test]
    fn every_room_has_a_place() {
        assert_eq!(faults(&HOUSE, "attic/mod.rs", "").len(), 1);
        assert_eq!(faults(&HOUSE, "bind/from.rs", "use crate::attic::Row;").len(), 1);
    }
}
