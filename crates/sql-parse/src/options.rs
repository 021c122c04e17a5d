//! Options of statements as the grammar leaves them: words and numbers.

use rupg_sql::nodes::Node;

/// The text of a string constant or name.
pub fn text_of(node: &Node) -> Option<String> {
    match node {
        Node::A_Const(c) => c.val.as_ref().and_then(text_of),
        Node::String(s) => Some(s.to_string()),
        Node::Float(s) => Some(s.to_string()),
        Node::Integer(i) => Some(i.to_string()),
        Node::Boolean(b) => Some(if *b { "on" } else { "off" }.to_string()),
        Node::TypeCast(cast) => cast.arg.as_ref().and_then(text_of),
        Node::TypeName(name) => name.names.last().and_then(|n| n.as_ref()).and_then(text_of),
        _ => None,
    }
}

/// The value of an integer or boolean constant.
pub fn number_of(node: &Node) -> Option<i64> {
    match node {
        Node::A_Const(c) => c.val.as_ref().and_then(number_of),
        Node::Integer(i) => Some(*i as i64),
        Node::Float(s) => s.parse().ok(),
        Node::Boolean(b) => Some(*b as i64),
        _ => None,
    }
}
