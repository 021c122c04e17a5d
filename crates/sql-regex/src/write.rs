//! An expression without back references and look-around in the syntax of the `regex` crate, which finds out in linear time
//! whether and where it matches first.

use std::fmt::Write;

use super::class::Class;
use super::{Assert, Node, Preference};

/// The expression in the crate's syntax, and whether the crate's choice among several matches may be another than
/// PostgreSQL's; `None` if it cannot be written.
pub fn write(node: &Node) -> Option<(String, bool)> {
    let mut writer = Writer { out: String::new(), choices: 0 };
    writer.node(node)?;
    Some((writer.out, writer.choices > 1))
}

/// How many states the crate's machine has, about: those of a class depend on its characters.
pub fn size(node: &Node) -> usize {
    match node {
        Node::Empty | Node::Assert(_) | Node::Back(_) => 1,
        Node::Class(class) => class.size(),
        Node::Look { node, .. } | Node::Group(_, node) => 2 + size(node),
        Node::Repeat { node, min, max, .. } => {
            let times = max.unwrap_or(*min + 1).max(*min).max(1) as usize;
            (size(node) + 2).saturating_mul(times)
        }
        Node::Concat(nodes) | Node::Alternatives(nodes) => {
            nodes.iter().map(size).fold(1, |sum, one| sum.saturating_add(one))
        }
    }
}

fn has_group(node: &Node) -> bool {
    match node {
        Node::Group(..) => true,
        Node::Repeat { node, .. } | Node::Look { node, .. } => has_group(node),
        Node::Concat(nodes) | Node::Alternatives(nodes) => nodes.iter().any(has_group),
        Node::Empty | Node::Assert(_) | Node::Back(_) | Node::Class(_) => false,
    }
}

fn may_be_empty(node: &Node) -> bool {
    match node {
        Node::Empty | Node::Assert(_) | Node::Look { .. } | Node::Back(_) => true,
        Node::Class(_) => false,
        Node::Group(_, node) => may_be_empty(node),
        Node::Repeat { node, min, .. } => *min == 0 || may_be_empty(node),
        Node::Concat(nodes) => nodes.iter().all(may_be_empty),
        Node::Alternatives(nodes) => nodes.iter().any(may_be_empty),
    }
}

struct Writer {
    out: String,
    /// Places that match in more than one way; alternatives count as two.
    choices: u32,
}

impl Writer {
    fn node(&mut self, node: &Node) -> Option<()> {
        match node {
            Node::Empty => self.out.push_str("(?:)"),
            Node::Class(class) => self.class(class),
            Node::Assert(assert) => self.out.push_str(match assert {
                Assert::TextStart => r"\A",
                Assert::TextEnd => r"\z",
                Assert::LineStart => "(?m:^)",
                Assert::LineEnd => "(?m:$)",
                Assert::WordStart => r"\b{start}",
                Assert::WordEnd => r"\b{end}",
                Assert::WordEdge => r"\b",
                Assert::NoWordEdge => r"\B",
            }),
            Node::Look { .. } | Node::Back(_) => return None,
            Node::Group(_, node) => {
                self.out.push('(');
                self.node(node)?;
                self.out.push(')');
            }
            Node::Repeat { node, min, max, prefers } => {
                self.out.push_str("(?:");
                self.node(node)?;
                self.out.push(')');
                // `{2,2}` matches in one way only, but has a preference, which may be that of the whole.
                self.choices += u32::from(*max != Some(*min) || *prefers != Preference::None);
                // For `(\m)??` the crate takes no repetition, PostgreSQL an empty one, whose groups are set.
                if *min == 0 && *prefers == Preference::Short && has_group(node) && may_be_empty(node) {
                    self.choices += 2;
                }
                let _ = match max {
                    Some(max) => write!(self.out, "{{{min},{max}}}"),
                    None => write!(self.out, "{{{min},}}"),
                };
                if *prefers == Preference::Short {
                    self.out.push('?');
                }
            }
            Node::Concat(nodes) => {
                for node in nodes {
                    match node {
                        Node::Alternatives(_) => {
                            self.out.push_str("(?:");
                            self.node(node)?;
                            self.out.push(')');
                        }
                        node => self.node(node)?,
                    }
                }
            }
            Node::Alternatives(nodes) => {
                self.choices += 2;
                for (at, node) in nodes.iter().enumerate() {
                    if at > 0 {
                        self.out.push('|');
                    }
                    self.node(node)?;
                }
            }
        }
        Some(())
    }

    fn class(&mut self, class: &Class) {
        if class.ignore_case {
            self.out.push_str("(?i:");
        }
        self.out.push('[');
        self.out.push_str(if class.negated { "[^" } else { "[" });
        let mut any = false;
        for &(low, high) in class.ranges() {
            any |= self.range(low, high);
        }
        for &(named, complement) in &class.named {
            any = true;
            let _ = match complement {
                true => write!(self.out, "[^{}]", named.written()),
                false => write!(self.out, "{}", named.written()),
            };
        }
        if !any {
            self.out.push_str("a&&b");
        }
        self.out.push_str(if class.no_newline { r"]&&[^\n]]" } else { "]]" });
        if class.ignore_case {
            self.out.push(')');
        }
    }

    /// A range without the codes that are no characters; whether anything is left.
    fn range(&mut self, low: u32, high: u32) -> bool {
        let mut any = false;
        for (first, last) in [(0, 0xd7ff), (0xe000, 0x10_ffff)] {
            let (low, high) = (low.max(first), high.min(last));
            if low <= high {
                any = true;
                let _ = write!(self.out, r"\x{{{low:x}}}-\x{{{high:x}}}");
            }
        }
        any
    }
}
