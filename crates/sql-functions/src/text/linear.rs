//! Searches of long texts by automata that are built as they go, byte by byte.
//!
//! Responsible for: where an expression matches first, in time that is linear in the text, counted ([`base::work`]).
//! Not responsible for: groups; expressions with back references or look-around.
//! Invariants: an automaton's cache is with one search at a time: a search that is suspended keeps it, and another one makes
//! its own.

use std::cell::Cell;

use base::{Result, work};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::hybrid::regex::Regex;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, nfa::thompson};

use super::pattern::BEGINNING;

/// Bytes of states that are kept; beyond, all are made anew.
const CACHE: usize = 4 << 20;
/// Bytes between two looks at what new states have cost.
const STRETCH: usize = 64;
/// Bytes of new states that are a unit of work.
const BYTES_PER_UNIT: usize = 2;

/// The two automata of an expression: one finds ends, the other begins there and finds starts.
pub(super) struct Linear {
    regex: Regex,
    ends: Cell<Option<Box<Cache>>>,
    starts: Cell<Option<Box<Cache>>>,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinearMatch {
    /// First and last offset, and how far it had to look to know that.
    At { start: usize, end: usize, seen: usize },
    /// There is no match.
    Nowhere,
    /// The automata cannot tell for this text.
    Unknown,
}

/// How one automaton's way through a text ended.
enum Way {
    /// The offset of the last match and where it was sure of it.
    Match(usize, usize),
    None,
    Unknown,
}

impl Linear {
    /// The automata of an expression in the crate's syntax, of at most so many bytes; `None` if they cannot be made.
    pub(super) fn new(written: &str, size_limit: usize) -> Option<Linear> {
        let config = DFA::config()
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(None)
            // Such a boundary is found as long as the text is ASCII; elsewhere the automaton says that it cannot tell.
            .unicode_word_boundary(true);
        let regex = Regex::builder()
            .syntax(syntax::Config::new())
            .thompson(thompson::Config::new().nfa_size_limit(Some(size_limit)))
            .dfa(config)
            .build(written)
            .ok()?;
        Some(Linear { regex, ends: Cell::new(None), starts: Cell::new(None) })
    }

    /// The first match from a byte offset on; of one that is only asked `whether` there is one, start and end mean nothing.
    ///
    /// # Errors
    /// 57014
    pub(super) fn find(&self, text: &str, from: usize, whether: bool) -> Result<LinearMatch> {
        // To begin costs as much as some bytes; what follows is counted by the stretch.
        work::step(BEGINNING)?;
        let dfa = self.regex.forward();
        let mut cache = self.ends.take().unwrap_or_else(|| Box::new(dfa.create_cache()));
        let way = forward(dfa, &mut cache, text.as_bytes(), from, whether);
        self.ends.set(Some(cache));
        let (end, seen) = match way? {
            Way::Match(end, seen) => (end, seen),
            Way::None => return Ok(LinearMatch::Nowhere),
            Way::Unknown => return Ok(LinearMatch::Unknown),
        };
        // What matches the empty text within a character is not a match; which one is then the first is not looked for here.
        if !text.is_char_boundary(end) {
            return Ok(LinearMatch::Unknown);
        }
        if whether {
            return Ok(LinearMatch::At { start: end, end, seen });
        }
        let dfa = self.regex.reverse();
        let mut cache = self.starts.take().unwrap_or_else(|| Box::new(dfa.create_cache()));
        let way = backward(dfa, &mut cache, text.as_bytes(), from, end);
        self.starts.set(Some(cache));
        Ok(match way? {
            Way::Match(start, _) if text.is_char_boundary(start) => LinearMatch::At { start, end, seen },
            _ => LinearMatch::Unknown,
        })
    }
}

/// Counts the work of a stretch: its bytes, and the states that it made.
struct Meter {
    bytes: usize,
    states: usize,
}

impl Meter {
    fn of(cache: &Cache) -> Meter {
        Meter { bytes: 0, states: cache.memory_usage() }
    }

    #[inline]
    fn byte(&mut self, cache: &Cache) -> Result<()> {
        self.bytes += 1;
        if self.bytes == STRETCH { self.stretch(cache) } else { Ok(()) }
    }

