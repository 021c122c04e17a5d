-- A ledger of many tenants. Written for classes of plans: keys are composite, foreign keys have the type of another integer here and
-- there, most of the rows belong to few tenants. Sent by gorm 1.31.2 (Go) with pgx over models of these tables: gorm_1 and the others.

-- name: equalities_over_three_tables
-- class: hash keys
SELECT a.kind, count(*), sum(e.amount) FROM transfers t JOIN entries e ON e.tenant_id = t.tenant_id AND e.transfer_id = t.id JOIN accounts a ON a.tenant_id = e.tenant_id AND a.id = e.account_id AND a.id = t.from_account WHERE t.state = 'booked' GROUP BY a.kind ORDER BY a.kind;

-- name: equality_through_a_third_column
-- class: hash keys
SELECT count(*) FROM accounts a, entries e, limits l WHERE a.tenant_id = e.tenant_id AND e.tenant_id = l.tenant_id AND a.id = e.account_id AND e.account_id = l.account_id AND l.daily > 4900;

-- name: equality_with_a_constant
-- class: hash keys
SELECT count(*), max(t.amount) FROM transfers t JOIN accounts a ON a.tenant_id = t.tenant_id AND a.id = t.to_account JOIN limits l ON l.tenant_id = a.tenant_id AND l.account_id = a.id WHERE l.tenant_id = 3;

-- name: largest_of_each_account
-- class: hash keys
SELECT a.number, t.id, t.amount FROM accounts a JOIN transfers t ON t.tenant_id = a.tenant_id AND t.from_account = a.id WHERE a.currency = 'GBP' AND a.kind = 'fee' AND t.amount = (SELECT max(m.amount) FROM transfers m WHERE m.tenant_id = a.tenant_id AND m.from_account = a.id) ORDER BY a.number, t.id LIMIT 50;

-- name: self_join_by_two_keys
-- class: hash keys
SELECT count(*) FROM transfers a JOIN transfers b ON a.tenant_id = b.tenant_id AND a.from_account = b.to_account AND a.to_account = b.from_account WHERE a.state = 'reversed';

-- name: pairs_of_keys
-- class: several ranges
SELECT tenant_id, id, balance FROM accounts WHERE (tenant_id, id) IN ((1, 7), (2, 900), (3, 15), (17, 400), (40, 1200), (5, 5), (6, 66), (7, 777));

-- name: triples_of_keys
-- class: several ranges
-- with: '1', '3', '2', '2', '5', '1', '9', '12', '4'
SELECT tenant_id, account_id, seq, amount FROM entries WHERE (tenant_id, account_id, seq) IN (($1, $2, $3), ($4, $5, $6), ($7, $8, $9));

-- name: pairs_by_or
-- class: several ranges
SELECT id, amount FROM transfers WHERE (tenant_id = 1 AND from_account = 20) OR (tenant_id = 2 AND from_account = 31) OR (tenant_id = 30 AND from_account = 3) ORDER BY id;

-- name: either_side_of_a_transfer
-- class: several ranges
-- with: '4', '55'
SELECT id, from_account, to_account, amount FROM transfers WHERE tenant_id = $1 AND (from_account = $2 OR to_account = $2) ORDER BY id;

-- name: or_over_two_indexes
-- class: several ranges
SELECT count(*), sum(amount) FROM transfers WHERE approved_by = 17 OR reference LIKE 'AB%';

-- name: or_in_a_join
-- class: several ranges
SELECT t.id, a.number FROM transfers t JOIN accounts a ON a.tenant_id = t.tenant_id AND (a.id = t.from_account OR a.id = t.to_account) WHERE t.tenant_id = 12 AND t.created_at < '2024-01-20' ORDER BY t.id, a.number LIMIT 100;

-- name: update_of_pairs
-- class: several ranges
UPDATE accounts SET balance = balance + 1 WHERE (tenant_id, id) IN ((1, 7), (2, 900), (3, 15), (17, 400)) RETURNING tenant_id, id, balance;

