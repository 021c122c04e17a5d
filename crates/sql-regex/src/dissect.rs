//! A match divided among the groups.

use std::rc::Rc;

use base::{Result, work};
use rustc_hash::{FxHashMap, FxHashSet};

use super::class::other_cases;
use super::nfa::{Program, ends, matches_from};
use super::parse::invalid;
use super::shape::{How, Part, shape};
use super::{Node, Parsed, took};

/// A text, character by character.
pub struct Subject {
    chars: Vec<char>,
    /// Byte offset of each character, and of the end.
    offsets: Vec<usize>,
}

impl Subject {
    /// # Errors
    /// 57014
    pub fn new(text: &str) -> Result<Subject> {
        let count = text.chars().count();
        let (mut chars, mut offsets) = (Vec::with_capacity(count), Vec::with_capacity(count + 1));
        for (at, c) in text.char_indices() {
            work::step(1)?;
            chars.push(c);
            offsets.push(at);
        }
        offsets.push(text.len());
        Ok(Subject { chars, offsets })
    }

    /// The character at a byte offset.
    fn place(&self, offset: usize) -> usize {
        self.offsets.partition_point(|&at| at < offset)
    }
}

/// First and last offset of the whole match and of each group.
pub(crate) type Spans = Vec<Option<(usize, usize)>>;

/// A part with its machine, numbered.
struct Piece {
    how: Division,
    short: bool,
    back: bool,
    number: usize,
    program: Program,
    groups: Vec<u32>,
}

enum Division {
    Whole,
    Concat(Box<Piece>, Box<Piece>),
    Alternatives(Vec<Piece>),
    Iterate { piece: Box<Piece>, min: usize, max: Option<usize> },
    Back { number: usize, min: usize, max: Option<usize> },
}

/// An expression, ready to be matched.
pub struct Matcher {
    root: Piece,
    groups: usize,
    ignore_case: bool,
}

impl Matcher {
    /// # Errors
    /// 2201B if the expression is too large.
    pub fn new(parsed: &Parsed) -> Result<Matcher> {
        let whole = Node::Concat(vec![parsed.node.clone()]);
        let part = shape(match &parsed.node {
            Node::Alternatives(_) => &parsed.node,
            _ => &whole,
        });
        let part = part.ok_or_else(|| invalid("regular expression is too complex"))?;
        let mut count = 0;
        let root = piece(part, &mut count)?;
        Ok(Matcher { root, groups: parsed.groups as usize, ignore_case: parsed.syntax.ignore_case })
    }

    /// The first match that begins at byte `from` or later, or only there.
    ///
    /// # Errors
    /// 57014
    pub fn find(&self, subject: &Subject, from: usize, only_there: bool) -> Result<Option<Spans>> {
        let text = &subject.chars;
        let first = subject.place(from);
        let last = if only_there { first } else { text.len() };
        let mut search = Search {
            text,
            ignore_case: self.ignore_case,
            spans: vec![None; self.groups + 1],
            known: FxHashMap::default(),
            known_ends: 0,
        };
        if !only_there && !search.may_match(&self.root.program, first)? {
            return Ok(None);
        }
        for begin in first..=last {
            let stops = search.ends(&self.root, begin, text.len())?;
            for end in in_order(&stops, self.root.short) {
                search.spans.fill(None);
                if search.divide(&self.root, begin, end)? {
                    search.spans[0] = Some((begin, end));
                    let offset = |at: usize| subject.offsets[at];
                    return Ok(Some(search.spans.iter().map(|s| s.map(|(a, b)| (offset(a), offset(b)))).collect()));
                }
            }
            search.known.clear();
            search.known_ends = 0;
        }
        Ok(None)
    }
}

fn piece(part: Part, count: &mut usize) -> Result<Piece> {
    let number = *count;
    *count += 1;
    let program = Program::compile(&part.node)?;
    let (short, back) = (part.is_short(), part.flags.back);
    let how = match part.how {
        How::Whole => Division::Whole,
        How::Concat(left, right) => Division::Concat(Box::new(piece(*left, count)?), Box::new(piece(*right, count)?)),
        How::Alternatives(parts) => {
            Division::Alternatives(parts.into_iter().map(|p| piece(p, count)).collect::<Result<_>>()?)
        }
        How::Iterate { part, min, max } => Division::Iterate {
            piece: Box::new(piece(*part, count)?),
            min: min as usize,
            max: max.map(|max| max as usize),
        },
        How::Back { number, min, max } => {
            Division::Back { number: number as usize, min: min as usize, max: max.map(|max| max as usize) }
        }
    };
    Ok(Piece { how, short, back, number, program, groups: part.groups })
}

/// Ends by preference.
fn in_order(ends: &Rc<[usize]>, short: bool) -> impl Iterator<Item = usize> + use<> {
    let ends = Rc::clone(ends);
    let count = ends.len();
    (0..count).map(move |at| if short { ends[at] } else { ends[count - 1 - at] })
}

/// Ends that are remembered for one start of the whole.
const KNOWN_MAX: usize = 1 << 16;
/// All ends that are remembered.
const KNOWN_ENDS_MAX: usize = 1 << 21;

struct Search<'a> {
    text: &'a [char],
    ignore_case: bool,
    spans: Spans,
    /// Where a piece can end that begins at a place, if the text were to end at another.
    known: FxHashMap<(usize, usize, usize), Rc<[usize]>>,
    /// How many ends those are.
    known_ends: usize,
}

