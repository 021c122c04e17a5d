//! Stored expressions: their text with the names of today, and how what a statement says becomes one.
//!
//! Responsible for: putting names in the place of references ([`text`]); finding the references of what was written by binding it
//! ([`keep`]).
//! Not responsible for: what the text means (`sql-bind`), how it is shown (`sql_catalog::deparse`).
//! Invariant: what is stored is bound to the same expression as what was written, or it is refused.

use std::borrow::Cow;
use std::fmt::Write as _;

use base::{Error, Oid, Result};
use engine_api::{Catalog, CatalogObject, Expression, ExpressionPlace, Part, Reference, TableDesc, TypeKind};
use rupg_sql::Lexer;
use sql_functions::extensions;
use sql_ir::{Expr, Ty};
use sql_parse::names::{qualified_object, quote_literal, quote_name};

use crate::{self as bind, BindContext};

/// How much of a text a reference stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// A name of so many parts.
    Name(usize),
    /// A literal.
    Literal,
}

/// A reference that binding a text has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The byte where it begins.
    pub at: i32,
    /// Where it ends.
    pub span: Span,
    /// What it is.
    pub reference: Reference,
}

/// The text that an expression is parsed and bound behind.
pub(crate) const WRAPPER: &str = "SELECT ";

/// The name of a type that a statement made, or of the type of arrays of it; a name of nothing if it is gone.
fn type_name(catalog: &Catalog, oid: Oid) -> String {
    let is_it = |o: &CatalogObject| matches!(o, CatalogObject::Type(ty) if ty.array == oid);
    match types::element_of(oid) {
        Some(element) if catalog.get(oid).is_none() => match catalog.get(element).filter(|o| is_it(o)) {
            Some(_) => format!("{}[]", qualified_object(catalog, element)),
            None => format!("\"{oid}\""),
        },
        _ if catalog.get(oid).is_some() => qualified_object(catalog, oid),
        _ => format!("\"{oid}\""),
    }
}

/// The relation, or what is shown of one that is gone or of the system's.
fn relation_name(catalog: &Catalog, oid: Oid) -> String {
    match sql_ir::system_relation::numbered(oid) {
        Some(system) => format!("{}.{}", quote_name(system.schema), quote_name(system.name)),
        None => qualified_object(catalog, oid),
    }
}

/// The name of a function of an extension; a name of nothing if that is gone.
fn function_name(catalog: &Catalog, of: Oid, function: Oid) -> String {
    let schema = match catalog.get(of).map(|o| &**o) {
        Some(CatalogObject::Extension(extension)) => catalog.get(extension.schema),
        _ => None,
    };
    match (schema, extensions::function_by_oid(function.0)) {
        (Some(schema), Some((_, function))) => format!("{}.{}", quote_name(schema.name()), quote_name(function.name)),
        _ => format!("\"{function}\""),
    }
}

fn label_name(catalog: &Catalog, of: Oid, label: Oid) -> String {
    let labels = match catalog.user_type(of).map(|ty| &ty.kind) {
        Some(TypeKind::Enum(labels)) => labels.as_slice(),
        _ => &[],
    };
    labels.iter().find(|l| l.oid == label).map_or_else(|| label.to_string(), |l| l.name.clone())
}

