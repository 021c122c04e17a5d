-- Devices and what they measure. Written for classes of plans: readings are many and of few devices, the newest are asked for most.
-- Sent by TypeORM 1.1.1 (npm) with node-postgres over entities of these tables: typeorm_1 and the others.

-- name: readings_events_and_rollups
-- class: hash keys
SELECT count(*) FROM devices d, rollups r, events e WHERE d.id = r.device_id AND r.device_id = e.device_id AND e.kind = 'battery' AND e.severity = 4 AND r.count > 3;

-- name: quality_by_region
-- class: hash keys
SELECT s.region, r.quality, count(*) FROM readings r JOIN devices d ON d.id = r.device_id JOIN sites s ON s.id = d.site_id GROUP BY s.region, r.quality ORDER BY 1, 2;

-- name: keys_of_devices
-- class: several ranges
SELECT device_id, day, total FROM rollups WHERE (device_id, day) IN ((1, '2025-01-02'), (7, '2025-02-03'), (400, '2025-03-01'), (77, '2025-01-30'));

-- name: ranges_by_or
-- class: several ranges
SELECT device_id, at, value FROM readings WHERE (device_id = 3 AND at < '2025-01-03') OR (device_id = 5 AND at >= '2025-04-10') OR device_id = 4999 ORDER BY device_id, at;

-- name: two_kinds_of_trouble
-- class: several ranges
SELECT count(*) FROM events WHERE device_id = 900 OR (kind = 'battery' AND severity = 4);

-- name: readings_of_some_devices
-- class: keys in parts
-- with: '{11,40,99,1500}', '2025-02-01 00:00:00+00', '2025-03-01 00:00:00+00'
SELECT device_id, at, value FROM readings WHERE device_id = ANY ($1::int[]) AND at >= $2 AND at < $3 ORDER BY device_id, at;

-- name: newest_of_some_devices
-- class: keys in parts
SELECT device_id, at, value FROM readings WHERE device_id IN (11, 40, 99, 1500) ORDER BY at DESC, device_id LIMIT 10;

-- name: kinds_of_a_severity
-- class: keys in parts
SELECT id, kind, at FROM events WHERE kind IN ('alarm', 'battery') AND severity IN (3, 4) AND at >= '2025-04-01' ORDER BY id;

-- name: page_of_readings
-- class: rows as keys
-- with: '12', '2025-02-01 00:00:00+00'
SELECT device_id, at, value FROM readings WHERE (device_id, at) > ($1, $2) ORDER BY device_id, at LIMIT 100;

-- name: page_of_events
-- class: rows as keys
SELECT id, at FROM events WHERE (at, id) < ('2025-03-01 00:00:00+00', 113000) ORDER BY at DESC, id DESC LIMIT 20;

-- name: not_acknowledged
-- class: other conditions
SELECT severity, count(*) FROM events WHERE acknowledged_at IS NULL AND severity >= 3 GROUP BY severity ORDER BY severity;

-- name: serial_numbers
-- class: other conditions
SELECT id, serial_number FROM devices WHERE serial_number LIKE 'A1-%' ORDER BY serial_number;

-- name: timestamptz_between_dates
-- class: other conditions
SELECT count(*), avg(value) FROM readings WHERE at BETWEEN date '2025-03-01' AND date '2025-03-02';

-- name: not_good_enough
-- class: other conditions
SELECT count(*) FROM readings WHERE NOT (quality < 5) AND at > '2025-01-01';

-- name: optional_device
-- class: other conditions
-- with: '55', NULL
SELECT count(*) FROM events WHERE ($1::int IS NULL OR device_id = $1) AND ($2::text IS NULL OR kind = $2);

-- name: events_with_their_places
-- class: order
SELECT e.id, e.at, d.kind, s.name FROM events e JOIN devices d ON d.id = e.device_id JOIN sites s ON s.id = d.site_id ORDER BY e.at DESC LIMIT 20;

