// pgx against the server that the PG* variables name.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(got, want any) {
	if !reflect.DeepEqual(got, want) {
		panic(fmt.Sprintf("got %#v, want %#v", got, want))
	}
}

type row struct {
	ID      int32
	Big     int64
	Text    string
	Number  string
	Float   float64
	Bool    bool
	Bytes   []byte
	Day     time.Time
	When    time.Time
	List    []int32
	Nothing *string
}

func types(ctx context.Context, conn *pgx.Conn) {
	_, err := conn.Exec(ctx, `DROP TABLE IF EXISTS client_pgx`)
	check(err)
	_, err = conn.Exec(ctx, `CREATE TABLE client_pgx (id int PRIMARY KEY, big bigint, t text, n numeric(8,2), f float8,
		b boolean, y bytea, d date, w timestamptz, l int[], nothing text)`)
	check(err)
	want := row{1, 1 << 40, "täxt", "12.50", 1.25, true, []byte{0, 255}, time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 12, 0, 0, 123456000, time.UTC), []int32{1, 2, 3}, nil}
	tag, err := conn.Exec(ctx, `INSERT INTO client_pgx VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)`, want.ID, want.Big,
		want.Text, want.Number, want.Float, want.Bool, want.Bytes, want.Day, want.When, want.List, want.Nothing)
	check(err)
	equal(tag.String(), "INSERT 0 1")
	// Both the cached statement in binary form and the simple protocol must give the same values back.
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		var got row
		check(conn.QueryRow(ctx, `SELECT id, big, t, n::text, f, b, y, d, w, l, nothing FROM client_pgx WHERE id = $1`, mode, 1).Scan(
			&got.ID, &got.Big, &got.Text, &got.Number, &got.Float, &got.Bool, &got.Bytes, &got.Day, &got.When, &got.List, &got.Nothing))
		got.When = got.When.UTC()
		equal(got, want)
	}
}

func transactions(ctx context.Context, conn *pgx.Conn) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	check(err)
	_, err = tx.Exec(ctx, `DELETE FROM client_pgx`)
	check(err)
	check(tx.Rollback(ctx))
	outer, err := conn.Begin(ctx)
	check(err)
	inner, err := outer.Begin(ctx)
	check(err)
	_, err = inner.Exec(ctx, `UPDATE client_pgx SET t = 'inner'`)
	check(err)
	check(inner.Rollback(ctx))
	check(outer.Commit(ctx))
	var text string
	check(conn.QueryRow(ctx, `SELECT t FROM client_pgx`).Scan(&text))
	equal(text, "täxt")
}

func failures(ctx context.Context, conn *pgx.Conn) {
	_, err := conn.Exec(ctx, `INSERT INTO client_pgx (id) VALUES ($1)`, 1)
	var failure *pgconn.PgError
	if !errors.As(err, &failure) {
		panic(fmt.Sprint("no PgError: ", err))
	}
	equal([]string{failure.Code, failure.ConstraintName, failure.Detail}, []string{"23505", "client_pgx_pkey", "Key (id)=(1) already exists."})
	_, err = conn.Exec(ctx, `SELECT nosuch`)
	errors.As(err, &failure)
	equal([]any{failure.Code, failure.Position}, []any{"42703", int32(8)})
}

func copying(ctx context.Context, conn *pgx.Conn) {
	rows := make([][]any, 2000)
	for i := range rows {
		rows[i] = []any{int32(i + 1000), fmt.Sprint("row ", i)}
	}
	// CopyFrom uses the binary format.
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"client_pgx"}, []string{"id", "t"}, pgx.CopyFromRows(rows))
	check(err)
	equal(count, int64(2000))
	var out bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &out, `COPY (SELECT id, t FROM client_pgx WHERE id >= 1000 ORDER BY id) TO STDOUT`)
	check(err)
	equal(strings.Count(out.String(), "\n"), 2000)
}