    fn stretch(&mut self, cache: &Cache) -> Result<()> {
        let states = cache.memory_usage();
        // After all were thrown away it is not known how many were made.
        let made = states.checked_sub(self.states).unwrap_or(states.max(CACHE / 8));
        let units = self.bytes + made / BYTES_PER_UNIT;
        (self.bytes, self.states) = (0, states);
        work::step(units)
    }
}

fn forward(dfa: &DFA, cache: &mut Cache, text: &[u8], from: usize, whether: bool) -> Result<Way> {
    let Ok(mut state) = dfa.start_state_forward(cache, &Input::new(text).range(from..)) else {
        return Ok(Way::Unknown);
    };
    let mut meter = Meter::of(cache);
    let mut last = None;
    for (at, &byte) in text.iter().enumerate().skip(from) {
        let Ok(next) = dfa.next_state(cache, state, byte) else { return Ok(Way::Unknown) };
        state = next;
        if state.is_tagged() {
            if state.is_match() {
                // It is told one byte late.
                last = Some(at);
                if whether {
                    return Ok(Way::Match(at, at));
                }
            } else if state.is_dead() {
                return Ok(last.map_or(Way::None, |last| Way::Match(last, at)));
            } else if state.is_quit() {
                return Ok(Way::Unknown);
            }
        }
        meter.byte(cache)?;
    }
    Ok(at_the_edge(dfa.next_eoi_state(cache, state).ok(), last, text.len(), text.len()))
}

fn backward(dfa: &DFA, cache: &mut Cache, text: &[u8], from: usize, end: usize) -> Result<Way> {
    let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
    let Ok(mut state) = dfa.start_state_reverse(cache, &input) else { return Ok(Way::Unknown) };
    let mut meter = Meter::of(cache);
    let mut last = None;
    for at in (from..end).rev() {
        let Ok(next) = dfa.next_state(cache, state, text[at]) else { return Ok(Way::Unknown) };
        state = next;
        if state.is_tagged() {
            if state.is_match() {
                last = Some(at + 1);
            } else if state.is_dead() {
                return Ok(last.map_or(Way::None, |last| Way::Match(last, at)));
            } else if state.is_quit() {
                return Ok(Way::Unknown);
            }
        }
        meter.byte(cache)?;
    }
    let edge = match from.checked_sub(1) {
        Some(before) => dfa.next_state(cache, state, text[before]),
        None => dfa.next_eoi_state(cache, state),
    };
    Ok(at_the_edge(edge.ok(), last, from, from))
}

/// What the step beyond the last byte says.
fn at_the_edge(state: Option<LazyStateID>, last: Option<usize>, here: usize, seen: usize) -> Way {
    match state {
        Some(state) if state.is_match() => Way::Match(here, seen),
        Some(state) if !state.is_quit() => last.map_or(Way::None, |last| Way::Match(last, seen)),
        _ => Way::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(written: &str, text: &str) -> (Option<(usize, usize)>, LinearMatch) {
        let expected = regex::Regex::new(written).unwrap().find(text).map(|m| (m.start(), m.end()));
        let linear = Linear::new(written, 1 << 20).unwrap();
        let found = linear.find(text, 0, false).unwrap();
        let whether = linear.find(text, 0, true).unwrap();
        assert_eq!(whether == LinearMatch::Nowhere, found == LinearMatch::Nowhere, "{written} {text}");
        (expected, found)
    }

    #[test]
    fn the_first_match_is_that_of_the_crate() {
        let words = ["", "a", "b", "ab", "ba", "é", "aé", "\n", " b", "abc abd", "x\u{301}y", "aaa"];
        let written = [
            "a",
            "a+",
            "(a|ab)(c|bcd)?",
            "b$",
            r"\bab",
            r"\B",
            "",
            "é?",
            "(?m:^)b",
            "a*?b",
            r"\z",
            "[^a]",
            "a{2}",
            ".",
        ];
        for expression in written {
            for first in words {
                for second in words {
                    let text = format!("{first}{second}");
                    let (expected, found) = places(expression, &text);
                    match found {
                        LinearMatch::At { start, end, .. } => {
                            assert_eq!(Some((start, end)), expected, "{expression} {text:?}")
                        }
                        LinearMatch::Nowhere => assert_eq!(expected, None, "{expression} {text:?}"),
                        LinearMatch::Unknown => assert!(!text.is_ascii(), "{expression} {text:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn it_counts_and_can_be_entered_twice() {
        let text = "ab".repeat(50_000);
        let before = work::total();
        let linear = Linear::new("(a|b)*c", 1 << 20).unwrap();
        assert_eq!(linear.find(&text, 0, true).unwrap(), LinearMatch::Nowhere);
        assert!(work::total() - before >= 100_000);
    }
}
