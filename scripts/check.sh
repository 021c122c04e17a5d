#!/usr/bin/env bash
# Format, lints, the repository's own checks, unit tests and all scripts of statements: what can be known without PostgreSQL, a network or
# a running server. `make check` calls this.
#
# The number of tests that passed is printed; it must not be less than the number in tests/check-count.txt. UPDATE_COUNT=1 writes the number there.

set -euo pipefail
cd "$(dirname "$0")/.."

count_file=tests/check-count.txt
output=$(mktemp)
trap 'rm -f "$output"' EXIT
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

# Whose tests start servers: of these only what stands in the sources.
with_servers=(testkit server bench)
tests() {
    cargo test --quiet --locked "$@" 2>&1 | tee -a "$output" | grep -vE '^(running [0-9]+ tests?|[.i]+( [0-9]+/[0-9]+)?|test result: ok.*|)$' || true
    [ "${PIPESTATUS[0]}" -eq 0 ]
}
cargo test --quiet --locked --workspace --lib --bins --no-run
tests --workspace "${with_servers[@]/#/--exclude=}"
tests "${with_servers[@]/#/-p=}" --lib --bins
stage tests

passed=$(awk '/^test result:/ { sum += $4 } END { print sum + 0 }' "$output")
[ -z "${UPDATE_COUNT:-}" ] || echo "$passed" >"$count_file"
before=$(cat "$count_file")
echo "$passed tests passed in $(($(date +%s) - beginning)) s"
if [ "$passed" -lt "$before" ]; then
    echo "$before tests passed before: some are lost. If they were removed on purpose, UPDATE_COUNT=1 scripts/check.sh writes the new number." >&2
    exit 1
fi
