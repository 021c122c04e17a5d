import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.StringJoiner;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

/** pgjdbc against the server that the PG* variables name. */
public class Smoke {
    public static void main(String[] args) throws Exception {
        String url = "jdbc:postgresql://" + env("PGHOST") + ":" + env("PGPORT") + "/" + env("PGDATABASE");
        // A threshold of 1 makes every statement a named one with binary results.
        for (String mode : List.of("extended", "extended&prepareThreshold=1", "simple")) {
            try (Connection c = DriverManager.getConnection(url + "?user=" + env("PGUSER") + "&preferQueryMode=" + mode)) {
                types(c);
                transactions(c);
                errors(c);
                batches(c);
                cursors(c);
                copying(c);
                keysAndUpdates(c);
                metadata(c);
                try (Statement s = c.createStatement()) {
                    s.execute("DROP TABLE client_jdbc");
                }
            }
        }
        System.out.println("ok");
    }

    static String env(String name) {
        return Objects.requireNonNull(System.getenv(name), name);
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void types(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS client_jdbc_part, client_jdbc");
            s.execute("CREATE TABLE client_jdbc (id serial PRIMARY KEY, big bigint, t text, n numeric(8,2), f float8, b boolean,"
                + " y bytea, d date, ts timestamp, tz timestamptz, u uuid, l int[], nothing text)");
        }
        LocalDate day = LocalDate.of(2024, 2, 29);
        LocalDateTime at = LocalDateTime.of(2024, 2, 29, 12, 0, 0, 123456000);
        OffsetDateTime when = OffsetDateTime.of(at, ZoneOffset.UTC);
        UUID uuid = UUID.fromString("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11");
        String sql = "INSERT INTO client_jdbc (big, t, n, f, b, y, d, ts, tz, u, l, nothing) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)";
        try (PreparedStatement p = c.prepareStatement(sql, Statement.RETURN_GENERATED_KEYS)) {
            p.setLong(1, 1L << 40);
            p.setString(2, "täxt");
            p.setBigDecimal(3, new BigDecimal("12.50"));
            p.setDouble(4, 1.25);
            p.setBoolean(5, true);
            p.setBytes(6, new byte[] {0, -1});
            p.setObject(7, day);
            p.setObject(8, at);
            p.setObject(9, when);
            p.setObject(10, uuid);
            p.setArray(11, c.createArrayOf("int4", new Object[] {1, 2, 3}));
            p.setString(12, null);
            equal(p.executeUpdate(), 1);
            ResultSet keys = p.getGeneratedKeys();
            keys.next();
            equal(keys.getInt("id"), 1);
        }
        try (PreparedStatement p = c.prepareStatement("SELECT * FROM client_jdbc WHERE id = ?")) {
            for (int round = 0; round < 3; round++) {
                p.setInt(1, 1);
                ResultSet r = p.executeQuery();
                r.next();
                equal(r.getLong("big"), 1L << 40);
                equal(r.getString("t"), "täxt");
                equal(r.getBigDecimal("n"), new BigDecimal("12.50"));
                equal(r.getDouble("f"), 1.25);
                equal(r.getBoolean("b"), true);
                equal(Arrays.toString(r.getBytes("y")), "[0, -1]");
                equal(r.getObject("d", LocalDate.class), day);
                equal(r.getObject("ts", LocalDateTime.class), at);
                equal(r.getObject("tz", OffsetDateTime.class).toInstant(), when.toInstant());
                equal(r.getObject("u"), uuid);
                equal(Arrays.toString((Object[]) r.getArray("l").getArray()), "[1, 2, 3]");
                equal(r.getString("nothing"), null);
                equal(r.next(), false);
            }
        }
    }

    static void transactions(Connection c) throws SQLException {
        c.setAutoCommit(false);
        c.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
        try (Statement s = c.createStatement()) {
            s.executeUpdate("DELETE FROM client_jdbc");
            c.rollback();
            Savepoint point = c.setSavepoint();
            s.executeUpdate("UPDATE client_jdbc SET t = 'changed'");
            c.rollback(point);
            c.commit();
            ResultSet r = s.executeQuery("SELECT count(*), max(t) FROM client_jdbc");
            r.next();
            equal(r.getInt(1), 1);
            equal(r.getString(2), "täxt");
            c.commit();
        }
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        c.setAutoCommit(true);
    }

