//! Expressions that definitions keep: text in which every name is a reference.
//!
//! Responsible for: what a stored expression is ([`Expression`]), and what it refers to.
//! Not responsible for: its text with the names of today, and what it means (`sql-bind`).
//! Invariant: no name of anything that a statement can rename, move or drop is in a kept expression's text (decision 0022).

use std::sync::Arc;

use base::Oid;
use serde::{Deserialize, Serialize};

use crate::catalog::{CatalogObject, ConstraintKind, TypeKind};

/// An expression of a definition. It may be long, and definitions are copied for every statement: copies share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Expression {
    /// As a statement says it. Names mean what they mean where it is read: it is on its way to be kept, or it was kept by a server
    /// of before and could not be converted.
    Written(Arc<str>),
    /// Text and references, one after the other.
    Kept(Arc<[Part]>),
}

/// A part of a kept expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    /// Text in which nothing has a name that can change.
    Text(String),
    /// Something that has one.
    Name(Reference),
}

/// What a kept expression refers to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reference {
    /// A column of the table that the expression is over.
    Column(i16),
    /// That table, as its row. It has fields, none, for a form of its own: a word alone is a text.
    Row {},
    /// A type that a statement made, or the type of arrays of one, where a type is named.
    Type(Oid),
    /// A type of arrays, where its elements' is named with `[]` behind.
    ElementOf(Oid),
    /// The type of a relation's rows, where a type is named.
    RowType(Oid),
    /// A relation as a constant (`regclass`).
    Relation(Oid),
    /// A type that a statement made as a constant (`regtype`).
    TypeConstant(Oid),
    /// A schema as a constant (`regnamespace`).
    Schema(Oid),
    /// A function of an extension, where it is called.
    Function {
        /// The extension.
        of: Oid,
        /// The function.
        function: Oid,
    },
    /// A label of an enum as a constant.
    Label {
        /// The enum.
        of: Oid,
        /// The label.
        label: Oid,
    },
    /// An array of labels as a constant.
    Labels {
        /// The enum.
        of: Oid,
        /// The array's text form, with the numbers of labels in their place.
        text: String,
    },
}

/// Where in a definition an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpressionPlace {
    /// The default of a column.
    Default(i16),
    /// What a column is generated from.
    Generated(i16),
    /// A CHECK constraint of a table or domain.
    Check(Oid),
    /// An expression that an index is over, by its place among those.
    Key(usize),
    /// The condition of a partial index.
    Predicate,
    /// The default of a domain.
    OfDomain,
    /// The query of a view.
    Query,
}

impl Expression {
    /// The next value of a sequence.
    pub fn next_value(sequence: Oid) -> Expression {
        let name = Part::Name(Reference::Relation(sequence));
        Expression::Kept([Part::Text("nextval(".to_string()), name, Part::Text(")".to_string())].into())
    }

    /// Whether it is the word NULL.
    pub fn is_null(&self) -> bool {
        let is_null = |text: &str| text.trim().eq_ignore_ascii_case("null");
        match self {
            Expression::Written(text) => is_null(text),
            Expression::Kept(parts) => matches!(&**parts, [Part::Text(text)] if is_null(text)),
        }
    }

    /// Whether it is one reference and nothing else, but for parentheses.
    pub fn is_reference_alone(&self) -> bool {
        let Expression::Kept(parts) = self else { return false };
        let is_empty = |part: &Part| match part {
            Part::Text(text) => text.chars().all(|c| matches!(c, '(' | ')') || c.is_whitespace()),
            Part::Name(_) => true,
        };
        parts.iter().all(is_empty) && parts.iter().filter(|part| matches!(part, Part::Name(_))).count() == 1
    }

    /// What it refers to; nothing is known of one that is not kept.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        let parts = match self {
            Expression::Written(_) => &[][..],
            Expression::Kept(parts) => parts,
        };
        parts.iter().filter_map(|part| match part {
            Part::Name(reference) => Some(reference),
            Part::Text(_) => None,
        })
    }

    /// Whether it speaks of a column of its table; its row is all of them.
    pub fn speaks_of_column(&self, number: i16) -> bool {
        self.references().any(|r| matches!(r, Reference::Row {}) || *r == Reference::Column(number))
    }

    /// The same over the columns of another table; `None` if there is no counterpart of all that it speaks of.
    pub fn over(&self, counterpart: impl Fn(i16) -> Option<i16>) -> Option<Expression> {
        let Expression::Kept(parts) = self else { return Some(self.clone()) };
        let part = |part: &Part| match part {
            Part::Name(Reference::Column(number)) => counterpart(*number).map(|n| Part::Name(Reference::Column(n))),
            Part::Name(Reference::Row {}) => None,
            part => Some(part.clone()),
        };
        parts.iter().map(part).collect::<Option<Arc<[Part]>>>().map(Expression::Kept)
    }

    /// Whether it may have constants in it.
    pub fn may_have_constants(&self) -> bool {
        let in_text = |text: &str| text.contains(|c: char| c == '\'' || c.is_ascii_digit());
        match self {
            Expression::Written(text) => in_text(text),
            Expression::Kept(parts) => parts.iter().any(|part| match part {
                Part::Text(text) => in_text(text),
                Part::Name(reference) => !matches!(reference, Reference::Column(_) | Reference::Row {}),
            }),
        }
    }
}

