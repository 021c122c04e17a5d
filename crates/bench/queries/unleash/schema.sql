CREATE TABLE users (
    id serial,
    name character varying(255),
    username character varying(255),
    email character varying(255),
    image_url text,
    password_hash character varying(255),
    login_attempts integer DEFAULT 0,
    created_at timestamp without time zone DEFAULT now(),
    seen_at timestamp without time zone,
    settings json,
    permissions json DEFAULT '[]'::json,
    deleted_at timestamp with time zone,
    is_service boolean DEFAULT false,
    created_by_user_id integer,
    is_system boolean DEFAULT false NOT NULL,
    scim_id text,
    scim_external_id text,
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_username_key UNIQUE (username),
    PRIMARY KEY (id)
);
CREATE TABLE projects (
    id character varying(255) NOT NULL,
    name character varying NOT NULL,
    description character varying,
    created_at timestamp without time zone DEFAULT now(),
    health integer DEFAULT 100,
    updated_at timestamp with time zone DEFAULT now(),
    PRIMARY KEY (id)
);
CREATE TABLE project_environments (
    project_id character varying(255) NOT NULL,
    environment_name character varying(100) NOT NULL,
    default_strategy jsonb,
    PRIMARY KEY (project_id, environment_name)
);
CREATE TABLE features (
    created_at timestamp with time zone DEFAULT now(),
    name character varying(255) NOT NULL,
    description text,
    variants json DEFAULT '[]'::json,
    type character varying DEFAULT 'release'::character varying,
    stale boolean DEFAULT false,
    project character varying DEFAULT 'default'::character varying,
    last_seen_at timestamp with time zone,
    impression_data boolean DEFAULT false,
    archived_at timestamp with time zone,
    potentially_stale boolean,
    created_by_user_id integer,
    archived boolean DEFAULT false,
    PRIMARY KEY (name)
);
CREATE TABLE feature_environments (
    environment character varying(100) DEFAULT 'default'::character varying NOT NULL,
    feature_name character varying(255) NOT NULL,
    enabled boolean NOT NULL,
    variants jsonb DEFAULT '[]'::jsonb NOT NULL,
    last_seen_at timestamp with time zone,
    PRIMARY KEY (environment, feature_name)
);
CREATE TABLE feature_strategies (
    id text NOT NULL,
    feature_name character varying(255) NOT NULL,
    project_name character varying(255) NOT NULL,
    environment character varying(100) DEFAULT 'default'::character varying NOT NULL,
    strategy_name character varying(255) NOT NULL,
    parameters jsonb DEFAULT '{}'::jsonb NOT NULL,
    constraints jsonb,
    sort_order integer DEFAULT 9999 NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    title text,
    disabled boolean DEFAULT false,
    variants jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_by_user_id integer,
    PRIMARY KEY (id)
);
CREATE TABLE segments (
    id serial,
    name text NOT NULL,
    description text,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    constraints jsonb DEFAULT '[]'::jsonb NOT NULL,
    segment_project_id character varying(255),
    PRIMARY KEY (id)
);
CREATE TABLE feature_strategy_segment (
    feature_strategy_id text NOT NULL,
    segment_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    PRIMARY KEY (feature_strategy_id, segment_id)
);
CREATE TABLE tags (
    type text NOT NULL,
    value text NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    PRIMARY KEY (type, value)
);
CREATE TABLE feature_tag (
    feature_name character varying(255) NOT NULL,
    tag_type text NOT NULL,
    tag_value text NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    created_by_user_id integer,
    PRIMARY KEY (feature_name, tag_type, tag_value)
);
CREATE TABLE events (
    id serial,
    created_at timestamp with time zone DEFAULT now(),
    type character varying(255) NOT NULL,
    created_by character varying(255) NOT NULL,
    data json,
    tags json DEFAULT '[]'::json,
    project text,
    environment text,
    feature_name text,
    pre_data jsonb,
    announced boolean DEFAULT false NOT NULL,
    created_by_user_id integer,
    ip text,
    PRIMARY KEY (id)
);
CREATE TABLE client_applications (
    app_name character varying(255) NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    updated_at timestamp with time zone DEFAULT now(),
    seen_at timestamp with time zone,
    strategies json,
    description character varying(255),
    icon character varying(255),
    url character varying(255),
    color character varying(255),
    announced boolean DEFAULT false,
    created_by text,
    PRIMARY KEY (app_name)
);
CREATE TABLE client_applications_usage (
    app_name character varying(255) NOT NULL,
    project character varying(255) NOT NULL,
    environment character varying(100) NOT NULL,
    PRIMARY KEY (app_name, project, environment)
);
CREATE TABLE client_instances (
    app_name character varying(255) NOT NULL,
    instance_id character varying(255) NOT NULL,
    client_ip character varying(255),
    last_seen timestamp with time zone DEFAULT now(),
    created_at timestamp with time zone DEFAULT now(),
    sdk_version character varying(255),
    environment character varying(255) DEFAULT 'default'::character varying NOT NULL,
    PRIMARY KEY (app_name, environment, instance_id)
);
CREATE TABLE client_metrics_env (
    feature_name character varying(255) NOT NULL,
    app_name character varying(255) NOT NULL,
    environment character varying(100) NOT NULL,
    "timestamp" timestamp with time zone NOT NULL,
    yes bigint DEFAULT 0,
    no bigint DEFAULT 0,
    PRIMARY KEY (feature_name, app_name, environment, "timestamp")
);
CREATE TABLE favorite_features (
    feature character varying(255) NOT NULL,
    user_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    PRIMARY KEY (feature, user_id)
);
CREATE TABLE favorite_projects (
    project character varying(255) NOT NULL,
    user_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    PRIMARY KEY (project, user_id)
);
CREATE TABLE role_user (
    role_id integer NOT NULL,
    user_id integer NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    project character varying(255) NOT NULL,
    created_by_user_id integer,
    PRIMARY KEY (role_id, user_id, project)
);
CREATE TABLE groups (
    id serial,
    name text NOT NULL,
    description text,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    mappings_sso jsonb DEFAULT '[]'::jsonb,
    root_role_id integer,
    scim_id text,
    scim_external_id text,
    PRIMARY KEY (id)
);
CREATE TABLE group_user (
    group_id integer NOT NULL,
    user_id integer NOT NULL,
    created_by text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    PRIMARY KEY (group_id, user_id)
);
CREATE TABLE group_role (
    group_id integer NOT NULL,
    role_id integer NOT NULL,
    created_by text,
    created_at timestamp with time zone DEFAULT now(),
    project text NOT NULL,
    PRIMARY KEY (group_id, role_id, project)
);
CREATE TABLE last_seen_at_metrics (
    feature_name character varying(255) NOT NULL,
    environment character varying(100) NOT NULL,
    last_seen_at timestamp with time zone NOT NULL,
    PRIMARY KEY (feature_name, environment)
);
CREATE TABLE api_token_project (
    secret text NOT NULL,
    project text NOT NULL,
    PRIMARY KEY (secret, project)
);
CREATE TABLE api_tokens (
    secret text NOT NULL,
    username text NOT NULL,
    type text NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    expires_at timestamp with time zone,
    seen_at timestamp with time zone,
    environment character varying,
    alias text,
    token_name text,
    created_by_user_id integer,
    PRIMARY KEY (secret)
);
CREATE TABLE context_fields (
    name character varying(255) NOT NULL,
    description text,
    sort_order integer DEFAULT 10,
    legal_values json,
    created_at timestamp without time zone DEFAULT now(),
    updated_at timestamp without time zone DEFAULT now(),
    stickiness boolean DEFAULT false,
    PRIMARY KEY (name)
);
CREATE TABLE dependent_features (
    parent character varying(255) NOT NULL,
    child character varying(255) NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    variants jsonb DEFAULT '[]'::jsonb NOT NULL,
    PRIMARY KEY (parent, child)
);
CREATE TABLE environments (
    name character varying(100) NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    sort_order integer DEFAULT 9999,
    type text NOT NULL,
    enabled boolean DEFAULT true,
    protected boolean DEFAULT false,
    PRIMARY KEY (name)
);
CREATE TABLE project_settings (
    project character varying(255) NOT NULL,
    default_stickiness character varying(100),
    project_mode character varying(100) DEFAULT 'open'::character varying NOT NULL,
    feature_limit integer,
    feature_naming_pattern text,
    feature_naming_example text,
    feature_naming_description text,
    PRIMARY KEY (project),
    CONSTRAINT project_settings_project_mode_values CHECK (((project_mode)::text = ANY (ARRAY[('open'::character varying)::text, ('protected'::character varying)::text, ('private'::character varying)::text])))
);
CREATE TABLE project_stats (
    project character varying(255) NOT NULL,
    avg_time_to_prod_current_window double precision DEFAULT 0,
    project_changes_current_window integer DEFAULT 0,
    project_changes_past_window integer DEFAULT 0,
    features_created_current_window integer DEFAULT 0,
    features_created_past_window integer DEFAULT 0,
    features_archived_current_window integer DEFAULT 0,
    features_archived_past_window integer DEFAULT 0,
    project_members_added_current_window integer DEFAULT 0,
    CONSTRAINT project_stats_project_key UNIQUE (project),
    PRIMARY KEY (project)
);
CREATE TABLE roles (
    id serial,
    name text NOT NULL,
    description text,
    type text DEFAULT 'custom'::text NOT NULL,
    created_at timestamp with time zone DEFAULT now(),
    updated_at timestamp with time zone,
    created_by_user_id integer,
    CONSTRAINT unique_name UNIQUE (name),
    PRIMARY KEY (id)
);
-- indexes
CREATE UNIQUE INDEX users_scim_external_id_uniq_idx ON users (scim_external_id) WHERE (scim_external_id IS NOT NULL);
CREATE UNIQUE INDEX users_scim_id_unique_idx ON users (scim_id) WHERE (scim_id IS NOT NULL);
CREATE INDEX project_environments_environment_idx ON project_environments (environment_name);
CREATE INDEX feature_environments_feature_name_idx ON feature_environments (feature_name);
CREATE INDEX feature_strategies_environment_idx ON feature_strategies (environment);
CREATE INDEX feature_strategies_feature_name_idx ON feature_strategies (feature_name);
CREATE INDEX segments_name_index ON segments (name);
CREATE INDEX feature_strategy_segment_segment_id_index ON feature_strategy_segment (segment_id);
CREATE INDEX feature_tag_tag_type_and_value_idx ON feature_tag (tag_type, tag_value);
CREATE INDEX events_created_by_user_id_idx ON events (created_by_user_id);
CREATE INDEX events_environment_idx ON events (environment);
CREATE INDEX events_project_idx ON events (project);
CREATE INDEX events_unannounced_idx ON events (announced) WHERE (announced = false);
CREATE INDEX feature_name_idx ON events (feature_name);
CREATE INDEX idx_events_feature_type_id ON events (id) WHERE ((feature_name IS NOT NULL) OR ((type)::text = ANY (ARRAY[('segment-updated'::character varying)::text, ('feature_import'::character varying)::text, ('features-imported'::character varying)::text])));
CREATE INDEX idx_client_applications_announced_false ON client_applications (announced) WHERE (announced = false);
CREATE INDEX client_instances_environment_idx ON client_instances (environment);
CREATE INDEX idx_client_metrics_f_name ON client_metrics_env (feature_name);
CREATE INDEX role_user_user_id_idx ON role_user (user_id);
CREATE INDEX groups_group_name_idx ON groups (name);
CREATE UNIQUE INDEX groups_scim_external_id_uniq_idx ON groups (scim_external_id) WHERE (scim_external_id IS NOT NULL);
CREATE UNIQUE INDEX groups_scim_id_unique_idx ON groups (scim_id) WHERE (scim_id IS NOT NULL);
CREATE INDEX idx_feature_name ON last_seen_at_metrics (feature_name);
ALTER TABLE project_environments ADD CONSTRAINT project_environments_environment_name_fkey FOREIGN KEY (environment_name) REFERENCES environments(name) ON DELETE CASCADE;
ALTER TABLE project_environments ADD CONSTRAINT project_environments_project_id_fkey FOREIGN KEY (project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE feature_environments ADD CONSTRAINT feature_environments_environment_fkey FOREIGN KEY (environment) REFERENCES environments(name) ON DELETE CASCADE;
ALTER TABLE feature_environments ADD CONSTRAINT feature_environments_feature_name_fkey FOREIGN KEY (feature_name) REFERENCES features(name) ON DELETE CASCADE;
ALTER TABLE feature_strategies ADD CONSTRAINT feature_strategies_environment_fkey FOREIGN KEY (environment) REFERENCES environments(name) ON DELETE CASCADE;
ALTER TABLE feature_strategies ADD CONSTRAINT feature_strategies_feature_name_fkey FOREIGN KEY (feature_name) REFERENCES features(name) ON DELETE CASCADE;
ALTER TABLE segments ADD CONSTRAINT segments_segment_project_id_fkey FOREIGN KEY (segment_project_id) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE feature_strategy_segment ADD CONSTRAINT feature_strategy_segment_feature_strategy_id_fkey FOREIGN KEY (feature_strategy_id) REFERENCES feature_strategies(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE feature_strategy_segment ADD CONSTRAINT feature_strategy_segment_segment_id_fkey FOREIGN KEY (segment_id) REFERENCES segments(id) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE feature_tag ADD CONSTRAINT feature_tag_feature_name_fkey FOREIGN KEY (feature_name) REFERENCES features(name) ON DELETE CASCADE;
ALTER TABLE feature_tag ADD CONSTRAINT feature_tag_tag_type_tag_value_fkey FOREIGN KEY (tag_type, tag_value) REFERENCES tags(type, value) ON DELETE CASCADE;
ALTER TABLE client_applications_usage ADD CONSTRAINT client_applications_usage_app_name_fkey FOREIGN KEY (app_name) REFERENCES client_applications(app_name) ON DELETE CASCADE;
ALTER TABLE favorite_features ADD CONSTRAINT favorite_features_feature_fkey FOREIGN KEY (feature) REFERENCES features(name) ON DELETE CASCADE;
ALTER TABLE favorite_features ADD CONSTRAINT favorite_features_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE favorite_projects ADD CONSTRAINT favorite_projects_project_fkey FOREIGN KEY (project) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE favorite_projects ADD CONSTRAINT favorite_projects_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE role_user ADD CONSTRAINT role_user_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE;
ALTER TABLE role_user ADD CONSTRAINT role_user_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE groups ADD CONSTRAINT fk_group_role_id FOREIGN KEY (root_role_id) REFERENCES roles(id);
ALTER TABLE group_user ADD CONSTRAINT group_user_group_id_fkey FOREIGN KEY (group_id) REFERENCES groups(id) ON DELETE CASCADE;
ALTER TABLE group_user ADD CONSTRAINT group_user_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE group_role ADD CONSTRAINT fk_group_role_project FOREIGN KEY (project) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE group_role ADD CONSTRAINT group_role_group_id_fkey FOREIGN KEY (group_id) REFERENCES groups(id) ON DELETE CASCADE;
ALTER TABLE group_role ADD CONSTRAINT group_role_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE;
ALTER TABLE api_token_project ADD CONSTRAINT api_token_project_project_fkey FOREIGN KEY (project) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE api_token_project ADD CONSTRAINT api_token_project_secret_fkey FOREIGN KEY (secret) REFERENCES api_tokens(secret) ON DELETE CASCADE;
ALTER TABLE dependent_features ADD CONSTRAINT dependent_features_child_fkey FOREIGN KEY (child) REFERENCES features(name) ON DELETE CASCADE;
ALTER TABLE dependent_features ADD CONSTRAINT dependent_features_parent_fkey FOREIGN KEY (parent) REFERENCES features(name) ON DELETE RESTRICT;
ALTER TABLE project_settings ADD CONSTRAINT project_settings_project_fkey FOREIGN KEY (project) REFERENCES projects(id) ON DELETE CASCADE;
ALTER TABLE project_stats ADD CONSTRAINT project_stats_project_fkey FOREIGN KEY (project) REFERENCES projects(id) ON DELETE CASCADE;