-- name: open_events
-- class: order
SELECT id, at FROM events WHERE acknowledged_at IS NULL AND severity = 4 ORDER BY at LIMIT 10;

-- name: devices_with_readings
-- class: order
SELECT DISTINCT device_id FROM readings ORDER BY device_id LIMIT 20;

-- name: days_of_devices
-- class: order
SELECT device_id, day, count FROM rollups ORDER BY device_id DESC, day DESC LIMIT 20;

-- name: newest_installation
-- class: order
SELECT id, kind, installed_on FROM devices WHERE kind = 'camera' ORDER BY installed_on DESC, id DESC LIMIT 5;

-- name: what_happened_to_a_device
-- class: pushdown
SELECT at, what, detail FROM happenings WHERE device_id = 300 AND at >= '2025-02-01' AND at < '2025-03-01' ORDER BY at, what, detail;

-- name: latest_of_one_device
-- class: pushdown
SELECT d.id, l.at, l.readings FROM devices d LEFT JOIN latest l ON l.device_id = d.id WHERE d.site_id = 150 ORDER BY d.id;

-- name: newest_reading_of_each
-- class: pushdown
SELECT DISTINCT ON (device_id) device_id, at, value FROM readings WHERE device_id BETWEEN 100 AND 140 ORDER BY device_id, at DESC;

-- name: change_since_the_reading_before
-- class: pushdown
SELECT at, value - before AS change FROM (SELECT device_id, at, value, lag(value) OVER (PARTITION BY device_id ORDER BY at) AS before FROM readings) x WHERE device_id = 77 ORDER BY at;

-- name: newest_three_of_each_by_lateral
-- class: pushdown
SELECT d.id, r.at, r.value FROM devices d CROSS JOIN LATERAL (SELECT at, value FROM readings WHERE device_id = d.id ORDER BY at DESC LIMIT 3) r WHERE d.site_id = 120 ORDER BY d.id, r.at;

-- name: devices_of_a_site_by_left_join
-- class: outer joins
SELECT d.id, e.id FROM devices d LEFT JOIN events e ON e.device_id = d.id WHERE e.severity = 4 AND e.kind = 'battery' ORDER BY e.id LIMIT 50;

-- name: sites_without_devices
-- class: outer joins
SELECT s.id FROM sites s LEFT JOIN devices d ON d.site_id = s.id AND d.kind = 'lamp' WHERE d.id IS NULL ORDER BY s.id;

-- name: devices_that_alarmed
-- class: subqueries
SELECT d.id FROM devices d WHERE d.kind = 'meter' AND EXISTS (SELECT 1 FROM events e JOIN readings r ON r.device_id = e.device_id AND r.at = e.at WHERE e.device_id = d.id AND e.kind = 'alarm') ORDER BY d.id;

-- name: devices_not_in_rollups
-- class: subqueries
SELECT count(*) FROM devices WHERE id NOT IN (SELECT device_id FROM rollups WHERE count > 1);

-- name: acknowledge_the_oldest
-- class: subqueries
UPDATE events SET acknowledged_at = '2025-06-01' WHERE id IN (SELECT id FROM events WHERE acknowledged_at IS NULL AND severity = 4 ORDER BY at LIMIT 20 FOR UPDATE SKIP LOCKED) RETURNING id;

-- name: first_and_last_reading
-- class: min and max
SELECT min(at), max(at) FROM readings;

-- name: first_and_last_of_a_device
-- class: min and max
SELECT min(at), max(at) FROM readings WHERE device_id = 44;

-- name: last_acknowledged
-- class: min and max
SELECT max(acknowledged_at), max(id) FROM events;

-- name: hours_of_a_day
-- class: executor
SELECT date_trunc('hour', at) AS hour, count(*), avg(value), max(value) FROM readings WHERE at >= '2025-02-01' AND at < '2025-03-01' GROUP BY 1 ORDER BY 1;

-- name: codes
-- class: executor
SELECT payload->>'code' AS code, count(*) FROM events WHERE payload @> '{"ok": false}' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;

