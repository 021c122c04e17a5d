//! Questions: the functions that ask for privileges, catalogs and views that show each role its own.

use super::Writer;

impl Writer<'_> {
    /// A question; whether the types of its columns are those of both servers.
    pub(super) fn looking(&mut self) -> (String, bool) {
        match self.below(10) {
            0..=4 => (self.has_privilege(), true),
            5 | 6 => (self.schema_view(), false),
            _ => (self.catalog(), true),
        }
    }

    fn privilege(&mut self, of: &[&str]) -> String {
        let first = self.pick(of);
        match self.below(6) {
            0 => format!("{first} WITH GRANT OPTION"),
            1 => format!("{first}, {}", self.pick(of)),
            2 => first.to_lowercase(),
            _ => first.to_owned(),
        }
    }

    fn has_privilege(&mut self) -> String {
        let relation = self.relation();
        let (name, column) = (self.name_of(&relation), self.column(&relation));
        let role = match self.below(4) {
            0 => format!("'{}', ", self.any_role()),
            1 => self.pick(&["'public', ", "current_user, ", "session_user, "]).to_owned(),
            _ => String::new(),
        };
        let of_table = ["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"];
        let of_column = ["SELECT", "INSERT", "UPDATE", "REFERENCES"];
        match self.below(16) {
            0..=2 => format!("SELECT has_table_privilege({role}'{name}', '{}')", self.privilege(&of_table)),
            3 | 4 => {
                format!("SELECT has_column_privilege({role}'{name}', '{column}', '{}')", self.privilege(&of_column))
            }
            5 => format!("SELECT has_any_column_privilege({role}'{name}', '{}')", self.privilege(&of_column)),
            6 | 7 => format!(
                "SELECT has_schema_privilege({role}'{}', '{}')",
                self.schema(),
                self.privilege(&["USAGE", "CREATE"])
            ),
            8 => {
                let database = self.world.database.clone();
                format!(
                    "SELECT has_database_privilege({role}'{database}', '{}')",
                    self.privilege(&["CREATE", "CONNECT", "TEMP"])
                )
            }
            9 => {
                let sequence = self.sequence();
                format!(
                    "SELECT has_sequence_privilege({role}'{sequence}', '{}')",
                    self.privilege(&["USAGE", "SELECT", "UPDATE"])
                )
            }
            10 => format!("SELECT has_type_privilege({role}'{}', '{}')", self.type_name(), self.privilege(&["USAGE"])),
            11 => {
                let function = self.pick(&["pg_reload_conf()", "lower(text)"]);
                format!("SELECT has_function_privilege({role}'{function}', '{}')", self.privilege(&["EXECUTE"]))
            }
            12 => {
                let all = self.world.relations.iter().map(|r| format!("'{}'", r.full())).collect::<Vec<_>>().join(", ");
                let privilege = self.privilege(&of_table);
                format!("SELECT t, has_table_privilege({role}t, '{privilege}') FROM unnest(ARRAY[{all}]) t")
            }
            _ => {
                let other = self.any_role();
                let privilege =
                    self.privilege(&["USAGE", "MEMBER", "MEMBER WITH ADMIN OPTION"]).replace("public", "r0");
                let role = role.replace("'public'", "'r0'");
                format!("SELECT pg_has_role({role}'{other}', '{privilege}')")
            }
        }
    }

    /// The schemas of the world as a list of literals.
    fn schema_list(&self) -> String {
        self.world.schemas.iter().map(|schema| format!("'{schema}'")).collect::<Vec<_>>().join(", ")
    }

    /// A view of `information_schema`, as far as it tells of the world.
    fn schema_view(&mut self) -> String {
        // The view and the column that says in which schema the object is.
        const VIEWS: [(&str, &str); 32] = [
            ("tables", "table_schema"),
            ("columns", "table_schema"),
            ("views", "table_schema"),
            ("table_privileges", "table_schema"),
            ("column_privileges", "table_schema"),
            ("role_table_grants", "table_schema"),
            ("role_column_grants", "table_schema"),
            ("usage_privileges", "object_schema"),
            ("role_usage_grants", "object_schema"),
            ("udt_privileges", "udt_schema"),
            ("role_udt_grants", "udt_schema"),
            ("domains", "domain_schema"),
            ("domain_constraints", "domain_schema"),
            ("domain_udt_usage", "domain_schema"),
            ("column_domain_usage", "domain_schema"),
            ("column_udt_usage", "table_schema"),
            ("table_constraints", "table_schema"),
            ("key_column_usage", "table_schema"),
            ("constraint_column_usage", "table_schema"),
            ("constraint_table_usage", "table_schema"),
            ("referential_constraints", "constraint_schema"),
            ("check_constraints", "constraint_schema"),
            ("sequences", "sequence_schema"),
            ("schemata", "schema_name"),
            // Not `view_column_usage`: which columns of other views a view uses is not kept.
            ("view_table_usage", "view_schema"),
            ("applicable_roles", ""),
            ("enabled_roles", ""),
            ("administrable_role_authorizations", ""),
            ("element_types", "object_schema"),
            ("triggers", "trigger_schema"),
            ("user_defined_types", "user_defined_type_schema"),
            ("information_schema_catalog_name", ""),
        ];
        let (view, column) = VIEWS[self.below(VIEWS.len() as u64) as usize];
        match (view, column) {
            // Constraints of NOT NULL have numbers for names.
            ("check_constraints", _) => format!(
                "SELECT * FROM information_schema.check_constraints WHERE constraint_schema IN ({}) \
                 AND constraint_name NOT LIKE '%_not_null'",
                self.schema_list()
            ),
            ("table_constraints", _) => format!(
                "SELECT * FROM information_schema.table_constraints WHERE table_schema IN ({}) \
                 AND constraint_name NOT LIKE '%_not_null'",
                self.schema_list()
            ),
            // Tables have row types there.
            ("udt_privileges" | "role_udt_grants", column) => format!(
                "SELECT * FROM information_schema.{view} WHERE {column} IN ({}) AND udt_name ~ '^[de]'",
                self.schema_list()
            ),
            (view, "") => format!("SELECT * FROM information_schema.{view}"),
            (view, column) => {
                format!("SELECT * FROM information_schema.{view} WHERE {column} IN ({})", self.schema_list())
            }
        }
    }

    /// A catalog, or a view over some, that not everybody may read or see all of.
    fn catalog(&mut self) -> String {
        let schemas = self.schema_list();
        match self.below(30) {
            0 | 1 => format!("SELECT schemaname, tablename, attname, n_distinct, null_frac FROM pg_stats WHERE schemaname IN ({schemas}) AND tablename LIKE 't%'"),
            2 => "SELECT count(*) > 0 FROM pg_authid".to_owned(),
            3 => "SELECT count(*) > 0 FROM pg_group".to_owned(),
            4 => "SELECT rolname FROM pg_authid WHERE rolname ~ '^r[0-9]'".to_owned(),
            5 => "SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolpassword, rolconfig FROM pg_roles WHERE rolname ~ '^r[0-9]'".to_owned(),
            6 => "SELECT usename, usecreatedb, usesuper, passwd, useconfig FROM pg_user WHERE usename ~ '^r[0-9]'".to_owned(),
            7 => "SELECT count(*) > 0 FROM pg_statistic".to_owned(),
            8 => "SELECT count(*) FROM pg_user_mapping".to_owned(),
            9 => "SELECT count(*) FROM pg_user_mappings".to_owned(),
            10 => format!("SELECT schemaname, sequencename, sequenceowner, last_value FROM pg_sequences WHERE schemaname IN ({schemas})"),
            11 | 12 => "SELECT usename, datname, query = '<insufficient privilege>' AS hidden, state IS NULL AS silent, \
                        backend_type IS NULL AS kindless, application_name IS NULL AS nameless, backend_start IS NULL AS ageless \
                        FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()".to_owned(),
            13 => format!("SELECT schemaname, tablename, tableowner FROM pg_tables WHERE schemaname IN ({schemas})"),
            14 => format!("SELECT schemaname, viewname, viewowner, definition IS NULL AS hidden FROM pg_views WHERE schemaname IN ({schemas})"),
            15 => format!("SELECT schemaname, matviewname, matviewowner FROM pg_matviews WHERE schemaname IN ({schemas})"),
            16 => "SELECT count(*) > 0 FROM pg_settings WHERE name IN ('log_statement', 'work_mem')".to_owned(),
            17 => format!("SHOW {}", self.pick(&[ "role", "is_superuser", "session_authorization", "search_path"])),
            18 => format!("SELECT current_setting('{}') IS NOT NULL", self.pick(&["log_statement", "role"])),
            19 => "SELECT count(*) >= 0 FROM pg_hba_file_rules".to_owned(),
            20 => "SELECT count(*) >= 0 FROM pg_file_settings".to_owned(),
            21 => format!("SELECT relname, relacl::text, relowner::regrole FROM pg_class WHERE relnamespace::regnamespace::text IN ({schemas}) AND relkind <> 'i'"),
            22 => "SELECT current_user, session_user, current_role, user, current_setting('is_superuser'), current_setting('role')".to_owned(),
            23 => "SELECT current_schema(), current_schemas(false)".to_owned(),
            24 => {
                let relation = self.pick(&["pg_namespace", "pg_authid", "pg_class"]);
                format!("SELECT count(*) FROM (SELECT 1 FROM {relation} LIMIT 1 FOR UPDATE) x")
            }
            25 => {
                let view = self.pick(&[
                    "pg_config",
                    "pg_ident_file_mappings",
                    "pg_replication_origin_status",
                    "pg_shmem_allocations",
                    "pg_statistic_ext_data",
                ]);
                format!("SELECT count(*) >= 0 FROM {view}")
            }
            26 => {
                let view = self.pick(&["pg_views", "pg_tables", "pg_locks"]);
                self.pick(&[format!("DELETE FROM {view}").as_str(), format!("INSERT INTO {view} DEFAULT VALUES").as_str()]).to_owned()
            }
            27 => format!("SELECT '{}'::regclass", self.relation().name),
            _ => format!("SELECT '{}'::regclass", self.relation().full()),
        }
    }
}