-- name: delete_of_pairs
-- class: several ranges
DELETE FROM limits WHERE (tenant_id, account_id) IN ((1, 7), (2, 500), (3, 15));

-- name: lock_of_pairs
-- class: several ranges
SELECT tenant_id, id FROM accounts WHERE (tenant_id, id) IN ((1, 7), (2, 900), (3, 15)) FOR UPDATE;

-- name: some_accounts_of_a_tenant
-- class: keys in parts
SELECT account_id, seq, amount FROM entries WHERE tenant_id = 2 AND account_id IN (5, 9, 700, 1300) ORDER BY account_id, seq;

-- name: list_of_states_latest_first
-- class: keys in parts
-- with: '1', '{pending,rejected}'
SELECT id, state, created_at FROM transfers WHERE tenant_id = $1 AND state = ANY ($2::text[]) ORDER BY created_at DESC, id DESC LIMIT 20;

-- name: list_of_accounts_in_a_month
-- class: keys in parts
SELECT id, from_account, amount FROM transfers WHERE tenant_id = 3 AND from_account IN (1, 4, 8, 15, 16, 23) AND created_at >= '2025-03-01' AND created_at < '2025-04-01' ORDER BY id;

-- name: list_of_tenants_in_a_day
-- class: keys in parts
SELECT tenant_id, count(*) FROM transfers WHERE tenant_id IN (3, 5, 9, 21) AND created_at >= '2025-02-01' AND created_at < '2025-02-02' GROUP BY tenant_id ORDER BY tenant_id;

-- name: without_the_first_key_column
-- class: keys in parts
SELECT tenant_id, balance FROM accounts WHERE id = 33 ORDER BY tenant_id;

-- name: update_by_list
-- class: keys in parts
UPDATE entries SET amount = amount WHERE tenant_id = 2 AND account_id IN (5, 9, 700) AND seq = 1;

-- name: page_behind_a_row
-- class: rows as keys
-- with: '2', '2025-01-15 00:00:00+00', '200000'
SELECT id, created_at, amount FROM transfers WHERE tenant_id = $1 AND (created_at, id) > ($2, $3) ORDER BY created_at, id LIMIT 20;

-- name: page_before_a_row
-- class: rows as keys
SELECT id, created_at FROM transfers WHERE tenant_id = 1 AND (created_at, id) <= ('2025-01-15 00:00:00+00', 200000) ORDER BY created_at DESC, id DESC LIMIT 20;

-- name: page_over_a_whole_key
-- class: rows as keys
-- with: '3', '500', '2'
SELECT tenant_id, account_id, seq, amount FROM entries WHERE (tenant_id, account_id, seq) > ($1, $2, $3) ORDER BY tenant_id, account_id, seq LIMIT 50;

-- name: page_written_out
-- class: rows as keys
SELECT id, created_at FROM transfers WHERE tenant_id = 2 AND (created_at > '2025-01-15 00:00:00+00' OR (created_at = '2025-01-15 00:00:00+00' AND id > 200000)) ORDER BY created_at, id LIMIT 20;

-- name: rows_between_two_rows
-- class: rows as keys
SELECT count(*) FROM entries WHERE (tenant_id, account_id) >= (2, 10) AND (tenant_id, account_id) < (2, 14);

-- name: not_approved
-- class: other conditions
SELECT count(*) FROM transfers WHERE approved_by IS NOT NULL;

-- name: top_accounts
-- class: other conditions
SELECT id, balance FROM accounts WHERE tenant_id = 4 AND parent_id IS NULL AND closed_at IS NULL ORDER BY balance DESC, id LIMIT 10;

-- name: this_or_nothing
-- class: other conditions
SELECT count(*) FROM accounts WHERE owner_id = 19999 OR owner_id IS NULL AND tenant_id = 39;

