//! GRANT and REVOKE of everything, default privileges, roles and memberships.

use super::{ObjectKind, Writer};

impl Writer<'_> {
    fn grantee(&mut self) -> String {
        if self.once_in(6) { "PUBLIC".to_owned() } else { self.role() }
    }

    /// Privileges of those that are there, or all.
    fn some_of(&mut self, privileges: &[&str]) -> String {
        let writes = ["INSERT", "UPDATE", "DELETE"];
        let of_tables = privileges.contains(&"DELETE");
        let kept: Vec<_> =
            privileges.iter().copied().filter(|p| !self.world.writes_all || !writes.contains(p)).collect();
        let privileges = if of_tables { &kept[..] } else { privileges };
        if self.once_in(5) && !(of_tables && self.world.writes_all) {
            return self.pick(&["ALL", "ALL PRIVILEGES"]).to_owned();
        }
        let first = self.pick(privileges).to_owned();
        match self.below(3) {
            0 => {
                let second = self.pick(privileges);
                if second == first { first } else { format!("{first}, {second}") }
            }
            _ => first,
        }
    }

    /// What is granted, and on what.
    ///
    /// What is said of all relations of a schema is said in the order in which they lie in PostgreSQL's catalog: that is only for
    /// grants that nobody is warned about.
    fn granted(&mut self, initial: bool) -> String {
        const OF_TABLES: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
        const OF_COLUMNS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];
        match self.below(if initial { 20 } else { 18 }) {
            0..=6 => {
                let relation = self.relation();
                let table = self.pick(&["", "TABLE "]);
                let more = if self.once_in(8) { format!(", {}", self.relation().full()) } else { String::new() };
                format!("{} ON {table}{}{more}", self.some_of(&OF_TABLES), relation.full())
            }
            7..=10 => {
                let relation = self.relation();
                let (first, second) = (self.column(&relation), self.column(&relation));
                let columns = if first == second { first.to_owned() } else { format!("{first}, {second}") };
                let privilege = self.pick(&OF_COLUMNS);
                let more =
                    if self.once_in(5) { format!(", {} ({first})", self.pick(&OF_COLUMNS)) } else { String::new() };
                format!("{privilege} ({columns}){more} ON {}", relation.full())
            }
            11 | 12 => format!("{} ON SEQUENCE {}", self.some_of(&["USAGE", "SELECT", "UPDATE"]), self.sequence()),
            13..=15 => format!("{} ON SCHEMA {}", self.schema_privileges(), self.schema()),
            16 => {
                let database = self.world.database.clone();
                format!("{} ON DATABASE {database}", self.some_of(&["CREATE", "CONNECT", "TEMPORARY", "TEMP"]))
            }
            17 => {
                let name = self.type_name();
                format!("{} ON TYPE {name}", self.some_of(&["USAGE"]))
            }
            18 => format!("{} ON ALL TABLES IN SCHEMA {}", self.some_of(&OF_TABLES), self.schema()),
            _ => {
                format!("{} ON ALL SEQUENCES IN SCHEMA {}", self.some_of(&["USAGE", "SELECT", "UPDATE"]), self.schema())
            }
        }
    }

    /// CREATE comes with USAGE: who has only the former makes tables whose constraints PostgreSQL then cannot find.
    fn schema_privileges(&mut self) -> &'static str {
        self.pick(&["USAGE", "USAGE", "CREATE, USAGE", "ALL"])
    }

    /// A made type of either kind.
    pub(super) fn type_name(&mut self) -> String {
        let types: Vec<_> = self.world.enums.iter().chain(&self.world.domains).cloned().collect();
        self.one_of(&types)
    }

    fn granted_by(&mut self) -> String {
        match self.below(12) {
            0 => " GRANTED BY CURRENT_USER".to_owned(),
            1 => format!(" GRANTED BY {}", self.role()),
            2 => " GRANTED BY CURRENT_ROLE".to_owned(),
            _ => String::new(),
        }
    }

    /// GRANT or REVOKE.
    pub(super) fn grant(&mut self) -> String {
        let (what, to, by) = (self.granted(false), self.grantee(), self.granted_by());
        if self.once_in(2) {
            let option = self.pick(&["", "", "", " WITH GRANT OPTION"]);
            return format!("GRANT {what} TO {to}{option}{by}");
        }
        let what = whole_of_schema(what);
        let option = self.pick(&["", "", "", "GRANT OPTION FOR "]);
        let rest = self.pick(&["", "", " CASCADE", " RESTRICT"]);
        format!("REVOKE {option}{what} FROM {to}{by}{rest}")
    }

    /// One of the grants that a world begins with, by a superuser.
    pub(super) fn initial_grant(&mut self) -> String {
        let (what, to) = (self.granted(true), self.grantee());
        match self.below(8) {
            0 => format!("REVOKE {} FROM {to}", whole_of_schema(what)),
            1 if to != "PUBLIC" => format!("GRANT {what} TO {to} WITH GRANT OPTION"),
            _ => format!("GRANT {what} TO {to}"),
        }
    }

    pub(super) fn default_privileges(&mut self) -> String {
        let for_role = match self.below(3) {
            0 => String::new(),
            _ => format!(" FOR ROLE {}", self.role()),
        };
        let in_schema = if self.once_in(2) { format!(" IN SCHEMA {}", self.schema()) } else { String::new() };
        let (what, all) = match self.below(8) {
            0 => ("SEQUENCES", self.some_of(&["USAGE", "SELECT", "UPDATE"])),
            1 => ("SCHEMAS", self.some_of(&["USAGE", "CREATE"])),
            _ => ("TABLES", self.some_of(&["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE"])),
        };
        let to = self.grantee();
        match self.below(4) {
            0 => format!("ALTER DEFAULT PRIVILEGES{for_role}{in_schema} REVOKE {all} ON {what} FROM {to}"),
            1 => {
                format!("ALTER DEFAULT PRIVILEGES{for_role}{in_schema} GRANT {all} ON {what} TO {to} WITH GRANT OPTION")
            }
            _ => format!("ALTER DEFAULT PRIVILEGES{for_role}{in_schema} GRANT {all} ON {what} TO {to}"),
        }
    }

    /// A role of the world, or one that is there from the start.
    pub(super) fn any_role(&mut self) -> String {
        match self.below(8) {
            0 => self
                .pick(&[
                    "pg_read_all_data",
                    "pg_write_all_data",
                    "pg_monitor",
                    "pg_signal_backend",
                    "pg_database_owner",
                    "pg_checkpoint",
                    "postgres",
                    "nobody",
                ])
                .to_owned(),
            _ => self.role(),
        }
    }

    /// CREATE, ALTER, DROP of roles, and memberships.
    pub(super) fn of_roles(&mut self) -> String {
        const OPTIONS: [&str; 18] = [
            "SUPERUSER",
            "NOSUPERUSER",
            "CREATEDB",
            "NOCREATEDB",
            "CREATEROLE",
            "NOCREATEROLE",
            "INHERIT",
            "NOINHERIT",
            "LOGIN",
            "NOLOGIN",
            "REPLICATION",
            "BYPASSRLS",
            "CONNECTION LIMIT 5",
            "PASSWORD 'x'",
            "PASSWORD NULL",
            "VALID UNTIL 'infinity'",
            "NOBYPASSRLS",
            "NOREPLICATION",
        ];
        let role = self.any_role();
        match self.below(16) {
            0 | 1 => {
                let (first, second) = (self.pick(&OPTIONS), self.pick(&["", "LOGIN", "CREATEDB"]));
                let second = if second == first { "" } else { second };
                let noun = self.pick(&["ROLE", "USER", "ROLE"]);
                let second = if noun == "USER" { "" } else { second };
                format!("CREATE {noun} fresh {first} {second}")
            }
            2 => {
                let how = self.pick(&["IN ROLE", "ROLE", "ADMIN"]);
                format!("CREATE ROLE fresh {how} {role}")
            }
            3..=5 => {
                let option = self.pick(&OPTIONS);
                let whom = if self.once_in(5) {
                    self.pick(&["CURRENT_USER", "SESSION_USER", "CURRENT_ROLE"]).to_owned()
                } else {
                    role
                };
                format!("ALTER ROLE {whom} {option}")
            }
            6 => format!("ALTER ROLE {role} RENAME TO renamed"),
            7 => {
                let noun = self.pick(&["", "IF EXISTS "]);
                format!("DROP ROLE {noun}{role}")
            }
            8..=11 => {
                let member = self.any_role();
                let admin = self.pick(&["", "", " WITH ADMIN OPTION"]);
                let by = self.granted_by();
                format!("GRANT {role} TO {member}{admin}{by}")
            }
            12 | 13 => {
                let member = self.any_role();
                let admin = self.pick(&["", "", "ADMIN OPTION FOR "]);
                format!("REVOKE {admin}{role} FROM {member}")
            }
            14 => {
                let other = self.any_role();
                format!("REASSIGN OWNED BY {role} TO {other}")
            }
            // DROP OWNED takes back in the name of whoever runs it, which warns of what that one has not granted: see `end_of_role`.
            _ => format!("DROP ROLE IF EXISTS nobody, {role}"),
        }
    }

    /// ALTER ROLE … SET and the like.
    pub(super) fn kept_setting(&mut self) -> String {
        let (name, value) = self.setting();
        let role = if self.once_in(5) { "CURRENT_USER".to_owned() } else { self.any_role() };
        let database = self.world.database.clone();
        match self.below(10) {
            0..=3 => format!("ALTER ROLE {role} SET {name} = {value}"),
            4 => format!("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value}"),
            5 => format!("ALTER ROLE ALL SET {name} = {value}"),
            6 => format!("ALTER ROLE {role} RESET {name}"),
            7 => format!("ALTER ROLE {role} RESET ALL"),
            8 => format!("ALTER DATABASE {database} SET {name} = {value}"),
            _ => format!("ALTER DATABASE {database} RESET {name}"),
        }
    }

    /// Who a comment, an owner or a name of a relation is asked for.
    pub(super) fn noun_of(kind: ObjectKind) -> &'static str {
        match kind {
            ObjectKind::Table => "TABLE",
            ObjectKind::Materialized => "MATERIALIZED VIEW",
            ObjectKind::Simple | ObjectKind::View => "VIEW",
        }
    }
}

/// Nobody is left with CREATE alone: see [`Writer::schema_privileges`].
fn whole_of_schema(what: String) -> String {
    match what.split_once(" ON SCHEMA ") {
        Some((_, schema)) => format!("ALL ON SCHEMA {schema}"),
        None => what,
    }
}