/// The text form of an array of labels, of which `text` has the numbers.
fn array_text(catalog: &Catalog, of: Oid, text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    // Dimensions that are written out come before the first brace.
    let head = rest.find('{').unwrap_or(0);
    out.push_str(&rest[..head]);
    rest = &rest[head..];
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        let name = rest[at..end].parse().map_or_else(|_| String::new(), |number| label_name(catalog, of, Oid(number)));
        let _ = write!(out, "{}\"{}\"", &rest[..at], name.replace('\\', "\\\\").replace('"', "\\\""));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn write(out: &mut String, reference: &Reference, catalog: &Catalog, table: Option<&TableDesc>) {
    match reference {
        Reference::Column(number) => {
            let column = table.and_then(|t| t.columns.get(usize::try_from(number - 1).ok()?));
            match column {
                Some(column) => out.push_str(&quote_name(&column.name)),
                None => _ = write!(out, "\"{number}\""),
            }
        }
        Reference::Row {} => out.push_str(&table.map(|t| quote_name(&t.name)).unwrap_or_default()),
        Reference::Type(oid) => out.push_str(&type_name(catalog, *oid)),
        Reference::ElementOf(oid) => out.push_str(&type_name(catalog, types::element_of(*oid).unwrap_or(*oid))),
        Reference::RowType(oid) => out.push_str(&qualified_object(catalog, *oid)),
        Reference::Function { of, function } => out.push_str(&function_name(catalog, *of, *function)),
        Reference::Relation(oid) => {
            out.push_str(&quote_literal(&relation_name(catalog, *oid)));
            out.push_str("::regclass");
        }
        Reference::TypeConstant(oid) => {
            out.push_str(&quote_literal(&type_name(catalog, *oid)));
            out.push_str("::regtype");
        }
        Reference::Schema(oid) => {
            let name = catalog.get(*oid).map_or_else(|| oid.to_string(), |schema| quote_name(schema.name()));
            out.push_str(&quote_literal(&name));
            out.push_str("::regnamespace");
        }
        Reference::Label { of, label } => {
            out.push_str(&quote_literal(&label_name(catalog, *of, *label)));
            let _ = write!(out, "::{}", type_name(catalog, *of));
        }
        Reference::Labels { of, text } => {
            out.push_str(&quote_literal(&array_text(catalog, *of, text)));
            let _ = write!(out, "::{}[]", type_name(catalog, *of));
        }
    }
}

/// The text of an expression with the names of today, each with its schema; `table` is what its columns are of.
pub fn text<'e>(expression: &'e Expression, catalog: &Catalog, table: Option<&TableDesc>) -> Cow<'e, str> {
    let parts = match expression {
        Expression::Written(text) => return Cow::Borrowed(text),
        Expression::Kept(parts) => parts,
    };
    let mut out = String::new();
    for part in parts.iter() {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Name(reference) => write(&mut out, reference, catalog, table),
        }
    }
    Cow::Owned(out)
}

/// Where a reference ends that begins at byte `from` of a text.
fn end_of(text: &str, from: usize, span: Span) -> Option<usize> {
    let rest = text.get(from..)?;
    let mut lexer = Lexer::new(rest);
    let tokens = match span {
        Span::Literal => 1,
        Span::Name(parts) => 2 * parts - 1,
    };
    let mut end = None;
    for at in 0..tokens {
        let token = lexer.next_token().ok()?;
        let word = rest.get(token.start..token.end)?;
        let fits = match span {
            Span::Literal => word.ends_with('\'') || word.ends_with('$'),
            Span::Name(_) => (word == ".") == (at % 2 == 1),
        };
        if !fits || word.is_empty() {
            return None;
        }
        end = Some(from + token.end);
    }
    end
}

/// A text, cut where its references are.
fn parts(text: &str, wrapper: usize, mut notes: Vec<Note>) -> Vec<Part> {
    notes.sort_by_key(|note| note.at);
    let (mut parts, mut done) = (Vec::new(), 0);
    for note in notes {
        let Some(at) = usize::try_from(note.at).ok().and_then(|at| at.checked_sub(wrapper)) else { continue };
        if at < done {
            continue;
        }
        let Some(end) = end_of(text, at, note.span) else { continue };
        if at > done {
            parts.push(Part::Text(text[done..at].to_string()));
        }
        parts.push(Part::Name(note.reference));
        done = end;
    }
    if done < text.len() || parts.is_empty() {
        parts.push(Part::Text(text[done..].to_string()));
    }
    parts
}

/// Binds the expression that stands at a place of an object; `table` is that of an index.
fn bound(
    object: &CatalogObject,
    place: ExpressionPlace,
    expression: &Expression,
    table: Option<&TableDesc>,
    cx: &mut BindContext<'_>,
) -> Result<Expr> {
    let nowhere = || Error::internal("an expression that is nowhere");
    match (object, place) {
        (CatalogObject::Table(table), ExpressionPlace::Default(number) | ExpressionPlace::Generated(number)) => {
            let column = table.columns.get(number as usize - 1).ok_or_else(nowhere)?;
            let ty = Ty { oid: column.type_oid, typmod: column.typmod };
            match place {
                ExpressionPlace::Default(_) => bind::bind_default(expression, ty, &column.name, cx),
                _ => bind::bind_computed(bind::Computed::Generated, expression, ty, &column.name, table, cx),
            }
        }
        (CatalogObject::Table(table), ExpressionPlace::Check(_)) => bind::bind_check(expression, table, cx),
        (CatalogObject::Index(_), ExpressionPlace::Key(_)) => {
            bind::bind_index_expression(expression, table.ok_or_else(nowhere)?, cx)
        }
        (CatalogObject::Index(_), ExpressionPlace::Predicate) => {
            bind::bind_index_predicate(expression, table.ok_or_else(nowhere)?, cx)
        }
        (CatalogObject::Type(ty), place) => match (&ty.kind, place) {
            (TypeKind::Domain(domain), ExpressionPlace::OfDomain) => {
                bind::bind_default(expression, Ty { oid: domain.base, typmod: domain.typmod }, &ty.name, cx)
            }
            (TypeKind::Domain(domain), ExpressionPlace::Check(_)) => bind::bind_shown_condition(expression, domain, cx),
            _ => Err(nowhere()),
        },
        _ => Err(nowhere()),
    }
}

