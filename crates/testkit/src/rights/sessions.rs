//! The role of a session, by every way to change it, and what the session keeps after the change.

use super::{Case, Start, Step, Writer};

/// What a superuser looks at when definitions or rights may have changed.
pub const PROBE_RIGHTS: &str = "\
SELECT 'relation', relname, relkind::text, relowner::regrole::text, relnamespace::regnamespace::text, relacl::text FROM pg_class \
 WHERE relnamespace::regnamespace::text !~ '^(pg_|information_schema)' \
UNION ALL SELECT 'column', attrelid::regclass::text, attname, NULL, NULL, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid >= 16384 \
UNION ALL SELECT 'schema', nspname, NULL, nspowner::regrole::text, NULL, nspacl::text FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)' \
UNION ALL SELECT 'type', typname, NULL, typowner::regrole::text, typnamespace::regnamespace::text, typacl::text FROM pg_type WHERE typtype IN ('e', 'd') AND typnamespace::regnamespace::text !~ '^(pg_|information_schema)' \
UNION ALL SELECT 'database', datname, NULL, datdba::regrole::text, NULL, datacl::text FROM pg_database WHERE datname = current_database() \
UNION ALL SELECT 'defaults', defaclobjtype::text, NULL, defaclrole::regrole::text, CASE WHEN defaclnamespace <> 0 THEN defaclnamespace::regnamespace::text END, defaclacl::text FROM pg_default_acl \
UNION ALL SELECT 'member', roleid::regrole::text, member::regrole::text, NULL, NULL, admin_option::text FROM pg_auth_members WHERE member >= 16384 \
UNION ALL SELECT 'role', rolname, concat_ws(' ', rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls, rolconnlimit), NULL, NULL, rolconfig::text FROM pg_roles WHERE oid >= 16384 \
UNION ALL SELECT 'settings', setrole::regrole::text, NULL, NULL, NULL, setconfig::text FROM pg_db_role_setting s LEFT JOIN pg_database d ON d.oid = setdatabase WHERE d.oid IS NULL OR datname = current_database()";

