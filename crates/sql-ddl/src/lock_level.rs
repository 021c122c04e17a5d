//! The lock that ALTER TABLE takes: the strongest of those that its commands need, as PostgreSQL has them.

use engine_api::TableLockMode;
use rupg_sql::nodes::{AlterTableCmd, AlterTableStmt, AlterTableType, ConstrType, Node};

/// Storage parameters that may change under readers and writers.
const LIGHT_OPTIONS: [&str; 5] = ["fillfactor", "autovacuum_", "log_autovacuum_", "parallel_workers", "vacuum_"];

/// The lock for a statement.
pub(super) fn of(stmt: &AlterTableStmt) -> TableLockMode {
    let commands = stmt.cmds.iter().flatten().filter_map(|node| match node {
        Node::AlterTableCmd(cmd) => Some(of_command(cmd)),
        _ => None,
    });
    commands.max().unwrap_or(TableLockMode::AccessExclusive)
}

fn of_command(cmd: &AlterTableCmd) -> TableLockMode {
    use AlterTableType as T;
    match cmd.subtype {
        T::AT_SetStatistics
        | T::AT_ClusterOn
        | T::AT_DropCluster
        | T::AT_SetOptions
        | T::AT_ResetOptions
        | T::AT_ValidateConstraint => TableLockMode::ShareUpdateExclusive,
        T::AT_SetRelOptions | T::AT_ResetRelOptions => of_options(cmd),
        T::AT_EnableTrig
        | T::AT_EnableAlwaysTrig
        | T::AT_EnableReplicaTrig
        | T::AT_EnableTrigAll
        | T::AT_EnableTrigUser
        | T::AT_DisableTrig
        | T::AT_DisableTrigAll
        | T::AT_DisableTrigUser => TableLockMode::ShareRowExclusive,
        T::AT_AddConstraint => match &cmd.def {
            Some(Node::Constraint(c)) if c.contype == ConstrType::CONSTR_FOREIGN => TableLockMode::ShareRowExclusive,
            _ => TableLockMode::AccessExclusive,
        },
        _ => TableLockMode::AccessExclusive,
    }
}

fn of_options(cmd: &AlterTableCmd) -> TableLockMode {
    let Some(Node::List(list)) = &cmd.def else { return TableLockMode::AccessExclusive };
    let is_light = |node: &Node| match node {
        Node::DefElem(option) => {
            let name = option.defname.as_deref().unwrap_or_default();
            LIGHT_OPTIONS.iter().any(|light| name.starts_with(light))
        }
        _ => false,
    };
    match list.iter().flatten().all(is_light) {
        true => TableLockMode::ShareUpdateExclusive,
        false => TableLockMode::AccessExclusive,
    }
}