-- name: not_below
-- class: other conditions
SELECT id, amount FROM transfers WHERE NOT (amount < 999) ORDER BY amount, id;

-- name: prefix_of_a_reference
-- class: other conditions
SELECT id, reference FROM transfers WHERE reference LIKE 'AB12%' ORDER BY reference;

-- name: date_against_timestamp
-- class: other conditions
SELECT count(*), sum(amount) FROM transfers WHERE booked_on = timestamp '2025-02-03 00:00:00';

-- name: timestamptz_against_date
-- class: other conditions
SELECT count(*) FROM transfers WHERE created_at >= date '2025-02-03' AND created_at < date '2025-02-04';

-- name: optional_filters
-- class: other conditions
-- with: NULL, '77', NULL
SELECT count(*) FROM transfers WHERE ($1::text IS NULL OR state = $1) AND ($2::int IS NULL OR approved_by = $2) AND ($3::date IS NULL OR booked_on = $3);

-- name: true_and_a_condition
-- class: other conditions
SELECT id FROM transfers WHERE (1 = 1 OR state = 'x') AND (false OR approved_by = 12) ORDER BY id;

-- name: newest_with_names
-- class: order
SELECT t.id, t.created_at, f.number AS "from", o.name FROM transfers t JOIN accounts f ON f.tenant_id = t.tenant_id AND f.id = t.from_account LEFT JOIN owners o ON o.id = f.owner_id WHERE t.tenant_id = 1 ORDER BY t.created_at DESC, t.id DESC LIMIT 25;

-- name: limit_that_steers_the_join
-- class: order
SELECT t.id, a.kind FROM transfers t JOIN accounts a ON a.tenant_id = t.tenant_id AND a.id = t.from_account WHERE a.kind = 'fee' ORDER BY t.created_at, t.id LIMIT 10;

-- name: groups_in_the_order_of_an_index
-- class: order
SELECT tenant_id, account_id, sum(amount) FROM entries GROUP BY tenant_id, account_id ORDER BY tenant_id, account_id LIMIT 20;

-- name: distinct_in_the_order_of_an_index
-- class: order
SELECT DISTINCT tenant_id, state FROM transfers ORDER BY tenant_id, state LIMIT 10;

-- name: descending_with_a_tie
-- class: order
SELECT id, booked_on FROM transfers WHERE booked_on IS NOT NULL ORDER BY booked_on DESC, id DESC LIMIT 10;

-- name: order_by_an_expression
-- class: order
SELECT name FROM owners ORDER BY lower(name), id LIMIT 10;

-- name: next_of_a_queue
-- class: order
SELECT tenant_id, id FROM transfers WHERE state = 'pending' ORDER BY created_at LIMIT 5 FOR UPDATE SKIP LOCKED;

-- name: filter_over_a_union
-- class: pushdown
-- with: '3', '44'
SELECT count(*), sum(amount) FROM movements WHERE tenant_id = $1 AND account_id = $2;

-- name: newest_of_a_union
-- class: pushdown
SELECT id, amount, created_at FROM movements WHERE tenant_id = 1 AND account_id = 5 ORDER BY created_at DESC, id DESC LIMIT 10;

-- name: filter_over_groups
-- class: pushdown
SELECT * FROM account_totals WHERE tenant_id = 7 AND account_id = 70;

-- name: running_sum_of_one_account
-- class: pushdown
SELECT seq, balance FROM (SELECT tenant_id, account_id, seq, sum(amount) OVER (PARTITION BY tenant_id, account_id ORDER BY seq) AS balance FROM entries) x WHERE tenant_id = 2 AND account_id = 17 ORDER BY seq;

-- name: having_on_a_key
-- class: pushdown
SELECT tenant_id, count(*) FROM transfers GROUP BY tenant_id, from_account HAVING tenant_id = 9 AND from_account = 10;

-- name: filter_over_distinct
-- class: pushdown
SELECT count(*) FROM (SELECT DISTINCT tenant_id, from_account, to_account FROM transfers) x WHERE tenant_id = 11 AND from_account = 3;

