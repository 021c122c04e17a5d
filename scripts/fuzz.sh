#!/usr/bin/env bash
# Runs the random tests over and over, each round from a new seed, until the time is over. `make fuzz` calls this.
#
#   scripts/fuzz.sh SECONDS-TO-RUN
#
# A round is: random rights, definitions, changes under constraints, altered tables, queries, joins, regular expressions, TPC-H,
# histories and interleavings against PostgreSQL, nearly right SQL, changed wire bytes, the log's reader on a disk that crashes, 200 runs of
# the simulator, and the times of random queries beside PostgreSQL's (`nyala bench queries --random`, a release build). A failing test's output is
# shown and kept in $CARGO_TARGET_DIR/fuzz; its seed repeats it: NYALA_SEED=… cargo test -p …, or the command that is shown. The rounds go on after
# a failure; the exit code tells of it in the end.

set -uo pipefail

deadline=$(($(date +%s) + $1))
kept=${CARGO_TARGET_DIR:-target}/fuzz
failures=0
round=0
# Nearly right SQL for so long per round.
export NYALA_FUZZ_SECONDS=${NYALA_FUZZ_SECONDS:-60}

# package:target[:filter]
tests=(
    testkit:robust_fuzz testkit:rights testkit:schemas testkit:changes testkit:alterations testkit:queries testkit:joins testkit:expressions testkit:tpch testkit:history testkit:interleavings testkit:registers testkit:robust:robust::bytes
    pgwire:it:hostile redo:it engine:it:transactions sim:it:nothing
)

# Random queries per round, over the tables of two schemas.
timed=30
schemas=(crates/bench/queries/*/)
release=${CARGO_TARGET_DIR:-target}/release/nyala

# What was told of a test that has ended: is it fine, and else where its output is.
tell() {
    local log=$1 what=$2 status=$3
    if [ "$status" -eq 0 ]; then
        rm "$log"
        echo "round $round: $what is fine"
    else
        failures=$((failures + 1))
        tail -n 60 "$log"
        echo "round $round: $what FAILED; $log"
    fi
}

mkdir -p "$kept"
cargo build --quiet --locked -p server || exit 1
cargo build --quiet --release --locked -p server || exit 1
cargo test --quiet --locked --no-run -p testkit -p pgwire -p redo -p engine -p sim --tests || exit 1

while [ "$(date +%s)" -lt "$deadline" ]; do
    round=$((round + 1))
    for test in "${tests[@]}"; do
        left=$((deadline - $(date +%s)))
        [ "$left" -gt 0 ] || break
        [ "$NYALA_FUZZ_SECONDS" -le "$left" ] || NYALA_FUZZ_SECONDS=$left
        IFS=: read -r package target filter <<<"$test"
        seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
        log=$kept/$target-$seed.log
        NYALA_SEED=$seed cargo test --quiet --locked -p "$package" --test "$target" -- ${filter:+"$filter"} \
            >"$log" 2>&1
        tell "$log" "$test with NYALA_SEED=$seed" $?
    done
    [ "$(date +%s)" -lt "$deadline" ] || break
    seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    first=$(basename "${schemas[seed % ${#schemas[@]}]}")
    second=$(basename "${schemas[(seed + 1) % ${#schemas[@]}]}")
    command=(bench queries --random "$timed" --seed "$seed" --schemas "$first,$second" --worst 0)
    log=$kept/bench-queries-$seed.log
    "$release" "${command[@]}" >"$log" 2>&1
    tell "$log" "nyala ${command[*]}" $?
done
echo "$round rounds, $failures failures"
[ "$failures" -eq 0 ]