impl Writer<'_> {
    /// A setting and a value for it.
    pub(super) fn setting(&mut self) -> (String, String) {
        if self.once_in(4) {
            let role = self.any_role();
            // Defaults that take from a sequence find it by the path of whoever uses them (COMPATIBILITY.md): `public` stays.
            let path = format!("{}, public", self.schema());
            return match self.below(4) {
                0 => ("role".to_owned(), role),
                1 => ("session_authorization".to_owned(), role),
                _ => ("search_path".to_owned(), path),
            };
        }
        self.one_of(&self.world.settings)
    }

    /// Statements that make the session somebody else, inside a block.
    fn become_somebody(&mut self) -> Vec<String> {
        let (role, other) = (self.role(), self.role());
        match self.below(14) {
            0..=4 => vec![format!("SET LOCAL ROLE {role}")],
            5 => vec![format!("SET ROLE {role}")],
            6 => vec![format!("SELECT set_config('role', '{role}', true)")],
            7..=9 => vec![format!("SET LOCAL SESSION AUTHORIZATION {role}")],
            10 => vec![format!("SET SESSION AUTHORIZATION {role}")],
            11 => vec![format!("SELECT set_config('session_authorization', '{role}', true)")],
            _ => vec![format!("SET LOCAL SESSION AUTHORIZATION {role}"), format!("SET LOCAL ROLE {other}")],
        }
    }

    /// A statement about who the session is.
    fn identity(&mut self) -> String {
        let role = self.any_role();
        match self.below(16) {
            0..=2 => format!("SET ROLE {role}"),
            3 => "SET ROLE NONE".to_owned(),
            4 => "RESET ROLE".to_owned(),
            5 | 6 => format!("SET SESSION AUTHORIZATION {role}"),
            7 => "RESET SESSION AUTHORIZATION".to_owned(),
            8 => "SET SESSION AUTHORIZATION DEFAULT".to_owned(),
            9 | 10 => {
                let local = self.pick(&["true", "false"]);
                format!("SELECT set_config('role', '{role}', {local})")
            }
            11 => format!("SELECT set_config('session_authorization', '{role}', false)"),
            12 => "RESET ALL".to_owned(),
            13 => format!("SET LOCAL ROLE {role}"),
            14 => "SET role TO DEFAULT".to_owned(),
            _ => "SELECT set_config('role', 'none', false)".to_owned(),
        }
    }

    fn setting_step(&mut self) -> String {
        let (name, value) = self.setting();
        match self.below(6) {
            0 | 1 => format!("SET {name} = {value}"),
            2 => format!("SET LOCAL {name} = {value}"),
            3 => format!("RESET {name}"),
            4 => format!("SHOW {name}"),
            _ => format!("SELECT set_config('{name}', {}, false)", quoted(&value)),
        }
    }

    /// What signals others, and what only superusers may call.
    fn calling(&mut self) -> String {
        let role = self.role();
        match self.below(12) {
            0..=2 => format!(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = '{role}' AND datname = current_database() \
                 AND pid <> pg_backend_pid()"
            ),
            3 => "SELECT pg_reload_conf()".to_owned(),
            4 => "SELECT pg_try_advisory_xact_lock(1, 2)".to_owned(),
            5 => "SELECT pg_terminate_backend(0)".to_owned(),
            6 => "LISTEN somewhere".to_owned(),
            7 => "NOTIFY somewhere, 'word'".to_owned(),
            8 => "SELECT pg_notify('somewhere', current_user)".to_owned(),
            9 => "SELECT pg_backend_pid() > 0".to_owned(),
            10 => "SELECT pg_export_snapshot() IS NOT NULL".to_owned(),
            _ => "SELECT pg_cancel_backend(0)".to_owned(),
        }
    }

    /// Any statement that a block takes, as a step.
    fn any(&mut self) -> Step {
        let sql = match self.below(100) {
            0..=19 => self.reading(),
            20..=42 => self.writing(),
            43..=45 => self.copying(),
            46..=48 => self.locking(),
            49..=52 => self.of_sequence(),
            53..=70 => self.defining(),
            71..=77 => self.grant(),
            78 => self.default_privileges(),
            79..=81 => self.of_roles(),
            82 | 83 => self.kept_setting(),
            84..=93 => {
                let (sql, typed) = self.looking();
                return Step { sql, extended: false, typed };
            }
            94 | 95 => self.setting_step(),
            96 | 97 => self.identity(),
            _ => self.calling(),
        };
        let extended = self.once_in(6) && !sql.starts_with("COPY");
        Step { sql, extended, typed: true }
    }

    /// Statements that keep something over a change of role.
    fn kept_over(&mut self) -> Vec<String> {
        let (role, query) = (self.role(), if self.once_in(3) { self.writing() } else { self.select() });
        let is_query = query.starts_with("SELECT");
        let change = self.pick(&["SET ROLE", "SET LOCAL ROLE"]);
        match self.below(4) {
            0 if is_query => vec![
                format!("DECLARE kept CURSOR FOR {query}"),
                format!("{change} {role}"),
                "FETCH ALL FROM kept".to_owned(),
                "CLOSE kept".to_owned(),
            ],
            1 if is_query && !query.contains(" FOR ") => {
                vec![
                    format!("DECLARE kept CURSOR WITH HOLD FOR {query}"),
                    "RESET ROLE".to_owned(),
                    "FETCH ALL FROM kept".to_owned(),
                    "CLOSE kept".to_owned(),
                ]
            }
            _ if query.starts_with("TRUNCATE") || query.starts_with("EXPLAIN") => vec![query],
            _ => vec![
                format!("PREPARE kept AS {query}"),
                "EXECUTE kept".to_owned(),
                format!("{change} {role}"),
                "EXECUTE kept".to_owned(),
                self.identity(),
                "EXECUTE kept".to_owned(),
                "DEALLOCATE kept".to_owned(),
            ],
        }
    }

    /// What a superuser does in the same block before the role tries something: rights that come and go.
    fn prelude(&mut self) -> Vec<String> {
        match self.below(6) {
            0 => vec![self.initial_grant()],
            1 => vec![self.default_privileges()],
            _ => Vec::new(),
        }
    }

    /// What a role owns and has is taken from it, by a superuser.
    fn end_of_role(&mut self) -> Case {
        let role = self.role();
        let mut steps = vec![Step::plain(format!("DROP OWNED BY {role} CASCADE"))];
        if self.once_in(2) {
            let other = self.role();
            steps.insert(0, Step::plain(format!("REASSIGN OWNED BY {role} TO {other}")));
        }
        let probe = Some(PROBE_RIGHTS.to_owned());
        Case { start: Start::Block(Vec::new()), steps, undo: Vec::new(), probe }
    }

    pub(super) fn block(&mut self) -> Case {
        if self.once_in(40) {
            return self.end_of_role();
        }
        let mut start = self.prelude();
        start.extend(self.become_somebody());
        let mut steps = Vec::new();
        if self.once_in(12) {
            steps.extend(self.kept_over().into_iter().map(Step::plain));
        } else {
            for _ in 0..1 + self.below(3) {
                steps.push(self.any());
            }
        }
        if self.once_in(6) {
            let identity = self.identity();
            steps.push(Step::plain(identity));
            let step = self.any();
            steps.push(step);
        }
        let defines = steps.iter().any(|step| {
            ["GRANT", "REVOKE", "ALTER", "CREATE", "DROP", "REASSIGN", "SELECT x."]
                .iter()
                .any(|word| step.sql.starts_with(word))
        });
        let probe = if defines && self.below(5) < 2 { Some(PROBE_RIGHTS.to_owned()) } else { None };
        Case { start: Start::Block(start), steps, undo: Vec::new(), probe }
    }

    /// Outside of a block: what a block does not take, and what one statement leaves for the next.
    pub(super) fn open(&mut self) -> Case {
        let (role, other) = (self.role(), self.role());
        let start = match self.below(4) {
            0 => vec![format!("SET ROLE {role}")],
            1 => vec![format!("SET SESSION AUTHORIZATION {role}"), format!("SET ROLE {other}")],
            _ => vec![format!("SET SESSION AUTHORIZATION {role}")],
        };
        let mut undo = Vec::new();
        let mut steps = Vec::new();
        if self.once_in(2) {
            for _ in 0..1 + self.below(4) {
                let sql = match self.below(8) {
                    0 => "DISCARD ALL".to_owned(),
                    1 => self.setting_step(),
                    2 => format!("BEGIN; {}; ROLLBACK", self.identity()),
                    3 => self.select(),
                    4 => "SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser')"
                        .to_owned(),
                    _ => self.identity(),
                };
                steps.push(Step::plain(sql));
            }
            steps.push(Step::plain(
                "SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser')"
                    .to_owned(),
            ));
        } else {
            let (sql, more) = self.maintain_open();
            steps.push(Step::plain(sql));
            undo = more;
        }
        Case { start: Start::Open(start), steps, undo, probe: None }
    }

    /// A login with settings that say who it is.
    pub(super) fn login(&mut self) -> Case {
        let (role, other) = (self.role(), self.role());
        let mut before = Vec::new();
        let mut undo = vec![
            format!("ALTER ROLE {role} RESET ALL"),
            format!("ALTER ROLE {role} IN DATABASE {} RESET ALL", self.world.database),
        ];
        undo.push(format!("ALTER DATABASE {} RESET ALL", self.world.database));
        let who = self.pick(&["role", "role", "session_authorization"]);
        match self.below(6) {
            0 | 1 => before.push(format!("ALTER ROLE {role} SET {who} = '{other}'")),
            2 => before.push(format!("ALTER ROLE {role} IN DATABASE {} SET {who} = '{other}'", self.world.database)),
            3 => before.push(format!("ALTER DATABASE {} SET {who} = '{other}'", self.world.database)),
            4 => {
                let (name, value) = self.setting();
                before.push(format!("ALTER ROLE {role} SET {name} = {value}"));
            }
            _ => {}
        }
        let mut parameters = Vec::new();
        match self.below(5) {
            0 => parameters.push(("role".to_owned(), other.clone())),
            1 => parameters.push(("options".to_owned(), format!("-c role={other}"))),
            2 => {
                let (name, value) = self.setting();
                parameters.push((name, value.trim_matches('\'').to_owned()));
            }
            _ => {}
        }
        let mut steps = vec![Step::plain("SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser'), current_setting('search_path')".to_owned())];
        for _ in 0..2 {
            let sql = self.identity();
            steps.push(Step::plain(sql));
            let sql = self.select();
            steps.push(Step::plain(sql));
        }
        steps.push(Step::plain(
            "SELECT current_user, session_user, current_setting('role'), current_setting('is_superuser')".to_owned(),
        ));
        Case { start: Start::Login { role, parameters, before }, steps, undo, probe: None }
    }
}

fn quoted(value: &str) -> String {
    if value.starts_with('\'') { value.to_owned() } else { format!("'{value}'") }
}
