//! Statements that differ only in literals share one plan (rule R10).
//!
//! A scan of the text, far cheaper than parsing, takes out literals that stand where any value of the same type could
//! stand: after an operator, in a VALUES list, in an IN list, around BETWEEN's AND. What steers binding stays: ORDER BY 1,
//! LIMIT, type modifiers, typed literals (`date '…'`), arguments of functions; and a text in which an operator stands between two
//! literals, or a test of one, is left alone, as it is computed when it is bound. The rest of the text becomes the key of the
//! statement cache, the literals become parameters.
//! Invariant: binding the fingerprint with the literals' own types and running it with the literals as parameters gives what
//! the text itself gives; where that is not certain there is no fingerprint.

use base::{Oid, Result, work};
use types::{Datum, InputContext, oid};

/// A statement with its literals replaced by parameters.
#[derive(Debug)]
pub struct Fingerprint {
    /// The text with `$n` for every literal taken out.
    pub text: String,
    literals: Vec<Literal>,
}

#[derive(Debug, PartialEq, Eq)]
struct Literal {
    /// Type it has by itself.
    ty: Oid,
    /// Its value: digits, or the string without quotes.
    text: String,
}

/// More literals than this are not worth a shared plan.
const MAX_LITERALS: usize = 200;

impl Fingerprint {
    /// Types that the literals have by themselves (`unknown` for strings).
    pub fn literal_types(&self) -> Vec<Oid> {
        self.literals.iter().map(|l| l.ty).collect()
    }

    /// The literals as values of the parameters' types.
    ///
    /// # Errors
    /// 22P02 and the like if a literal is no value of its parameter's type.
    pub fn values(&self, param_types: &[Oid], input: &InputContext<'_>) -> Result<Vec<Datum>> {
        self.literals
            .iter()
            .zip(param_types)
            .map(|(literal, &ty)| types::parse_text(ty, -1, &literal.text, input))
            .collect()
    }
}

/// What stands before a literal decides whether it is taken out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that decides.
    Other,
    /// An operator, or BETWEEN, AND, LIKE.
    Operator,
    /// A comma or the opening parenthesis of a list.
    Item,
    /// Another comma or opening parenthesis: an operator is a sign.
    Open,
    /// IN
    In,
    /// VALUES
    Values,
    /// Any other word: a function or type name if a parenthesis follows.
    Word,
    /// A string literal: a second one may continue it.
    Quoted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Paren {
    /// A row of VALUES or an IN list: its items are values.
    List,
    Other,
}

/// Bytes of the longest candidate: its strings are looked through and copied in one step each.
const LONGEST: usize = 1 << 20;

/// Takes the literals out; `None` if the text is no candidate.
pub fn fingerprint(sql: &str) -> Option<Fingerprint> {
    if sql.len() > LONGEST {
        return None;
    }
    let bytes = sql.as_bytes();
    let first = sql.trim_start().as_bytes();
    let word = first.get(..6)?;
    if ![b"select", b"insert", b"update", b"delete"].iter().any(|w| word.eq_ignore_ascii_case(*w)) {
        return None;
    }
    let mut scan = Scan {
        sql,
        text: String::with_capacity(sql.len()),
        literals: Vec::new(),
        parens: Vec::new(),
        before: Before::Other,
        in_values: false,
        operator: 0,
        literal: None,
        after_constant: false,
    };
    let mut i = 0;
    while i < bytes.len() {
        let before = i;
        i = scan.token(i)?;
        work::beat(8 + (i - before));
    }
    (!scan.literals.is_empty() && scan.parens.is_empty())
        .then_some(Fingerprint { text: scan.text, literals: scan.literals })
}

struct Scan<'a> {
    sql: &'a str,
    text: String,
    literals: Vec<Literal>,
    parens: Vec<Paren>,
    before: Before,
    /// Inside `VALUES (…), (…)`: a parenthesis after a comma is the next row.
    in_values: bool,
    /// What the operator before is, if there is one.
    operator: u8,
    /// A literal, and the operator before it.
    literal: Option<u8>,
    /// An operator whose left side is a literal.
    after_constant: bool,
}