impl Search<'_> {
    /// Whether a match may begin at a place or behind it; that takes one run over the text.
    fn may_match(&self, program: &Program, from: usize) -> Result<bool> {
        matches_from(program, self.text, from)
    }

    /// All places where a piece can end, none beyond `limit`.
    fn ends(&mut self, piece: &Piece, from: usize, limit: usize) -> Result<Rc<[usize]>> {
        let key = (piece.number, from, limit);
        if let Some(known) = self.known.get(&key) {
            return Ok(Rc::clone(known));
        }
        let found: Rc<[usize]> = ends(&piece.program, self.text, from, limit)?.into();
        self.known_ends += found.len();
        if self.known.len() < KNOWN_MAX && self.known_ends < KNOWN_ENDS_MAX {
            self.known.insert(key, Rc::clone(&found));
        }
        Ok(found)
    }

    fn can_match(&mut self, piece: &Piece, from: usize, to: usize) -> Result<bool> {
        Ok(self.ends(piece, from, to)?.last() == Some(&to))
    }

    /// Divides a span, which the piece's machine accepts, among the groups of the piece.
    fn divide(&mut self, piece: &Piece, from: usize, to: usize) -> Result<bool> {
        took(1)?;
        let found = match &piece.how {
            Division::Whole => true,
            Division::Concat(left, right) => self.concat(left, right, from, to)?,
            Division::Alternatives(pieces) => {
                let mut found = false;
                for one in pieces {
                    if self.can_match(one, from, to)? && self.divide(one, from, to)? {
                        found = true;
                        break;
                    }
                    self.forget(one);
                }
                found
            }
            Division::Iterate { piece, min, max } => self.iterate(piece, *min, *max, from, to)?,
            Division::Back { number, min, max } => self.back(*number, *min, *max, from, to)?,
        };
        if found {
            for &group in &piece.groups {
                self.spans[group as usize] = Some((from, to));
            }
        }
        Ok(found)
    }

    fn concat(&mut self, left: &Piece, right: &Piece, from: usize, to: usize) -> Result<bool> {
        let middles = self.ends(left, from, to)?;
        for middle in in_order(&middles, left.short) {
            if self.can_match(right, middle, to)?
                && self.divide(left, from, middle)?
                && self.divide(right, middle, to)?
            {
                return Ok(true);
            }
            self.forget(left);
            self.forget(right);
        }
        Ok(false)
    }

    /// Forgets the groups within a piece.
    fn forget(&mut self, piece: &Piece) {
        for &group in &piece.groups {
            self.spans[group as usize] = None;
        }
        match &piece.how {
            Division::Whole | Division::Back { .. } => {}
            Division::Concat(left, right) => {
                self.forget(left);
                self.forget(right);
            }
            Division::Alternatives(pieces) => pieces.iter().for_each(|p| self.forget(p)),
            Division::Iterate { piece, .. } => self.forget(piece),
        }
    }

    fn back(&mut self, number: usize, min: usize, max: Option<usize>, from: usize, to: usize) -> Result<bool> {
        let Some((start, end)) = self.spans[number] else { return Ok(false) };
        let (len, have) = (end - start, to - from);
        if len == 0 {
            return Ok(have == 0);
        }
        if have == 0 {
            return Ok(min == 0);
        }
        if have % len != 0 || have / len < min || max.is_some_and(|max| have / len > max) {
            return Ok(false);
        }
        took(have)?;
        let same = |a: char, b: char| a == b || self.ignore_case && other_cases(a).0 == other_cases(b).0;
        Ok((from..to).all(|at| same(self.text[at], self.text[start + (at - from) % len])))
    }

    /// Repetitions, each of which takes what it prefers. Empty ones count only if others are too few.
    fn iterate(&mut self, piece: &Piece, min: usize, max: Option<usize>, from: usize, to: usize) -> Result<bool> {
        if from == to {
            // Nothing is what one empty repetition matches too, and then its groups are set; PostgreSQL tries that with a
            // part that prefers long matches, and it does not try several.
            if min == 0 && piece.short {
                return Ok(true);
            }
            let is_empty = min <= 1 && self.can_match(piece, from, to)? && self.divide(piece, from, to)?;
            return Ok(is_empty || min == 0);
        }
        let min = min.max(1);
        let max = max.map_or(to - from, |max| max.min(to - from)).max(min);
        let mut levels = vec![Level { at: from, ends: self.ends(piece, from, to)?, tried: 0 }];
        let mut dead: FxHashSet<(usize, usize)> = FxHashSet::default();
        while let Some(level) = levels.last_mut() {
            let count = level.ends.len();
            if level.tried == count {
                // Without back references what follows a place depends on nothing before it.
                let at = level.at;
                levels.pop();
                if !piece.back && dead.len() < KNOWN_MAX {
                    dead.insert((levels.len(), at));
                }
                continue;
            }
            let at = level.at;
            let end = level.ends[if piece.short { level.tried } else { count - 1 - level.tried }];
            level.tried += 1;
            let depth = levels.len();
            took(1)?;
            let (missing, empty) = (min.saturating_sub(depth), end == at);
            if end == to && missing == 0 {
                if self.verify(piece, &levels, end)? {
                    return Ok(true);
                }
                continue;
            }
            if end == to || depth >= max || empty && (missing == 0 || missing < to - end) {
                continue;
            }
            if dead.contains(&(depth, end)) {
                continue;
            }
            let ends = self.ends(piece, end, to)?;
            levels.push(Level { at: end, ends, tried: 0 });
        }
        Ok(false)
    }

    /// Whether each repetition can be divided; the last one's groups stay.
    fn verify(&mut self, piece: &Piece, levels: &[Level], end: usize) -> Result<bool> {
        let first = if piece.back { 0 } else { levels.len() - 1 };
        for number in first..levels.len() {
            let to = levels.get(number + 1).map_or(end, |next| next.at);
            self.forget(piece);
            if !self.divide(piece, levels[number].at, to)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A repetition that is tried.
struct Level {
    at: usize,
    ends: Rc<[usize]>,
    tried: usize,
}
