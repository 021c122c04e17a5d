//! Compiled regular expressions: a fast path for what the `regex` crate answers as PostgreSQL does, and a cache per thread.
//!
//! A call of the crate cannot be interrupted: long texts are searched by `super::linear`, which can.
//!
//! Whether and where an expression matches first is the crate's to say, which takes linear time. Which of several matches at
//! that place is taken, and how it is divided among the groups, is another question in PostgreSQL than in the crate; where
//! the answers may differ, and where there are back references or look-around, `sql_regex` finds the match.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use base::{Error, Result, SqlState, work};
use regex::{Regex, RegexBuilder};
use smallvec::SmallVec;
use sql_regex::{Matcher, Parsed, Subject};

use super::linear::{Linear, LinearMatch};

/// A compiled expression.
#[derive(Clone)]
pub(crate) struct Pattern(Rc<Machines>);

struct Machines {
    /// Says whether and where it matches first; not there for what the crate cannot do.
    first: Option<First>,
    /// It is the crate's to say what is matched, too.
    agreed: bool,
    /// Says what is matched. Made when it is wanted.
    exact: OnceCell<Matcher>,
    parsed: Parsed,
}

/// The crate's machines for an expression.
struct First {
    regex: Regex,
    written: String,
    /// States, about.
    size: usize,
    /// For long texts. Made when it is wanted.
    linear: OnceCell<Option<Linear>>,
}

/// Units that looking for a match costs, however near it is.
pub(super) const BEGINNING: usize = 64;

/// States times bytes that a call of the crate may look at, since it cannot be interrupted.
const AT_ONCE: usize = 1 << 19;

impl First {
    /// Whether a call of the crate for so many bytes is short.
    fn is_short(&self, bytes: usize) -> bool {
        self.size.saturating_mul(bytes) <= AT_ONCE
    }

    /// The first match in a long text.
    fn find(&self, text: &str, from: usize, whether: bool) -> Result<LinearMatch> {
        match self.linear.get_or_init(|| Linear::new(&self.written, SIZE_LIMIT)) {
            Some(linear) => linear.find(text, from, whether),
            None => Ok(LinearMatch::Unknown),
        }
    }
}

/// Where an expression matched: the whole, then its groups.
pub(crate) struct Found<'t> {
    text: &'t str,
    spans: SmallVec<[Option<(usize, usize)>; 4]>,
}

impl<'t> Found<'t> {
    /// First and last offset of a group; 0 is the whole match.
    pub(crate) fn span(&self, group: usize) -> Option<(usize, usize)> {
        self.spans.get(group).copied().flatten()
    }

    /// The text of a group.
    pub(crate) fn group(&self, group: usize) -> Option<&'t str> {
        self.span(group).map(|(start, end)| &self.text[start..end])
    }

    /// Number of groups, the whole match not counted.
    pub(crate) fn groups(&self) -> usize {
        self.spans.len() - 1
    }
}

