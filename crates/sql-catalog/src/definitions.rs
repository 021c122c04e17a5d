//! The SQL text of indexes and constraints (`pg_get_indexdef`, `pg_get_constraintdef`).

use base::Oid;
use engine_api::{Catalog, ConstraintDesc, ConstraintKind, ForeignKeyAction, IndexDesc, TableDesc};
use sql_functions::EvalContext;
use sql_ir::system_relation;
use sql_parse::names::{quote_name, quote_shown};

fn columns(table: &TableDesc, numbers: &[i16]) -> String {
    let names: Vec<String> =
        numbers.iter().filter_map(|&n| table.columns.get(n as usize - 1)).map(|c| quote_name(&c.name)).collect();
    names.join(", ")
}

/// A relation's name as a session with this search path writes it; its number if it is gone.
pub(crate) fn relation_text(catalog: &Catalog, search_path: &[Oid], oid: Oid) -> String {
    if let Some(system) = system_relation::numbered(oid) {
        return match system.schema {
            "pg_catalog" => quote_name(system.name),
            schema => format!("{}.{}", quote_name(schema), quote_name(system.name)),
        };
    }
    let Some(object) = catalog.get(oid) else { return oid.to_string() };
    let (_, schema) = object.namespace();
    let visible = search_path.iter().find_map(|&s| catalog.relation(s, object.name())).map(|o| o.oid()) == Some(oid);
    match catalog.get(schema) {
        Some(schema) if !visible => format!("{}.{}", quote_name(schema.name()), quote_name(object.name())),
        _ => quote_name(object.name()),
    }
}

/// A table's name as a session with this search path writes it.
pub(super) fn table_name(catalog: &Catalog, table: &TableDesc, search_path: &[Oid]) -> String {
    let visible =
        search_path.iter().find_map(|&s| catalog.relation(s, &table.name)).map(|o| o.oid()) == Some(table.oid);
    match catalog.get(table.schema) {
        Some(schema) if !visible => format!("{}.{}", quote_name(schema.name()), quote_name(&table.name)),
        _ => quote_name(&table.name),
    }
}

/// A key of an index: its column, or its expression.
fn key_text(table: &TableDesc, index: &IndexDesc, at: usize, pretty: bool, cx: &dyn EvalContext) -> String {
    if let Some(expression) = index.expression(at) {
        let (text, parentheses) = super::index_text(&expression.text, false, table, pretty, cx);
        // An operator's text has parentheses of its own but in the pretty form.
        return if parentheses { format!("({text})") } else { text };
    }
    let column = index.keys.get(at).and_then(|k| table.columns.get((k.column - 1) as usize));
    column.map(|c| quote_name(&c.name)).unwrap_or_default()
}

/// `CREATE INDEX …` of an index; `column` 0 is the whole text, n the nth column alone. The pretty form leaves out what it can.
pub(crate) fn index_definition(
    catalog: &Catalog,
    index: &IndexDesc,
    column: i32,
    pretty: bool,
    cx: &dyn EvalContext,
) -> Option<String> {
    let table = catalog.table(index.table)?;
    if column > 0 {
        let at = column as usize - 1;
        if let Some(&included) = at.checked_sub(index.keys.len()).and_then(|n| index.include.get(n)) {
            return Some(columns(table, &[included]));
        }
        // Behind the last one there is nothing to say.
        return Some(key_text(table, index, at, pretty, cx));
    }
    let on = match pretty {
        true => table_name(catalog, table, &cx.identity().search_path),
        false => {
            let schema = catalog.get(table.schema).map(|s| quote_name(s.name())).unwrap_or_default();
            format!("{schema}.{}", quote_name(&table.name))
        }
    };
    let mut keys = Vec::with_capacity(index.keys.len());
    for (at, key) in index.keys.iter().enumerate() {
        let mut text = key_text(table, index, at, pretty, cx);
        if let Some(collation) = index.collations.get(at).and_then(|&collation| sql_bind::collation::name_of(collation))
        {
            text.push_str(" COLLATE ");
            text.push_str(&collation);
        }
        if let Some(class) = index.classes.get(at).and_then(|&class| super::operator_classes::class_name(class)) {
            text.push(' ');
            text.push_str(class);
        }
        if key.descending {
            text.push_str(" DESC");
        }
        if key.nulls_first != key.descending {
            text.push_str(if key.nulls_first { " NULLS FIRST" } else { " NULLS LAST" });
        }
        keys.push(text);
    }
    let mut text = format!(
        "CREATE {}INDEX {} ON {on} USING {} ({})",
        if index.unique { "UNIQUE " } else { "" },
        quote_name(&index.name),
        if index.hash { "hash" } else { "btree" },
        keys.join(", ")
    );
    if !index.include.is_empty() {
        text.push_str(&format!(" INCLUDE ({})", columns(table, &index.include)));
    }
    if index.nulls_not_distinct {
        text.push_str(" NULLS NOT DISTINCT");
    }
    text.push_str(&with_options(&index.options));
    if let Some(predicate) = &index.predicate {
        text.push_str(&format!(" WHERE {}", super::index_text(predicate, true, table, pretty, cx).0));
    }
    Some(text)
}