func batches(ctx context.Context, conn *pgx.Conn) {
	batch := &pgx.Batch{}
	for i := 0; i < 100; i++ {
		batch.Queue(`UPDATE client_pgx SET big = $2 WHERE id = $1`, 1000+i, i)
	}
	batch.Queue(`SELECT sum(big)::bigint FROM client_pgx WHERE id BETWEEN 1000 AND 1099`)
	results := conn.SendBatch(ctx, batch)
	for i := 0; i < 100; i++ {
		tag, err := results.Exec()
		check(err)
		equal(tag.RowsAffected(), int64(1))
	}
	var sum int64
	check(results.QueryRow().Scan(&sum))
	equal(sum, int64(4950))
	check(results.Close())
}

// Values of every type, in binary form, and as arrays.
func moreTypes(ctx context.Context, conn *pgx.Conn) {
	var number pgtype.Numeric
	check(number.Scan("-12345678901234567890.00123"))
	key := [16]byte{0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	span := pgtype.Interval{Microseconds: 7200000000, Days: 1, Months: 2, Valid: true}
	at := pgtype.Time{Microseconds: 3723000004, Valid: true}
	facts := map[string]any{"a": []any{1.0, nil, "x"}}
	words := []string{"a", "b,\"c"}
	days := []time.Time{time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)}
	flags := []*bool{nil}
	var got struct {
		number pgtype.Numeric
		key    [16]byte
		span   pgtype.Interval
		at     pgtype.Time
		facts  map[string]any
		words  []string
		days   []time.Time
		flags  []*bool
		small  int16
		real   float32
		grid   pgtype.Array[int32]
	}
	grid := pgtype.Array[int32]{Elements: []int32{1, 2, 3, 4}, Dims: []pgtype.ArrayDimension{{Length: 2, LowerBound: 1}, {Length: 2, LowerBound: 1}}, Valid: true}
	check(conn.QueryRow(ctx, `SELECT $1::numeric, $2::uuid, $3::interval, $4::time, $5::jsonb, $6::text[], $7::date[], $8::bool[], $9::smallint,
		$10::real, $11::int[]`, number, key, span, at, facts, words, days, flags, int16(-5), float32(1.5), grid).Scan(&got.number, &got.key,
		&got.span, &got.at, &got.facts, &got.words, &got.days, &got.flags, &got.small, &got.real, &got.grid))
	equal(got.number, number)
	equal(got.key, key)
	equal(got.span, span)
	equal(got.at, at)
	equal(got.facts, facts)
	equal(got.words, words)
	equal(got.days, days)
	equal(got.flags, flags)
	equal(got.small, int16(-5))
	equal(got.real, float32(1.5))
	equal(got.grid, grid)
}

type named struct {
	ID   int32
	Text *string `db:"t"`
}

// Rows as structs, named arguments, statements that are described first.
func structs(ctx context.Context, conn *pgx.Conn) {
	rows, err := conn.Query(ctx, `SELECT id, t FROM client_pgx WHERE id BETWEEN @low AND @high ORDER BY id`, pgx.NamedArgs{"low": 1000, "high": 1002})
	check(err)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[named])
	check(err)
	equal([]any{len(found), found[2].ID, *found[2].Text}, []any{3, int32(1002), "row 2"})
	described, err := conn.Prepare(ctx, "by id", `SELECT t, n FROM client_pgx WHERE id = $1 AND l = $2`)
	check(err)
	equal(described.ParamOIDs, []uint32{23, 1007})
	equal([]string{described.Fields[0].Name, described.Fields[1].Name}, []string{"t", "n"})
	check(conn.Deallocate(ctx, "by id"))
	rows, err = conn.Query(ctx, `SELECT id FROM client_pgx WHERE id = ANY($1) ORDER BY id`, []int32{1, 1001, 7777})
	check(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	check(err)
	equal(ids, []int32{1, 1001})
}