impl Pattern {
    /// Whether the expression matches somewhere.
    ///
    /// # Errors
    /// 57014
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        if let Some(first) = &self.0.first {
            if first.is_short(text.len()) {
                work::step(text.len() / 2)?;
                return Ok(first.regex.is_match(text));
            }
            match first.find(text, 0, true)? {
                LinearMatch::At { .. } => return Ok(true),
                LinearMatch::Nowhere => return Ok(false),
                LinearMatch::Unknown => {}
            }
        }
        Ok(self.exactly(text, &OnceCell::new(), 0, false)?.is_some())
    }

    /// The first match from a byte offset on.
    ///
    /// # Errors
    /// 57014
    pub(crate) fn find<'t>(&self, text: &'t str, from: usize) -> Result<Option<Found<'t>>> {
        self.find_in(text, &OnceCell::new(), from)
    }

    fn find_in<'t>(&self, text: &'t str, subject: &OnceCell<Subject>, from: usize) -> Result<Option<Found<'t>>> {
        let Some(first) = &self.0.first else { return self.exactly(text, subject, from, false) };
        let captures = |from| {
            let found = first.regex.captures_at(text, from);
            found.map(|found| Found { text, spans: found.iter().map(|g| g.map(|m| (m.start(), m.end()))).collect() })
        };
        if first.is_short(text.len() - from) {
            // Those of all calls for one text are together about its length, beside what each costs to begin.
            work::step(BEGINNING)?;
            if self.0.agreed {
                let found = captures(from);
                work::step(found.as_ref().and_then(|found| found.span(0)).map_or(text.len(), |span| span.1) - from)?;
                return Ok(found);
            }
            let Some(found) = first.regex.find_at(text, from) else { return Ok(None) };
            return self.exactly(text, subject, found.start(), true);
        }
        match first.find(text, from, false)? {
            LinearMatch::Nowhere => Ok(None),
            LinearMatch::Unknown => self.exactly(text, subject, from, false),
            LinearMatch::At { start, end, .. } if self.0.agreed && first.regex.captures_len() == 1 => {
                Ok(Some(Found { text, spans: SmallVec::from_slice(&[Some((start, end))]) }))
            }
            LinearMatch::At { start, seen, .. } if self.0.agreed && first.is_short(seen - start) => Ok(captures(start)),
            LinearMatch::At { start, .. } => self.exactly(text, subject, start, true),
        }
    }

    /// The first match, as PostgreSQL divides it, that begins at a byte offset or later, or only there.
    fn exactly<'t>(
        &self,
        text: &'t str,
        subject: &OnceCell<Subject>,
        from: usize,
        only_there: bool,
    ) -> Result<Option<Found<'t>>> {
        let exact = match self.0.exact.get() {
            Some(exact) => exact,
            None => {
                let made = Matcher::new(&self.0.parsed)?;
                self.0.exact.get_or_init(|| made)
            }
        };
        let subject = match subject.get() {
            Some(subject) => subject,
            None => {
                let made = Subject::new(text)?;
                subject.get_or_init(|| made)
            }
        };
        let spans = exact.find(subject, from, only_there)?;
        Ok(spans.map(|spans| Found { text, spans: spans.into() }))
    }

    /// The matches from a byte offset on, as PostgreSQL counts them: behind an empty one the next character is skipped.
    pub(crate) fn matches<'t>(&self, text: &'t str, from: usize) -> impl Iterator<Item = Result<Found<'t>>> {
        let mut at = from;
        let subject = OnceCell::new();
        std::iter::from_fn(move || {
            if at > text.len() {
                return None;
            }
            let found = match self.find_in(text, &subject, at).transpose()? {
                Ok(found) => found,
                Err(error) => {
                    at = usize::MAX;
                    return Some(Err(error));
                }
            };
            let (start, end) = found.span(0)?;
            at = if start < end { end } else { end + text[end..].chars().next().map_or(1, char::len_utf8) };
            Some(Ok(found))
        })
    }
}

/// Compiled expressions that a thread keeps.
const CACHED: usize = 32;
/// States, about, beyond which the crate is not asked: it makes them without an interruption.
const SIZE_MAX: usize = 10_000;
/// Bytes that a compiled expression may take.
const SIZE_LIMIT: usize = 16 << 20;

/// How an expression is read and matched.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// `i`
    pub ignore_case: bool,
    /// Dot and negated brackets do not match newlines (`n`, `p`).
    pub dot_excludes_newline: bool,
    /// `^` and `$` match at newlines (`n`, `w`).
    pub line_anchors: bool,
    /// `x`
    pub expanded: bool,
    /// `q`: not an expression but a text.
    pub literal: bool,
    /// `e`: an extended expression, without what is special to advanced ones.
    pub extended: bool,
    /// `b`: a basic expression.
    pub basic: bool,
    /// `g`, for functions that allow it.
    pub global: bool,
}

