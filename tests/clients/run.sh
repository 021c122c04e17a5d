#!/usr/bin/env bash
# Runs the client programs against the server that PGHOST, PGPORT, PGUSER and PGDATABASE name. Arguments choose clients.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CLIENTS_CACHE:-$HOME/.cache/nyala/clients}
mkdir -p "$cache"
export PGHOST=${PGHOST:-127.0.0.1} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-postgres} PGDATABASE=${PGDATABASE:-postgres}

run_psql() {
    local said
    said=$(psql -X -q -A -t -v ON_ERROR_STOP=1 -f "$here/psql/smoke.sql" 2> >(grep -v 22012 >&2)) || return 1
    diff <(printf '%s\n' "$said") "$here/psql/expected.txt" || return 1
    # \d reads the catalog; only that it works is asked here.
    psql -X -q -c '\d client_psql' -c '\dt' -c '\l' -c '\du' -c '\dn' -c '\di' -c '\df nosuch' > /dev/null || return 1
    psql -X -q -c 'DROP TABLE client_psql' && echo ok
}

run_psycopg() {
    local venv="$cache/psycopg"
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv" || return 1
    "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/psycopg/requirements.txt" || return 1
    "$venv/bin/python" "$here/psycopg/smoke.py"
}

run_node-postgres() {
    local work="$cache/node-postgres"
    mkdir -p "$work" && cp "$here"/node-postgres/*.json "$here"/node-postgres/smoke.js "$work/" || return 1
    (cd "$work" && npm install --silent --no-audit --no-fund > /dev/null && node smoke.js)
}

run_pgx() {
    (cd "$here/pgx" && go build -o "$cache/pgx-smoke" . && "$cache/pgx-smoke")
}

run_pgjdbc() {
    local work="$cache/pgjdbc"
    mkdir -p "$work" && cp -r "$here"/pgjdbc/. "$work/" || return 1
    (cd "$work" && mvn -q -B compile exec:java)
}

declare -A needs=([psql]=psql [psycopg]=python3 [node-postgres]=node [pgx]=go [pgjdbc]=mvn)
failed=0
for client in "${@:-psql psycopg node-postgres pgx pgjdbc}"; do
    for name in $client; do
        if ! command -v "${needs[$name]:-nothing}" > /dev/null; then
            echo "$name: skipped, ${needs[$name]:-no such client} is not here"
            continue
        fi
        echo "$name:"
        "run_$name" || { echo "$name: FAILED"; failed=1; }
    done
done
exit $failed
