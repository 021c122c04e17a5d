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

# All crates are chosen each time: what is built depends on which are. What tests print goes to the end if one of them fails.
of_crates=(--lib --bins --test bind --test registry --test functions_a --test functions_b --test transcripts)
tests() {
    cargo test --quiet --locked --workspace "$@" >>"$output" 2>&1 || {
        cat "$output"
        exit 1
    }
}
cargo test --quiet --locked --workspace --no-run "${of_crates[@]}" --test scripts --test it
stage build
# The scripts use one processor, the other tests the other.
cargo test --quiet --locked --workspace --test scripts -- --nocapture >"$scripts" 2>&1 &
running=$!
# Long calls of all functions are for `make test`.
tests "${of_crates[@]}" -- --skip budget::
tests --test it -- transcripts
wait "$running" || {
    cat "$scripts"
    exit 1
}
cat "$scripts" >>"$output"
grep -h 'statements of' "$scripts"
stage tests

passed=$(awk '/^test result:/ { sum += $4 } END { print sum + 0 }' "$output")
[ -z "${UPDATE_COUNT:-}" ] || echo "$passed" >"$count_file"
before=$(cat "$count_file")
echo "$passed tests passed in $(($(date +%s) - beginning)) s"
if [ "$passed" -lt "$before" ]; then
    echo "$before tests passed before: some are lost. If they were removed on purpose, UPDATE_COUNT=1 scripts/check.sh writes the new number." >&2
    exit 1
fi