// A batch is one implicit transaction: an error undoes all of it.
func brokenBatch(ctx context.Context, conn *pgx.Conn) {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE client_pgx SET t = 'batch' WHERE id = 1`)
	batch.Queue(`INSERT INTO client_pgx (id) VALUES (1)`)
	batch.Queue(`UPDATE client_pgx SET t = 'after' WHERE id = 1`)
	var failure *pgconn.PgError
	if err := conn.SendBatch(ctx, batch).Close(); !errors.As(err, &failure) || failure.Code != "23505" {
		panic(fmt.Sprint("a bad batch went in: ", err))
	}
	var text string
	check(conn.QueryRow(ctx, `SELECT t FROM client_pgx WHERE id = 1`).Scan(&text))
	equal(text, "täxt")
	for query, code := range map[string]string{"SELECT 1/0": "22012", "TABLE nosuch": "42P01", "SELEC": "42601", "SELECT 'x'::int": "22P02",
		"SELECT 9e9::int": "22003", "INSERT INTO client_pgx (id) VALUES (NULL)": "23502"} {
		_, err := conn.Exec(ctx, query)
		errors.As(err, &failure)
		equal(failure.Code, code)
	}
	// Two transactions change one row: the second fails at REPEATABLE READ, and goes well when it is tried again.
	other, err := pgx.Connect(ctx, "")
	check(err)
	defer other.Close(ctx)
	tries := 0
	for done := false; !done; tries++ {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			var big int64
			if err := tx.QueryRow(ctx, `SELECT coalesce(big, 0) FROM client_pgx WHERE id = 1001`).Scan(&big); err != nil {
				return err
			}
			if tries == 0 {
				_, err := other.Exec(ctx, `UPDATE client_pgx SET big = 7 WHERE id = 1001`)
				check(err)
			}
			_, err := tx.Exec(ctx, `UPDATE client_pgx SET big = $1 WHERE id = 1001`, big+1)
			return err
		})
		if err != nil {
			errors.As(err, &failure)
			equal(failure.Code, "40001")
		}
		done = err == nil
	}
	var big int64
	check(conn.QueryRow(ctx, `SELECT big FROM client_pgx WHERE id = 1001`).Scan(&big))
	equal([]int64{big, int64(tries)}, []int64{8, 2})
}

func notifications(ctx context.Context, conn *pgx.Conn) {
	_, err := conn.Exec(ctx, `LISTEN client_pgx`)
	check(err)
	_, err = conn.Exec(ctx, `SELECT pg_notify('client_pgx', 'hello')`)
	check(err)
	note, err := conn.WaitForNotification(ctx)
	check(err)
	equal([]string{note.Channel, note.Payload}, []string{"client_pgx", "hello"})
}

func pool(ctx context.Context) {
	connections, err := pgxpool.New(ctx, "pool_max_conns=4")
	check(err)
	defer connections.Close()
	done := make(chan error)
	for worker := 0; worker < 4; worker++ {
		go func() {
			for i := 0; i < 50; i++ {
				if _, err := connections.Exec(ctx, `UPDATE client_pgx SET big = coalesce(big, 0) + 1 WHERE id = 2000`); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for worker := 0; worker < 4; worker++ {
		check(<-done)
	}
	var big int64
	check(connections.QueryRow(ctx, `SELECT big FROM client_pgx WHERE id = 2000`).Scan(&big))
	equal(big, int64(200))
}

func cancellation(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := conn.Exec(ctx, `SELECT pg_sleep(10)`)
	if err == nil || time.Since(start) > 5*time.Second {
		panic("a timeout does not end a statement")
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, "")
	check(err)
	types(ctx, conn)
	transactions(ctx, conn)
	failures(ctx, conn)
	copying(ctx, conn)
	batches(ctx, conn)
	moreTypes(ctx, conn)
	structs(ctx, conn)
	brokenBatch(ctx, conn)
	notifications(ctx, conn)
	pool(ctx)
	_, err = conn.Exec(ctx, `DROP TABLE client_pgx`)
	check(err)
	cancellation(conn)
	fmt.Fprintln(os.Stdout, "ok")
}