impl Options {
    /// Reads a function's flags.
    pub(crate) fn parse(flags: &str) -> Result<Options> {
        let mut options = Options::default();
        for c in flags.chars() {
            options.set(c).map_err(|()| {
                let message = format!("invalid regular expression option: \"{c}\"");
                Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
            })?;
        }
        Ok(options)
    }

    fn set(&mut self, flag: char) -> Result<(), ()> {
        let newlines = |o: &mut Options, dot, anchors| (o.dot_excludes_newline, o.line_anchors) = (dot, anchors);
        match flag {
            'g' => self.global = true,
            'i' => self.ignore_case = true,
            'c' => self.ignore_case = false,
            'n' | 'm' => newlines(self, true, true),
            'p' => newlines(self, true, false),
            's' => newlines(self, false, false),
            'w' => newlines(self, false, true),
            'x' => self.expanded = true,
            't' => self.expanded = false,
            'q' => self.literal = true,
            'e' => (self.literal, self.basic, self.extended) = (false, false, true),
            'b' => (self.literal, self.basic, self.extended) = (false, true, false),
            _ => return Err(()),
        }
        Ok(())
    }
}

struct Compiled {
    pattern: Box<str>,
    options: Options,
    regex: Pattern,
}

thread_local! {
    static CACHE: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

/// The compiled expression.
pub(crate) fn compiled(pattern: &str, options: Options) -> Result<Pattern> {
    let options = Options { global: false, ..options };
    let known = CACHE.with_borrow_mut(|cache| {
        let at = cache.iter().position(|c| c.options == options && *c.pattern == *pattern)?;
        // What is used often stays in front.
        let before = at.saturating_sub(1);
        cache.swap(at, before);
        Some(cache[before].regex.clone())
    });
    if let Some(known) = known {
        return Ok(known);
    }
    // Others of the thread may have their turn meanwhile.
    let regex = compile(pattern, options)?;
    CACHE.with_borrow_mut(|cache| {
        cache.truncate(CACHED - 1);
        cache.push(Compiled { pattern: pattern.into(), options, regex: regex.clone() });
    });
    Ok(regex)
}

/// Whether the expression matches somewhere.
pub(crate) fn is_match(text: &str, pattern: &str, options: Options) -> Result<bool> {
    let options = Options { global: false, ..options };
    let hit = CACHE.with_borrow(|cache| {
        let front = cache.first().filter(|c| c.options == options && *c.pattern == *pattern);
        let first = front.and_then(|c| c.regex.0.first.as_ref()).filter(|first| first.is_short(text.len()));
        first.map(|first| first.regex.is_match(text))
    });
    match hit {
        Some(matched) => Ok(matched),
        None => compiled(pattern, options)?.is_match(text),
    }
}

fn compile(pattern: &str, options: Options) -> Result<Pattern> {
    if options.basic {
        return Err(Error::unsupported("basic regular expressions are not supported"));
    }
    let parsed = sql_regex::parse(
        pattern,
        sql_regex::Syntax {
            ignore_case: options.ignore_case,
            dot_excludes_newline: options.dot_excludes_newline,
            line_anchors: options.line_anchors,
            expanded: options.expanded,
            extended: options.extended,
            literal: options.literal,
        },
    )?;
    let mut first = None;
    let mut agreed = false;
    let size = sql_regex::size(&parsed.node);
    if !parsed.has_back
        && !parsed.has_look
        && size <= SIZE_MAX
        && let Some((written, may_differ)) = sql_regex::write(&parsed.node)
        && let Ok(regex) = RegexBuilder::new(&written).size_limit(SIZE_LIMIT).build()
    {
        // A group that is repeated no times is counted but not written.
        agreed = !may_differ && regex.captures_len() == parsed.groups as usize + 1;
        first = Some(First { regex, written, size, linear: OnceCell::new() });
    }
    let exact = OnceCell::new();
    if !agreed {
        let _ = exact.set(Matcher::new(&parsed)?);
    }
    Ok(Pattern(Rc::new(Machines { first, agreed, exact, parsed })))
}
