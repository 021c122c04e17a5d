#!/usr/bin/env bash
# What SERIALIZABLE costs against the other levels: TPC-C, and sysbench if it is installed, at each level in turn against one
# running server, of whatever kind: start `nyala serve` or a PostgreSQL on a quiet machine and name it.
#
#   scripts/isolation.sh NYALA-BINARY [postgres://user@host:port/database]
#
# Reads SECONDS_EACH (30), WAREHOUSES (4), CLIENTS (8), ROUNDS (3). Prints one line per run; compare the medians of a
# level's lines. Attempts that ended with 40001 were repeated and are in the column of retries.

set -euo pipefail

nyala=$1
target=${2:-postgres://postgres@127.0.0.1:5432/postgres}
seconds=${SECONDS_EACH:-30}
warehouses=${WAREHOUSES:-4}
clients=${CLIENTS:-8}
rounds=${ROUNDS:-3}
levels=(read-committed repeatable-read serializable)

kept=$(mktemp -d)
trap 'rm -r "$kept"' EXIT

"$nyala" bench tpcc --target "$target" --load --warehouses "$warehouses" --duration 0s >/dev/null
printf '%-10s %-16s %5s %s\n' workload level round result
for round in $(seq "$rounds"); do
    for level in "${levels[@]}"; do
        "$nyala" bench tpcc --target "$target" --no-load --clients "$clients" --isolation "$level" \
            --warmup 5s --duration "${seconds}s" >"$kept/report" || { cat "$kept/report"; exit 1; }
        printf '%-10s %-16s %5s %s\n' tpcc "$level" "$round" \
            "$(grep -E 'NOPM|retries' "$kept/report" | tr -s ' ' | paste -sd ';')"
    done
done

{ command -v sysbench && command -v psql; } >/dev/null || { echo "sysbench and psql are not both installed"; exit 0; }
# postgres://user[:password]@host:port/database
rest=${target#*://}
user=${rest%%@*}
place=${rest#*@}
export PGPASSWORD=
case $user in *:*) PGPASSWORD=${user#*:} ;; esac
common=(--db-driver=pgsql --pgsql-user="${user%%:*}" --pgsql-host="${place%%:*}" --pgsql-db="${place##*/}"
    --tables=4 --table-size=100000 --threads="$clients" --time="$seconds")
port=${place#*:}
common+=(--pgsql-port="${port%%/*}" --pgsql-password="$PGPASSWORD")
sysbench "${common[@]}" oltp_read_write cleanup >/dev/null 2>&1 || true
sysbench "${common[@]}" oltp_read_write prepare >/dev/null
for round in $(seq "$rounds"); do
    for level in "${levels[@]}"; do
        # Sessions that begin later have the level. sysbench starts a transaction again after 40001 and 40P01.
        psql -q "$target" -c "ALTER DATABASE ${place##*/} SET default_transaction_isolation = '${level/-/ }'"
        printf '%-10s %-16s %5s %s\n' sysbench "$level" "$round" "$(
            sysbench "${common[@]}" oltp_read_write run |
                grep -E 'transactions:|ignored errors:' | tr -s ' ' | paste -sd ';'
        )"
    done
done
psql -q "$target" -c "ALTER DATABASE ${place##*/} RESET default_transaction_isolation"
sysbench "${common[@]}" oltp_read_write cleanup >/dev/null
