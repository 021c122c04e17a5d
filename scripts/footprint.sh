#!/usr/bin/env bash
# Bytes per row of sysbench's table and of TPC-C's in a running Nyala, against PostgreSQL's heap and indexes after the same load.
#
#   scripts/footprint.sh NYALA-BINARY
#
# Starts a server and a PostgreSQL of its own in a temporary directory and ends both. Reads ROWS (100000) and WAREHOUSES (2), and
# PG_BIN, the directory of PostgreSQL's programs (the newest under /usr/lib/postgresql). Both servers answer from the same
# functions: Nyala's pg_relation_size counts row headers and versions as allocated, and index nodes; PostgreSQL's counts pages.
# The last lines compare what is counted with what the process holds beyond an empty server.

set -euo pipefail

nyala=$1
rows=${ROWS:-100000}
warehouses=${WAREHOUSES:-2}
pg=${PG_BIN:-$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)}
port=${PORT:-54900}
dir=$(mktemp -d)
chmod 755 "$dir"
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
own() { mkdir -p "$1"; [ "$(id -u)" != 0 ] || chown postgres "$1"; }
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    as "$pg/pg_ctl" -D "$dir/pg" -m immediate stop >/dev/null 2>&1 || true
    wait 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT

own "$dir/pg"
own "$dir/socket"
as "$pg/initdb" -D "$dir/pg" --locale=C.UTF-8 -E UTF8 -A trust -U postgres >/dev/null
# Without the log's safety the load is shorter; pages are the same.
as "$pg/pg_ctl" -D "$dir/pg" -w -l "$dir/pg/log" start \
    -o "-p $((port + 1)) -k $dir/socket -c fsync=off -c max_wal_size=8GB -c autovacuum=off" >/dev/null
"$nyala" serve --data "$dir/nyala" --listen "127.0.0.1:$port" --socket-dir "$dir" --http off 2>"$dir/nyala.log" &
server=$!
ask() { psql -XqAt -F ' ' -h 127.0.0.1 -p "$1" -U postgres -d postgres -c "$2"; }
for _ in $(seq 100); do
    ask "$port" 'SELECT 1' >/dev/null 2>&1 && break
    sleep 0.1
done
resident() { awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$server/status"; }
empty=$(resident)

sizes="SELECT c.relname, pg_relation_size(c.oid) + coalesce((SELECT sum(pg_relation_size(i.indexrelid)) FROM pg_index i
        WHERE i.indrelid = c.oid), 0), pg_relation_size(c.oid) FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY c.relname"
load() {
    sysbench --db-driver=pgsql --pgsql-host=127.0.0.1 --pgsql-port="$1" --pgsql-user=postgres --pgsql-db=postgres \
        --tables=1 --table-size="$rows" oltp_read_write prepare >/dev/null
    "$nyala" bench tpcc --target "postgres://postgres@127.0.0.1:$1/postgres" --load --warehouses "$warehouses" \
        --duration 0s >/dev/null 2>&1
    ask "$1" "$sizes" | while read -r table bytes heap; do
        echo "$table $(ask "$1" "SELECT count(*) FROM $table") $bytes $heap"
    done
}
load "$port" >"$dir/nyala.sizes"
load "$((port + 1))" >"$dir/pg.sizes"

printf '| table | rows | PostgreSQL: heap | with indexes | Nyala: rows and versions | with indexes | ratio |\n'
printf '|---|---:|---:|---:|---:|---:|---:|\n'
join "$dir/nyala.sizes" "$dir/pg.sizes" | awk '
    $2 > 0 {
        printf "| `%s` | %d | %.1f | %.1f | %.1f | %.1f | %.2f |\n", $1, $2, $7 / $2, $6 / $2, $4 / $2, $3 / $2, $3 / $6
        own += $3; other += $6
    }
    END { printf "| all | | | %.1f MiB | | %.1f MiB | %.2f |\n", other / 1048576, own / 1048576, own / other }'
counted=$(awk '{ sum += $3 } END { print sum }' "$dir/nyala.sizes")
sleep 2
held=$(($(resident) - empty))
awk -v counted="$counted" -v held="$held" 'BEGIN {
    printf "\nNyala counts %.1f MiB; the process holds %.1f MiB more than when it was empty.\n", counted / 1048576, held / 1048576 }'