-- name: days_as_text
-- class: executor
SELECT to_char(at, 'YYYY-MM-DD HH24') AS hour, count(*) FROM events GROUP BY 1 ORDER BY 1 LIMIT 50;

-- name: median_by_quality
-- class: executor
SELECT quality, percentile_cont(0.5) WITHIN GROUP (ORDER BY value), stddev(value) FROM readings GROUP BY quality ORDER BY quality;

-- name: typeorm_1
-- from: typeorm/query-builder/SelectQueryBuilder.js
SELECT * FROM current_schema();

-- name: typeorm_2
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '4'
SELECT DISTINCT "distinctAlias"."Event_id" AS "ids_Event_id", "distinctAlias"."Event_at" FROM (SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload", "Event__Event_device"."id" AS "Event__Event_device_id", "Event__Event_device"."site_id" AS "Event__Event_device_site_id", "Event__Event_device"."kind" AS "Event__Event_device_kind", "Event__Event_device"."serial_number" AS "Event__Event_device_serial_number", "Event__Event_device"."installed_on" AS "Event__Event_device_installed_on", "Event__Event_device"."retired_at" AS "Event__Event_device_retired_at", "Event__Event_device"."settings" AS "Event__Event_device_settings", "Event__Event_device__Event__Event_device_site"."id" AS "Event__Event_device__Event__Event_device_site_id", "Event__Event_device__Event__Event_device_site"."name" AS "Event__Event_device__Event__Event_device_site_name", "Event__Event_device__Event__Event_device_site"."region" AS "Event__Event_device__Event__Event_device_site_region", "Event__Event_device__Event__Event_device_site"."parent_id" AS "Event__Event_device__Event__Event_device_site_parent_id" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" LEFT JOIN "sites" "Event__Event_device__Event__Event_device_site" ON "Event__Event_device__Event__Event_device_site"."id"="Event__Event_device"."site_id" WHERE (("Event"."severity" = $1) AND ("Event"."acknowledged_at" IS NULL))) "distinctAlias" ORDER BY "distinctAlias"."Event_at" DESC, "Event_id" ASC LIMIT 20;

-- name: typeorm_3
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '4', '199974', '199728', '199342', '199158', '198986', '198945', '198847', '198751', '198307', '198142', '197707', '196932', '196720', '196540', '196437', '196345', '196216', '195522', '195203', '195194'
SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload", "Event__Event_device"."id" AS "Event__Event_device_id", "Event__Event_device"."site_id" AS "Event__Event_device_site_id", "Event__Event_device"."kind" AS "Event__Event_device_kind", "Event__Event_device"."serial_number" AS "Event__Event_device_serial_number", "Event__Event_device"."installed_on" AS "Event__Event_device_installed_on", "Event__Event_device"."retired_at" AS "Event__Event_device_retired_at", "Event__Event_device"."settings" AS "Event__Event_device_settings", "Event__Event_device__Event__Event_device_site"."id" AS "Event__Event_device__Event__Event_device_site_id", "Event__Event_device__Event__Event_device_site"."name" AS "Event__Event_device__Event__Event_device_site_name", "Event__Event_device__Event__Event_device_site"."region" AS "Event__Event_device__Event__Event_device_site_region", "Event__Event_device__Event__Event_device_site"."parent_id" AS "Event__Event_device__Event__Event_device_site_parent_id" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" LEFT JOIN "sites" "Event__Event_device__Event__Event_device_site" ON "Event__Event_device__Event__Event_device_site"."id"="Event__Event_device"."site_id" WHERE ( (("Event"."severity" = $1) AND ("Event"."acknowledged_at" IS NULL)) ) AND ( "Event"."id" IN ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21) ) ORDER BY "Event"."at" DESC;

