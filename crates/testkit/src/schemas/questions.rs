//! What is asked of both servers after each statement.

use super::schema::Schema;

const COLUMNS: &str = "SELECT attrelid::regclass::text, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attgenerated, \
     pg_get_expr(adbin, adrelid), attcollation::regcollation::text \
     FROM pg_attribute JOIN pg_class c ON c.oid = attrelid JOIN pg_namespace n ON n.oid = relnamespace LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum \
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'v', 'm')";

const CONSTRAINTS: &str = "SELECT conrelid::regclass::text, contypid::regtype::text, connamespace::regnamespace::text, conname, contype, conkey, confkey, \
     confrelid::regclass::text, conindid::regclass::text, pg_get_constraintdef(c.oid) \
     FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'";

const INDEXES: &str = "SELECT indexrelid::regclass::text, indrelid::regclass::text, indisprimary, indisunique, indkey::text, pg_get_indexdef(indexrelid), \
     pg_get_expr(indexprs, indrelid), pg_get_expr(indpred, indrelid), indcollation::text \
     FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname !~ '^pg_'";

const VIEWS: &str = "SELECT c.oid::regclass::text, relkind, pg_get_viewdef(c.oid) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace \
     WHERE relkind IN ('v', 'm') AND nspname !~ '^pg_' AND nspname <> 'information_schema'";

const SEQUENCES: &str = "SELECT schemaname, sequencename, data_type::text, start_value, increment_by FROM pg_sequences";

const TYPES: &str = "SELECT t.oid::regtype::text, typtype, format_type(typbasetype, typtypmod), typnotnull, pg_get_expr(typdefaultbin, 0), typcollation::regcollation::text \
     FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace \
     WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND typtype IN ('d', 'e')";

const LABELS: &str = "SELECT enumtypid::regtype::text, enumsortorder, enumlabel FROM pg_enum";

const EXTENSIONS: &str = "SELECT extname, extnamespace::regnamespace::text, extowner::regrole::text, extrelocatable, extversion FROM pg_extension";

const COMMENTS: &str = "SELECT classoid::regclass::text, coalesce(relname, conname, typname, nspname, extname), objsubid, description FROM pg_description d \
     LEFT JOIN pg_class c ON classoid = 'pg_class'::regclass AND c.oid = objoid AND c.oid >= 16384 \
     LEFT JOIN pg_constraint k ON classoid = 'pg_constraint'::regclass AND k.oid = objoid AND k.oid >= 16384 \
     LEFT JOIN pg_type t ON classoid = 'pg_type'::regclass AND t.oid = objoid AND t.oid >= 16384 \
     LEFT JOIN pg_namespace n ON classoid = 'pg_namespace'::regclass AND n.oid = objoid AND nspname !~ '^pg_' \
     LEFT JOIN pg_extension e ON classoid = 'pg_extension'::regclass AND e.oid = objoid AND extname <> 'plpgsql' \
     WHERE coalesce(relname, conname, typname, nspname, extname) IS NOT NULL AND description <> 'standard public schema'";

const PRETTY: &str = "SELECT adrelid::regclass::text, adnum::text, pg_get_expr(adbin, adrelid, true) FROM pg_attrdef \
     UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(c.oid, true) FROM pg_constraint c WHERE c.oid >= 16384 \
     UNION ALL SELECT indexrelid::regclass::text, '', pg_get_indexdef(indexrelid, 0, true) FROM pg_index WHERE indexrelid >= 16384 AND \
       indrelid IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'm')) \
     UNION ALL SELECT oid::regclass::text, '', pg_get_viewdef(oid, true) FROM pg_class WHERE relkind IN ('v', 'm') AND oid >= 16384";

/// Objects by their names. Row types of relations are left out, and what a relation is stored with.
const DEPENDENCIES: &str = "WITH named (class, object, name) AS ( \
       SELECT 'pg_class'::regclass::oid, oid, relkind::text || ' ' || oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'S', 'i') AND oid >= 16384 \
         AND relnamespace::regnamespace::text <> 'pg_toast' \
       UNION ALL SELECT 'pg_constraint'::regclass, oid, 'constraint ' || conname || ' of ' || conrelid::regclass::text || contypid::regtype::text \
         FROM pg_constraint WHERE oid >= 16384 \
       UNION ALL SELECT 'pg_attrdef'::regclass, oid, 'default ' || adnum || ' of ' || adrelid::regclass::text FROM pg_attrdef \
       UNION ALL SELECT 'pg_type'::regclass, oid, 'type ' || oid::regtype::text FROM pg_type WHERE oid >= 16384 AND typtype IN ('d', 'e') \
       UNION ALL SELECT 'pg_type'::regclass, t.oid, 'type ' || t.oid::regtype::text FROM pg_type t JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' \
         WHERE e.oid >= 16384 AND e.typtype IN ('d', 'e') \
       UNION ALL SELECT 'pg_namespace'::regclass, oid, 'schema ' || oid::regnamespace::text FROM pg_namespace WHERE oid >= 2200 AND nspname !~ '^(pg_|information_schema)' \
       UNION ALL SELECT 'pg_extension'::regclass, oid, 'extension ' || extname FROM pg_extension WHERE extname <> 'plpgsql' \
       UNION ALL SELECT 'pg_proc'::regclass, p.oid, 'function ' || p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace \
         WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' AND proname <> 'pgp_armor_headers' \
       UNION ALL SELECT 'pg_rewrite'::regclass, oid, 'rule of ' || ev_class::regclass::text FROM pg_rewrite) \
     SELECT DISTINCT a.name, objsubid, b.name, refobjsubid, deptype FROM pg_depend \
     JOIN named a ON a.class = classid AND a.object = objid JOIN named b ON b.class = refclassid AND b.object = refobjid";

/// Questions about definitions, with what they are about; the order of the rows of an answer says nothing. A third of them is asked after a
/// step: what servers keep does not become the same by itself.
pub fn questions(step: u64) -> Vec<(&'static str, &'static str)> {
    match step % 3 {
        0 => vec![("columns", COLUMNS), ("sequences", SEQUENCES), ("labels", LABELS), ("extensions", EXTENSIONS)],
        1 => vec![("constraints", CONSTRAINTS), ("indexes", INDEXES), ("types", TYPES)],
        _ => vec![("views", VIEWS), ("pg_depend", DEPENDENCIES)],
    }
}

/// Sets all sequences to the same value. A server may lose some in a crash, and how many a refused row takes says nothing.
pub fn sequences_at(value: u64) -> String {
    format!("SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, {value}) FROM pg_sequences")
}

/// Rows of a relation that are asked for at most: views over joins of views have hundreds of millions. Which they are is not said, so that
/// answers with as many are not compared.
pub const ROWS_MAX: usize = 20_000;

/// Questions about all rows, comments, and the pretty forms of all texts, which are asked more rarely.
pub fn at_rest(schema: &Schema) -> Vec<String> {
    let rows = schema
        .of_kinds("rvm")
        .into_iter()
        .map(|relation| format!("SELECT * FROM {} LIMIT {ROWS_MAX}", relation.full()));
    [COMMENTS, PRETTY].map(str::to_owned).into_iter().chain(rows).collect()
}
