//! Whether an expression has the same value for every role and at any time: what the code of an index and a generated column must be.

use base::Oid;
use sql_functions::{Function, Volatility, is_name_in_catalog};
use sql_ir::{CastKind, Expr};

use super::{simplified, under_domain, visit};

/// Whether an expression is the same whoever evaluates it, and when. Parts that are never evaluated do not count, nor does what a
/// domain demands, which is taken to stay as it is.
pub fn is_immutable(expr: &Expr) -> bool {
    is_immutable_part(&simplified(expr))
}

fn is_immutable_part(expr: &Expr) -> bool {
    let expr = under_domain(expr);
    let is_own = match expr {
        Expr::Call { function, .. } if function.name.starts_with("domain ") => true,
        Expr::Call { function, args, .. } => is_immutable_call(function, args),
        Expr::Cast { arg, ty, kind, .. } => {
            *kind != CastKind::InOut || has_one_text(arg.ty().oid) && is_read_alike(ty.oid)
        }
        _ => true,
    };
    let mut immutable = is_own;
    visit::children(expr, &mut |child| immutable = immutable && is_immutable_part(child), &mut |_| {});
    immutable
}

/// Whether a call says the same of the same arguments, whoever evaluates it, and when.
pub(super) fn is_immutable_call(function: &Function, args: &[Expr]) -> bool {
    // PostgreSQL writes these out before it looks: all they do is to make texts of their arguments.
    let makes_text = || MAKES_TEXT.contains(&function.oid) && args.iter().all(|arg| has_one_text(arg.ty().oid));
    function.volatility == Volatility::Immutable || makes_text()
}

/// `quote_literal(anyelement)`, `quote_nullable(anyelement)`, `text || anynonarray`, `anynonarray || text`.
const MAKES_TEXT: [u32; 4] = [1285, 1290, 2003, 2004];

/// Whether the output function of a type is immutable in PostgreSQL, that is, depends on no setting and no name.
fn has_one_text(ty: Oid) -> bool {
    use types::oid::*;
    is_plain(ty) && ![DATE, TIMESTAMP, TIMESTAMPTZ, INTERVAL].contains(&types::user::base_type(ty, -1).0)
}

/// The same of its input function.
fn is_read_alike(ty: Oid) -> bool {
    use types::oid::*;
    has_one_text(ty) && ![TIME, TIMETZ].contains(&types::user::base_type(ty, -1).0)
}

/// Whether values of a type show no names of objects, as enums, regclass and the like do, and have no parts that might.
fn is_plain(ty: Oid) -> bool {
    use types::oid::*;
    let base = types::user::base_type(ty, -1).0;
    let has_parts =
        base == RECORD || types::element_of(base).is_some() && ![NAME, INT2VECTOR, OIDVECTOR].contains(&base);
    !has_parts && !types::user::is_enum(base) && !is_name_in_catalog(base)
}