-- name: typeorm_4
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'west', 'battery'
SELECT DISTINCT "distinctAlias"."Event_id" AS "ids_Event_id", "distinctAlias"."Event_at", "distinctAlias"."Event_id" FROM (SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload", "Event__Event_device"."id" AS "Event__Event_device_id", "Event__Event_device"."site_id" AS "Event__Event_device_site_id", "Event__Event_device"."kind" AS "Event__Event_device_kind", "Event__Event_device"."serial_number" AS "Event__Event_device_serial_number", "Event__Event_device"."installed_on" AS "Event__Event_device_installed_on", "Event__Event_device"."retired_at" AS "Event__Event_device_retired_at", "Event__Event_device"."settings" AS "Event__Event_device_settings" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" LEFT JOIN "sites" "Event__Event_device__Event__Event_device_site" ON "Event__Event_device__Event__Event_device_site"."id"="Event__Event_device"."site_id" WHERE (((((("Event__Event_device__Event__Event_device_site"."region" = $1))))) AND ("Event"."kind" = $2))) "distinctAlias" ORDER BY "distinctAlias"."Event_at" DESC, "distinctAlias"."Event_id" DESC, "Event_id" ASC LIMIT 20 OFFSET 40;

-- name: typeorm_5
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'west', 'battery', '197133', '197037', '197000', '196975', '196861', '196656', '196572', '196477', '196474', '196367', '196307', '196036', '195967', '195953', '195775', '195525', '195515', '195497', '195488', '195448'
SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload", "Event__Event_device"."id" AS "Event__Event_device_id", "Event__Event_device"."site_id" AS "Event__Event_device_site_id", "Event__Event_device"."kind" AS "Event__Event_device_kind", "Event__Event_device"."serial_number" AS "Event__Event_device_serial_number", "Event__Event_device"."installed_on" AS "Event__Event_device_installed_on", "Event__Event_device"."retired_at" AS "Event__Event_device_retired_at", "Event__Event_device"."settings" AS "Event__Event_device_settings" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" LEFT JOIN "sites" "Event__Event_device__Event__Event_device_site" ON "Event__Event_device__Event__Event_device_site"."id"="Event__Event_device"."site_id" WHERE ( (((((("Event__Event_device__Event__Event_device_site"."region" = $1))))) AND ("Event"."kind" = $2)) ) AND ( "Event"."id" IN ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) ) ORDER BY "Event"."at" DESC, "Event"."id" DESC;

-- name: typeorm_6
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'west', 'battery'
SELECT COUNT(DISTINCT("Event"."id")) AS "cnt" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" LEFT JOIN "sites" "Event__Event_device__Event__Event_device_site" ON "Event__Event_device__Event__Event_device_site"."id"="Event__Event_device"."site_id" WHERE (((((("Event__Event_device__Event__Event_device_site"."region" = $1))))) AND ("Event"."kind" = $2));

-- name: typeorm_7
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'lamp', 'A1-%'
SELECT DISTINCT "distinctAlias"."Device_id" AS "ids_Device_id", "distinctAlias"."Device_id" FROM (SELECT "Device"."id" AS "Device_id", "Device"."site_id" AS "Device_site_id", "Device"."kind" AS "Device_kind", "Device"."serial_number" AS "Device_serial_number", "Device"."installed_on" AS "Device_installed_on", "Device"."retired_at" AS "Device_retired_at", "Device"."settings" AS "Device_settings", "Device__Device_site"."id" AS "Device__Device_site_id", "Device__Device_site"."name" AS "Device__Device_site_name", "Device__Device_site"."region" AS "Device__Device_site_region", "Device__Device_site"."parent_id" AS "Device__Device_site_parent_id" FROM "devices" "Device" LEFT JOIN "sites" "Device__Device_site" ON "Device__Device_site"."id"="Device"."site_id" WHERE (((("Device"."kind" = $1) AND ("Device"."retired_at" IS NULL))) OR ((("Device"."serial_number" LIKE $2))))) "distinctAlias" ORDER BY "distinctAlias"."Device_id" ASC, "Device_id" ASC LIMIT 30;

