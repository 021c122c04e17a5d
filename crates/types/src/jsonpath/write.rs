//! The text of a path (`printJsonPathItem`).

use super::{JsonPath, Node, Op, RegexFlags};
use crate::json::write_string;

pub(super) fn path(path: &JsonPath) -> String {
    let mut out = Vec::new();
    if path.strict {
        out.extend_from_slice(b"strict ");
    }
    expr(&path.expr, true, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Or => "||",
        Op::And => "&&",
        Op::Equal => "==",
        Op::NotEqual => "!=",
        Op::Less => "<",
        Op::LessOrEqual => "<=",
        Op::Greater => ">",
        Op::GreaterOrEqual => ">=",
        Op::StartsWith => "starts with",
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::Div => "/",
        Op::Mod => "%",
    }
}

impl Op {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        name(self)
    }
}

/// How tightly the outermost operator binds.
fn priority(node: Option<&Node>) -> u8 {
    match node {
        Some(Node::Binary(op, ..)) => match op {
            Op::Or => 0,
            Op::And => 1,
            Op::Add | Op::Sub => 3,
            Op::Mul | Op::Div | Op::Mod => 4,
            _ => 2,
        },
        Some(Node::Sign(..)) => 5,
        _ => 6,
    }
}

/// An operand; only the outermost operator of what is no path of several steps needs parentheses.
fn operand(inner: &[Node], outer: &Node, out: &mut Vec<u8>) {
    expr(inner, priority(inner.first()) <= priority(Some(outer)), out);
}

fn expr(nodes: &[Node], brackets: bool, out: &mut Vec<u8>) {
    for (i, node) in nodes.iter().enumerate() {
        write_node(node, brackets || i > 0, nodes.len() > 1 && i == 0, out);
    }
}

fn write_node(node: &Node, brackets: bool, accessed: bool, out: &mut Vec<u8>) {
    let level = |n: u32| if n == u32::MAX { "last".to_string() } else { n.to_string() };
    match node {
        Node::Null => out.extend_from_slice(b"null"),
        Node::Bool(v) => out.extend_from_slice(if *v { b"true" } else { b"false" }),
        Node::Number(n) if accessed => {
            out.push(b'(');
            n.write(out);
            out.push(b')');
        }
        Node::Number(n) => n.write(out),
        Node::String(s) => write_string(s, out),
        Node::Variable(v) => {
            out.push(b'$');
            write_string(v, out);
        }
        Node::Root => out.push(b'$'),
        Node::Current => out.push(b'@'),
        Node::Last => out.extend_from_slice(b"last"),
        Node::Binary(op, left, right) => {
            if brackets {
                out.push(b'(');
            }
            operand(left, node, out);
            out.push(b' ');
            out.extend_from_slice(name(*op).as_bytes());
            out.push(b' ');
            operand(right, node, out);
            if brackets {
                out.push(b')');
            }
        }
        Node::Sign(negative, inner) => {
            if brackets {
                out.push(b'(');
            }
            out.push(if *negative { b'-' } else { b'+' });
            operand(inner, node, out);
            if brackets {
                out.push(b')');
            }
        }
        Node::Not(inner) => around(b"!(", inner, b")", out),
        Node::IsUnknown(inner) => around(b"(", inner, b") is unknown", out),
        Node::Exists(inner) => around(b"exists (", inner, b")", out),
        Node::Filter(inner) => around(b"?(", inner, b")", out),
        Node::LikeRegex { expr: inner, pattern, flags } => {
            if brackets {
                out.push(b'(');
            }
            operand(inner, node, out);
            out.extend_from_slice(b" like_regex ");
            write_string(pattern, out);
            write_flags(*flags, out);
            if brackets {
                out.push(b')');
            }
        }
        Node::Key(key) => {
            out.push(b'.');
            write_string(key, out);
        }
        Node::AnyKey => out.extend_from_slice(b".*"),
        Node::AnyElement => out.extend_from_slice(b"[*]"),
        Node::Elements(ranges) => {
            out.push(b'[');
            for (i, (from, to)) in ranges.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                expr(from, false, out);
                if let Some(to) = to {
                    out.extend_from_slice(b" to ");
                    expr(to, false, out);
                }
            }
            out.push(b']');
        }
        Node::AnyLevel(0, u32::MAX) => out.extend_from_slice(b".**"),
        Node::AnyLevel(from, to) if from == to => out.extend_from_slice(format!(".**{{{}}}", level(*from)).as_bytes()),
        Node::AnyLevel(from, to) => {
            out.extend_from_slice(format!(".**{{{} to {}}}", level(*from), level(*to)).as_bytes());
        }
        Node::Method(method) => out.extend_from_slice(format!(".{}()", method.name()).as_bytes()),
        Node::DateTime(template) => {
            out.extend_from_slice(b".datetime(");
            if let Some(template) = template {
                write_string(template, out);
            }
            out.push(b')');
        }
    }
}

fn around(before: &[u8], inner: &[Node], after: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(before);
    expr(inner, false, out);
    out.extend_from_slice(after);
}

fn write_flags(flags: RegexFlags, out: &mut Vec<u8>) {
    let all = [(flags.ignore_case, 'i'), (flags.dot_all, 's'), (flags.multi_line, 'm'), (flags.quoted, 'q')];
    let text: String = all.iter().filter(|(set, _)| *set).map(|(_, c)| *c).collect();
    if !text.is_empty() {
        out.extend_from_slice(format!(" flag \"{text}\"").as_bytes());
    }
}
