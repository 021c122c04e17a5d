# Nyala. `make test` checks everything; nothing has to be installed by hand before.

# Dependencies are built once for all clones.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/nyala/target

STAGE = @start=$$(date +%s); \
	run() { name=$$1; shift; "$$@" || { echo "failed: $$name"; exit 1; }; \
	now=$$(date +%s); echo "stage $$name: $$((now - start)) s"; start=$$now; };

# Seeds of the simulator: make sim SEEDS=10000 FROM=500
SEEDS ?= 1000
FROM ?= 1000

.PHONY: here check test fuzz fuzz-readers sim chaos clients-full asan bench run clean

# The storage, whose code is partly unsafe, with AddressSanitizer.
ASAN = env RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/asan \
	cargo test --locked -p mvcc --target x86_64-unknown-linux-gnu --lib --test it

# How long `make fuzz` goes on: make fuzz SECONDS=60, make fuzz HOURS=8
HOURS ?=
SECONDS ?= $(if $(HOURS),$(shell echo $$(($(HOURS) * 3600))),600)

# CYCLES of kill -9, and the size of large transactions: make chaos CYCLES=1000
CYCLES ?= 200
CHAOS = env NYALA_KILLS=$(CYCLES) NYALA_TRANSACTIONS=1000 NYALA_LARGE=1 NYALA_TPCH_SCALE=0.1 NYALA_REQUIRE_FAULTS=1

# Where tests say that they could not be run here: `make test` tells of it at its end, `make chaos` fails.
SKIPPED = $(CARGO_TARGET_DIR)/skipped

# What `make run` takes: make run PORT=5433 DATA=/var/lib/nyala
DATA ?= .nyala/data
PORT ?= 5432

# What another clone has built in the same directory is not taken for this one's: Cargo goes by the time of the sources alone.
here:
	@mkdir -p '$(CARGO_TARGET_DIR)'
	@[ "$$(cat '$(CARGO_TARGET_DIR)/clone' 2>/dev/null)" = '$(CURDIR)' ] || find crates xtask -name '*.rs' -exec touch {} +
	@echo '$(CURDIR)' > '$(CARGO_TARGET_DIR)/clone'

## Formatting, lints, the repository's own checks, unit tests and all scripts of statements in one process: without PostgreSQL or a network.
## How many tests ran is printed, and must not be less than before.
check: here
	scripts/check.sh

## Formatting, lints, the repository's own checks, all tests. Random tests start from one seed here, and from any in `make fuzz`.
test: here
	@rm -f '$(SKIPPED)'
	$(STAGE) \
	run dependencies scripts/dependencies.sh; \
	run format cargo fmt --all --check; \
	run lints cargo clippy --workspace --all-targets --locked -- -D warnings; \
	run repository cargo run -q --locked -p xtask -- check; \
	run documentation env RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc -q --workspace --no-deps --document-private-items --locked; \
	run server cargo build --locked -p server; \
	run tests env NYALA_SEED=$${NYALA_SEED:-1} NYALA_SKIPPED='$(SKIPPED)' cargo test --workspace --locked; \
	run addresses $(ASAN); \
	run schedules env RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/shuttle cargo test --locked -p mvcc; \
	if [ -s '$(SKIPPED)' ]; then echo 'all is well, but not everything could be tested here:'; cat '$(SKIPPED)'; fi

## Random tests from new seeds for SECONDS (600) or HOURS: rights, queries and their times, joins, TPC-H, histories, nearly right SQL, wire bytes, the log.
## Before them, for as long again, libFuzzer over every reader of bytes; `make fuzz-readers` does that alone.
fuzz: fuzz-readers
	scripts/fuzz.sh $(SECONDS)

READERS = 7
fuzz-readers: here
	scripts/fuzz-coverage.sh $$(( ($(SECONDS) + $(READERS) - 1) / $(READERS) ))

## The simulator from SEEDS seeds beginning with FROM; `cargo run -p sim -- --seed N` shows one.
sim: here
	cargo run -q --locked -p sim -- --from $(FROM) --seeds $(SEEDS)

## What goes wrong outside, at full size: kill -9 again and again, full and read-only disks, signals, crowds, hostile clients, 1 GB
## and a million rows at once. A test that cannot be run here fails: root is needed, for mounts. Every built-in function on arguments of
## megabytes: 50 ms of the thread's processor time at most between two looks at whether others wait.
## Also TPC-H at a scale of 0.1 against PostgreSQL.
chaos: here
	cargo build --release --locked -p server
	$(CHAOS) cargo test --release --locked -p testkit --test kill --test cycles --test registers --test robust --test tpch --test turns -- --nocapture --test-threads=1
	NYALA_BUDGET_MILLIS=50 cargo test --release --locked -p sql-session --lib budget::

## The own test suites of drivers and of a framework, on PostgreSQL and on Nyala; what differs is listed with its reason in tests/clients/suites.
clients-full: here
	scripts/dependencies.sh
	cargo build --locked -p server
	SUITES='psycopg2 asyncpg pg8000 pq pgconn sqlalchemy' cargo test --locked -p testkit --test suites -- --nocapture

## The storage's tests with AddressSanitizer.
asan: here
	$(ASAN)

## Nyala beside a PostgreSQL that is started for it, in less than a quarter of an hour; results and report are in RESULTS.
RESULTS ?= bench-results
bench: here
	scripts/dependencies.sh
	cargo build --release --locked -p server
	'$(CARGO_TARGET_DIR)/release/nyala' bench suite crates/bench/suites/compare.toml --json '$(RESULTS)'
	'$(CARGO_TARGET_DIR)/release/nyala' bench report '$(RESULTS)'

## Builds the release binary, serves DATA (default .nyala/data) on PORT (default 5432) until Ctrl-C, and shows TPC-C on it.
run: here
	cargo build --release --locked -p server
	@exec env DATA='$(DATA)' PORT='$(PORT)' scripts/run.sh '$(CARGO_TARGET_DIR)/release/nyala'

clean:
	rm -rf $(CARGO_TARGET_DIR)