/// What is kept of an expression that is written at a place of an object.
pub fn kept(
    object: &CatalogObject,
    place: ExpressionPlace,
    written: &Expression,
    table: Option<&TableDesc>,
    cx: &mut BindContext<'_>,
) -> Result<Expression> {
    let Expression::Written(text) = written else { return Ok(written.clone()) };
    if let (CatalogObject::Table(view), ExpressionPlace::Query) = (object, place) {
        return kept_query(view, text, cx);
    }
    let calls = std::mem::replace(&mut cx.keeps_calls, true);
    cx.notes = Some(Vec::new());
    let before = bound(object, place, written, table, cx);
    let notes = cx.notes.take().unwrap_or_default();
    let kept = Expression::Kept(parts(text, WRAPPER.len(), notes).into());
    let after = before.as_ref().ok().map(|_| bound(object, place, &kept, table, cx));
    cx.keeps_calls = calls;
    match (before?, after) {
        (before, Some(Ok(after))) if bind::same(&before, &after) => Ok(kept),
        _ => Err(Error::unsupported(format!("this expression cannot be kept in a definition: {text}"))),
    }
}

/// What is kept of the query of a view: relations and their columns have a list of their own there.
fn kept_query(view: &TableDesc, text: &str, cx: &mut BindContext<'_>) -> Result<Expression> {
    let calls = std::mem::replace(&mut cx.keeps_calls, true);
    cx.notes = Some(Vec::new());
    let before = bind::bind_stored_view(view, cx);
    let notes = cx.notes.take().unwrap_or_default();
    let kept = Expression::Kept(parts(text, 0, notes).into());
    let after = before.as_ref().ok().map(|_| {
        let mut view = view.clone();
        view.view.iter_mut().for_each(|view| view.query = kept.clone());
        bind::bind_stored_view(&view, cx)
    });
    cx.keeps_calls = calls;
    match (before?, after) {
        (before, Some(Ok(after))) if bind::same_result(&before, &after) => Ok(kept),
        _ => Err(Error::unsupported(format!("this query cannot be kept in a definition: {text}"))),
    }
}

/// Binds an expression of an object, to see whether it has a meaning.
///
/// # Errors
/// Why it has none.
pub fn check(
    object: &CatalogObject,
    place: ExpressionPlace,
    expression: &Expression,
    table: Option<&TableDesc>,
    cx: &mut BindContext<'_>,
) -> Result<()> {
    match (object, place) {
        (CatalogObject::Table(view), ExpressionPlace::Query) => bind::bind_stored_view(view, cx).map(drop),
        _ => bound(object, place, expression, table, cx).map(drop),
    }
}

/// Puts references in the place of names in all that an object says. What it said before and could not be kept then stays.
pub fn keep(object: &mut CatalogObject, cx: &mut BindContext<'_>) -> Result<()> {
    let is_written = |(_, e): &(ExpressionPlace, &Expression)| matches!(e, Expression::Written(_));
    if !object.expressions().iter().any(is_written) {
        return Ok(());
    }
    let catalog = cx.catalog.clone();
    let before = catalog.get(object.oid());
    let table = match &*object {
        CatalogObject::Index(index) => catalog.table(index.table),
        _ => None,
    };
    let whole = object.clone();
    for (place, expression) in object.expressions_mut() {
        if matches!(expression, Expression::Kept(_)) {
            continue;
        }
        match kept(&whole, place, expression, table, cx) {
            Ok(kept) => *expression = kept,
            Err(_) if before.is_some_and(|b| b.expressions().contains(&(place, &*expression))) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Binds those expressions of an object that speak of whole rows: the names of fields are in their text.
///
/// # Errors
/// Those of binding.
pub fn check_row_fields(object: &CatalogObject, cx: &mut BindContext<'_>) -> Result<()> {
    let catalog = cx.catalog.clone();
    let table = match object {
        CatalogObject::Index(index) => catalog.table(index.table),
        _ => None,
    };
    for (place, expression) in object.expressions() {
        if place != ExpressionPlace::Query && expression.references().any(|r| matches!(r, Reference::Row {})) {
            bound(object, place, expression, table, cx)?;
        }
    }
    Ok(())
}