-- name: first_ten_of_each
-- class: pushdown
SELECT tenant_id, id, amount FROM (SELECT tenant_id, id, amount, row_number() OVER (PARTITION BY tenant_id ORDER BY created_at DESC, id DESC) AS n FROM transfers WHERE tenant_id < 4) x WHERE n <= 10 ORDER BY tenant_id, n;

-- name: totals_of_one_owner
-- class: pushdown
SELECT a.number, s.total FROM accounts a LEFT JOIN account_totals s ON s.tenant_id = a.tenant_id AND s.account_id = a.id WHERE a.owner_id = 12 ORDER BY a.number;

-- name: left_join_that_is_an_inner_one
-- class: outer joins
SELECT a.number, t.id FROM accounts a LEFT JOIN transfers t ON t.tenant_id = a.tenant_id AND t.from_account = a.id WHERE t.approved_by = 23 ORDER BY t.id;

-- name: unused_left_join
-- class: outer joins
SELECT count(*) FROM transfers t LEFT JOIN accounts a ON a.tenant_id = t.tenant_id AND a.id = t.from_account LEFT JOIN tenants n ON n.id = t.tenant_id WHERE t.booked_on = '2025-03-03';

-- name: unused_left_joins_of_a_page
-- class: outer joins
SELECT t.id, t.amount FROM transfers t LEFT JOIN accounts a ON a.tenant_id = t.tenant_id AND a.id = t.from_account LEFT JOIN owners o ON o.id = a.owner_id WHERE t.tenant_id = 2 ORDER BY t.created_at, t.id LIMIT 20;

-- name: rows_without_a_partner
-- class: outer joins
SELECT count(*) FROM accounts a LEFT JOIN limits l ON l.tenant_id = a.tenant_id AND l.account_id = a.id WHERE l.account_id IS NULL;

-- name: full_join_with_a_filter
-- class: outer joins
SELECT count(*) FROM accounts a FULL JOIN limits l ON l.tenant_id = a.tenant_id AND l.account_id = a.id WHERE a.tenant_id = 8 AND l.daily > 100;

-- name: exists_over_a_join
-- class: subqueries
SELECT o.id, o.name FROM owners o WHERE EXISTS (SELECT 1 FROM accounts a JOIN transfers t ON t.tenant_id = a.tenant_id AND t.from_account = a.id WHERE a.owner_id = o.id AND t.state = 'pending') ORDER BY o.id LIMIT 50;

-- name: left_join_of_a_join
-- class: subqueries
SELECT o.id, count(t.id) FROM owners o LEFT JOIN (accounts a JOIN transfers t ON t.tenant_id = a.tenant_id AND t.from_account = a.id) ON a.owner_id = o.id WHERE o.id BETWEEN 100 AND 120 GROUP BY o.id ORDER BY o.id;

-- name: integers_not_in_bigints
-- class: subqueries
SELECT count(*) FROM accounts WHERE id NOT IN (SELECT account_id FROM limits);

-- name: pairs_not_in_pairs
-- class: subqueries
SELECT count(*) FROM accounts WHERE (tenant_id, id) NOT IN (SELECT tenant_id, account_id FROM limits WHERE daily IS NOT NULL);

-- name: any_of_an_array_of_a_query
-- class: subqueries
SELECT count(*) FROM transfers WHERE tenant_id = 4 AND from_account = ANY (ARRAY(SELECT id FROM accounts WHERE tenant_id = 4 AND kind = 'loan'));

-- name: update_of_what_a_query_finds
-- class: subqueries
UPDATE transfers SET details = details || '{"seen": true}' WHERE tenant_id = 2 AND id IN (SELECT id FROM transfers WHERE tenant_id = 2 AND state = 'pending' ORDER BY created_at, id LIMIT 10) RETURNING id;

