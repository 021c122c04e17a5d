//! Compiled regular expressions: a fast path for what the `regex` crate answers as PostgreSQL does, and a cache per thread.
//!
//! Whether and where an expression matches first is the crate's to say, which takes linear time. Which of several matches at
//! that place is taken, and how it is divided among the groups, is another question in PostgreSQL than in the crate; where
//! the answers may differ, and where there are back references or look-around, `super::are` finds the match.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use base::{Error, Result, SqlState};
use regex::{Regex, RegexBuilder};
use smallvec::SmallVec;

use super::super::EvalContext;
use super::are::{self, Matcher, Steps, Subject};

/// A compiled expression.
#[derive(Clone)]
pub(in crate::functions) struct Pattern(Rc<Machines>);

struct Machines {
    /// Says whether and where it matches first; not there for what the crate cannot do.
    first: Option<Regex>,
    /// Says what is matched; not there if the crate says the same.
    exact: Option<Matcher>,
}

/// Where an expression matched: the whole, then its groups.
pub(in crate::functions) struct Found<'t> {
    text: &'t str,
    spans: SmallVec<[Option<(usize, usize)>; 4]>,
}

impl<'t> Found<'t> {
    /// First and last offset of a group; 0 is the whole match.
    pub(in crate::functions) fn span(&self, group: usize) -> Option<(usize, usize)> {
        self.spans.get(group).copied().flatten()
    }

    /// The text of a group.
    pub(in crate::functions) fn group(&self, group: usize) -> Option<&'t str> {
        self.span(group).map(|(start, end)| &self.text[start..end])
    }

    /// Number of groups, the whole match not counted.
    pub(in crate::functions) fn groups(&self) -> usize {
        self.spans.len() - 1
    }
}

impl Pattern {
    /// Whether the expression matches somewhere.
    ///
    /// # Errors
    /// 57014
    pub(in crate::functions) fn is_match(&self, cx: &dyn EvalContext, text: &str) -> Result<bool> {
        match &self.0.first {
            Some(regex) => Ok(regex.is_match(text)),
            None => Ok(self.find(cx, text, 0)?.is_some()),
        }
    }

    /// The first match from a byte offset on.
    ///
    /// # Errors
    /// 57014
    pub(in crate::functions) fn find<'t>(
        &self,
        cx: &dyn EvalContext,
        text: &'t str,
        from: usize,
    ) -> Result<Option<Found<'t>>> {
        self.find_in(cx, text, &OnceCell::new(), from)
    }

    fn find_in<'t>(
        &self,
        cx: &dyn EvalContext,
        text: &'t str,
        subject: &OnceCell<Subject>,
        from: usize,
    ) -> Result<Option<Found<'t>>> {
        let Some(exact) = &self.0.exact else {
            let found = self.0.first.as_ref().and_then(|regex| regex.captures_at(text, from));
            return Ok(found
                .map(|found| Found { text, spans: found.iter().map(|g| g.map(|m| (m.start(), m.end()))).collect() }));
        };
        let mut start = from;
        if let Some(regex) = &self.0.first {
            match regex.find_at(text, from) {
                Some(found) => start = found.start(),
                None => return Ok(None),
            }
        }
        let subject = subject.get_or_init(|| Subject::new(text));
        let spans = exact.find(subject, start, self.0.first.is_some(), &Steps::new(cx))?;
        Ok(spans.map(|spans| Found { text, spans: spans.into() }))
    }

    /// The matches from a byte offset on, as PostgreSQL counts them: behind an empty one the next character is skipped.
    pub(in crate::functions) fn matches<'t>(
        &self,
        cx: &dyn EvalContext,
        text: &'t str,
        from: usize,
    ) -> impl Iterator<Item = Result<Found<'t>>> {
        let mut at = from;
        let subject = OnceCell::new();
        std::iter::from_fn(move || {
            if at > text.len() {
                return None;
            }
            let found = match self.find_in(cx, text, &subject, at).transpose()? {
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
/// Bytes that a compiled expression may take.
const SIZE_LIMIT: usize = 16 << 20;

/// How an expression is read and matched.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::functions) struct Options {
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
    pub(in crate::functions) fn parse(flags: &str) -> Result<Options> {
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
pub(in crate::functions) fn compiled(pattern: &str, options: Options) -> Result<Pattern> {
    let options = Options { global: false, ..options };
    CACHE.with_borrow_mut(|cache| {
        if let Some(at) = cache.iter().position(|c| c.options == options && *c.pattern == *pattern) {
            // What is used often stays in front.
            if at > 0 {
                cache.swap(at, at - 1);
                return Ok(cache[at - 1].regex.clone());
            }
            return Ok(cache[0].regex.clone());
        }
        let regex = compile(pattern, options)?;
        cache.truncate(CACHED - 1);
        cache.push(Compiled { pattern: pattern.into(), options, regex: regex.clone() });
        Ok(regex)
    })
}

/// Whether the expression matches somewhere.
pub(in crate::functions) fn is_match(
    cx: &dyn EvalContext,
    text: &str,
    pattern: &str,
    options: Options,
) -> Result<bool> {
    let options = Options { global: false, ..options };
    let hit = CACHE.with_borrow(|cache| {
        let front = cache.first().filter(|c| c.options == options && *c.pattern == *pattern);
        front.and_then(|c| c.regex.0.first.as_ref()).map(|regex| regex.is_match(text))
    });
    match hit {
        Some(matched) => Ok(matched),
        None => compiled(pattern, options)?.is_match(cx, text),
    }
}

fn compile(pattern: &str, options: Options) -> Result<Pattern> {
    if options.basic {
        return Err(Error::unsupported("basic regular expressions are not supported"));
    }
    let parsed = are::parse(
        pattern,
        are::Syntax {
            ignore_case: options.ignore_case,
            dot_excludes_newline: options.dot_excludes_newline,
            line_anchors: options.line_anchors,
            expanded: options.expanded,
            extended: options.extended,
            literal: options.literal,
        },
    )?;
    let mut first = None;
    let mut ambiguous = true;
    if !parsed.has_back
        && !parsed.has_look
        && let Some((written, may_differ)) = are::write(&parsed.node)
    {
        first = RegexBuilder::new(&written).size_limit(SIZE_LIMIT).build().ok();
        // A group that is repeated no times is counted but not written.
        let counts = |regex: &Regex| regex.captures_len() == parsed.groups as usize + 1;
        ambiguous = may_differ || !first.as_ref().is_some_and(counts);
    }
    let exact = if ambiguous { Some(Matcher::new(&parsed)?) } else { None };
    Ok(Pattern(Rc::new(Machines { first, exact })))
}