-- name: typeorm_8
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'lamp', 'A1-%'
SELECT "Device"."id" AS "Device_id", "Device"."site_id" AS "Device_site_id", "Device"."kind" AS "Device_kind", "Device"."serial_number" AS "Device_serial_number", "Device"."installed_on" AS "Device_installed_on", "Device"."retired_at" AS "Device_retired_at", "Device"."settings" AS "Device_settings", "Device__Device_site"."id" AS "Device__Device_site_id", "Device__Device_site"."name" AS "Device__Device_site_name", "Device__Device_site"."region" AS "Device__Device_site_region", "Device__Device_site"."parent_id" AS "Device__Device_site_parent_id" FROM "devices" "Device" LEFT JOIN "sites" "Device__Device_site" ON "Device__Device_site"."id"="Device"."site_id" WHERE ( (((("Device"."kind" = $1) AND ("Device"."retired_at" IS NULL))) OR ((("Device"."serial_number" LIKE $2)))) ) AND ( "Device"."id" IN (10, 17, 18, 33, 34, 42, 44, 45, 47, 60, 62, 66, 72, 93, 96, 108, 111, 117, 118, 125, 159, 186, 187, 188, 203, 212, 225, 254, 276, 286) ) ORDER BY "Device"."id" ASC;

-- name: typeorm_9
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '150'
SELECT "Device"."id" AS "Device_id", "Device"."site_id" AS "Device_site_id", "Device"."kind" AS "Device_kind", "Device"."serial_number" AS "Device_serial_number", "Device"."installed_on" AS "Device_installed_on", "Device"."retired_at" AS "Device_retired_at", "Device"."settings" AS "Device_settings", "Device__Device_events"."id" AS "Device__Device_events_id", "Device__Device_events"."device_id" AS "Device__Device_events_device_id", "Device__Device_events"."severity" AS "Device__Device_events_severity", "Device__Device_events"."kind" AS "Device__Device_events_kind", "Device__Device_events"."at" AS "Device__Device_events_at", "Device__Device_events"."acknowledged_at" AS "Device__Device_events_acknowledged_at", "Device__Device_events"."acknowledged_by" AS "Device__Device_events_acknowledged_by", "Device__Device_events"."payload" AS "Device__Device_events_payload" FROM "devices" "Device" LEFT JOIN "events" "Device__Device_events" ON "Device__Device_events"."device_id"="Device"."id" WHERE (("Device"."site_id" = $1)) ORDER BY "Device"."id" ASC;

-- name: typeorm_10
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'north'
SELECT DISTINCT "distinctAlias"."Site_id" AS "ids_Site_id", "distinctAlias"."Site_name" FROM (SELECT "Site"."id" AS "Site_id", "Site"."name" AS "Site_name", "Site"."region" AS "Site_region", "Site"."parent_id" AS "Site_parent_id", "Site__Site_devices"."id" AS "Site__Site_devices_id", "Site__Site_devices"."site_id" AS "Site__Site_devices_site_id", "Site__Site_devices"."kind" AS "Site__Site_devices_kind", "Site__Site_devices"."serial_number" AS "Site__Site_devices_serial_number", "Site__Site_devices"."installed_on" AS "Site__Site_devices_installed_on", "Site__Site_devices"."retired_at" AS "Site__Site_devices_retired_at", "Site__Site_devices"."settings" AS "Site__Site_devices_settings", "Site__Site_parent"."id" AS "Site__Site_parent_id", "Site__Site_parent"."name" AS "Site__Site_parent_name", "Site__Site_parent"."region" AS "Site__Site_parent_region", "Site__Site_parent"."parent_id" AS "Site__Site_parent_parent_id" FROM "sites" "Site" LEFT JOIN "devices" "Site__Site_devices" ON "Site__Site_devices"."site_id"="Site"."id" LEFT JOIN "sites" "Site__Site_parent" ON "Site__Site_parent"."id"="Site"."parent_id" WHERE (("Site"."region" = $1))) "distinctAlias" ORDER BY "distinctAlias"."Site_name" ASC, "Site_id" ASC LIMIT 10;