-- name: lock_of_what_a_query_finds
-- class: subqueries
SELECT tenant_id, id FROM transfers WHERE (tenant_id, id) IN (SELECT tenant_id, id FROM transfers WHERE state = 'pending' ORDER BY created_at, id LIMIT 10) ORDER BY id FOR UPDATE;

-- name: count_beside_each_row
-- class: subqueries
SELECT a.id, (SELECT count(*) FROM transfers t WHERE t.tenant_id = a.tenant_id AND t.from_account = a.id) AS sent, (SELECT max(created_at) FROM transfers t WHERE t.tenant_id = a.tenant_id AND t.to_account = a.id) AS last FROM accounts a WHERE a.tenant_id = 6 ORDER BY a.id LIMIT 100;

-- name: first_and_last
-- class: min and max
SELECT min(created_at), max(created_at) FROM transfers;

-- name: first_and_last_of_an_account
-- class: min and max
-- with: '1', '12'
SELECT min(created_at), max(created_at), min(id) FROM transfers WHERE tenant_id = $1 AND from_account = $2;

-- name: last_day_with_nulls
-- class: min and max
SELECT max(booked_on), min(approved_by) FROM transfers;

-- name: highest_key_of_a_tenant
-- class: min and max
SELECT coalesce(max(id), 0) + 1 FROM accounts WHERE tenant_id = 11;

-- name: last_of_each_tenant
-- class: min and max
SELECT n.id, (SELECT max(created_at) FROM transfers t WHERE t.tenant_id = n.id) FROM tenants n ORDER BY n.id;

-- name: month_report
-- class: executor
SELECT to_char(created_at, 'YYYY-MM') AS month, state, count(*), sum(amount), avg(amount) FROM transfers GROUP BY 1, 2 ORDER BY 1, 2;

-- name: contained_documents
-- class: executor
SELECT count(*) FROM transfers WHERE details @> '{"channel": "branch"}';

-- name: numbers_as_text
-- class: executor
SELECT max(length(amount::text)), min(amount::text) FROM transfers;

-- name: percentiles
-- class: executor
SELECT state, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), percentile_disc(0.95) WITHIN GROUP (ORDER BY amount) FROM transfers GROUP BY state ORDER BY state;

-- name: sums_of_a_filter
-- class: executor
SELECT count(*), sum(amount * 1.19), sum(amount) FILTER (WHERE state = 'booked') FROM transfers WHERE amount BETWEEN 5 AND 700 AND created_at >= '2024-06-01';

-- name: gorm_1
-- from: gorm.io/gorm/finisher_api.go
-- with: '1', 'pending', 'rejected', '20', '40'
SELECT * FROM "transfers" WHERE tenant_id = $1 AND state IN ($2,$3) ORDER BY created_at desc, id desc LIMIT $4 OFFSET $5;

-- name: gorm_2
-- from: gorm.io/gorm/finisher_api.go
-- with: '2', '25'
SELECT "transfers"."tenant_id","transfers"."id","transfers"."from_account","transfers"."to_account","transfers"."amount","transfers"."state","transfers"."reference","transfers"."created_at","transfers"."booked_on","transfers"."approved_by","transfers"."details","From"."tenant_id" AS "From__tenant_id","From"."id" AS "From__id","From"."number" AS "From__number","From"."kind" AS "From__kind","From"."currency" AS "From__currency","From"."parent_id" AS "From__parent_id","From"."owner_id" AS "From__owner_id","From"."balance" AS "From__balance","From"."opened_on" AS "From__opened_on","From"."closed_at" AS "From__closed_at","To"."tenant_id" AS "To__tenant_id","To"."id" AS "To__id","To"."number" AS "To__number","To"."kind" AS "To__kind","To"."currency" AS "To__currency","To"."parent_id" AS "To__parent_id","To"."owner_id" AS "To__owner_id","To"."balance" AS "To__balance","To"."opened_on" AS "To__opened_on","To"."closed_at" AS "To__closed_at" FROM "transfers" LEFT JOIN "accounts" "From" ON "transfers"."tenant_id" = "From"."tenant_id" AND "transfers"."from_account" = "From"."id" LEFT JOIN "accounts" "To" ON "transfers"."tenant_id" = "To"."tenant_id" AND "transfers"."to_account" = "To"."id" WHERE transfers.tenant_id = $1 ORDER BY transfers.created_at desc, transfers.id desc LIMIT $2;

