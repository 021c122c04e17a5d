#!/usr/bin/env bash
# Runs the own tests of a driver or a framework against the server that PGHOST, PGPORT and PGUSER name:
# run.sh psycopg2|asyncpg|pg8000|sqlalchemy|pq|pgconn [TEST...].
# Says `PASSED name`, `FAILED name` and so on, a line each, among other things.
#
# They come from their registry at pinned versions, once, to below CLIENTS_CACHE; if they cannot be fetched, the script ends with 3. The
# tests are run as they are.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${CLIENTS_CACHE:-$HOME/.cache/nyala/clients}/suites
name=$1
shift
sources=$here/$name/requirements.txt
[ -f "$sources" ] || sources=$here/$name/go.mod
[ -f "$sources" ] || { echo "there is no such suite"; exit 2; }
mkdir -p "$cache"

# A registry may stumble.
patiently() {
    "$@" || { sleep 2 && "$@"; } || { sleep 5 && "$@"; }
}

# A package of Go: its tests are in its module.
fetch_module() {
    local module directory
    module=$(sed -n 's/^require \([^ ]*\) .*/\1/p' "$here/$name/go.mod")
    mkdir -p "$cache/$name" && cp "$here/$name"/go.{mod,sum} "$cache/$name/" && cd "$cache/$name" &&
        patiently go mod download -json "$module" > module.json &&
        directory=$(sed -n 's/.*"Dir": "\(.*\)",$/\1/p' module.json) &&
        cp -r "$directory" suite && chmod -R u+w suite && cd suite && patiently go test -c -o ../tests .
}

# A package of Python: its tests are in the archive of its source.
fetch_package() {
    local version
    version=$(sed -n "s/^$name[a-z-]*==//p" "$here/$name/requirements.txt")
    python3 -m venv --clear "$cache/$name" &&
        patiently "$cache/$name/bin/pip" install -q --disable-pip-version-check -r "$here/$name/requirements.txt" &&
        patiently "$cache/$name/bin/python" "$here/source.py" "$name" "$version" "$cache/$name" || return
    # Away from the package's own source, which is not built.
    mkdir -p "$cache/$name/suite" && cd "$cache/$name/$name-$version" && mv test* "$cache/$name/suite/" || return
    # What its tests are run by.
    [ "$name" != sqlalchemy ] || mv setup.cfg pyproject.toml lib "$cache/$name/suite/"
}

# Clones share the cache.
exec 9> "$cache/lock"
flock 9
wanted=$(cat "$sources" "$here/source.py" "$here/run.sh")
if [ "$wanted" != "$(cat "$cache/$name.sources" 2> /dev/null)" ]; then
    chmod -Rf u+w "$cache/$name"
    rm -rf "${cache:?}/$name"
    case $sources in
    *.mod) (fetch_module) ;;
    *) (fetch_package) ;;
    esac || { echo "it cannot be fetched; its registry must be within reach the first time"; exit 3; }
    printf '%s' "$wanted" > "$cache/$name.sources"
fi
flock -u 9

export PGHOST PGPORT PGUSER PGDATABASE=${PGDATABASE:-postgres} PGPASSWORD=${PGPASSWORD:-unused}
database() {
    psql -X -q -c "CREATE DATABASE $1" 2> /dev/null
}
more=()
case $name in
psycopg2)
    database psycopg2_test
    export PSYCOPG2_TESTDB=psycopg2_test PSYCOPG2_TESTDB_HOST=$PGHOST PSYCOPG2_TESTDB_PORT=$PGPORT PSYCOPG2_TESTDB_USER=$PGUSER
    ;;
# Those of authentication ask for a server that is set up for them.
pg8000) more=(--ignore-glob='*/auth') ;;
sqlalchemy)
    database sqlalchemy_test
    for schema in test_schema test_schema_2; do
        psql -X -q -d sqlalchemy_test -c "CREATE SCHEMA IF NOT EXISTS $schema" 2> /dev/null
    done
    export PYTHONPATH=$here/sqlalchemy
    more=(-p extensions --maxfail=0 --dburi "postgresql+psycopg2://$PGUSER@$PGHOST:$PGPORT/sqlalchemy_test")
    # The compliance suite, by which it judges databases.
    [ $# -gt 0 ] || set -- test/dialect/test_suite.py
    ;;
pq)
    database pqgotest
    export PGDATABASE=pqgotest PGSSLMODE=disable
    ;;
pgconn)
    export PGX_TEST_CONN_STRING="host=$PGHOST port=$PGPORT user=$PGUSER database=$PGDATABASE"
    export PGX_TEST_TCP_CONN_STRING=$PGX_TEST_CONN_STRING
    # Its tests of what the environment says find none said.
    unset PGHOST PGPORT PGUSER PGDATABASE PGPASSWORD
    ;;
esac
cd "$cache/$name/suite" || exit 3
case $sources in
*.mod)
    # Parts of a test go with the whole.
    whole=$(printf '%s\n' "${@%%/*}" | sort -u | paste -sd '|')
    "$cache/$name/tests" -test.v ${whole:+-test.run "^($whole)\$"} 2>&1 | tee /dev/stderr |
        sed -n -e 's/^ *--- PASS: \([^ ]*\) .*/PASSED \1/p' -e 's/^ *--- FAIL: \([^ ]*\) .*/FAILED \1/p'
    ;;
*)
    [ $# -gt 0 ] || set -- test*
    # The version of the server is no part of a test's name.
    "$cache/$name/bin/python" -m pytest -q -p no:cacheprovider --no-header --tb=line -rA "${more[@]}" "$@" |
        sed -e 's/^\([A-Z]* [^ ]*+psycopg2\)_[0-9_]*::/\1::/'
    ;;
esac
