#!/usr/bin/env bash
# Coverage-guided fuzzing of every reader of bytes, with libFuzzer and AddressSanitizer. `make fuzz` calls this.
#
#   scripts/fuzz-coverage.sh SECONDS-OF-PROCESSOR-TIME-PER-TARGET [TARGET…]
#
# An input that finds something is kept in tests/fuzz/found/TARGET, where a test of `make test` runs it from then on. What the
# fuzzer learns goes to $CARGO_TARGET_DIR/fuzz/corpus; KEEP=1 takes it over, minimised, into tests/fuzz/corpus. BUILD=0 runs
# what is built already, so that several targets can be run at once.

set -uo pipefail
cd "$(dirname "$0")/.."

seconds=$1
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(wire log checkpoint manifest copy sql values)
work=${CARGO_TARGET_DIR:-target}/fuzz
host=x86_64-unknown-linux-gnu
bin=$work/$host/fuzz/nyala-fuzz

# What cargo-fuzz would set, on the stable compiler: counters on edges, comparisons traced, the sanitizer.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code=no -Zsanitizer=address"
[ "${BUILD:-1}" = 0 ] || RUSTC_BOOTSTRAP=1 RUSTFLAGS=$(echo $flags) cargo build --quiet --locked --profile fuzz \
    --target "$host" --target-dir "$work" -p fuzz --features libfuzzer || exit 1

# Seconds of processor time that a process has had.
spent() {
    local fields
    fields=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) || return 1
    set -- $fields
    echo $(((${12} + ${13}) / $(getconf CLK_TCK)))
}

failures=0
for target in "${targets[@]}"; do
    corpus=$work/corpus/$target
    found=tests/fuzz/found/$target
    mkdir -p "$corpus" "$found"
    options=(-max_len=16384 -timeout=60 -rss_limit_mb=3000 -malloc_limit_mb=600 -detect_leaks=0 -print_final_stats=1)
    [ ! -f "tests/fuzz/$target.dict" ] || options+=(-dict="tests/fuzz/$target.dict")
    log=$work/$target.log
    NYALA_FUZZ_TARGET=$target "$bin" "${options[@]}" -artifact_prefix="$found/" "$corpus" "tests/fuzz/corpus/$target" >"$log" 2>&1 &
    fuzzer=$!
    trap 'kill "$fuzzer" 2>/dev/null' EXIT
    trap 'exit 130' INT TERM
    had=0
    while now=$(spent "$fuzzer"); do
        had=$now
        # The signal asks it to stop after the input that it is at.
        [ "$had" -lt "$seconds" ] || kill -USR1 "$fuzzer" 2>/dev/null
        sleep 1
    done
    wait "$fuzzer"
    status=$?
    trap - EXIT
    echo "$target: $had s of processor time, $(ls "$corpus" | wc -l) inputs learnt"
    grep -E "^stat::(number_of_executed_units|peak_rss_mb)" "$log"
    grep -E " cov: " "$log" | sed -n '1p;$p'
    if [ "$status" -ne 0 ]; then
        failures=$((failures + 1))
        tail -n 40 "$log"
        echo "$target FAILED; the input is in $found"
    fi
    rmdir "$found" 2>/dev/null
    if [ "${KEEP:-}" ]; then
        rm -rf "$corpus.min" && mkdir -p "$corpus.min"
        NYALA_FUZZ_TARGET=$target "$bin" -merge=1 -max_len=1024 -detect_leaks=0 "$corpus.min" "tests/fuzz/corpus/$target" "$corpus" \
            >/dev/null 2>&1
        cp "$corpus.min"/* "tests/fuzz/corpus/$target/"
    fi
done
echo "$failures targets failed"
[ "$failures" -eq 0 ]