impl Scan<'_> {
    /// Reads the token at `i` and answers where the next begins; `None` gives up.
    fn token(&mut self, i: usize) -> Option<usize> {
        let bytes = self.sql.as_bytes();
        let c = bytes[i];
        let next = bytes.get(i + 1).copied().unwrap_or(0);
        match c {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.text.push(c as char);
                Some(i + 1)
            }
            b'\'' => self.string(i),
            b'0'..=b'9' => self.number(i),
            b'.' if next.is_ascii_digit() => None,
            b'"' => {
                let end = i + 2 + memchr::memchr(b'"', &bytes[i + 1..])?;
                self.copy(i, end, Before::Word)
            }
            b'$' | b'\\' | 0 => None,
            b'-' if next == b'-' => None,
            b'/' if next == b'*' => None,
            b'(' => {
                let list = matches!(self.before, Before::In | Before::Values)
                    || (self.in_values && self.parens.is_empty() && self.before == Before::Item);
                self.parens.push(if list { Paren::List } else { Paren::Other });
                self.copy(i, i + 1, if list { Before::Item } else { Before::Open })
            }
            b')' => {
                self.parens.pop()?;
                self.copy(i, i + 1, Before::Other)
            }
            b',' => {
                let item = match self.parens.last() {
                    Some(paren) => *paren == Paren::List,
                    None => self.in_values,
                };
                self.copy(i, i + 1, if item { Before::Item } else { Before::Open })
            }
            b';' => self.sql[i + 1..].trim_start().is_empty().then_some(bytes.len()),
            b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'!' => {
                // A sign before a number in a list: the number may be taken out, the sign stays.
                let before = if self.before == Before::Open { Before::Other } else { Before::Operator };
                let constant = match self.literal {
                    Some(before) => before == 0 || closeness(c) > closeness(before),
                    None => self.before == Before::Operator && self.after_constant,
                };
                let next = self.copy(i, i + 1, before);
                (self.operator, self.after_constant) = (c, constant);
                next
            }
            c if c.is_ascii_alphabetic() || c == b'_' || c >= 0x80 => self.word(i),
            _ => self.copy(i, i + 1, Before::Other),
        }
    }

    fn copy(&mut self, start: usize, end: usize, before: Before) -> Option<usize> {
        self.text.push_str(&self.sql[start..end]);
        self.before = before;
        (self.operator, self.literal, self.after_constant) = (0, None, false);
        Some(end)
    }

    fn word(&mut self, start: usize) -> Option<usize> {
        let bytes = self.sql.as_bytes();
        let part = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b == b'$' || *b >= 0x80;
        let end = start + bytes[start..].iter().take_while(|b| part(b)).count();
        let word = &bytes[start..end];
        if bytes.get(end) == Some(&b'\'') || (bytes.get(end) == Some(&b'&') && word.eq_ignore_ascii_case(b"u")) {
            // E'…', B'…', X'…', N'…', U&'…': left to the parser.
            return None;
        }
        let is = |w: &str| word.eq_ignore_ascii_case(w.as_bytes());
        if is("rollup") || is("cube") || is("grouping") {
            // In a set without it a grouping expression is NULL, wherever it is written again: literals tell it from others.
            return None;
        }
        // A literal on the left of one of these is a condition that may be computed when it is bound.
        if self.literal.is_some()
            && ["is", "isnull", "notnull", "not", "in", "between", "like", "ilike", "similar"].into_iter().any(is)
        {
            return None;
        }
        let before = match word.len() {
            2 if is("in") => Before::In,
            6 if is("values") => {
                self.in_values = self.parens.is_empty();
                Before::Values
            }
            3 if is("and") => Before::Operator,
            4 if is("like") => Before::Operator,
            7 if is("between") => Before::Operator,
            _ => Before::Word,
        };
        if self.parens.is_empty() && before == Before::Word {
            // RETURNING, ON CONFLICT, … end the list of rows.
            self.in_values = false;
        }
        self.copy(start, end, before)
    }

    /// Whether a literal here may be any value.
    fn takes(&self) -> bool {
        match self.before {
            Before::Operator => true,
            Before::Item => self.parens.last() == Some(&Paren::List),
            _ => false,
        }
    }

    fn take(&mut self, ty: Oid, value: String) -> Option<()> {
        if self.literals.len() == MAX_LITERALS {
            return None;
        }
        self.literals.push(Literal { ty, text: value });
        self.text.push('$');
        let mut digits = [0u8; 4];
        let (mut n, mut at) = (self.literals.len(), digits.len());
        while n > 0 {
            at -= 1;
            digits[at] = b'0' + (n % 10) as u8;
            n /= 10;
        }
        self.text.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
        Some(())
    }

    /// A literal has been read.
    fn is_literal(&mut self) {
        self.literal = Some(self.operator);
        (self.operator, self.after_constant) = (0, false);
    }

    fn string(&mut self, start: usize) -> Option<usize> {
        if self.before == Before::Quoted || self.after_constant {
            return None;
        }
        let bytes = self.sql.as_bytes();
        let mut value = String::new();
        let mut at = start + 1;
        let end = loop {
            let quote = at + memchr::memchr(b'\'', &bytes[at..])?;
            value.push_str(&self.sql[at..quote]);
            if bytes.get(quote + 1) != Some(&b'\'') {
                break quote + 1;
            }
            value.push('\'');
            at = quote + 2;
        };
        if self.takes() {
            self.take(oid::UNKNOWN, value)?;
        } else {
            self.text.push_str(&self.sql[start..end]);
        }
        self.before = Before::Quoted;
        self.is_literal();
        Some(end)
    }

    fn number(&mut self, start: usize) -> Option<usize> {
        let bytes = self.sql.as_bytes();
        let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = digits(start);
        if self.after_constant {
            return None;
        }
        if self.before == Before::Operator && matches!(&self.sql[start..end], "2147483648" | "9223372036854775808") {
            // With a sign it is the least value of its type, and of that type.
            return None;
        }
        let mut ty = match self.sql[start..end].parse::<i64>() {
            Ok(n) if i32::try_from(n).is_ok() => oid::INT4,
            Ok(_) => oid::INT8,
            Err(_) => oid::NUMERIC,
        };
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if fraction == end + 1 {
                return None;
            }
            end = fraction;
            ty = oid::NUMERIC;
        }
        if bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$')) {
            return None;
        }
        // NUMERIC only where it becomes a column's value: elsewhere its scale could steer the result's.
        let takes = self.takes() && (ty != oid::NUMERIC || self.in_values);
        if takes {
            self.take(ty, self.sql[start..end].to_string())?;
        } else {
            self.text.push_str(&self.sql[start..end]);
        }
        self.before = Before::Other;
        self.is_literal();
        Some(end)
    }
}

