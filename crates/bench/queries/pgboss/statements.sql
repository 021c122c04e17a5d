-- A queue: pg-boss 9.0.3 (npm) with node-postgres: sending, fetching, completing, monitoring and maintenance.

-- name: delete_job_1
-- from: pg-boss/src/plans.js
-- with: '__state__completed____pgboss__maintenance'
DELETE FROM pgboss.job WHERE name = $1 and state < 'active';

-- name: delete_schedule_1
-- from: pg-boss/src/plans.js
-- with: 'queue-7'
DELETE FROM pgboss.schedule WHERE name = $1;

-- name: delete_subscription_1
-- from: pg-boss/src/plans.js
-- with: 'ev', 'queue-9'
DELETE FROM pgboss.subscription WHERE event = $1 and name = $2;

-- name: insert_schedule_1
-- from: pg-boss/src/plans.js
-- with: 'queue-7', '0 * * * *', 'UTC', '{}', '{}'
INSERT INTO pgboss.schedule (name, cron, timezone, data, options) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO UPDATE SET cron = EXCLUDED.cron, timezone = EXCLUDED.timezone, data = EXCLUDED.data, options = EXCLUDED.options, updated_on = now();

-- name: insert_subscription_1
-- from: pg-boss/src/plans.js
-- with: 'ev', 'queue-9'
INSERT INTO pgboss.subscription (event, name) VALUES ($1, $2) ON CONFLICT (event, name) DO UPDATE SET event = EXCLUDED.event, name = EXCLUDED.name, updated_on = now();

-- name: schedule_1
-- from: pg-boss/src/plans.js
SELECT * FROM pgboss.schedule;

-- name: job_1
-- from: pg-boss/src/plans.js
-- with: 'f5088afa-3406-bec7-734f-0ae92c1b27da'
SELECT * From pgboss.job WHERE id = $1;

-- name: subscription_1
-- from: pg-boss/src/plans.js
-- with: 'ev'
SELECT name FROM pgboss.subscription WHERE event = $1;

-- name: job_2
-- from: pg-boss/src/plans.js
SELECT name, state, count(*) size FROM pgboss.job GROUP BY rollup(name), rollup(state);

-- name: update_version_1
-- from: pg-boss/src/plans.js
UPDATE pgboss.version SET cron_on = now();

-- name: job_3
-- from: pg-boss/src/plans.js
-- with: '{1ec0c563-f250-4911-b7e4-9a0c67e477a2,593ac7c2-caf6-d993-87b2-776af2e33b2b}'
with results as ( UPDATE pgboss.job SET completedOn = NULL, state = 'created' WHERE id IN (SELECT UNNEST($1::uuid[])) RETURNING 1 ) SELECT COUNT(*) from results;
