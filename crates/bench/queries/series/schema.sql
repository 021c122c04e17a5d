CREATE TABLE sites (
    id integer PRIMARY KEY,
    name text NOT NULL,
    region text NOT NULL,
    parent_id integer
);
CREATE TABLE devices (
    id integer PRIMARY KEY,
    site_id integer NOT NULL,
    kind text NOT NULL,
    serial_number text NOT NULL,
    installed_on date NOT NULL,
    retired_at timestamptz,
    settings jsonb NOT NULL
);
CREATE TABLE readings (
    device_id integer NOT NULL,
    at timestamptz NOT NULL,
    value double precision NOT NULL,
    quality smallint NOT NULL,
    PRIMARY KEY (device_id, at)
);
CREATE TABLE events (
    id bigint PRIMARY KEY,
    device_id integer NOT NULL,
    severity smallint NOT NULL,
    kind text NOT NULL,
    at timestamptz NOT NULL,
    acknowledged_at timestamptz,
    acknowledged_by text,
    payload jsonb NOT NULL
);
CREATE TABLE rollups (
    device_id bigint NOT NULL,
    day date NOT NULL,
    count integer NOT NULL,
    low double precision,
    high double precision,
    total numeric NOT NULL,
    PRIMARY KEY (device_id, day)
);
-- indexes
CREATE INDEX devices_site ON devices (site_id, kind);
CREATE INDEX devices_serial ON devices (serial_number text_pattern_ops);
CREATE INDEX devices_kind ON devices (kind, installed_on DESC);
CREATE INDEX readings_at ON readings (at);
CREATE INDEX readings_quality ON readings (quality, at);
CREATE INDEX events_device ON events (device_id, at);
CREATE INDEX events_open ON events (severity, at) WHERE acknowledged_at IS NULL;
CREATE INDEX events_at ON events (at);
CREATE INDEX events_kind ON events (kind, severity, at);
CREATE INDEX events_by ON events (lower(acknowledged_by));
CREATE INDEX rollups_day ON rollups (day);
ALTER TABLE devices ADD FOREIGN KEY (site_id) REFERENCES sites;
ALTER TABLE readings ADD FOREIGN KEY (device_id) REFERENCES devices;
ALTER TABLE events ADD FOREIGN KEY (device_id) REFERENCES devices;
CREATE VIEW latest AS
    SELECT device_id, max(at) AS at, count(*) AS readings FROM readings GROUP BY device_id;
CREATE VIEW happenings AS
    SELECT device_id, at, 'event' AS what, id::text AS detail FROM events
    UNION ALL
    SELECT device_id, at, 'reading', value::text FROM readings;