-- name: gorm_3
-- from: gorm.io/gorm/finisher_api.go
-- with: 'loan', 'bank', '20'
SELECT "accounts"."tenant_id","accounts"."id","accounts"."number","accounts"."kind","accounts"."currency","accounts"."parent_id","accounts"."owner_id","accounts"."balance","accounts"."opened_on","accounts"."closed_at","Owner"."id" AS "Owner__id","Owner"."tenant_id" AS "Owner__tenant_id","Owner"."name" AS "Owner__name","Owner"."email" AS "Owner__email","Tenant"."id" AS "Tenant__id","Tenant"."name" AS "Tenant__name","Tenant"."plan" AS "Tenant__plan","Tenant"."created_at" AS "Tenant__created_at" FROM "accounts" LEFT JOIN "owners" "Owner" ON "accounts"."owner_id" = "Owner"."id" LEFT JOIN "tenants" "Tenant" ON "accounts"."tenant_id" = "Tenant"."id" WHERE accounts.kind = $1 AND "Tenant".plan = $2 ORDER BY accounts.tenant_id, accounts.id LIMIT $3;

-- name: gorm_4
-- from: gorm.io/gorm/finisher_api.go
-- with: '1', 'fee', '30'
SELECT * FROM "accounts" WHERE tenant_id = $1 AND kind = $2 ORDER BY id LIMIT $3;

-- name: gorm_5
-- from: gorm.io/gorm/finisher_api.go
-- with: '1', '6', '1', '15', '1', '17', '1', '22', '1', '25', '1', '26', '1', '28', '1', '33', '1', '34', '1', '39', '1', '42', '1', '53', '1', '68', '1', '70', '1', '72', '1', '84', '1', '86', '1', '94', '1', '95', '1', '102', '1', '105', '1', '107', '1', '108', '1', '110', '1', '113', '1', '122', '1', '149', '1', '187', '1', '199', '1', '204', 'pending'
SELECT * FROM "transfers" WHERE ("transfers"."tenant_id","transfers"."from_account") IN (($1,$2),($3,$4),($5,$6),($7,$8),($9,$10),($11,$12),($13,$14),($15,$16),($17,$18),($19,$20),($21,$22),($23,$24),($25,$26),($27,$28),($29,$30),($31,$32),($33,$34),($35,$36),($37,$38),($39,$40),($41,$42),($43,$44),($45,$46),($47,$48),($49,$50),($51,$52),($53,$54),($55,$56),($57,$58),($59,$60)) AND state = $61;

-- name: gorm_6
-- from: gorm.io/gorm/finisher_api.go
-- with: '20', '40'
SELECT * FROM "owners" WHERE id BETWEEN $1 AND $2;

-- name: gorm_7
-- from: gorm.io/gorm/finisher_api.go
-- with: '20', '21', '22', '23', '24', '25', '26', '27', '28', '29', '30', '31', '32', '33', '34', '35', '36', '37', '38', '39', '40'
SELECT * FROM "accounts" WHERE "accounts"."owner_id" IN ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21);

-- name: gorm_8
-- from: gorm.io/gorm/finisher_api.go
-- with: 'GBP', '2025-02-03'
SELECT count(*) FROM "transfers" LEFT JOIN "accounts" "From" ON "transfers"."tenant_id" = "From"."tenant_id" AND "transfers"."from_account" = "From"."id" WHERE "From".currency = $1 AND transfers.booked_on = $2;

