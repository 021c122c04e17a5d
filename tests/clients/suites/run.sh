#!/usr/bin/env bash
# Runs a driver's own tests against the server that PGHOST, PGPORT and PGUSER name: run.sh psycopg2|asyncpg|pg8000 [TEST...].
# Says `PASSED name`, `FAILED name` and so on, a line each, among other things.
#
# Driver and tests come from their registry at pinned versions, once, to below CLIENTS_CACHE; if they cannot be fetched, the script
# ends with 3. The tests are run as they are.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CLIENTS_CACHE:-$HOME/.cache/nyala/clients}/suites
name=$1
shift
[ -f "$here/$name/requirements.txt" ] || { echo "there is no such suite"; exit 2; }
mkdir -p "$cache"

# A registry may stumble.
patiently() {
    "$@" || { sleep 2 && "$@"; } || { sleep 5 && "$@"; }
}

# Clones share the cache.
exec 9> "$cache/lock"
flock 9
wanted=$(cat "$here/$name/requirements.txt" "$here/source.py" "$here/run.sh")
if [ "$wanted" != "$(cat "$cache/$name.sources" 2> /dev/null)" ]; then
    rm -rf "${cache:?}/$name"
    version=$(sed -n "s/^$name[a-z-]*==//p" "$here/$name/requirements.txt")
    python3 -m venv --clear "$cache/$name" &&
        patiently "$cache/$name/bin/pip" install -q --disable-pip-version-check -r "$here/$name/requirements.txt" &&
        patiently "$cache/$name/bin/python" "$here/source.py" "$name" "$version" "$cache/$name" ||
        { echo "it cannot be fetched; its registry must be within reach the first time"; exit 3; }
    # Away from the package's own source, which is not built.
    mkdir -p "$cache/$name/suite" && mv "$cache/$name/$name-$version/test"* "$cache/$name/suite/" || exit 3
    printf '%s' "$wanted" > "$cache/$name.sources"
fi
flock -u 9

export PGHOST PGPORT PGUSER PGDATABASE=${PGDATABASE:-postgres} PGPASSWORD=${PGPASSWORD:-unused}
more=()
case $name in
psycopg2)
    psql -X -q -c 'CREATE DATABASE psycopg2_test' 2> /dev/null
    export PSYCOPG2_TESTDB=psycopg2_test PSYCOPG2_TESTDB_HOST=$PGHOST PSYCOPG2_TESTDB_PORT=$PGPORT PSYCOPG2_TESTDB_USER=$PGUSER
    ;;
# Those of authentication ask for a server that is set up for them.
pg8000) more=(--ignore-glob='*/auth') ;;
esac
cd "$cache/$name/suite" || exit 3
[ $# -gt 0 ] || set -- test*
exec "$cache/$name/bin/python" -m pytest -q -p no:cacheprovider --no-header --tb=line -rA "${more[@]}" "$@"
