//! What prefers long and what short matches: the tree as it divides a match.
//!
//! A part of a branch that has neither groups nor back references nor both preferences within it is one piece, however long:
//! only its whole span counts. What cannot be one piece is divided into the piece before it, itself, and the rest of the
//! branch. The preference of a branch is that of its first part that has one, alternatives prefer long matches, and a
//! quantifier with its own preference hides what is within.

use base::work;

use super::{Node, Preference};

/// Preferences found in a part. Both may be set; the one that counts is in [`Flags::preference`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) preference: Preference,
    /// Parts within prefer long and short matches.
    mixed: bool,
    /// It has groups.
    pub(super) groups: bool,
    /// It has back references.
    pub(super) back: bool,
}

const PLAIN: Flags = Flags { preference: Preference::None, mixed: false, groups: false, back: false };

impl Flags {
    /// Flags of two parts together; the first one's preference counts, if it has one.
    fn then(self, next: Flags) -> Flags {
        let clash = self.preference != Preference::None
            && next.preference != Preference::None
            && self.preference != next.preference;
        Flags {
            preference: if self.preference == Preference::None { next.preference } else { self.preference },
            mixed: self.mixed || next.mixed || clash,
            groups: self.groups || next.groups,
            back: self.back || next.back,
        }
    }

    fn is_messy(self) -> bool {
        self.mixed || self.groups || self.back
    }

    fn preferring(preference: Preference) -> Flags {
        Flags { preference, ..PLAIN }
    }
}

/// A part of a match.
pub(super) struct Part {
    pub(super) how: How,
    pub(super) flags: Flags,
    /// What it matches, back references taken for what they might refer to.
    pub(super) node: Node,
    /// Groups whose span is the part's.
    pub(super) groups: Vec<u32>,
}

/// How a part is divided further.
pub(super) enum How {
    /// Not at all.
    Whole,
    /// One after the other.
    Concat(Box<Part>, Box<Part>),
    /// The first that matches.
    Alternatives(Vec<Part>),
    /// Again and again.
    Iterate { part: Box<Part>, min: u32, max: Option<u32> },
    /// The text of a group, so many times.
    Back { number: u32, min: u32, max: Option<u32> },
}

impl Part {
    fn whole(node: Node, preference: Preference) -> Part {
        Part { how: How::Whole, flags: Flags::preferring(preference), node, groups: Vec::new() }
    }

    /// Whether its shortest matches come first.
    pub(super) fn is_short(&self) -> bool {
        self.flags.preference == Preference::Short
    }
}

/// Parts of a branch, one within the other, that are divided.
const DEPTH_MAX: usize = 600;
/// Nodes that a part may have after back references were replaced by what they refer to.
const NODES_MAX: usize = 50_000;

/// The tree of an expression; `None` if it would be too large.
pub(super) fn shape(node: &Node) -> Option<Part> {
    let mut builder = Builder { referents: Vec::new(), nodes: 0, depth: 0 };
    let part = builder.part(node);
    (builder.nodes <= NODES_MAX).then_some(part)
}

struct Builder {
    /// What groups match, by number less one.
    referents: Vec<Node>,
    nodes: usize,
    depth: usize,
}

impl Builder {
    fn part(&mut self, node: &Node) -> Part {
        match node {
            Node::Alternatives(branches) => {
                let parts: Vec<Part> = branches.iter().map(|b| self.branch(b)).collect();
                let within = parts.iter().fold(PLAIN, |flags, p| flags.then(p.flags));
                let flags = Flags::preferring(Preference::Long).then(within);
                let node = Node::Alternatives(parts.iter().map(|p| p.node.clone()).collect());
                let how = if flags.is_messy() { How::Alternatives(parts) } else { How::Whole };
                Part { how, flags, node, groups: Vec::new() }
            }
            other => self.branch(other),
        }
    }

    fn branch(&mut self, node: &Node) -> Part {
        match node {
            Node::Concat(nodes) => self.sequence(nodes),
            Node::Alternatives(_) => self.part(node),
            single => self.sequence(std::slice::from_ref(single)),
        }
    }

