//! What the names in an expression that is to be stored refer to, noted while it is bound (decision 0022).

use base::Oid;
use engine_api::{Reference, TypeKind};
use sql_functions::{Function, extensions};
use sql_ir::{Column, Expr, Ty};
use types::{Datum, oid, user};

use super::node::strings;
use super::{BindContext, Binder};
use crate::stored::{Note, Span};

impl<'a, 'c> Binder<'a, 'c> {
    /// A binder of a stored expression's text, which notes references if they are asked for. Those of other texts that are bound on
    /// the way are none of it.
    pub(super) fn noting(cx: &'a mut BindContext<'c>, sql: &'a str) -> Binder<'a, 'c> {
        let notes = cx.notes.take();
        let mut binder = Binder::new(cx, sql);
        binder.notes = notes;
        binder
    }

    /// Gives what was noted to who asked for it.
    pub(super) fn hand_over_notes(&mut self) {
        self.cx.notes = self.notes.take();
    }

    fn note(&mut self, at: i32, span: Span, reference: Reference) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note { at, span, reference });
        }
    }

    /// A name that means a column of the expression's table, or something of its row.
    pub(super) fn note_column(&mut self, at: i32, names: usize, found: &Expr) {
        if self.notes.is_none() || self.inside.is_some() {
            return;
        }
        match found {
            Expr::Column(Column { level: 0, rel: 0, column, .. }) => {
                self.note(at, Span::Name(names), Reference::Column(*column as i16 + 1));
            }
            Expr::WholeRow { level: 0, rel: 0 } => self.note(at, Span::Name(names), Reference::Row {}),
            _ if names > 1 => self.note(at, Span::Name(names - 1), Reference::Row {}),
            _ => {}
        }
    }

    /// The table's name before a star.
    pub(super) fn note_star(&mut self, at: i32, names: usize) {
        if self.inside.is_none() && names > 0 {
            self.note(at, Span::Name(names), Reference::Row {});
        }
    }

    /// The name of a type.
    pub(super) fn note_type(&mut self, name: &rupg_sql::nodes::TypeName) {
        if self.notes.is_none() {
            return;
        }
        let names = strings(&name.names);
        let known = Some((&*self.cx.catalog, &self.cx.identity));
        let found = super::types::look_up(&names, known);
        if let Some(info) = found.filter(|info| info.oid.0 >= user::FIRST_OID) {
            let reference = match name.arrayBounds.is_empty() || info.is_array() {
                true => Reference::Type(info.oid),
                false => Reference::ElementOf(info.array),
            };
            self.note(name.location, Span::Name(names.len()), reference);
        }
    }

    /// The name of a function where it is called: that of an extension's has to be kept.
    pub(super) fn note_function(&mut self, call: &rupg_sql::nodes::FuncCall, function: &Function) {
        if self.notes.is_none() {
            return;
        }
        let Some((extension, _)) = extensions::function_by_oid(function.oid) else { return };
        let known = self.cx.catalog.extension(self.cx.identity.database_oid, extension.name);
        if let Some(of) = known.map(|extension| extension.oid) {
            let names = strings(&call.funcname).len();
            self.note(call.location, Span::Name(names), Reference::Function { of, function: Oid(function.oid) });
        }
    }

    /// The name of a table where one of a type stands.
    pub(super) fn note_row_type(&mut self, name: &rupg_sql::nodes::TypeName, table: Oid) {
        self.note(name.location, Span::Name(strings(&name.names).len()), Reference::RowType(table));
    }

    /// A literal that has become a value.
    pub(super) fn note_literal(&mut self, at: i32, value: &Expr) {
        if self.notes.is_none() {
            return;
        }
        let Expr::Const(value, Ty { oid: ty, .. }) = value else { return };
        let is_made = |oid: u32| oid >= user::FIRST_OID;
        let reference = match (*ty, value) {
            (oid::REGCLASS, Datum::Oid(oid)) if *oid != 0 => Some(Reference::Relation(Oid(*oid))),
            (oid::REGTYPE, Datum::Oid(oid)) if is_made(*oid) => Some(Reference::TypeConstant(Oid(*oid))),
            (oid::REGNAMESPACE, Datum::Oid(oid)) if is_made(*oid) => Some(Reference::Schema(Oid(*oid))),
            (_, Datum::Enum(of, mark)) => self.label(*of, *mark).map(|label| Reference::Label { of: *of, label }),
            (_, Datum::Array(array)) if user::is_enum(array.element) => self.labels(array),
            _ => None,
        };
        if let Some(reference) = reference {
            self.note(at, Span::Literal, reference);
        }
    }

    fn label(&self, of: Oid, mark: f32) -> Option<Oid> {
        match &self.cx.catalog.user_type(of)?.kind {
            TypeKind::Enum(labels) => labels.iter().find(|label| label.order == mark).map(|label| label.oid),
            TypeKind::Domain(_) => None,
        }
    }

    /// An array of labels: it is written as the array of their numbers is.
    fn labels(&self, array: &types::Array) -> Option<Reference> {
        let number = |value: &Datum| match value {
            Datum::Enum(of, mark) => self.label(*of, *mark).map(|label| Datum::Oid(label.0)),
            _ => Some(Datum::Null),
        };
        let values = array.values.iter().map(number).collect::<Option<Vec<_>>>()?;
        let numbers = types::Array { element: oid::OID, dims: array.dims.clone(), values };
        let mut text = Vec::new();
        let value = Datum::Array(std::sync::Arc::new(numbers));
        types::write_text(value.as_ref(), oid::OID_ARRAY, self.cx.eval.settings(), &mut text).ok()?;
        Some(Reference::Labels { of: array.element, text: String::from_utf8(text).ok()? })
    }
}
