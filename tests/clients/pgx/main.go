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
	pool(ctx)
	_, err = conn.Exec(ctx, `DROP TABLE client_pgx`)
	check(err)
	cancellation(conn)
	fmt.Fprintln(os.Stdout, "ok")
}
