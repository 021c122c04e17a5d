#!/usr/bin/env bash
# Runs a server until Ctrl-C and shows it at work: a small TPC-C is loaded when the data directory is empty, its mix runs
# for 20 seconds, its consistency is checked. `make run` builds the binary and calls this.
#
#   scripts/run.sh NYALA-BINARY
#
# Reads DATA (data directory), PORT, and whatever `nyala serve` reads (NYALA_…).

set -euo pipefail

nyala=$1
data=${DATA:-.nyala/data}
port=${PORT:-5432}
server=
bench=
ready=
interrupted=

case $port in
    '' | *[!0-9]*) printf 'PORT must be a number, not "%s"\n' "$port" >&2; exit 2 ;;
esac

# The server's log goes to the terminal; this reads it too, from a pipe that closes when the server ends.
start() {
    mkdir -p "$(dirname "$data")"
    local dir
    dir=$(mktemp -d)
    mkfifo "$dir/log"
    "$nyala" serve --data "$data" --init --listen "127.0.0.1:$port" 2>"$dir/log" &
    server=$!
    exec 3<"$dir/log"
    rm -r "$dir"
}

# Passes the log on until the server is ready; fails if it ends before.
wait_until_ready() {
    local line
    while IFS= read -r line <&3; do
        case $line in *"cannot listen on"*"in use by another server"*) line="$line; choose another: make run PORT=$((port + 1))" ;; esac
        printf '%s\n' "$line" >&2
        case $line in *" ready: "*) ready=1; break ;; esac
    done
    cat <&3 >&2 &
    [ -n "$ready" ]
}

# Asks the server to end. It hears a Ctrl-C by itself too; a second request changes nothing.
stop() {
    kill -TERM "$server" 2>/dev/null || true
}

# Waits for the server's end, also when a signal interrupts the wait; answers its exit code.
finish() {
    local code last=127
    while true; do
        wait "$server" && code=0 || code=$?
        # 127: its exit code has been told before.
        [ "$code" -ne 127 ] || return "$last"
        last=$code
        [ "$code" -gt 128 ] || return "$code"
    done
}

# Loads TPC-C if it is not there, runs it, checks it.
measure() {
    "$nyala" bench tpcc --target "postgres://postgres@127.0.0.1:$port/postgres" \
        --warehouses 2 --clients 4 --warmup 2s --duration 20s &
    bench=$!
    wait "$bench"
}

# Whether a Ctrl-C has ended the run. The shell may never notice one that comes at the moment when a program it waits for
# ends; then the server, which has noticed, is ending too.
was_asked_to_end() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        [ -z "$interrupted" ] && jobs -rp | grep -qx "$server" || return 0
        sleep 0.1 || true
    done
    return 1
}

# Ctrl-C is the way to end, whatever is under way: no error, and nothing is left running.
interrupt() {
    interrupted=1
    stop
    [ -z "$bench" ] || kill "$bench" 2>/dev/null || true
}

trap interrupt INT TERM
start
trap stop EXIT
code=0
if wait_until_ready && [ -z "$interrupted" ]; then
    if measure; then
        printf '\nconnect with: psql -h 127.0.0.1 -p %s -U postgres    (Ctrl-C ends the server)\n' "$port" >&2
    elif ! was_asked_to_end; then
        code=1
        stop
    fi
fi
finish || code=$?
# The last lines of the log.
wait
# A server that was still opening its directory has died of the signal, as it may.
[ -z "$interrupted" ] || [ "$code" -lt 128 ] || code=130
exit "$code"
