//! DEFERRABLE and INITIALLY DEFERRED behind the constraints of a column.

use base::{Error, Result, SqlState};
use rupg_sql::nodes::{ConstrType, Constraint, List, Node};

/// What was said of one constraint so far.
#[derive(Default)]
struct Said {
    deferrable: bool,
    initially: bool,
}

/// The constraints of a column, with the attributes that follow them put into them.
pub(super) fn with_attributes(sql: &str, constraints: &List) -> Result<Vec<Constraint>> {
    use ConstrType as K;
    let mut out: Vec<Constraint> = Vec::new();
    let mut said = Said::default();
    for node in constraints.iter().flatten() {
        let Node::Constraint(constraint) = node else { continue };
        let error = |message: String| Error::new(SqlState::SYNTAX_ERROR, message).at_byte(sql, constraint.location);
        let clause = match constraint.contype {
            K::CONSTR_ATTR_DEFERRABLE => "DEFERRABLE",
            K::CONSTR_ATTR_NOT_DEFERRABLE => "NOT DEFERRABLE",
            K::CONSTR_ATTR_DEFERRED => "INITIALLY DEFERRED",
            K::CONSTR_ATTR_IMMEDIATE => "INITIALLY IMMEDIATE",
            _ => {
                said = Said::default();
                out.push((**constraint).clone());
                continue;
            }
        };
        let takes = [K::CONSTR_PRIMARY, K::CONSTR_UNIQUE, K::CONSTR_EXCLUSION, K::CONSTR_FOREIGN];
        let Some(last) = out.last_mut().filter(|c| takes.contains(&c.contype)) else {
            return Err(error(format!("misplaced {clause} clause")));
        };
        let (before, several) = match clause.starts_with("INITIALLY") {
            true => (&mut said.initially, "multiple INITIALLY IMMEDIATE/DEFERRED clauses not allowed"),
            false => (&mut said.deferrable, "multiple DEFERRABLE/NOT DEFERRABLE clauses not allowed"),
        };
        if std::mem::replace(before, true) {
            return Err(error(several.to_string()));
        }
        match constraint.contype {
            K::CONSTR_ATTR_DEFERRABLE => last.deferrable = true,
            K::CONSTR_ATTR_NOT_DEFERRABLE => last.deferrable = false,
            K::CONSTR_ATTR_DEFERRED => {
                last.initdeferred = true;
                last.deferrable |= !said.deferrable;
            }
            _ => last.initdeferred = false,
        }
        if last.initdeferred && !last.deferrable {
            return Err(error("constraint declared INITIALLY DEFERRED must be DEFERRABLE".to_string()));
        }
    }
    Ok(out)
}
