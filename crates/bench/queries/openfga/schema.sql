CREATE TABLE store (
    id text NOT NULL,
    name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone,
    deleted_at timestamp with time zone,
    PRIMARY KEY (id)
);
CREATE TABLE tuple (
    store text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    relation text NOT NULL,
    _user text NOT NULL,
    user_type text NOT NULL,
    ulid text NOT NULL,
    inserted_at timestamp with time zone NOT NULL,
    condition_name text,
    condition_context bytea,
    PRIMARY KEY (store, object_type, object_id, relation, _user)
);
CREATE TABLE changelog (
    store text NOT NULL,
    object_type text NOT NULL,
    object_id text NOT NULL,
    relation text NOT NULL,
    _user text NOT NULL,
    operation integer NOT NULL,
    ulid text NOT NULL,
    inserted_at timestamp with time zone NOT NULL,
    condition_name text,
    condition_context bytea,
    PRIMARY KEY (store, ulid, object_type)
);
CREATE TABLE authorization_model (
    store text NOT NULL,
    authorization_model_id text NOT NULL,
    type text NOT NULL,
    type_definition bytea,
    schema_version text DEFAULT '1.0'::text NOT NULL,
    serialized_protobuf bytea,
    PRIMARY KEY (store, authorization_model_id, type)
);
-- indexes
CREATE INDEX idx_reverse_lookup_user ON tuple (store, object_type, relation, _user);
CREATE INDEX idx_tuple_partial_user ON tuple (store, object_type, object_id, relation, _user) WHERE (user_type = 'user'::text);
CREATE INDEX idx_tuple_partial_userset ON tuple (store, object_type, object_id, relation, _user) WHERE (user_type = 'userset'::text);
CREATE UNIQUE INDEX idx_tuple_ulid ON tuple (ulid);
