CREATE TABLE tenants (
    id integer PRIMARY KEY,
    name text NOT NULL,
    plan text NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE TABLE accounts (
    tenant_id integer NOT NULL,
    id integer NOT NULL,
    number text NOT NULL,
    kind text NOT NULL,
    currency text NOT NULL,
    parent_id integer,
    owner_id integer,
    balance numeric(14, 2) NOT NULL,
    opened_on date NOT NULL,
    closed_at timestamptz,
    PRIMARY KEY (tenant_id, id)
);
CREATE TABLE owners (
    id integer PRIMARY KEY,
    tenant_id integer NOT NULL,
    name text NOT NULL,
    email text NOT NULL
);
CREATE TABLE transfers (
    tenant_id integer NOT NULL,
    id bigint NOT NULL,
    from_account integer NOT NULL,
    to_account integer NOT NULL,
    amount numeric(14, 2) NOT NULL,
    state text NOT NULL,
    reference text NOT NULL,
    created_at timestamptz NOT NULL,
    booked_on date,
    approved_by integer,
    details jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant_id, id)
);
CREATE TABLE entries (
    tenant_id integer NOT NULL,
    account_id integer NOT NULL,
    seq integer NOT NULL,
    transfer_id bigint NOT NULL,
    amount numeric(14, 2) NOT NULL,
    at timestamp NOT NULL,
    PRIMARY KEY (tenant_id, account_id, seq)
);
CREATE TABLE limits (
    tenant_id bigint NOT NULL,
    account_id bigint NOT NULL,
    daily numeric(14, 2)
);
-- indexes
CREATE INDEX accounts_number ON accounts (number text_pattern_ops);
CREATE INDEX accounts_parent ON accounts (tenant_id, parent_id);
CREATE INDEX accounts_owner ON accounts (owner_id);
CREATE INDEX owners_name ON owners (lower(name));
CREATE INDEX transfers_created ON transfers (tenant_id, created_at, id);
CREATE INDEX transfers_state ON transfers (tenant_id, state, created_at);
CREATE INDEX transfers_from ON transfers (tenant_id, from_account, created_at);
CREATE INDEX transfers_to ON transfers (tenant_id, to_account, created_at);
CREATE INDEX transfers_booked ON transfers (booked_on);
CREATE INDEX transfers_at ON transfers (created_at);
CREATE INDEX transfers_reference ON transfers (reference text_pattern_ops);
CREATE INDEX transfers_pending ON transfers (created_at) WHERE state = 'pending';
CREATE INDEX transfers_approved ON transfers (approved_by);
CREATE INDEX transfers_amount ON transfers (amount);
CREATE INDEX entries_transfer ON entries (tenant_id, transfer_id);
CREATE INDEX entries_at ON entries (at);
CREATE INDEX limits_account ON limits (tenant_id, account_id);
ALTER TABLE accounts ADD FOREIGN KEY (tenant_id) REFERENCES tenants;
ALTER TABLE accounts ADD FOREIGN KEY (owner_id) REFERENCES owners;
ALTER TABLE transfers ADD FOREIGN KEY (tenant_id, from_account) REFERENCES accounts;
ALTER TABLE transfers ADD FOREIGN KEY (tenant_id, to_account) REFERENCES accounts;
ALTER TABLE entries ADD FOREIGN KEY (tenant_id, account_id) REFERENCES accounts;
CREATE VIEW account_totals AS
    SELECT tenant_id, account_id, count(*) AS entries, sum(amount) AS total, max(at) AS last_at
    FROM entries GROUP BY tenant_id, account_id;
CREATE VIEW movements AS
    SELECT tenant_id, from_account AS account_id, -amount AS amount, created_at, id FROM transfers
    UNION ALL
    SELECT tenant_id, to_account, amount, created_at, id FROM transfers;
