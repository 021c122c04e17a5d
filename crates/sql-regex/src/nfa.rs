//! Where a part can match: all states in parallel, character by character.

use base::Result;

use super::class::{Class, is_word};
use super::parse::invalid;
use super::{Assert, Node, took};

/// States that one part may have.
const STATES_MAX: usize = 100_000;

#[derive(Debug)]
enum NfaState {
    Class(usize, u32),
    Split(u32, u32),
    Assert(Assert, u32),
    Look(usize, u32),
    Match,
}

/// A part's machine.
pub(super) struct Program {
    states: Vec<NfaState>,
    classes: Vec<Class>,
    looks: Vec<Look>,
    start: u32,
}

/// A look-around constraint.
struct Look {
    ahead: bool,
    negated: bool,
    program: Program,
}

const NOWHERE: u32 = u32::MAX;

impl Program {
    /// The machine of a part.
    ///
    /// # Errors
    /// 2201B if it has too many states.
    pub(super) fn compile(node: &Node) -> Result<Program> {
        let mut program = Program { states: vec![NfaState::Match], classes: Vec::new(), looks: Vec::new(), start: 0 };
        program.start = program.node(node, 0)?;
        Ok(program)
    }

    fn push(&mut self, state: NfaState) -> Result<u32> {
        took(1)?;
        if self.states.len() >= STATES_MAX {
            return Err(invalid("regular expression is too complex"));
        }
        self.states.push(state);
        Ok(self.states.len() as u32 - 1)
    }

    /// The state from which a node is matched and `next` reached.
    fn node(&mut self, node: &Node, next: u32) -> Result<u32> {
        match node {
            Node::Empty | Node::Back(_) => Ok(next),
            Node::Class(class) => {
                self.classes.push(class.clone());
                self.push(NfaState::Class(self.classes.len() - 1, next))
            }
            Node::Assert(assert) => self.push(NfaState::Assert(*assert, next)),
            Node::Look { ahead, negated, node } => {
                let program = Program::compile(node)?;
                self.looks.push(Look { ahead: *ahead, negated: *negated, program });
                self.push(NfaState::Look(self.looks.len() - 1, next))
            }
            Node::Group(_, node) => self.node(node, next),
            Node::Concat(nodes) => nodes.iter().rev().try_fold(next, |next, node| self.node(node, next)),
            Node::Alternatives(nodes) => {
                let mut start = None;
                for node in nodes.iter().rev() {
                    let one = self.node(node, next)?;
                    start = Some(match start {
                        None => one,
                        Some(other) => self.push(NfaState::Split(one, other))?,
                    });
                }
                Ok(start.unwrap_or(next))
            }
            Node::Repeat { node, min, max, .. } => self.repeat(node, *min, *max, next),
        }
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, next: u32) -> Result<u32> {
        let mut start = next;
        match max {
            None => {
                let again = self.push(NfaState::Split(NOWHERE, next))?;
                let body = self.node(node, again)?;
                self.states[again as usize] = NfaState::Split(body, next);
                start = again;
            }
            Some(max) => {
                for _ in min..max {
                    let body = self.node(node, start)?;
                    start = self.push(NfaState::Split(body, next))?;
                }
            }
        }
        (0..min).try_fold(start, |start, _| self.node(node, start))
    }
}

/// A set of states in the order they were added.
struct States {
    list: Vec<u32>,
    /// The round in which a state was added last.
    added: Vec<u32>,
    round: u32,
}

impl States {
    fn new(count: usize) -> States {
        States { list: Vec::new(), added: vec![0; count], round: 1 }
    }

    fn clear(&mut self) {
        self.list.clear();
        self.round += 1;
    }

    fn add(&mut self, state: u32) -> bool {
        let is_new = self.added[state as usize] != self.round;
        if is_new {
            self.added[state as usize] = self.round;
            self.list.push(state);
        }
        is_new
    }
}

/// What a run is to find.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// All ends, from one start.
    Ends,
    /// Whether there is an end.
    Any,
    /// All ends, from all starts.
    Everywhere,
    /// Whether there is an end, from any start.
    Somewhere,
}

/// A run of a machine over a text.
struct Run<'a> {
    program: &'a Program,
    text: &'a [char],
    now: States,
    next: States,
    pending: Vec<u32>,
    /// For each look-behind constraint the places where it holds, once it is asked for.
    behind: Vec<Option<Vec<bool>>>,
}