/// ` WITH (…)`; nothing if there are none.
fn with_options(options: &[(String, String)]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let one = |(name, value): &(String, String)| match quote_name(value) == *value {
        true => format!("{}={value}", quote_name(name)),
        false => format!("{}={}", quote_name(name), quote_shown(value)),
    };
    format!(" WITH ({})", options.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn action(clause: &str, action: ForeignKeyAction) -> String {
    let word = match action {
        ForeignKeyAction::NoAction => return String::new(),
        ForeignKeyAction::Restrict => "RESTRICT",
        ForeignKeyAction::Cascade => "CASCADE",
        ForeignKeyAction::SetNull => "SET NULL",
        ForeignKeyAction::SetDefault => "SET DEFAULT",
    };
    format!(" {clause} {word}")
}

/// The definition of a constraint as ALTER TABLE ADD CONSTRAINT takes it.
pub(crate) fn constraint_definition(
    catalog: &Catalog,
    table: &TableDesc,
    constraint: &ConstraintDesc,
    pretty: bool,
    cx: &dyn EvalContext,
) -> String {
    let search_path = &cx.identity().search_path;
    let own = columns(table, &constraint.columns);
    let including = |index| match catalog.index(index) {
        Some(index) if !index.include.is_empty() => format!(" INCLUDE ({})", columns(table, &index.include)),
        _ => String::new(),
    };
    let text = match &constraint.kind {
        ConstraintKind::PrimaryKey { index } => format!("PRIMARY KEY ({own}){}", including(*index)),
        ConstraintKind::Unique { index } => {
            let nulls = catalog.index(*index).is_some_and(|index| index.nulls_not_distinct);
            format!("UNIQUE {}({own}){}", if nulls { "NULLS NOT DISTINCT " } else { "" }, including(*index))
        }
        ConstraintKind::Check { expression } => {
            format!("CHECK ({})", super::check_text(expression, table, pretty, cx))
        }
        ConstraintKind::ForeignKey {
            table: other,
            columns: targets,
            on_delete,
            on_update,
            match_full,
            set_columns,
            ..
        } => {
            let Some(other) = catalog.table(*other) else { return String::new() };
            format!(
                "FOREIGN KEY ({own}) REFERENCES {}({}){}{}{}{}",
                table_name(catalog, other, search_path),
                columns(other, targets),
                if *match_full { " MATCH FULL" } else { "" },
                action("ON UPDATE", *on_update),
                action("ON DELETE", *on_delete),
                if set_columns.is_empty() { String::new() } else { format!(" ({})", columns(table, set_columns)) }
            )
        }
    };
    let mut text = text;
    for (said, words) in [
        (constraint.deferrable, " DEFERRABLE"),
        (constraint.deferred, " INITIALLY DEFERRED"),
        (constraint.no_inherit, " NO INHERIT"),
        (constraint.not_valid, " NOT VALID"),
    ] {
        if said {
            text.push_str(words);
        }
    }
    text
}
