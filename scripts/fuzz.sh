#!/usr/bin/env bash
# Runs the random tests over and over, each round from a new seed, until the time is over. `make fuzz` calls this.
#
#   scripts/fuzz.sh SECONDS-TO-RUN
#
# A round is: random rights, definitions, changes under constraints, altered tables, queries, joins, regular expressions, TPC-H,
# histories and interleavings against PostgreSQL, nearly right SQL, changed wire bytes, the log's reader on a disk that crashes, and 200 runs of
# the simulator. A failing test's output is shown and kept in $CARGO_TARGET_DIR/fuzz; its seed repeats it:
# NYALA_SEED=… cargo test -p … The rounds go on after a failure; the exit code tells of it in the end.

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

mkdir -p "$kept"
cargo build --quiet --locked -p server || exit 1
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
        if NYALA_SEED=$seed cargo test --quiet --locked -p "$package" --test "$target" -- ${filter:+"$filter"} \
            >"$log" 2>&1; then
            rm "$log"
            echo "round $round: $test with NYALA_SEED=$seed is fine"
        else
            failures=$((failures + 1))
            tail -n 60 "$log"
            echo "round $round: $test FAILED with NYALA_SEED=$seed; $log"
        fi
    done
done
echo "$round rounds, $failures failures"
[ "$failures" -eq 0 ]
