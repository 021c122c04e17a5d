//! The grammar (`jsonpath_gram.y`), by recursive descent.
//!
//! PostgreSQL tells expressions from predicates by the grammar. Here one descent reads both, and what was read says which it
//! is: predicates are no operands of arithmetic and comparisons, and only they are operands of `&&`, `||` and filters.

use base::{Error, Result, SqlState};

use super::lex::{Lexer, Token};
use super::{Expr, JsonPath, Method, Node, Op, RegexFlags};
use crate::Numeric;

/// Nesting that is accepted, so that no text can exhaust the stack.
const DEPTH_MAX: usize = 200;

pub(super) fn path(text: &str) -> Result<JsonPath> {
    let mut parser = Parser { lexer: Lexer::new(text), token: Token::End, depth: 0 };
    parser.advance()?;
    if parser.token == Token::End {
        return Err(crate::io::invalid_syntax("jsonpath", text));
    }
    let strict = parser.is_name("strict");
    if strict || parser.is_name("lax") {
        parser.advance()?;
    }
    let (expr, _) = parser.or()?;
    if parser.token != Token::End {
        return Err(parser.unexpected());
    }
    check(&expr, false, false)?;
    Ok(JsonPath { strict, expr })
}

/// Refuses `@` and `last` where they mean nothing.
fn check(expr: &[Node], in_filter: bool, in_subscript: bool) -> Result<()> {
    let error = |message: &str| Err(Error::new(SqlState::SYNTAX_ERROR, message));
    for node in expr {
        match node {
            Node::Current if !in_filter => return error("@ is not allowed in root expressions"),
            Node::Last if !in_subscript => return error("LAST is allowed only in array subscripts"),
            Node::Binary(_, left, right) => {
                check(left, in_filter, in_subscript)?;
                check(right, in_filter, in_subscript)?;
            }
            Node::Sign(_, e) | Node::Not(e) | Node::IsUnknown(e) | Node::Exists(e) => {
                check(e, in_filter, in_subscript)?
            }
            Node::LikeRegex { expr, .. } => check(expr, in_filter, in_subscript)?,
            Node::Filter(e) => check(e, true, in_subscript)?,
            Node::Elements(ranges) => {
                for (from, to) in ranges {
                    check(from, in_filter, true)?;
                    check(to.as_deref().unwrap_or(&[]), in_filter, true)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    depth: usize,
}

/// What was read, and whether it is a predicate.
type Read = (Expr, bool);

impl Parser<'_> {
    fn advance(&mut self) -> Result<()> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    #[cold]
    fn unexpected(&self) -> Error {
        self.lexer.error("syntax error")
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(&self.token, Token::Name(n) if n.eq_ignore_ascii_case(name))
    }

    fn is_mark(&self, mark: &str) -> bool {
        matches!(self.token, Token::Mark(m) if m == mark)
    }

    fn expect(&mut self, mark: &str) -> Result<()> {
        if !self.is_mark(mark) {
            return Err(self.unexpected());
        }
        self.advance()
    }

    fn expect_name(&mut self, name: &str) -> Result<()> {
        if !self.is_name(name) {
            return Err(self.unexpected());
        }
        self.advance()
    }

    fn predicate(&mut self) -> Result<Expr> {
        match self.or()? {
            (expr, true) => Ok(expr),
            _ => Err(self.unexpected()),
        }
    }

    fn expression(&mut self) -> Result<Expr> {
        match self.sum()? {
            (expr, false) => Ok(expr),
            _ => Err(self.unexpected()),
        }
    }

    fn or(&mut self) -> Result<Read> {
        self.logical("||", Op::Or, Parser::and)
    }

    fn and(&mut self) -> Result<Read> {
        self.logical("&&", Op::And, Parser::comparison)
    }

    fn logical(&mut self, mark: &str, op: Op, operand: fn(&mut Self) -> Result<Read>) -> Result<Read> {
        let mut left = operand(self)?;
        while self.is_mark(mark) {
            if !left.1 {
                return Err(self.unexpected());
            }
            self.advance()?;
            let right = operand(self)?;
            if !right.1 {
                return Err(self.unexpected());
            }
            left = (vec![Node::Binary(op, Box::new(left.0), Box::new(right.0))], true);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Read> {
        if self.is_mark("!") {
            self.advance()?;
            let inner = self.delimited()?;
            return Ok((vec![Node::Not(Box::new(inner))], true));
        }
        let left = self.sum()?;
        let op = match self.token {
            Token::Mark("==" | "=") => Op::Equal,
            Token::Mark("!=" | "<>") => Op::NotEqual,
            Token::Mark("<") => Op::Less,
            Token::Mark("<=") => Op::LessOrEqual,
            Token::Mark(">") => Op::Greater,
            Token::Mark(">=") => Op::GreaterOrEqual,
            _ if self.is_name("starts") && !left.1 => return self.starts_with(left.0),
            _ if self.is_name("like_regex") && !left.1 => return self.like_regex(left.0),
            _ => return Ok(left),
        };
        if left.1 {
            return Err(self.unexpected());
        }
        self.advance()?;
        let right = self.expression()?;
        Ok((vec![Node::Binary(op, Box::new(left.0), Box::new(right))], true))
    }

    /// A predicate in parentheses, or `exists (…)`.
    fn delimited(&mut self) -> Result<Expr> {
        if self.is_name("exists") {
            return Ok(self.exists()?.0);
        }
        self.expect("(")?;
        let inner = self.predicate()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn exists(&mut self) -> Result<Read> {
        self.advance()?;
        self.expect("(")?;
        let inner = self.expression()?;
        self.expect(")")?;
        Ok((vec![Node::Exists(Box::new(inner))], true))
    }

    fn starts_with(&mut self, left: Expr) -> Result<Read> {
        self.advance()?;
        self.expect_name("with")?;
        let right = match &self.token {
            Token::String(s) => Node::String(s.clone()),
            Token::Variable(v) => Node::Variable(v.clone()),
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok((vec![Node::Binary(Op::StartsWith, Box::new(left), Box::new(vec![right]))], true))
    }

    fn string(&mut self) -> Result<String> {
        let Token::String(s) = &self.token else { return Err(self.unexpected()) };
        let s = s.clone();
        self.advance()?;
        Ok(s)
    }

    fn like_regex(&mut self, left: Expr) -> Result<Read> {
        self.advance()?;
        let pattern = self.string()?;
        let mut flags = RegexFlags::default();
        if self.is_name("flag") {
            self.advance()?;
            flags = regex_flags(&self.string()?)?;
        }
        Ok((vec![Node::LikeRegex { expr: Box::new(left), pattern, flags }], true))
    }

    fn sum(&mut self) -> Result<Read> {
        self.arithmetic(&[("+", Op::Add), ("-", Op::Sub)], Parser::product)
    }

    fn product(&mut self) -> Result<Read> {
        self.arithmetic(&[("*", Op::Mul), ("/", Op::Div), ("%", Op::Mod)], Parser::signed)
    }

    fn arithmetic(&mut self, ops: &[(&str, Op)], operand: fn(&mut Self) -> Result<Read>) -> Result<Read> {
        let mut left = operand(self)?;
        while let Some(&(_, op)) = ops.iter().find(|(mark, _)| self.is_mark(mark)) {
            if left.1 {
                return Err(self.unexpected());
            }
            self.advance()?;
            let right = operand(self)?;
            if right.1 {
                return Err(self.unexpected());
            }
            left = (vec![Node::Binary(op, Box::new(left.0), Box::new(right.0))], false);
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Read> {
        let negative = self.is_mark("-");
        if !negative && !self.is_mark("+") {
            return self.accessors();
        }
        self.deeper()?;
        self.advance()?;
        let (operand, predicate) = self.signed()?;
        self.depth -= 1;
        if predicate {
            return Err(self.unexpected());
        }
        // The sign of a number is part of it.
        Ok((
            match operand.as_slice() {
                [Node::Number(n)] => vec![Node::Number(if negative { n.neg() } else { n.clone() })],
                _ => vec![Node::Sign(negative, Box::new(operand))],
            },
            false,
        ))
    }

    fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        Ok(())
    }

    /// A primary with its accessors.
    fn accessors(&mut self) -> Result<Read> {
        self.deeper()?;
        let (mut expr, mut predicate) = self.primary()?;
        while let Some(accessor) = self.accessor()? {
            predicate = false;
            expr.push(accessor);
        }
        self.depth -= 1;
        Ok((expr, predicate))
    }

    fn primary(&mut self) -> Result<Read> {
        if self.is_mark("(") {
            self.advance()?;
            let (inner, predicate) = self.or()?;
            self.expect(")")?;
            if predicate && self.is_name("is") {
                self.advance()?;
                self.expect_name("unknown")?;
                return Ok((vec![Node::IsUnknown(Box::new(inner))], true));
            }
            return Ok((inner, predicate));
        }
        let node = match &self.token {
            Token::String(s) => Node::String(s.clone()),
            Token::Variable(v) => Node::Variable(v.clone()),
            Token::Number(n) => Node::Number(Numeric::parse(n)?),
            Token::Mark("$") => Node::Root,
            Token::Mark("@") => Node::Current,
            Token::Name(name) => match name.as_str() {
                "null" => Node::Null,
                "true" => Node::Bool(true),
                "false" => Node::Bool(false),
                name if name.eq_ignore_ascii_case("last") => Node::Last,
                name if name.eq_ignore_ascii_case("exists") => return self.exists(),
                _ => return Err(self.unexpected()),
            },
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok((vec![node], false))
    }

    fn accessor(&mut self) -> Result<Option<Node>> {
        Ok(Some(match self.token {
            Token::Mark(".") => {
                self.advance()?;
                self.member()?
            }
            Token::Mark("[") => {
                self.advance()?;
                self.subscript()?
            }
            Token::Mark("?") => {
                self.advance()?;
                self.expect("(")?;
                let inner = self.predicate()?;
                self.expect(")")?;
                Node::Filter(Box::new(inner))
            }
            _ => return Ok(None),
        }))
    }

    /// What follows a dot.
    fn member(&mut self) -> Result<Node> {
        match self.token.clone() {
            Token::Mark("*") => {
                self.advance()?;
                Ok(Node::AnyKey)
            }
            Token::Mark("**") => {
                self.advance()?;
                self.levels()
            }
            Token::String(key) => {
                self.advance()?;
                Ok(Node::Key(key))
            }
            Token::Name(name) => {
                self.advance()?;
                match self.is_mark("(") {
                    true => self.method(&name),
                    false => Ok(Node::Key(name)),
                }
            }
            _ => Err(self.unexpected()),
        }
    }

    fn method(&mut self, name: &str) -> Result<Node> {
        let method = match name.to_ascii_lowercase().as_str() {
            "abs" => Method::Abs,
            "size" => Method::Size,
            "type" => Method::Type,
            "floor" => Method::Floor,
            "double" => Method::Double,
            "ceiling" => Method::Ceiling,
            "keyvalue" => Method::KeyValue,
            "datetime" => {
                self.advance()?;
                let template = if self.is_mark(")") { None } else { Some(self.string()?) };
                self.expect(")")?;
                return Ok(Node::DateTime(template));
            }
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        self.expect(")")?;
        Ok(Node::Method(method))
    }

    fn level(&mut self) -> Result<u32> {
        let level = match &self.token {
            Token::Number(n) => n.parse().map_err(|_| self.unexpected())?,
            _ if self.is_name("last") => u32::MAX,
            _ => return Err(self.unexpected()),
        };
        self.advance()?;
        Ok(level)
    }

    fn levels(&mut self) -> Result<Node> {
        if !self.is_mark("{") {
            return Ok(Node::AnyLevel(0, u32::MAX));
        }
        self.advance()?;
        let from = self.level()?;
        let to = if self.is_name("to") {
            self.advance()?;
            self.level()?
        } else {
            from
        };
        self.expect("}")?;
        Ok(Node::AnyLevel(from, to))
    }

    fn subscript(&mut self) -> Result<Node> {
        if self.is_mark("*") {
            self.advance()?;
            self.expect("]")?;
            return Ok(Node::AnyElement);
        }
        let mut ranges = Vec::new();
        loop {
            let from = self.expression()?;
            let to = if self.is_name("to") {
                self.advance()?;
                Some(self.expression()?)
            } else {
                None
            };
            ranges.push((from, to));
            if !self.is_mark(",") {
                break;
            }
            self.advance()?;
        }
        self.expect("]")?;
        Ok(Node::Elements(ranges))
    }
}

fn regex_flags(text: &str) -> Result<RegexFlags> {
    let mut flags = RegexFlags::default();
    for c in text.chars() {
        match c {
            'i' => flags.ignore_case = true,
            's' => flags.dot_all = true,
            'm' => flags.multi_line = true,
            'q' => flags.quoted = true,
            'x' => {
                return Err(Error::unsupported("XQuery \"x\" flag (expanded regular expressions) is not implemented"));
            }
            c => {
                let error = Error::new(SqlState::SYNTAX_ERROR, "invalid input syntax for type jsonpath");
                return Err(error.detail(format!("Unrecognized flag character \"{c}\" in LIKE_REGEX predicate.")));
            }
        }
    }
    Ok(flags)
}
