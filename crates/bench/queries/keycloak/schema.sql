CREATE TABLE user_entity (
    id character varying(36) NOT NULL,
    email character varying(255),
    email_constraint character varying(255),
    email_verified boolean DEFAULT false NOT NULL,
    enabled boolean DEFAULT false NOT NULL,
    federation_link character varying(255),
    first_name character varying(255),
    last_name character varying(255),
    realm_id character varying(255),
    username character varying(255),
    created_timestamp bigint,
    service_account_client_link character varying(255),
    not_before integer DEFAULT 0 NOT NULL,
    CONSTRAINT uk_dykn684sl8up1crfei6eckhd7 UNIQUE (realm_id, email_constraint),
    CONSTRAINT uk_ru8tt6t700s9v50bu18ws5ha6 UNIQUE (realm_id, username),
    PRIMARY KEY (id)
);
CREATE TABLE keycloak_group (
    id character varying(36) NOT NULL,
    name character varying(255),
    parent_group character varying(36) NOT NULL,
    realm_id character varying(36),
    type integer DEFAULT 0 NOT NULL,
    description character varying(255),
    CONSTRAINT sibling_names UNIQUE (realm_id, parent_group, name),
    PRIMARY KEY (id)
);
CREATE TABLE user_role_mapping (
    role_id character varying(255) NOT NULL,
    user_id character varying(36) NOT NULL,
    PRIMARY KEY (role_id, user_id)
);
CREATE TABLE group_role_mapping (
    role_id character varying(36) NOT NULL,
    group_id character varying(36) NOT NULL,
    PRIMARY KEY (role_id, group_id)
);
CREATE TABLE user_group_membership (
    group_id character varying(36) NOT NULL,
    user_id character varying(36) NOT NULL,
    membership_type character varying(255) NOT NULL,
    PRIMARY KEY (group_id, user_id)
);
CREATE TABLE user_attribute (
    name character varying(255) NOT NULL,
    value character varying(255),
    user_id character varying(36) NOT NULL,
    id character varying(36) DEFAULT 'sybase-needs-something-here'::character varying NOT NULL,
    long_value_hash bytea,
    long_value_hash_lower_case bytea,
    long_value text,
    PRIMARY KEY (id)
);
CREATE TABLE credential (
    id character varying(36) NOT NULL,
    salt bytea,
    type character varying(255),
    user_id character varying(36),
    created_date bigint,
    user_label character varying(255),
    secret_data text,
    credential_data text,
    priority integer,
    version integer DEFAULT 0,
    PRIMARY KEY (id)
);
CREATE TABLE federated_identity (
    identity_provider character varying(255) NOT NULL,
    realm_id character varying(36),
    federated_user_id character varying(255),
    federated_username character varying(255),
    token text,
    user_id character varying(36) NOT NULL,
    PRIMARY KEY (identity_provider, user_id)
);
CREATE TABLE user_required_action (
    user_id character varying(36) NOT NULL,
    required_action character varying(255) DEFAULT ' '::character varying NOT NULL,
    PRIMARY KEY (required_action, user_id)
);
CREATE TABLE event_entity (
    id character varying(36) NOT NULL,
    client_id character varying(255),
    details_json character varying(2550),
    error character varying(255),
    ip_address character varying(255),
    realm_id character varying(255),
    session_id character varying(255),
    event_time bigint,
    type character varying(255),
    user_id character varying(255),
    details_json_long_value text,
    PRIMARY KEY (id)
);
CREATE TABLE admin_event_entity (
    id character varying(36) NOT NULL,
    admin_event_time bigint,
    realm_id character varying(255),
    operation_type character varying(255),
    auth_realm_id character varying(255),
    auth_client_id character varying(255),
    auth_user_id character varying(255),
    ip_address character varying(255),
    resource_path character varying(2550),
    representation text,
    error character varying(255),
    resource_type character varying(64),
    details_json text,
    PRIMARY KEY (id)
);
CREATE TABLE offline_user_session (
    user_session_id character varying(36) NOT NULL,
    user_id character varying(255) NOT NULL,
    realm_id character varying(36) NOT NULL,
    created_on integer NOT NULL,
    offline_flag character varying(4) NOT NULL,
    data text,
    last_session_refresh integer DEFAULT 0 NOT NULL,
    broker_session_id character varying(1024),
    version integer DEFAULT 0,
    PRIMARY KEY (user_session_id, offline_flag)
);
CREATE TABLE offline_client_session (
    user_session_id character varying(36) NOT NULL,
    client_id character varying(255) NOT NULL,
    offline_flag character varying(4) NOT NULL,
    "timestamp" integer,
    data text,
    client_storage_provider character varying(36) DEFAULT 'local'::character varying NOT NULL,
    external_client_id character varying(255) DEFAULT 'local'::character varying NOT NULL,
    version integer DEFAULT 0,
    PRIMARY KEY (user_session_id, client_id, client_storage_provider, external_client_id, offline_flag)
);
-- indexes
CREATE INDEX idx_user_email ON user_entity (email);
CREATE INDEX idx_user_service_account ON user_entity (realm_id, service_account_client_link);
CREATE INDEX idx_user_role_mapping ON user_role_mapping (user_id);
CREATE INDEX idx_group_role_mapp_group ON group_role_mapping (group_id);
CREATE INDEX idx_user_group_mapping ON user_group_membership (user_id);
CREATE INDEX idx_user_attribute ON user_attribute (user_id);
CREATE INDEX idx_user_attribute_name ON user_attribute (name, value);
CREATE INDEX user_attr_long_values ON user_attribute (long_value_hash, name);
CREATE INDEX user_attr_long_values_lower_case ON user_attribute (long_value_hash_lower_case, name);
CREATE INDEX idx_user_credential ON credential (user_id);
CREATE INDEX idx_fedidentity_feduser ON federated_identity (federated_user_id);
CREATE INDEX idx_fedidentity_user ON federated_identity (user_id);
CREATE INDEX idx_user_reqactions ON user_required_action (user_id);
CREATE INDEX idx_event_entity_user_id_type ON event_entity (user_id, type, event_time);
CREATE INDEX idx_event_time ON event_entity (realm_id, event_time);
CREATE INDEX idx_admin_event_time ON admin_event_entity (realm_id, admin_event_time);
CREATE INDEX idx_offline_uss_by_broker_session_id ON offline_user_session (broker_session_id, realm_id);
CREATE INDEX idx_offline_uss_by_last_session_refresh ON offline_user_session (realm_id, offline_flag, last_session_refresh);
CREATE INDEX idx_offline_uss_by_user ON offline_user_session (user_id, realm_id, offline_flag);
CREATE INDEX idx_offline_css_by_client ON offline_client_session (client_id, offline_flag) WHERE ((client_id)::text <> 'external'::text);
CREATE INDEX idx_offline_css_by_client_storage_provider ON offline_client_session (client_storage_provider, external_client_id, offline_flag) WHERE ((client_storage_provider)::text <> 'internal'::text);
ALTER TABLE user_role_mapping ADD CONSTRAINT fk_c4fqv34p1mbylloxang7b1q3l FOREIGN KEY (user_id) REFERENCES user_entity(id);
ALTER TABLE group_role_mapping ADD CONSTRAINT fk_group_role_group FOREIGN KEY (group_id) REFERENCES keycloak_group(id);
ALTER TABLE user_group_membership ADD CONSTRAINT fk_user_group_user FOREIGN KEY (user_id) REFERENCES user_entity(id);
ALTER TABLE user_attribute ADD CONSTRAINT fk_5hrm2vlf9ql5fu043kqepovbr FOREIGN KEY (user_id) REFERENCES user_entity(id);
ALTER TABLE credential ADD CONSTRAINT fk_pfyr0glasqyl0dei3kl69r6v0 FOREIGN KEY (user_id) REFERENCES user_entity(id);
ALTER TABLE federated_identity ADD CONSTRAINT fk404288b92ef007a6 FOREIGN KEY (user_id) REFERENCES user_entity(id);
ALTER TABLE user_required_action ADD CONSTRAINT fk_6qj3w1jw9cvafhe19bwsiuvmd FOREIGN KEY (user_id) REFERENCES user_entity(id);