impl From<&str> for Expression {
    fn from(text: &str) -> Expression {
        Expression::Written(text.into())
    }
}

impl From<String> for Expression {
    fn from(text: String) -> Expression {
        Expression::Written(text.into())
    }
}

impl Reference {
    /// The object that has to be there for it: a relation, a type, a schema or an extension. Columns and rows are of the expression's own table.
    pub fn object(&self) -> Option<Oid> {
        match self {
            Reference::Column(_) | Reference::Row {} => None,
            Reference::Type(oid)
            | Reference::ElementOf(oid)
            | Reference::RowType(oid)
            | Reference::Relation(oid)
            | Reference::TypeConstant(oid)
            | Reference::Schema(oid)
            | Reference::Function { of: oid, .. }
            | Reference::Label { of: oid, .. }
            | Reference::Labels { of: oid, .. } => Some(*oid),
        }
    }
}

impl CatalogObject {
    /// The expressions that it keeps, the query of a view among them.
    pub fn expressions(&self) -> Vec<(ExpressionPlace, &Expression)> {
        let mut found = Vec::new();
        match self {
            CatalogObject::Table(table) => {
                found.extend(table.view.iter().map(|view| (ExpressionPlace::Query, &view.query)));
                for column in table.live_columns() {
                    found.extend(column.default.iter().map(|e| (ExpressionPlace::Default(column.number), e)));
                    found.extend(column.generated.iter().map(|e| (ExpressionPlace::Generated(column.number), e)));
                }
                for constraint in &table.constraints {
                    if let ConstraintKind::Check { expression } = &constraint.kind {
                        found.push((ExpressionPlace::Check(constraint.oid), expression));
                    }
                }
            }
            CatalogObject::Index(index) => {
                found.extend(index.expressions.iter().enumerate().map(|(at, e)| (ExpressionPlace::Key(at), &e.text)));
                found.extend(index.predicate.iter().map(|e| (ExpressionPlace::Predicate, e)));
            }
            CatalogObject::Type(ty) => {
                if let TypeKind::Domain(domain) = &ty.kind {
                    found.extend(domain.default.iter().map(|e| (ExpressionPlace::OfDomain, e)));
                    found.extend(domain.checks.iter().map(|c| (ExpressionPlace::Check(c.oid), &c.expression)));
                }
            }
            _ => {}
        }
        found
    }

    /// The same, to be changed.
    pub fn expressions_mut(&mut self) -> Vec<(ExpressionPlace, &mut Expression)> {
        let mut found = Vec::new();
        match self {
            CatalogObject::Table(table) => {
                found.extend(table.view.iter_mut().map(|view| (ExpressionPlace::Query, &mut view.query)));
                for column in table.columns.iter_mut().filter(|c| !c.dropped) {
                    found.extend(column.default.iter_mut().map(|e| (ExpressionPlace::Default(column.number), e)));
                    found.extend(column.generated.iter_mut().map(|e| (ExpressionPlace::Generated(column.number), e)));
                }
                for constraint in &mut table.constraints {
                    if let ConstraintKind::Check { expression } = &mut constraint.kind {
                        found.push((ExpressionPlace::Check(constraint.oid), expression));
                    }
                }
            }
            CatalogObject::Index(index) => {
                found.extend(
                    index.expressions.iter_mut().enumerate().map(|(at, e)| (ExpressionPlace::Key(at), &mut e.text)),
                );
                found.extend(index.predicate.iter_mut().map(|e| (ExpressionPlace::Predicate, e)));
            }
            CatalogObject::Type(ty) => {
                if let TypeKind::Domain(domain) = &mut ty.kind {
                    found.extend(domain.default.iter_mut().map(|e| (ExpressionPlace::OfDomain, e)));
                    found.extend(domain.checks.iter_mut().map(|c| (ExpressionPlace::Check(c.oid), &mut c.expression)));
                }
            }
            _ => {}
        }
        found
    }
}