    /// The parts of a branch: as many as can be are one piece, then one that cannot, then the rest.
    fn sequence(&mut self, nodes: &[Node]) -> Part {
        let mut lump = Vec::new();
        let mut flags = PLAIN;
        for (at, node) in nodes.iter().enumerate() {
            let part = self.single(node);
            let together = flags.then(part.flags);
            if !together.is_messy() {
                flags = together;
                lump.push(part.node);
                continue;
            }
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                self.nodes = NODES_MAX + 1;
                return part;
            }
            let rest = (at + 1 < nodes.len()).then(|| self.sequence(&nodes[at + 1..]));
            self.depth -= 1;
            let tail = match rest {
                Some(rest) => concat(part, rest),
                None => part,
            };
            if lump.is_empty() {
                return tail;
            }
            return concat(Part { how: How::Whole, flags, node: Node::Concat(lump), groups: Vec::new() }, tail);
        }
        let node = if lump.len() == 1 { lump.swap_remove(0) } else { Node::Concat(lump) };
        Part { how: How::Whole, flags, node, groups: Vec::new() }
    }

    /// One part of a branch with its quantifier.
    fn single(&mut self, node: &Node) -> Part {
        self.nodes += 1;
        match node {
            Node::Repeat { node, min, max, prefers } => self.repeated(node, *min, *max, *prefers),
            Node::Group(number, inner) => {
                let mut part = self.part(inner);
                part.groups.push(*number);
                part.flags.groups = true;
                let at = *number as usize - 1;
                if self.referents.len() <= at {
                    self.referents.resize(at + 1, Node::Empty);
                }
                self.referents[at] = without_constraints(&part.node);
                part
            }
            Node::Back(number) => self.back(*number, 1, Some(1), Preference::None),
            Node::Concat(_) | Node::Alternatives(_) => self.part(node),
            other => Part::whole(other.clone(), Preference::None),
        }
    }

    fn back(&mut self, number: u32, min: u32, max: Option<u32>, prefers: Preference) -> Part {
        let referent = self.referents.get(number as usize - 1).cloned().unwrap_or(Node::Empty);
        self.nodes += size(&referent);
        let referent = if self.nodes > NODES_MAX { Node::Empty } else { referent };
        let node = repeat(referent, min, max);
        let flags = Flags { back: true, ..Flags::preferring(prefers) };
        Part { how: How::Back { number, min, max }, flags, node, groups: Vec::new() }
    }

    fn repeated(&mut self, node: &Node, min: u32, max: Option<u32>, prefers: Preference) -> Part {
        if let Node::Back(number) = node {
            return self.back(*number, min, max, prefers);
        }
        let atom = self.single(node);
        let own = Flags::preferring(prefers);
        let flags = own.then(atom.flags);
        let vacuous = min == 1 && max == Some(1);
        let clash = prefers != Preference::None
            && (atom.flags.mixed || atom.flags.preference != Preference::None && atom.flags.preference != prefers);
        if vacuous && !clash {
            return Part { flags, ..atom };
        }
        let all = repeat(atom.node.clone(), min, max);
        if !atom.flags.groups && !atom.flags.back {
            // Where the repetitions are does not matter, so the part is one piece to those outside too, but for its
            // preferences.
            return Part { how: How::Whole, flags, node: all, groups: Vec::new() };
        }
        if min > 0 && !atom.flags.back {
            // Only the last repetition's groups are seen.
            let before = repeat(atom.node.clone(), min - 1, max.map(|max| max - 1));
            let before = Part::whole(before, flags.preference);
            let how = How::Concat(Box::new(before), Box::new(atom));
            return Part { how, flags, node: all, groups: Vec::new() };
        }
        Part { how: How::Iterate { part: Box::new(atom), min, max }, flags, node: all, groups: Vec::new() }
    }
}

fn concat(left: Part, right: Part) -> Part {
    let flags = left.flags.then(right.flags);
    let node = Node::Concat(vec![left.node.clone(), right.node.clone()]);
    work::beat(UNITS_PER_NODE * size(&node));
    Part { how: How::Concat(Box::new(left), Box::new(right)), flags, node, groups: Vec::new() }
}

fn repeat(node: Node, min: u32, max: Option<u32>) -> Node {
    match (min, max) {
        (1, Some(1)) => node,
        (_, Some(0)) => Node::Empty,
        _ => Node::Repeat { node: Box::new(node), min, max, prefers: Preference::None },
    }
}

/// Units of work that copying a node is.
const UNITS_PER_NODE: usize = 16;

fn size(node: &Node) -> usize {
    match node {
        Node::Repeat { node, .. } | Node::Group(_, node) => 1 + size(node),
        Node::Concat(nodes) | Node::Alternatives(nodes) => 1 + nodes.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// What a back reference may match: its text is the group's, but its place is not.
fn without_constraints(node: &Node) -> Node {
    match node {
        Node::Assert(_) | Node::Look { .. } => Node::Empty,
        Node::Repeat { node, min, max, prefers } => {
            Node::Repeat { node: Box::new(without_constraints(node)), min: *min, max: *max, prefers: *prefers }
        }
        Node::Group(number, node) => Node::Group(*number, Box::new(without_constraints(node))),
        Node::Concat(nodes) => Node::Concat(nodes.iter().map(without_constraints).collect()),
        Node::Alternatives(nodes) => Node::Alternatives(nodes.iter().map(without_constraints).collect()),
        other => other.clone(),
    }
}
