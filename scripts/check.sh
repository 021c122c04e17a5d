#!/usr/bin/env bash
# Format, lints, the repository's own checks, unit tests and all scripts of statements: what can be known without PostgreSQL, a network or
# a running server. `make check` calls this.
#
# The number of tests that passed is printed; it must not be less than the number in tests/check-count.txt. UPDATE_COUNT=1 writes the number there.

set -euo pipefail
cd "$(dirname "$0")/.."

count_file=tests/check-count.txt
output=$(mktemp)
scripts=$(mktemp)
trap 'rm -f "$output" "$scripts"' EXIT
start=$(date +%s)
beginning=$start

stage() {
    local now
    now=$(date +%s)
    echo "stage $1: $((now - start)) s"
    start=$now
}

cargo fmt --all --check
stage format
cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
stage lints
cargo run --quiet --locked -p xtask -- check
stage repository

# What the tests of crates print goes to the end if one of them fails.
tests() {
    cargo test --quiet --locked "$@" >>"$output" 2>&1 || {
        cat "$output"
        exit 1
    }
}
# The scripts use one processor, the other tests the other.
cargo test --quiet --locked --workspace --lib --bins --tests --no-run --exclude testkit --exclude server --exclude bench --exclude sim
cargo test --quiet --locked -p sandbox >"$scripts" 2>&1 &
running=$!
# Long calls of all functions are for `make test`.
tests --workspace --lib --bins -- --skip budget::
tests -p sql-bind -p sql-catalog -p types -p pgwire --tests
tests -p mvcc -p engine -p redo --tests -- transcripts
wait "$running" || {
    cat "$scripts"
    exit 1
}
cat "$scripts" >>"$output"
grep -h 'statements of' "$scripts" || true
stage tests

passed=$(awk '/^test result:/ { sum += $4 } END { print sum + 0 }' "$output")
[ -z "${UPDATE_COUNT:-}" ] || echo "$passed" >"$count_file"
before=$(cat "$count_file")
echo "$passed tests passed in $(($(date +%s) - beginning)) s"
if [ "$passed" -lt "$before" ]; then
    echo "$before tests passed before: some are lost. If they were removed on purpose, UPDATE_COUNT=1 scripts/check.sh writes the new number." >&2
    exit 1
fi