/// How close an operator binds.
fn closeness(operator: u8) -> u8 {
    match operator {
        b'*' | b'/' | b'%' => 3,
        b'+' | b'-' => 2,
        b'|' => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, want: &str, literals: &[&str]) {
        let print = fingerprint(sql).unwrap_or_else(|| panic!("no fingerprint of {sql}"));
        assert_eq!(print.text, want);
        assert_eq!(print.literals.iter().map(|l| l.text.as_str()).collect::<Vec<_>>(), literals);
    }

    #[test]
    fn values_are_taken_out() {
        check("SELECT c FROM sbtest1 WHERE id=5012", "SELECT c FROM sbtest1 WHERE id=$1", &["5012"]);
        check(
            "SELECT c FROM t WHERE id BETWEEN 100 AND 199 ORDER BY 1 LIMIT 3;",
            "SELECT c FROM t WHERE id BETWEEN $1 AND $2 ORDER BY 1 LIMIT 3",
            &["100", "199"],
        );
        check(
            "update t set k=k+1, s = 'it''s' where id in (1, -2)",
            "update t set k=k+$1, s = $2 where id in ($3, -$4)",
            &["1", "it's", "1", "2"],
        );
        check(
            "insert into t (a, b) values (1, 'x'), (2.50, f(3)) returning 4",
            "insert into t (a, b) values ($1, $2), ($3, f(3)) returning 4",
            &["1", "x", "2.50"],
        );
        check("insert into t values (2147483648)", "insert into t values ($1)", &["2147483648"]);
    }

    #[test]
    fn what_steers_binding_stays() {
        check(
            "select date '2020-01-01', 7 from t where a = 1",
            "select date '2020-01-01', 7 from t where a = $1",
            &["1"],
        );
        check(
            "select cast(a as numeric(10,2)) from t where a < 5",
            "select cast(a as numeric(10,2)) from t where a < $1",
            &["5"],
        );
        check(
            "select abs(-1) from t where abs(a) - 1 = 2",
            "select abs(-1) from t where abs(a) - $1 = $2",
            &["1", "2"],
        );
        check("select * from t where a > 1.50 and b = 2", "select * from t where a > 1.50 and b = $1", &["2"]);
    }

    #[test]
    fn what_is_not_certain_is_left_alone() {
        for sql in [
            "begin",
            "select 1",
            "select * from t where a = E'x'",
            "select * from t where a = $1",
            "select * from t where a = 1 -- why",
            "select * from t where a = 'x'\n'y'",
            "select * from t where a = 1; select 2",
            "select * from t where a = 1e5",
            "select * from t where a = 'x",
            "select * from t where a = -2147483648",
            "select * from t where 1/0 = a",
            "select * from t where a = 1/0",
            "select a + 1/0 from t",
            "select a from t where b = 'x' || 'y'",
            "select a from t where b <> 1 + -2",
            "select a from t where b = c and 1 is null",
            "select a from t where b = c and 1 in (2, 3)",
            "select a from t where b = c and 1 not between 2 and 3",
            "select a from t where b = c and 'x' like 'y'",
        ] {
            assert!(fingerprint(sql).is_none(), "{sql}");
        }
    }
}