-- name: typeorm_11
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'north'
SELECT "Site"."id" AS "Site_id", "Site"."name" AS "Site_name", "Site"."region" AS "Site_region", "Site"."parent_id" AS "Site_parent_id", "Site__Site_devices"."id" AS "Site__Site_devices_id", "Site__Site_devices"."site_id" AS "Site__Site_devices_site_id", "Site__Site_devices"."kind" AS "Site__Site_devices_kind", "Site__Site_devices"."serial_number" AS "Site__Site_devices_serial_number", "Site__Site_devices"."installed_on" AS "Site__Site_devices_installed_on", "Site__Site_devices"."retired_at" AS "Site__Site_devices_retired_at", "Site__Site_devices"."settings" AS "Site__Site_devices_settings", "Site__Site_parent"."id" AS "Site__Site_parent_id", "Site__Site_parent"."name" AS "Site__Site_parent_name", "Site__Site_parent"."region" AS "Site__Site_parent_region", "Site__Site_parent"."parent_id" AS "Site__Site_parent_parent_id" FROM "sites" "Site" LEFT JOIN "devices" "Site__Site_devices" ON "Site__Site_devices"."site_id"="Site"."id" LEFT JOIN "sites" "Site__Site_parent" ON "Site__Site_parent"."id"="Site"."parent_id" WHERE ( (("Site"."region" = $1)) ) AND ( "Site"."id" IN (171, 73, 138, 168, 179, 118, 126, 130, 136, 178) ) ORDER BY "Site"."name" ASC;

-- name: typeorm_12
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '5', '77', '900', '1500', '2025-02-01 00:00:00+00', '2025-03-01 00:00:00+00', 'start'
SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload" FROM "events" "Event" WHERE (("Event"."device_id" IN ($1, $2, $3, $4)) AND ("Event"."at" BETWEEN $5 AND $6) AND ("Event"."kind" != $7)) ORDER BY "Event"."id" ASC;

-- name: typeorm_13
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '7', '2'
SELECT COUNT(DISTINCT("Event"."id")) AS "cnt" FROM "events" "Event" LEFT JOIN "devices" "Event__Event_device" ON "Event__Event_device"."id"="Event"."device_id" WHERE (((("Event__Event_device"."site_id" = $1))) AND ("Event"."severity" > $2));

-- name: typeorm_14
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '4', 'south'
SELECT DISTINCT "distinctAlias"."d_id" AS "ids_d_id", "distinctAlias"."d_id" FROM (SELECT "d"."id" AS "d_id", "d"."site_id" AS "d_site_id", "d"."kind" AS "d_kind", "d"."serial_number" AS "d_serial_number", "d"."installed_on" AS "d_installed_on", "d"."retired_at" AS "d_retired_at", "d"."settings" AS "d_settings", "s"."id" AS "s_id", "s"."name" AS "s_name", "s"."region" AS "s_region", "s"."parent_id" AS "s_parent_id" FROM "devices" "d" LEFT JOIN "sites" "s" ON "s"."id"="d"."site_id" LEFT JOIN "events" "e" ON "e"."device_id"="d"."id" WHERE "e"."severity" = $1 AND "s"."region" = $2) "distinctAlias" ORDER BY "distinctAlias"."d_id" ASC, "d_id" ASC LIMIT 10;

-- name: typeorm_15
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '4', 'south'
SELECT "d"."id" AS "d_id", "d"."site_id" AS "d_site_id", "d"."kind" AS "d_kind", "d"."serial_number" AS "d_serial_number", "d"."installed_on" AS "d_installed_on", "d"."retired_at" AS "d_retired_at", "d"."settings" AS "d_settings", "s"."id" AS "s_id", "s"."name" AS "s_name", "s"."region" AS "s_region", "s"."parent_id" AS "s_parent_id" FROM "devices" "d" LEFT JOIN "sites" "s" ON "s"."id"="d"."site_id" LEFT JOIN "events" "e" ON "e"."device_id"="d"."id" WHERE ( "e"."severity" = $1 AND "s"."region" = $2 ) AND ( "d"."id" IN (6, 7, 9, 10, 14, 19, 20, 27, 29, 32) ) ORDER BY "d"."id" ASC;

