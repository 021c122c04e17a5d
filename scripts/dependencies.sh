#!/usr/bin/env bash
# Installs what the tests need beyond Rust: PostgreSQL's programs, which are the oracle, MariaDB's, which the lab measures, sysbench, and
# the languages whose drivers are tried. No cluster of the system is made.
set -euo pipefail

have_server() {
    ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 && command -v psql pgbench > /dev/null
}

missing=()
have_server || missing+=(postgresql)
command -v sysbench > /dev/null || missing+=(sysbench)
# Only the programs: no server of the system is set up or started.
{ command -v mariadbd && command -v mariadb-install-db; } > /dev/null || missing+=(mariadb-server-core mariadb-client-core)
command -v python3 > /dev/null && python3 -c 'import ensurepip' 2> /dev/null || missing+=(python3-venv)
command -v node > /dev/null || missing+=(nodejs)
command -v npm > /dev/null || missing+=(npm)
command -v mvn > /dev/null || missing+=(maven)
command -v javac > /dev/null || missing+=(default-jdk-headless)
command -v go > /dev/null || missing+=(golang-go)
[ ${#missing[@]} -gt 0 ] || exit 0

root=
[ "$(id -u)" = 0 ] || root=sudo
echo "installing: ${missing[*]}"
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    $root mkdir -p /etc/postgresql-common
    echo 'create_main_cluster = false' | $root tee /etc/postgresql-common/createcluster.conf > /dev/null
fi
$root apt-get update -q > /dev/null
$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o Dpkg::Options::=--force-confold "${missing[@]}" > /dev/null
