#!/usr/bin/env bash
# pgbench and sysbench, every step and workload for a moment, against the server that PGHOST, PGPORT, PGUSER and PGDATABASE
# name: whatever these tools send must be understood. Nothing is measured here.
#
# SECONDS_EACH (1) and ROWS (10000) say how long and how large. Both tools come from Debian's packages.
set -uo pipefail
export PGHOST=${PGHOST:-127.0.0.1} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-postgres} PGDATABASE=${PGDATABASE:-postgres}
seconds=${SECONDS_EACH:-1} rows=${ROWS:-10000} failed=0
said=$(mktemp)
trap 'rm -f "$said"' EXIT

needs() { # program package
    command -v "$1" > /dev/null && return
    echo "installing $2"
    apt-get install -y -q "$2" > /dev/null || { echo "$1 is not here and $2 cannot be installed"; exit 2; }
}

# Errors that PostgreSQL gives too under these workloads: lost races, which the tools count or try again.
tolerated='40001|40P01|23505|could not serialize|deadlock detected|duplicate key'

step() { # name command…
    local name=$1
    shift
    if ! "$@" > "$said" 2>&1; then
        echo "$name: FAILED"
        tail -5 "$said"
        failed=1
    elif grep -E 'ERROR|FATAL|PANIC' "$said" | grep -Evq "$tolerated"; then
        echo "$name: FAILED"
        grep -E 'ERROR|FATAL|PANIC' "$said" | grep -Ev "$tolerated" | head -5
        failed=1
    else
        echo "$name: ok"
    fi
}

needs pgbench postgresql-contrib
needs sysbench sysbench

step "pgbench -i" pgbench -i -q -s 1
step "pgbench -i --foreign-keys" pgbench -i -q -s 1 --foreign-keys
step "pgbench -i, data made by the server" pgbench -i -q -s 1 -I dtGvp
for protocol in simple extended prepared; do
    for script in tpcb-like simple-update select-only; do
        step "pgbench $protocol $script" pgbench -n -c 4 -T "$seconds" -M "$protocol" -b "$script"
    done
done
step "pgbench -i -I d" pgbench -i -q -I d

for workload in oltp_read_write oltp_read_only oltp_write_only oltp_point_select oltp_insert oltp_delete \
    oltp_update_index oltp_update_non_index bulk_insert select_random_ranges select_random_points; do
    options=("$workload" --db-driver=pgsql "--pgsql-host=$PGHOST" "--pgsql-port=$PGPORT" "--pgsql-user=$PGUSER"
        "--pgsql-db=$PGDATABASE" --tables=1 "--table-size=$rows" --threads=4 "--time=$seconds")
    for stage in prepare run cleanup; do
        step "sysbench $workload $stage" sysbench "${options[@]}" "$stage"
    done
done
exit $failed
