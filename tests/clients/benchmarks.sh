#!/usr/bin/env bash
# pgbench and sysbench, every step and workload for a moment, against the server that PGHOST, PGPORT, PGUSER and PGDATABASE
# name: whatever these tools send must be understood, and TPC-B's sums must agree in the end. Nothing is measured here.
#
# TRANSACTIONS (25) and ROWS (1000) say how long and how large. Both tools come from Debian's packages.
set -uo pipefail
export PGHOST=${PGHOST:-127.0.0.1} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-postgres} PGDATABASE=${PGDATABASE:-postgres}
transactions=${TRANSACTIONS:-25} rows=${ROWS:-1000} failed=0
work=$(mktemp -d)
said=$work/said
trap 'rm -rf "$work"' EXIT

for program in pgbench sysbench psql; do
    command -v "$program" > /dev/null || { echo "$program is not installed; scripts/dependencies.sh installs it"; exit 2; }
done

# Errors that PostgreSQL gives too under these workloads: lost races, which the tools count or try again.
tolerated='40001|40P01|23505|could not serialize|deadlock detected|duplicate key'

fail() { # name
    echo "$1: FAILED"
    failed=1
}

step() { # name command…
    local name=$1
    shift
    if ! "$@" > "$said" 2>&1; then
        fail "$name"
        tail -5 "$said"
    elif grep -E 'ERROR|FATAL|PANIC' "$said" | grep -Evq "$tolerated"; then
        fail "$name"
        grep -E 'ERROR|FATAL|PANIC' "$said" | grep -Ev "$tolerated" | head -5
    elif grep -Eq 'actually processed: 0(/|$)|^ +transactions: +0 ' "$said"; then
        fail "$name"
        echo "no transaction succeeded"
    else
        echo "$name: ok"
    fi
}

step "pgbench -i, unlogged, data made by the server" pgbench -i -q -s 1 -I dtGvp --unlogged-tables -F 90
step "pgbench -i --foreign-keys" pgbench -i -q -s 1 --foreign-keys --index-tablespace=pg_default
for protocol in simple extended prepared; do
    for script in tpcb-like simple-update select-only; do
        step "pgbench $protocol $script" pgbench -n -c 4 -t "$transactions" -M "$protocol" -b "$script"
    done
done
step "pgbench, a connection for each transaction" pgbench -n -C -c 2 -t "$transactions" -b select-only
cat > "$work/pipeline.sql" << 'SQL'
\set aid random(1, 100000)
\startpipeline
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;
INSERT INTO pgbench_history (bid, aid, delta, mtime) VALUES (1, :aid, 1, CURRENT_TIMESTAMP);
UPDATE pgbench_tellers SET tbalance = tbalance + 1 WHERE tid = 1;
END;
\endpipeline
SELECT 1 AS one \gset
SQL
for protocol in extended prepared; do
    step "pgbench $protocol, a pipeline" pgbench -n -c 4 -t "$transactions" -M "$protocol" -f "$work/pipeline.sql" -r --max-tries=3
done
# simple-update writes no teller and no branch.
sums=$(psql -X -A -t -c "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
    (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(tbalance) FROM pgbench_tellers)" 2>&1)
if [ "$sums" = 't|t' ]; then echo "TPC-B's sums: ok"; else fail "TPC-B's sums" && echo "$sums"; fi
step "pgbench, vacuum and truncate before" pgbench -c 2 -t 5
step "pgbench -i -I d" pgbench -i -q -I d

for workload in oltp_read_write oltp_read_only oltp_write_only oltp_point_select oltp_insert oltp_delete \
    oltp_update_index oltp_update_non_index bulk_insert select_random_ranges select_random_points; do
    options=("$workload" --db-driver=pgsql "--pgsql-host=$PGHOST" "--pgsql-port=$PGPORT" "--pgsql-user=$PGUSER"
        "--pgsql-db=$PGDATABASE" --tables=1 "--table-size=$rows" --threads=4 --time=30 "--events=$((4 * transactions))")
    for stage in prepare run cleanup; do
        step "sysbench $workload $stage" sysbench "${options[@]}" "$stage"
    done
done
step "sysbench prepare, ids given" sysbench oltp_read_write "${options[@]:1}" --auto_inc=off --create_secondary=off prepare
step "sysbench run, no prepared statements" \
    sysbench oltp_read_write "${options[@]:1}" --auto_inc=off --db-ps-mode=disable --skip_trx=on run
step "sysbench cleanup" sysbench oltp_read_write "${options[@]:1}" cleanup
exit $failed
