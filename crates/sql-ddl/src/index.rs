//! CREATE INDEX, REINDEX.

use std::borrow::Cow;

use base::{Error, Oid, Result, SqlState};
use engine_api::{
    CatalogObject, Expression, IndexDesc, IndexExpression, IndexKey, Persistence, TableDesc, TableLockMode,
};
use rupg_sql::nodes::{DefElem, IndexElem, IndexStmt, Node, ReindexObjectType, ReindexStmt, SortByDir, SortByNulls};
use sql_bind::collation;
use sql_bind::is_immutable;
use sql_bind::{bind_index_expression, bind_index_predicate, bind_own_index_expression, computed_constants};
use sql_catalog::operator_classes;
use sql_ir::Expr;
use sql_ir::system_column;

use super::Cx;
use super::alter_table::without_position;
use super::names::{Token, display, free_relation_name, strings, tokens};
use super::storage;

/// Columns of an index, as in PostgreSQL.
const KEYS_MAX: usize = 32;

pub(super) async fn create_index(cx: &mut Cx<'_>, stmt: &IndexStmt) -> Result<&'static str> {
    define_index(cx, stmt, false).await.map(|_| "CREATE INDEX")
}

/// Makes an index; one that is built beside writers begins without entries and is not valid. `None` if there is one with its
/// name, and that is no error.
pub(super) async fn define_index(cx: &mut Cx<'_>, stmt: &IndexStmt, concurrently: bool) -> Result<Option<IndexDesc>> {
    refuse_unsupported(stmt)?;
    let name = stmt.relation.as_deref().ok_or_else(|| Error::internal("CREATE INDEX without a table"))?;
    let mode = if concurrently { TableLockMode::ShareUpdateExclusive } else { TableLockMode::Share };
    let table = cx.locked_relation(name, mode).await?;
    let text = IndexText::of(cx.sql, name.location);
    check_words(cx, stmt, &table, &text)?;
    if !table.is_stored() {
        let message = format!("cannot create index on relation \"{}\"", table.name);
        return Err(
            Error::new(SqlState::WRONG_OBJECT_TYPE, message).detail("This operation is not supported for views.")
        );
    }
    cx.session.check_not_in_use(table.oid, &table.name, "CREATE INDEX")?;
    super::require_tablespace(stmt.tableSpace.as_deref())?;
    // As in PostgreSQL, the condition is looked at before the keys.
    let predicate = match &stmt.whereClause {
        Some(_) => predicate(cx, &table, text.predicate)?,
        None => None,
    };
    let (mut keys, mut expressions, mut names) = (Vec::new(), Vec::<IndexExpression>::new(), Vec::<String>::new());
    let (mut classes, mut collations) = (Vec::new(), Vec::new());
    for (at, element) in stmt.indexParams.iter().flatten().enumerate() {
        let Node::IndexElem(element) = element else { continue };
        let (element, own_text) =
            without_collation(element, text.elements.get(at).copied().unwrap_or_default(), cx.sql);
        let element = &*element;
        let column = match element.name.as_deref() {
            Some(name) => {
                let column = table.column(name).ok_or_else(|| no_column(&table, name))?;
                names.push(free_name(&names, &column.name));
                column.number
            }
            None => {
                let own = element.expr.as_ref().map_or_else(|| "expr".to_string(), function_name);
                let name = free_name(&names, &own);
                names.push(name.clone());
                match expression(cx, &table, element, own_text, name)? {
                    IndexKeyPart::Column(number) => number,
                    IndexKeyPart::Expression(expression) => {
                        expressions.push(expression);
                        0
                    }
                }
            }
        };
        let ty = match column {
            0 => expressions.last().map_or(types::oid::TEXT, |e| e.type_oid),
            number => table.columns[number as usize - 1].type_oid,
        };
        let expression = expressions.last().filter(|_| column == 0);
        collations.push(index_collation(cx, &table, element, (column, expression), ty)?);
        if stmt.accessMethod.as_deref() == Some("hash") {
            refuse_order(element)?;
        }
        classes.push(index_class(element, stmt.accessMethod.as_deref().unwrap_or("btree"), ty)?);
        keys.push(index_key(element, column));
    }
    if classes.iter().all(|&class| class == 0) {
        classes.clear();
    }
    if collations.iter().all(|&collation| collation == 0) {
        collations.clear();
    }
    if keys.len() + stmt.indexIncludingParams.len() > KEYS_MAX {
        let message = format!("cannot use more than {KEYS_MAX} columns in an index");
        return Err(Error::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    let hash = stmt.accessMethod.as_deref() == Some("hash");
    if hash && keys.len() > 1 {
        return Err(Error::unsupported("access method \"hash\" does not support multicolumn indexes"));
    }
    let include = included(&table, &stmt.indexIncludingParams)?;
    names.extend(include.iter().map(|&n| table.columns[n as usize - 1].name.clone()));
    let catalog = cx.catalog();
    let index_name = match &stmt.idxname {
        Some(given) => {
            if !cx.check_free(table.schema, given, stmt.if_not_exists)? {
                return Ok(None);
            }
            given.to_string()
        }
        None => free_relation_name(&catalog, table.schema, &table.name, &names.join("_"), "idx", &[]),
    };
    let index = IndexDesc {
        unique: stmt.unique,
        expressions,
        predicate,
        include,
        nulls_not_distinct: stmt.nulls_not_distinct,
        hash,
        options: storage::given(&stmt.options, storage::Of::index(hash))?,
        invalid: concurrently && table.persistence != Persistence::Temporary,
        classes,
        collations,
        ..IndexDesc::new(cx.allocate(), table.schema, index_name, table.oid, keys)
    };
    // As it is kept, it says what it speaks of.
    let mut kept = CatalogObject::Index(index.clone());
    cx.session.keep_references(&mut kept)?;
    if let CatalogObject::Index(kept) = &kept {
        super::constraint::test_domains(cx, &table, kept).await?;
    }
    cx.put(kept).await?;
    Ok(Some(index))
}

/// The indexes of a table whose columns have got other types, where their expressions mean something else now.
pub(super) fn rebound(
    cx: &mut Cx<'_>,
    before: &TableDesc,
    table: &TableDesc,
    columns: &[i16],
) -> Result<Vec<IndexDesc>> {
    let is_about = |expression: &Expression| columns.iter().any(|number| expression.speaks_of_column(*number));
    let mut changed = Vec::new();
    for index in cx.catalog().indexes(table.oid).filter(|index| index.needs_code() || !index.classes.is_empty()) {
        let mut index = index.clone();
        for (key, &class) in index.keys.iter().zip(&index.classes).filter(|(key, _)| key.column > 0) {
            operator_classes::check(class, table.columns[key.column as usize - 1].type_oid)?;
        }
        // As in PostgreSQL, the condition is looked at before the keys. Neither stands in the statement.
        if let Some(predicate) = &mut index.predicate {
            if is_about(predicate) {
                *predicate = cx.session.shown_in_index(predicate, true, before)?;
            }
            check_predicate(cx, table, predicate).map_err(without_position)?;
        }
        let mut parts = std::mem::take(&mut index.expressions).into_iter();
        for key in index.keys.iter_mut().filter(|key| key.column == 0) {
            let Some(part) = parts.next() else { break };
            let text = match is_about(&part.text) {
                true => cx.session.shown_in_index(&part.text, false, before)?,
                false => part.text,
            };
            // A cast to the type that the column has now says nothing more.
            let own = cx.session.bind_stored(|binder| bind_own_index_expression(&text, table, binder));
            match own.map_err(without_position)?.as_ref().and_then(column_alone) {
                Some(column) => key.column = column,
                None => {
                    let made = expression_of(cx, table, text, part.name, "").map_err(without_position)?;
                    index.expressions.push(made);
                }
            }
        }
        changed.push(index);
    }
    Ok(changed)
}

/// The column, if an expression is no more than that.
fn column_alone(own: &Expr) -> Option<i16> {
    match own {
        Expr::Column(column) if column.level == 0 => Some(column.column as i16 + 1),
        _ => None,
    }
}

fn no_column(table: &TableDesc, name: &str) -> Error {
    if let Some(column) = system_column::of_table(table, name) {
        let no_class = operator_classes::require_default(column.type_oid(), "btree").err();
        let refused = || Error::unsupported("index creation on system columns is not supported");
        return no_class.unwrap_or_else(refused);
    }
    Error::new(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
}

/// A name for a column of an index that none before it has.
fn free_name(taken: &[String], name: &str) -> String {
    let numbered = (1..).map(|n| format!("{name}{n}"));
    std::iter::once(name.to_string()).chain(numbered).find(|n| !taken.contains(n)).unwrap_or_default()
}

/// Binds the condition and the expressions of an index: PostgreSQL reports their errors before it looks at the kind of the relation
/// and for the columns among the keys.
fn check_words(cx: &mut Cx<'_>, stmt: &IndexStmt, table: &TableDesc, text: &IndexText<'_>) -> Result<()> {
    if stmt.whereClause.is_some() {
        let written = Expression::from(text.predicate);
        let bound = cx.session.bind_stored(|binder| bind_index_predicate(&written, table, binder));
        bound.map_err(|e| cx.place(e, text.predicate, true))?;
    }
    for (at, element) in stmt.indexParams.iter().flatten().enumerate() {
        let Node::IndexElem(element) = element else { continue };
        if element.expr.is_some() {
            let text = text.elements.get(at).copied().unwrap_or_default();
            let written = Expression::from(text);
            let bound = cx.session.bind_stored(|binder| bind_own_index_expression(&written, table, binder));
            bound.map_err(|e| cx.place(e, text, true))?;
        }
    }
    Ok(())
}

/// What an expression's column is called: its function's name, or `expr`.
fn function_name(node: &Node) -> String {
    let name = sql_bind::figure_name(node);
    if name == "?column?" { "expr".to_string() } else { name }
}

/// What an expression among the keys of a new index is.
enum IndexKeyPart {
    /// No more than a column in parentheses.
    Column(i16),
    Expression(IndexExpression),
}

fn expression(
    cx: &mut Cx<'_>,
    table: &TableDesc,
    element: &IndexElem,
    text: &str,
    name: String,
) -> Result<IndexKeyPart> {
    let written = Expression::from(text);
    let found = cx.session.bind_stored(|binder| bind_own_index_expression(&written, table, binder));
    // A literal has no type.
    let Some(own) = found.map_err(|e| cx.place(e, text, true))? else {
        index_collation(cx, table, element, (0, None), types::oid::UNKNOWN)?;
        return Err(operator_classes::no_default("unknown", "btree"));
    };
    if let Some(column) = column_alone(&own) {
        return Ok(IndexKeyPart::Column(column));
    }
    let made =
        expression_of(cx, table, written, name, &format!("SELECT ({text}")).map_err(|e| cx.place(e, text, true))?;
    Ok(IndexKeyPart::Expression(made))
}

/// `sql`: what the text was bound as, for the positions of errors; empty for one that is kept.
fn expression_of(
    cx: &mut Cx<'_>,
    table: &TableDesc,
    text: Expression,
    name: String,
    sql: &str,
) -> Result<IndexExpression> {
    let (bound, computed) = cx.session.bind_stored(|binder| {
        let bound = bind_index_expression(&text, table, binder)?;
        computed_constants(&bound, binder).map(|computed| (bound, computed))
    })?;
    if !is_immutable(&computed) {
        let message = "functions in index expression must be marked IMMUTABLE";
        return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    let (type_oid, catalog) = (bound.ty().oid, cx.catalog());
    // What is folded to a constant says nothing of the domains that it went through.
    let said = cx.session.bind_stored(|binder| {
        binder.keeps_calls = true;
        bind_index_expression(&text, table, binder)
    })?;
    let place = collation::CollatedExpr { catalog: &catalog, sql, columns: collation::Columns::Table(table) };
    let collation = collation::of_expression(&said, place)?;
    let collation = collation
        .ok_or_else(|| collation::indeterminate("could not determine which collation to use for index expression"))?;
    let collation = (collation != collation::of_type(&catalog, type_oid)).then_some(collation);
    Ok(IndexExpression { text, type_oid, name, collation })
}

/// The condition of a new index; none if it always holds.
fn predicate(cx: &mut Cx<'_>, table: &TableDesc, text: &str) -> Result<Option<Expression>> {
    let expression = Expression::from(text);
    check_predicate(cx, table, &expression).map_err(|e| cx.place(e, text, true))?;
    // Others that always hold are kept as they are.
    Ok(Some(expression).filter(|_| !text.trim().eq_ignore_ascii_case("true")))
}

fn check_predicate(cx: &mut Cx<'_>, table: &TableDesc, expression: &Expression) -> Result<()> {
    let computed = cx.session.bind_stored(|binder| {
        let bound = bind_index_predicate(expression, table, binder)?;
        computed_constants(&bound, binder)
    })?;
    if !is_immutable(&computed) {
        let message = "functions in index predicate must be marked IMMUTABLE";
        return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    Ok(())
}

/// The columns of INCLUDE.
fn included(table: &TableDesc, list: &[Option<Node>]) -> Result<Vec<i16>> {
    let mut columns = Vec::new();
    for node in list.iter().flatten() {
        let Node::IndexElem(element) = node else { continue };
        let Some(name) = element.name.as_deref() else {
            return Err(Error::unsupported("expressions are not supported in included columns"));
        };
        let refused = [
            (!element.collation.is_empty(), "including column does not support a collation"),
            (!element.opclass.is_empty(), "including column does not support an operator class"),
            (element.ordering != SortByDir::SORTBY_DEFAULT, "including column does not support ASC/DESC options"),
            (
                element.nulls_ordering != SortByNulls::SORTBY_NULLS_DEFAULT,
                "including column does not support NULLS FIRST/LAST options",
            ),
        ];
        if let Some((_, message)) = refused.iter().find(|(there, _)| *there) {
            return Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, *message));
        }
        columns.push(table.column(name).ok_or_else(|| no_column(table, name))?.number);
    }
    Ok(columns)
}

fn refuse_unsupported(stmt: &IndexStmt) -> Result<()> {
    match stmt.accessMethod.as_deref() {
        None | Some("btree") => Ok(()),
        // Equality is all a hash index answers, and an ordered index answers it too.
        Some("hash") if stmt.unique => {
            Err(Error::unsupported("access method \"hash\" does not support unique indexes"))
        }
        Some("hash") if !stmt.indexIncludingParams.is_empty() => {
            Err(Error::unsupported("access method \"hash\" does not support included columns"))
        }
        Some("hash") => Ok(()),
        Some(method @ ("gist" | "gin" | "brin" | "spgist")) => {
            Err(Error::unsupported(format!("access method \"{method}\" is not supported")))
        }
        Some(method) => {
            Err(Error::new(SqlState::UNDEFINED_OBJECT, format!("access method \"{method}\" does not exist")))
        }
    }
}

/// Demands that nothing is said about the order of a key where there is none.
fn refuse_order(element: &IndexElem) -> Result<()> {
    let options = match (element.ordering, element.nulls_ordering) {
        (SortByDir::SORTBY_DEFAULT, SortByNulls::SORTBY_NULLS_DEFAULT) => return Ok(()),
        (SortByDir::SORTBY_DEFAULT, _) => "NULLS FIRST/LAST",
        _ => "ASC/DESC",
    };
    Err(Error::unsupported(format!("access method \"hash\" does not support {options} options")))
}

/// The operator class of a key, 0 if it is the default one of the type. In the C collation the pattern classes order as the default
/// ones do.
fn index_class(element: &IndexElem, method: &str, ty: Oid) -> Result<u32> {
    match strings(&element.opclass).pop() {
        Some(name) => operator_classes::named(&name, method, ty),
        None => operator_classes::require_default(ty, method).map(|()| 0),
    }
}

/// The collation of a key, 0 if it is that of its column or of its expression.
fn index_collation(
    cx: &mut Cx<'_>,
    table: &TableDesc,
    element: &IndexElem,
    (column, expression): (i16, Option<&IndexExpression>),
    ty: Oid,
) -> Result<u32> {
    if element.collation.is_empty() {
        return Ok(0);
    }
    let (catalog, database) = (cx.catalog(), cx.database());
    let names = strings(&element.collation);
    let shown = || cx.session.shown_type(ty, -1);
    let said = collation::said(&catalog, database, &names, ty, shown)?;
    let own = collation::of_key_part(&catalog, table, column, expression);
    Ok(if said == own { 0 } else { said })
}

/// `(x COLLATE c)` is `x COLLATE c`, as in PostgreSQL: the element and the text of its expression without the COLLATE around it.
fn without_collation<'e, 's>(element: &'e IndexElem, text: &'s str, sql: &str) -> (Cow<'e, IndexElem>, &'s str) {
    let (mut element, mut text) = (Cow::Borrowed(element), text);
    while let Some(Node::CollateClause(clause)) = &element.expr {
        let from = (text.as_ptr() as usize).wrapping_sub(sql.as_ptr() as usize);
        let Some(before) = usize::try_from(clause.location).ok().and_then(|at| text.get(..at.checked_sub(from)?))
        else {
            break;
        };
        let clause = (**clause).clone();
        let inner = element.to_mut();
        if inner.collation.is_empty() {
            inner.collation = clause.collname;
        }
        inner.expr = clause.arg;
        // What stands before the operand is parentheses around the whole.
        text = before;
        let all = tokens(text, 0);
        let count = |word: &str| all.iter().filter(|token| token.word == word).count();
        for _ in count(")")..count("(") {
            text = text.trim_start().strip_prefix('(').unwrap_or(text);
        }
    }
    (element, text)
}

fn index_key(element: &IndexElem, column: i16) -> IndexKey {
    let descending = element.ordering == SortByDir::SORTBY_DESC;
    let nulls_first = match element.nulls_ordering {
        SortByNulls::SORTBY_NULLS_FIRST => true,
        SortByNulls::SORTBY_NULLS_LAST => false,
        _ => descending,
    };
    IndexKey { column, descending, nulls_first }
}

/// The texts in a CREATE INDEX.
#[derive(Default)]
struct IndexText<'s> {
    /// Elements of the key: an expression without its parentheses, a call as it is.
    elements: Vec<&'s str>,
    predicate: &'s str,
}

impl<'s> IndexText<'s> {
    /// Takes apart what follows the table's name, which begins at `from`.
    fn of(sql: &'s str, from: i32) -> IndexText<'s> {
        let all = tokens(sql, usize::try_from(from).unwrap_or(0));
        let mut text = IndexText::default();
        let Some(open) = all.iter().position(|t| t.word == "(") else { return text };
        let close = matching(&all, open);
        let mut start = open + 1;
        let mut depth = 0;
        for at in open + 1..=close.min(all.len().saturating_sub(1)) {
            match all[at].word.as_str() {
                "(" | "[" => depth += 1,
                ")" | "]" if at < close => depth -= 1,
                "," if depth == 0 => {
                    text.elements.push(element_text(sql, &all[start..at]));
                    start = at + 1;
                }
                _ => {}
            }
        }
        text.elements.push(element_text(sql, all.get(start..close).unwrap_or_default()));
        let mut depth = 0;
        for (at, token) in all.iter().enumerate().skip(close + 1) {
            match token.word.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                "where" if depth == 0 => {
                    if let (Some(first), Some(last)) = (all.get(at + 1), all.last()) {
                        text.predicate = &sql[first.start..last.end];
                    }
                    break;
                }
                _ => {}
            }
        }
        text
    }
}

/// Where the parenthesis at `open` is closed.
fn matching(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.word.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

/// The expression at the beginning of an element.
fn element_text<'s>(sql: &'s str, tokens: &[Token]) -> &'s str {
    let Some(open) = tokens.iter().position(|t| t.word == "(") else { return "" };
    let close = matching(tokens, open);
    let (Some(first), Some(last)) = (tokens.first(), tokens.get(close)) else { return "" };
    match open {
        0 => sql[first.end..last.start].trim(),
        _ => &sql[first.start..last.end],
    }
}

/// REINDEX: an ordered index in memory has nothing to mend; what is named must be there, and what is not valid is built.
pub(super) async fn reindex(cx: &mut Cx<'_>, stmt: &ReindexStmt) -> Result<&'static str> {
    let concurrently =
        stmt.params.iter().flatten().any(|node| matches!(node, Node::DefElem(option) if is_concurrently(option)));
    let of_one = [ReindexObjectType::REINDEX_OBJECT_INDEX, ReindexObjectType::REINDEX_OBJECT_TABLE];
    if concurrently || !of_one.contains(&stmt.kind) {
        let what = match stmt.kind {
            _ if concurrently => "REINDEX CONCURRENTLY",
            ReindexObjectType::REINDEX_OBJECT_SCHEMA => "REINDEX SCHEMA",
            ReindexObjectType::REINDEX_OBJECT_SYSTEM => "REINDEX SYSTEM",
            _ => "REINDEX DATABASE",
        };
        cx.session.refuse_in_block(what)?;
    }
    let Some(name) = &stmt.relation else {
        let name = stmt.name.as_deref().unwrap_or_default();
        if stmt.kind == ReindexObjectType::REINDEX_OBJECT_SCHEMA {
            let catalog = cx.catalog();
            cx.schema_named(&catalog, name)?;
        } else if !name.is_empty() && name != cx.session.identity().database {
            return Err(Error::unsupported("can only reindex the currently open database"));
        }
        return Ok("REINDEX");
    };
    let found = cx.find_relation(name)?;
    let (index, table) = match found.as_deref() {
        Some(CatalogObject::Index(index)) => (true, index.table),
        Some(CatalogObject::Table(table)) if table.is_stored() => (false, table.oid),
        Some(other) => {
            let what = if of_one[0] == stmt.kind { "an index" } else { "a table or materialized view" };
            return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {what}", other.name())));
        }
        None => {
            let message = format!("relation \"{}\" does not exist", display(name));
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
    };
    if index != (stmt.kind == ReindexObjectType::REINDEX_OBJECT_INDEX) {
        let what = if index { "a table or materialized view" } else { "an index" };
        let name = name.relname.as_deref().unwrap_or_default();
        return Err(Error::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not {what}")));
    }
    let only = found.as_deref().filter(|_| index).map(CatalogObject::oid);
    let broken = |cx: &mut Cx<'_>| -> Vec<IndexDesc> {
        let catalog = cx.catalog();
        catalog.indexes(table).filter(|i| i.invalid && only.is_none_or(|oid| oid == i.oid)).cloned().collect()
    };
    let mode = match concurrently && !broken(cx).iter().any(|index| index.unready) {
        true => TableLockMode::ShareUpdateExclusive,
        false => TableLockMode::Share,
    };
    cx.lock(table, mode).await?;
    for index in broken(cx) {
        super::concurrently::complete(cx, index).await?;
    }
    Ok("REINDEX")
}

fn is_concurrently(option: &DefElem) -> bool {
    option.defname.as_deref() == Some("concurrently")
}