-- name: typeorm_16
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: 'pump'
SELECT "d"."id" AS "d_id", "d"."site_id" AS "d_site_id", "d"."kind" AS "d_kind", "d"."serial_number" AS "d_serial_number", "d"."installed_on" AS "d_installed_on", "d"."retired_at" AS "d_retired_at", "d"."settings" AS "d_settings" FROM "devices" "d" WHERE "d"."id" IN (SELECT "e"."device_id" AS "e_device_id" FROM "events" "e" WHERE "e"."kind" = 'alarm' and "e"."at" > '2025-04-10') AND "d"."kind" = $1 ORDER BY "d"."id" ASC;

-- name: typeorm_17
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '900', 'amber1'
SELECT "e"."id" AS "e_id", "e"."device_id" AS "e_device_id", "e"."severity" AS "e_severity", "e"."kind" AS "e_kind", "e"."at" AS "e_at", "e"."acknowledged_at" AS "e_acknowledged_at", "e"."acknowledged_by" AS "e_acknowledged_by", "e"."payload" AS "e_payload" FROM "events" "e" WHERE ("e"."device_id" = $1 OR "e"."acknowledged_by" ILIKE $2) AND "e"."severity" >= 3 ORDER BY "e"."id" ASC LIMIT 50;

-- name: typeorm_18
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '12', '2025-02-01 00:00:00+00'
SELECT "r"."device_id" AS "r_device_id", "r"."at" AS "r_at", "r"."value" AS "r_value", "r"."quality" AS "r_quality" FROM "readings" "r" WHERE ("r"."device_id", "r"."at") > ($1, $2) ORDER BY "r"."device_id" ASC, "r"."at" ASC LIMIT 50;

-- name: typeorm_19
-- from: typeorm/query-builder/UpdateQueryBuilder.js
-- with: '2025-06-01 00:00:00+00', 'Amber1', '77'
UPDATE "events" SET "acknowledged_at" = $1, "acknowledged_by" = $2 WHERE ("device_id" = $3 AND "acknowledged_at" IS NULL);

-- name: typeorm_20
-- from: typeorm/query-builder/DeleteQueryBuilder.js
-- with: '2025-02-01 00:00:00+00', '3', '4', '5'
DELETE FROM "events" WHERE "at" < $1 and "severity" = 0 and "device_id" in ($2, $3, $4);

-- name: typeorm_21
-- from: typeorm/query-builder/SelectQueryBuilder.js
-- with: '4'
SELECT "Event"."id" AS "Event_id", "Event"."device_id" AS "Event_device_id", "Event"."severity" AS "Event_severity", "Event"."kind" AS "Event_kind", "Event"."at" AS "Event_at", "Event"."acknowledged_at" AS "Event_acknowledged_at", "Event"."acknowledged_by" AS "Event_acknowledged_by", "Event"."payload" AS "Event_payload" FROM "events" "Event" WHERE (("Event"."severity" = $1) AND ("Event"."acknowledged_at" IS NULL)) ORDER BY "Event"."at" ASC LIMIT 5 FOR UPDATE SKIP LOCKED;

-- name: typeorm_22
-- from: typeorm/query-builder/InsertQueryBuilder.js
-- with: '1', '2025-01-01 00:00:00+00', '1', '0', '2', '2025-01-01 00:00:00+00', '2', '0'
INSERT INTO "readings"("device_id", "at", "value", "quality") VALUES ($1, $2, $3, $4), ($5, $6, $7, $8) ON CONFLICT ( "device_id", "at" ) DO UPDATE SET "device_id" = EXCLUDED."device_id", "at" = EXCLUDED."at", "value" = EXCLUDED."value", "quality" = EXCLUDED."quality";