/// The places, in order, where a match of the machine ends that begins at `from`; none beyond `limit`.
///
/// # Errors
/// 57014
pub(super) fn ends(program: &Program, text: &[char], from: usize, limit: usize) -> Result<Vec<usize>> {
    Run::new(program, text).run(from, limit, Wanted::Ends)
}

/// Whether the machine matches anywhere from `from` on.
///
/// # Errors
/// 57014
pub(super) fn matches_from(program: &Program, text: &[char], from: usize) -> Result<bool> {
    Ok(!Run::new(program, text).run(from, text.len(), Wanted::Somewhere)?.is_empty())
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, text: &'a [char]) -> Run<'a> {
        let count = program.states.len();
        let behind = program.looks.iter().map(|_| None).collect();
        Run { program, text, now: States::new(count), next: States::new(count), pending: Vec::new(), behind }
    }

    fn run(&mut self, from: usize, limit: usize, wanted: Wanted) -> Result<Vec<usize>> {
        let mut ends = Vec::new();
        let mut now = std::mem::replace(&mut self.now, States::new(0));
        let mut next = std::mem::replace(&mut self.next, States::new(0));
        let everywhere = matches!(wanted, Wanted::Everywhere | Wanted::Somewhere);
        self.enter(self.program.start, from, &mut now)?;
        for at in from..=limit {
            if everywhere {
                self.enter(self.program.start, at, &mut now)?;
            }
            took(now.list.len() + 1)?;
            next.clear();
            for &state in &now.list {
                match self.program.states[state as usize] {
                    NfaState::Match => ends.push(at),
                    NfaState::Class(class, then) if at < limit && self.program.classes[class].holds(self.text[at]) => {
                        self.enter(then, at + 1, &mut next)?;
                    }
                    _ => {}
                }
            }
            if matches!(wanted, Wanted::Any | Wanted::Somewhere) && !ends.is_empty() {
                break;
            }
            std::mem::swap(&mut now, &mut next);
            if now.list.is_empty() && !everywhere {
                break;
            }
        }
        (self.now, self.next) = (now, next);
        self.now.clear();
        Ok(ends)
    }

    /// Adds a state with all that can be reached from it at this place.
    fn enter(&mut self, state: u32, at: usize, to: &mut States) -> Result<()> {
        self.pending.push(state);
        let before = to.list.len();
        while let Some(state) = self.pending.pop() {
            if !to.add(state) {
                continue;
            }
            match self.program.states[state as usize] {
                NfaState::Split(a, b) => {
                    self.pending.push(b);
                    self.pending.push(a);
                }
                NfaState::Assert(assert, then) if holds(assert, self.text, at) => self.pending.push(then),
                NfaState::Look(look, then) => {
                    let pending = std::mem::take(&mut self.pending);
                    let holds = self.look(look, at)?;
                    self.pending = pending;
                    if holds {
                        self.pending.push(then);
                    }
                }
                _ => {}
            }
        }
        took(to.list.len() - before)
    }

    fn look(&mut self, number: usize, at: usize) -> Result<bool> {
        let look = &self.program.looks[number];
        let len = self.text.len();
        let found = if look.ahead {
            !Run::new(&look.program, self.text).run(at, len, Wanted::Any)?.is_empty()
        } else {
            if self.behind[number].is_none() {
                let mut places = vec![false; len + 1];
                for end in Run::new(&look.program, self.text).run(0, len, Wanted::Everywhere)? {
                    places[end] = true;
                }
                self.behind[number] = Some(places);
            }
            self.behind[number].as_ref().is_some_and(|places| places[at])
        };
        Ok(found != look.negated)
    }
}

/// Whether a constraint holds at a place.
fn holds(assert: Assert, text: &[char], at: usize) -> bool {
    let behind = || at > 0 && is_word(text[at - 1]);
    let ahead = || at < text.len() && is_word(text[at]);
    match assert {
        Assert::TextStart => at == 0,
        Assert::TextEnd => at == text.len(),
        Assert::LineStart => at == 0 || text[at - 1] == '\n',
        Assert::LineEnd => at == text.len() || text[at] == '\n',
        Assert::WordStart => !behind() && ahead(),
        Assert::WordEnd => behind() && !ahead(),
        Assert::WordEdge => behind() != ahead(),
        Assert::NoWordEdge => behind() == ahead(),
    }
}
