#!/usr/bin/env bash
# Runs the client programs against the server that PGHOST, PGPORT, PGUSER and PGDATABASE name. Arguments choose clients.
#
# Drivers come from their registries at pinned versions, once: what is fetched stays below CLIENTS_CACHE and in the caches of
# the languages' own programs. A client that cannot be fetched or built has failed.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CLIENTS_CACHE:-$HOME/.cache/nyala/clients}
mkdir -p "$cache"
# Clones share the cache.
exec 9> "$cache/lock"
flock 9
export PGHOST=${PGHOST:-127.0.0.1} PGPORT=${PGPORT:-5432} PGUSER=${PGUSER:-postgres} PGDATABASE=${PGDATABASE:-postgres}

# Whether a client is built from these very sources; `built` notes that it is.
sources() { (cd "$here/$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum); }
is_built() { [ -d "$cache/$1" ] && [ "$(sources "$1")" = "$(cat "$cache/$1.sources" 2> /dev/null)" ]; }
built() { sources "$1" > "$cache/$1.sources"; }

# A registry may stumble.
patiently() {
    "$@" || { sleep 2 && "$@"; } || { sleep 5 && "$@"; }
}

fetch_python() {
    python3 -m venv --clear "$cache/$1" || return 1
    patiently "$cache/$1/bin/pip" install -q --disable-pip-version-check -r "$here/$1/requirements.txt"
}

fetch_psycopg() { fetch_python psycopg; }
fetch_asyncpg() { fetch_python asyncpg; }
fetch_sqlalchemy() { fetch_python sqlalchemy; }

fetch_node-postgres() {
    cp "$here/node-postgres/package.json" "$here/node-postgres/package-lock.json" "$cache/node-postgres/" || return 1
    (cd "$cache/node-postgres" && patiently npm ci --silent --no-audit --no-fund > /dev/null)
}

fetch_pgx() {
    (cd "$here/pgx" && patiently go build -o "$cache/pgx/smoke" .)
}

fetch_pgjdbc() {
    cp -r "$here"/pgjdbc/. "$cache/pgjdbc/" || return 1
    (cd "$cache/pgjdbc" && patiently mvn -q -B -Dstyle.color=never compile dependency:build-classpath -Dmdep.outputFile=classpath)
}

run_psql() {
    local said
    said=$(psql -X -q -A -t -v ON_ERROR_STOP=1 -f "$here/psql/smoke.sql" 2> >(grep -v 22012 >&2)) || return 1
    diff <(printf '%s\n' "$said") "$here/psql/expected.txt" || return 1
    # \d reads the catalog; only that it works is asked here.
    psql -X -q -c '\d client_psql' -c '\dt' -c '\l' -c '\du' -c '\dn' -c '\di' -c '\df nosuch' > /dev/null || return 1
    psql -X -q -c 'DROP TABLE client_psql' && echo ok
}

run_psycopg() { "$cache/psycopg/bin/python" "$here/psycopg/smoke.py"; }
run_asyncpg() { "$cache/asyncpg/bin/python" "$here/asyncpg/smoke.py"; }
run_sqlalchemy() { "$cache/sqlalchemy/bin/python" "$here/sqlalchemy/smoke.py"; }
run_node-postgres() { NODE_PATH="$cache/node-postgres/node_modules" node "$here/node-postgres/smoke.js"; }
run_pgx() { "$cache/pgx/smoke"; }
run_pgjdbc() { java -cp "$cache/pgjdbc/target/classes:$(cat "$cache/pgjdbc/classpath")" Smoke; }

declare -A needs=([psql]=psql [psycopg]=python3 [asyncpg]=python3 [sqlalchemy]=python3 [node-postgres]='node npm' [pgx]=go [pgjdbc]='java mvn')

client() {
    local name=$1 program
    [ -n "${needs[$name]:-}" ] || { echo "there is no such client"; return 1; }
    for program in ${needs[$name]}; do
        command -v "$program" > /dev/null || { echo "$program is not installed; scripts/dependencies.sh installs it"; return 1; }
    done
    if [ "$name" != psql ] && ! is_built "$name"; then
        rm -rf "${cache:?}/$name" && mkdir -p "$cache/$name"
        "fetch_$name" || { echo "it cannot be fetched or built; its registry must be within reach the first time"; return 1; }
        built "$name"
    fi
    "run_$name"
}

[ $# -gt 0 ] || set -- psql psycopg asyncpg sqlalchemy node-postgres pgx pgjdbc
failed=0
for name in "$@"; do
    echo "$name:"
    client "$name" || { echo "$name: FAILED"; failed=1; }
done
exit $failed