    static void errors(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute("INSERT INTO client_jdbc (id) VALUES (1)");
            throw new AssertionError("a duplicate went in");
        } catch (PSQLException e) {
            equal(e.getSQLState(), "23505");
            equal(e.getServerErrorMessage().getConstraint(), "client_jdbc_pkey");
            equal(e.getServerErrorMessage().getDetail(), "Key (id)=(1) already exists.");
        }
        try (Statement s = c.createStatement()) {
            s.execute("SELECT nosuch");
        } catch (PSQLException e) {
            equal(e.getSQLState(), "42703");
            equal(e.getServerErrorMessage().getPosition(), 8);
        }
    }

    static void batches(Connection c) throws SQLException {
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("INSERT INTO client_jdbc (id, t) VALUES (?, ?)")) {
            for (int i = 100; i < 300; i++) {
                p.setInt(1, i);
                p.setString(2, "batch " + i);
                p.addBatch();
            }
            equal(Arrays.stream(p.executeBatch()).sum(), 200);
            c.commit();
            p.setInt(1, 100);
            p.setString(2, "again");
            p.addBatch();
            p.executeBatch();
            throw new AssertionError("a duplicate went in");
        } catch (BatchUpdateException e) {
            equal(e.getSQLState(), "23505");
            c.rollback();
        }
        c.setAutoCommit(true);
    }

    /** With a fetch size the driver reads a portal in parts. */
    static void cursors(Connection c) throws SQLException {
        c.setAutoCommit(false);
        try (PreparedStatement p = c.prepareStatement("SELECT id FROM client_jdbc WHERE id >= ? ORDER BY id")) {
            p.setFetchSize(7);
            p.setInt(1, 100);
            List<Integer> ids = new ArrayList<>();
            ResultSet r = p.executeQuery();
            while (r.next()) {
                ids.add(r.getInt(1));
            }
            equal(ids.size(), 200);
            equal(ids.get(199), 299);
        }
        c.commit();
        c.setAutoCommit(true);
    }

    static void copying(Connection c) throws Exception {
        var copy = c.unwrap(PGConnection.class).getCopyAPI();
        StringBuilder lines = new StringBuilder();
        for (int i = 1000; i < 3000; i++) {
            lines.append(i).append("\trow ").append(i).append('\n');
        }
        equal(copy.copyIn("COPY client_jdbc (id, t) FROM STDIN", new StringReader(lines.toString())), 2000L);
        StringWriter out = new StringWriter();
        copy.copyOut("COPY (SELECT id, t FROM client_jdbc WHERE id >= 1000 ORDER BY id) TO STDOUT", out);
        equal(out.toString(), lines.toString());
    }

    /** What tools ask first. */
    static void metadata(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute("DROP TABLE IF EXISTS client_jdbc_part");
            s.execute("CREATE TABLE client_jdbc_part (b int, a int, whole int NOT NULL CONSTRAINT client_jdbc_whole REFERENCES client_jdbc"
                + " ON DELETE CASCADE, kind varchar(10) DEFAULT 'x', price numeric(8,2), PRIMARY KEY (a, b))");
            s.execute("CREATE INDEX client_jdbc_part_kind ON client_jdbc_part (kind, price DESC)");
            s.execute("COMMENT ON TABLE client_jdbc_part IS 'parts'");
            s.execute("COMMENT ON COLUMN client_jdbc_part.kind IS 'of what kind'");
        }
        DatabaseMetaData meta = c.getMetaData();
        equal(rows(meta.getColumns(null, "public", "client_jdbc", null), "COLUMN_NAME", "TYPE_NAME").subList(0, 4),
            List.of("id serial", "big int8", "t text", "n numeric"));
        equal(rows(meta.getColumns(null, "public", "client_jdbc_part", "%"), "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE",
                "DECIMAL_DIGITS", "NULLABLE", "COLUMN_DEF", "REMARKS", "ORDINAL_POSITION", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN"),
            List.of("b 4 int4 10 0 0 null null 1 NO NO", "a 4 int4 10 0 0 null null 2 NO NO", "whole 4 int4 10 0 0 null null 3 NO NO",
                "kind 12 varchar 10 0 1 'x'::character varying of what kind 4 NO NO", "price 2 numeric 8 2 1 null null 5 NO NO"));
        equal(rows(meta.getTables(null, "public", "client\\_jdbc%", new String[] {"TABLE"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE",
            "REMARKS"), List.of("public client_jdbc TABLE null", "public client_jdbc_part TABLE parts"));
        equal(rows(meta.getTables(null, "public", "client_jdbc_id_seq", null), "TABLE_TYPE"), List.of("SEQUENCE"));
        equal(rows(meta.getTables(null, "pg_catalog", "pg_class", null), "TABLE_TYPE"), List.of("SYSTEM TABLE"));
        equal(rows(meta.getPrimaryKeys(null, "public", "client_jdbc_part"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"),
            List.of("a 1 client_jdbc_part_pkey", "b 2 client_jdbc_part_pkey"));
        List<String> key = List.of("client_jdbc id client_jdbc_part whole 1 3 0 client_jdbc_whole client_jdbc_pkey 7");
        String[] names = {"PKTABLE_NAME", "PKCOLUMN_NAME", "FKTABLE_NAME", "FKCOLUMN_NAME", "KEY_SEQ", "UPDATE_RULE", "DELETE_RULE",
            "FK_NAME", "PK_NAME", "DEFERRABILITY"};
        equal(rows(meta.getImportedKeys(null, "public", "client_jdbc_part"), names), key);
        equal(rows(meta.getExportedKeys(null, "public", "client_jdbc"), names), key);
        equal(rows(meta.getCrossReference(null, "public", "client_jdbc", null, "public", "client_jdbc_part"), names), key);
        equal(rows(meta.getIndexInfo(null, "public", "client_jdbc_part", false, false), "NON_UNIQUE", "INDEX_NAME", "TYPE",
                "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC"),
            List.of("f client_jdbc_part_pkey 3 1 a A", "f client_jdbc_part_pkey 3 2 b A", "t client_jdbc_part_kind 3 1 kind A",
                "t client_jdbc_part_kind 3 2 price D"));
        equal(new HashSet<>(rows(meta.getBestRowIdentifier(null, "public", "client_jdbc_part", 1, false), "COLUMN_NAME", "TYPE_NAME")),
            Set.of("a int4", "b int4"));
        equal(rows(meta.getSchemas(), "TABLE_SCHEM"), List.of("information_schema", "pg_catalog", "public"));
        equal(rows(meta.getCatalogs(), "TABLE_CAT").contains(env("PGDATABASE")), true);
        equal(rows(meta.getTypeInfo(), "TYPE_NAME").containsAll(List.of("int4", "text", "numeric", "uuid", "bool")), true);
        equal(rows(meta.getFunctions(null, "pg_catalog", "upper"), "FUNCTION_NAME").contains("upper"), true);
        equal(rows(meta.getTableTypes(), "TABLE_TYPE").contains("TABLE"), true);
        rows(meta.getTablePrivileges(null, "public", "client_jdbc"), "GRANTEE", "PRIVILEGE");
        rows(meta.getColumnPrivileges(null, "public", "client_jdbc", "id"), "GRANTEE", "PRIVILEGE");
        rows(meta.getVersionColumns(null, "public", "client_jdbc"), "COLUMN_NAME");
        rows(meta.getProcedures(null, null, "nosuch"), "PROCEDURE_NAME");
        rows(meta.getFunctionColumns(null, "pg_catalog", "upper", null), "COLUMN_NAME");
        rows(meta.getUDTs(null, "public", "%", null), "TYPE_NAME");
        rows(meta.getClientInfoProperties(), "NAME");
        equal(meta.getDatabaseProductName(), "PostgreSQL");
        equal(meta.getMaxColumnNameLength(), 63);
        equal(meta.getSQLKeywords().isEmpty(), false);
        equal(meta.getDefaultTransactionIsolation(), Connection.TRANSACTION_READ_COMMITTED);
        try (Statement s = c.createStatement()) {
            ResultSetMetaData of = s.executeQuery("SELECT p.a, p.kind, p.price, s.id FROM client_jdbc_part p, client_jdbc s").getMetaData();
            equal(of.getTableName(1), "p".equals(of.getTableName(1)) ? "p" : "client_jdbc_part");
            equal(of.isNullable(1), ResultSetMetaData.columnNoNulls);
            equal(of.isAutoIncrement(4), true);
            equal(of.getPrecision(3), 8);
            equal(of.getScale(3), 2);
            s.execute("DROP TABLE client_jdbc_part");
        }
    }

    static List<String> rows(ResultSet r, String... columns) throws SQLException {
        List<String> rows = new ArrayList<>();
        while (r.next()) {
            StringJoiner row = new StringJoiner(" ");
            for (String column : columns) {
                row.add(String.valueOf(r.getString(column)));
            }
            rows.add(row.toString());
        }
        return rows;
    }

    /** Rows changed through a result set, and keys of several rows at once. */
    static void keysAndUpdates(Connection c) throws SQLException {
        String sql = "INSERT INTO client_jdbc (t) VALUES (?)";
        try (PreparedStatement p = c.prepareStatement(sql, new String[] {"id", "t"})) {
            for (String t : List.of("key a", "key b", "key c")) {
                p.setString(1, t);
                p.addBatch();
            }
            p.executeBatch();
            List<String> keys = rows(p.getGeneratedKeys(), "id", "t");
            equal(keys.size(), 3);
            equal(keys.get(2).endsWith(" key c"), true);
        }
        try (Statement s = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)) {
            ResultSet r = s.executeQuery("SELECT id, t, big FROM client_jdbc WHERE t LIKE 'key %' ORDER BY id");
            equal(r.last(), true);
            r.updateString("t", "key changed");
            r.updateRow();
            r.first();
            r.deleteRow();
            r.moveToInsertRow();
            r.updateInt("id", 900);
            r.updateString("t", "key new");
            r.insertRow();
            ResultSet after = c.createStatement().executeQuery("SELECT t FROM client_jdbc WHERE t LIKE 'key %' ORDER BY t");
            equal(rows(after, "t"), List.of("key b", "key changed", "key new"));
            s.executeUpdate("DELETE FROM client_jdbc WHERE t LIKE 'key %'");
            equal(s.executeUpdate("UPDATE client_jdbc SET t = t WHERE id = -1"), 0);
        }
    }
}
