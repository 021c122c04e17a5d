//! Arrows between the rooms of a crate: the files and folders just below its `src`.
//!
//! Responsible for: which rooms a file speaks of by `crate::…` or `super::…`, in code, re-exports and macros; whether the list of rooms lets it.
//! Not responsible for: arrows between crates, which Cargo knows; those of tests, which may look at everything.
//! Invariants: a room speaks only of rooms to its left, so that there is no cycle. Where an order has the room [`OTHERS`], that is all files and
//! folders without a name in it, which may speak of each other. What points the other way is in a list, which only
//! becomes shorter: an arrow in it that is not there any more is a fault, too.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// The room of all files and folders that an order does not name.
pub const OTHERS: &str = "*";

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

/// From which room to which one there are arrows, and where: the files and the lines.
pub type Arrows = BTreeMap<(String, String), Vec<String>>;

/// The arrows between the rooms of a crate whose files are these, by their names below `src`, and what could not be read.
pub fn arrows(name: &str, files: &[(String, String)]) -> (Arrows, Vec<String>) {
    let mut said = Said::default();
    for (below, code) in files.iter().filter(|(below, _)| below.ends_with(".rs")) {
        let file = format!("crates/{name}/src/{below}");
        match code.parse::<TokenStream>() {
            Ok(tokens) => Reader { file: &file, module: module(below), said: &mut said }.read(tokens),
            Err(error) => said.faults.push(format!("{file} cannot be read: {error}")),
        }
    }
    let Said { arrows, tests, faults } = said;
    let is_test = |module: &Module| (1..=module.len()).any(|depth| tests.contains(&module[..depth]));
    let mut found = Arrows::new();
    for (module, to, place) in arrows.into_iter().filter(|(module, ..)| !is_test(module)) {
        if let Some(from) = module.first().filter(|from| **from != to) {
            found.entry((from.clone(), to)).or_default().push(place);
        }
    }
    (found, faults)
}

/// What is wrong with the arrows of a house whose files are these, by their names below `src`.
pub fn check(house: &House, files: &[(String, String)]) -> Vec<String> {
    let (found, mut faults) = arrows(house.name, files);
    let rooms: BTreeSet<String> = files.iter().filter_map(|(name, _)| module(name).into_iter().next()).collect();
    let position = |room: &str| house.rooms.iter().position(|known| *known == room);
    let order = |room: &str| position(room).or_else(|| position(OTHERS));
    let homeless = rooms.iter().filter(|room| order(room).is_none());
    faults.extend(homeless.map(|room| format!("`{room}` has no place in the order of the rooms of `{}`", house.name)));
    let gone = house.rooms.iter().filter(|room| **room != OTHERS && **room != "planted" && !rooms.contains(**room));
    faults
        .extend(gone.map(|room| format!("`{room}` is in the order of the rooms of `{}` and is not there", house.name)));
    let is_wrong = |from: &str, to: &str| house.wrong.contains(&(from, to));
    for ((from, to), places) in &found {
        let both_others = position(from).is_none() && position(to).is_none();
        if !rooms.contains(to) {
            // A macro or a function of the root: what an order with other rooms does not speak of.
            if position(OTHERS).is_none() {
                faults.push(format!("`{to}` is no room of `{}`: {}", house.name, places.join(", ")));
            }
        } else if !both_others && order(from) <= order(to) && !is_wrong(from, to) {
            faults.push(format!("`{from}` of `{}` must not speak of `{to}`: {}", house.name, places.join(", ")));
        }
    }
    let there = |(from, to): &(&str, &str)| found.contains_key(&((*from).to_owned(), (*to).to_owned()));
    let cut = house.wrong.iter().filter(|arrow| !there(arrow));
    faults.extend(cut.map(|(from, to)| {
        format!("`{from}` of `{}` does not speak of `{to}` any more: take it from the list", house.name)
    }));
    faults
}

/// The rooms that reach each other, for each group of them that does.
pub fn knots(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut reached: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        reached.entry(from).or_default().insert(to);
        reached.entry(to).or_default();
    }
    loop {
        let before = reached.values().map(BTreeSet::len).sum::<usize>();
        for room in reached.keys().copied().collect::<Vec<_>>() {
            let further: Vec<&str> = reached[room].iter().flat_map(|next| reached[next].iter().copied()).collect();
            reached.entry(room).or_default().extend(further);
        }
        if before == reached.values().map(BTreeSet::len).sum::<usize>() {
            break;
        }
    }
    let in_knot: Vec<&str> = reached.keys().copied().filter(|room| reached[room].contains(room)).collect();
    let knot = |room: &&str| -> Vec<String> {
        let each_way = |other: &&&str| reached[*room].contains(**other) && reached[**other].contains(*room);
        in_knot.iter().filter(each_way).map(|other| (*other).to_owned()).collect()
    };
    let found: BTreeSet<Vec<String>> = in_knot.iter().map(knot).collect();
    found.into_iter().collect()
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
    fn rooms_that_reach_each_other_are_a_knot() {
        let arrow = |from: &str, to: &str| ((from.to_owned(), to.to_owned()), Vec::new());
        let arrows = |list: &[(&str, &str)]| list.iter().map(|(from, to)| arrow(from, to)).collect::<Arrows>();
        assert_eq!(knots(&arrows(&[("a", "b"), ("b", "c"), ("a", "c")])), Vec::<Vec<String>>::new());
        let found = knots(&arrows(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "e"), ("e", "d"), ("c", "d")]));
        assert_eq!(found, [["b", "c"], ["d", "e"]]);
    }

    #[test]
    fn other_rooms_speak_of_each_other_and_keep_their_place() {
        let house = House { rooms: &["names", OTHERS, "exec"], ..HOUSE };
        assert_eq!(faults(&house, "attic/mod.rs", "use crate::{names, bind, quote};"), Vec::<String>::new());
        assert_eq!(faults(&house, "attic/mod.rs", "use crate::exec::Row;").len(), 1);
        assert_eq!(faults(&house, "names/mod.rs", "use crate::attic::Row;").len(), 0, "no such room: of the root");
        assert_eq!(faults(&house, "names/mod.rs", "use crate::bind::Row;").len(), 1);
    }

    #[test]
    fn every_room_has_a_place() {
        assert_eq!(faults(&HOUSE, "attic/mod.rs", "").len(), 1);
        assert_eq!(faults(&HOUSE, "bind/from.rs", "use crate::attic::Row;").len(), 1);
    }
}