-- name: gorm_9
-- from: gorm.io/gorm/finisher_api.go
-- with: '5', '10'
SELECT state, count(*) AS n, sum(amount) AS total FROM "transfers" WHERE tenant_id = $1 GROUP BY "state" HAVING count(*) > $2 ORDER BY state;

-- name: gorm_10
-- from: gorm.io/gorm/finisher_api.go
-- with: '4', '12', '4', '12'
SELECT * FROM "transfers" WHERE ("transfers"."tenant_id" = $1 AND "transfers"."from_account" = $2) OR ("transfers"."tenant_id" = $3 AND "transfers"."to_account" = $4) ORDER BY id;

-- name: gorm_11
-- from: gorm.io/gorm/finisher_api.go
-- with: '1', '5', '2', '9', '7', '77'
SELECT * FROM "accounts" WHERE (tenant_id, id) IN (($1,$2),($3,$4),($5,$6));

-- name: gorm_12
-- from: gorm.io/gorm/finisher_api.go
SELECT DISTINCT "tenant_id","currency" FROM "accounts" ORDER BY tenant_id, currency;

-- name: gorm_13
-- from: gorm.io/gorm/finisher_api.go
-- with: 'amber%', '20'
SELECT * FROM "accounts" WHERE owner_id IN (SELECT "id" FROM "owners" WHERE lower(name) LIKE $1) AND closed_at IS NULL ORDER BY tenant_id, id LIMIT $2;

-- name: gorm_14
-- from: gorm.io/gorm/finisher_api.go
-- with: '3', '20'
SELECT * FROM "accounts" WHERE NOT EXISTS (SELECT 1 FROM "limits" WHERE limits.tenant_id = accounts.tenant_id AND limits.account_id = accounts.id) AND tenant_id = $1 ORDER BY id LIMIT $2;

-- name: gorm_15
-- from: gorm.io/gorm/finisher_api.go
-- with: 'booked', 'reversed', '2', '2025-02-03 00:00:00+00', '50'
SELECT * FROM "transfers" WHERE "transfers"."state" NOT IN ($1,$2) AND (tenant_id = $3 AND created_at >= $4) ORDER BY id LIMIT $5;

-- name: gorm_16
-- from: gorm.io/gorm/finisher_api.go
-- with: 'pending', '5'
SELECT * FROM "transfers" WHERE state = $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED;

-- name: gorm_17
-- from: gorm.io/gorm/finisher_api.go
-- with: '2025-02-03', 'booked', '1', '298100', '298101', '298102', '299000'
UPDATE "transfers" SET "booked_on"=$1,"state"=$2 WHERE tenant_id = $3 AND id IN ($4,$5,$6,$7);

-- name: gorm_18
-- from: gorm.io/gorm/finisher_api.go
-- with: '10', '2', '7'
UPDATE "accounts" SET "balance"=balance + $1 WHERE tenant_id = $2 AND id = $3;

-- name: gorm_19
-- from: gorm.io/gorm/finisher_api.go
-- with: '1', 'a', 'b', '77', '1', 'c', 'd', '900001'
INSERT INTO "owners" ("tenant_id","name","email","id") VALUES ($1,$2,$3,$4),($5,$6,$7,$8) ON CONFLICT ("id") DO UPDATE SET "name"="excluded"."name","email"="excluded"."email" RETURNING "id";

-- name: gorm_20
-- from: gorm.io/gorm/finisher_api.go
-- with: '3', '50'
DELETE FROM "limits" WHERE tenant_id = $1 AND daily < $2;

-- name: gorm_21
-- from: gorm.io/gorm/finisher_api.go
-- with: '9', '1'
SELECT * FROM "transfers" WHERE tenant_id = $1 ORDER BY amount desc, id,"transfers"."id" LIMIT $2;

-- name: gorm_22
-- from: gorm.io/gorm/finisher_api.go
-- with: '6'
SELECT * FROM account_totals WHERE tenant_id = $1 ORDER BY total LIMIT 10;
