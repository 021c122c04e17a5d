CREATE TYPE studydirection AS ENUM ('NOT_SET', 'MINIMIZE', 'MAXIMIZE');
CREATE TYPE trialintermediatevaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG', 'NAN');
CREATE TYPE trialstate AS ENUM ('RUNNING', 'COMPLETE', 'PRUNED', 'FAIL', 'WAITING');
CREATE TYPE trialvaluetype AS ENUM ('FINITE', 'INF_POS', 'INF_NEG');
CREATE TABLE studies (
    study_id serial,
    study_name character varying(512) NOT NULL,
    PRIMARY KEY (study_id)
);
CREATE TABLE study_directions (
    study_direction_id serial,
    direction studydirection NOT NULL,
    study_id integer NOT NULL,
    objective integer NOT NULL,
    CONSTRAINT study_directions_study_id_objective_key UNIQUE (study_id, objective),
    PRIMARY KEY (study_direction_id)
);
CREATE TABLE trials (
    trial_id serial,
    number integer,
    study_id integer,
    state trialstate NOT NULL,
    datetime_start timestamp without time zone,
    datetime_complete timestamp without time zone,
    PRIMARY KEY (trial_id)
);
CREATE TABLE trial_values (
    trial_value_id serial,
    trial_id integer NOT NULL,
    objective integer NOT NULL,
    value double precision,
    value_type trialvaluetype NOT NULL,
    CONSTRAINT trial_values_trial_id_objective_key UNIQUE (trial_id, objective),
    PRIMARY KEY (trial_value_id)
);
CREATE TABLE trial_params (
    param_id serial,
    trial_id integer,
    param_name character varying(512),
    param_value double precision,
    distribution_json text,
    CONSTRAINT trial_params_trial_id_param_name_key UNIQUE (trial_id, param_name),
    PRIMARY KEY (param_id)
);
CREATE TABLE trial_intermediate_values (
    trial_intermediate_value_id serial,
    trial_id integer NOT NULL,
    step integer NOT NULL,
    intermediate_value double precision,
    intermediate_value_type trialintermediatevaluetype NOT NULL,
    CONSTRAINT trial_intermediate_values_trial_id_step_key UNIQUE (trial_id, step),
    PRIMARY KEY (trial_intermediate_value_id)
);
CREATE TABLE trial_user_attributes (
    trial_user_attribute_id serial,
    trial_id integer,
    key character varying(512),
    value_json text,
    CONSTRAINT trial_user_attributes_trial_id_key_key UNIQUE (trial_id, key),
    PRIMARY KEY (trial_user_attribute_id)
);
CREATE TABLE trial_system_attributes (
    trial_system_attribute_id serial,
    trial_id integer,
    key character varying(512),
    value_json text,
    CONSTRAINT trial_system_attributes_trial_id_key_key UNIQUE (trial_id, key),
    PRIMARY KEY (trial_system_attribute_id)
);
CREATE TABLE trial_heartbeats (
    trial_heartbeat_id serial,
    trial_id integer NOT NULL,
    heartbeat timestamp without time zone NOT NULL,
    CONSTRAINT trial_heartbeats_trial_id_key UNIQUE (trial_id),
    PRIMARY KEY (trial_heartbeat_id)
);
-- indexes
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
ALTER TABLE study_directions ADD CONSTRAINT study_directions_study_id_fkey FOREIGN KEY (study_id) REFERENCES studies(study_id);
ALTER TABLE trials ADD CONSTRAINT trials_study_id_fkey FOREIGN KEY (study_id) REFERENCES studies(study_id);
ALTER TABLE trial_values ADD CONSTRAINT trial_values_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
ALTER TABLE trial_params ADD CONSTRAINT trial_params_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
ALTER TABLE trial_intermediate_values ADD CONSTRAINT trial_intermediate_values_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
ALTER TABLE trial_user_attributes ADD CONSTRAINT trial_user_attributes_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
ALTER TABLE trial_system_attributes ADD CONSTRAINT trial_system_attributes_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
ALTER TABLE trial_heartbeats ADD CONSTRAINT trial_heartbeats_trial_id_fkey FOREIGN KEY (trial_id) REFERENCES trials(trial_id);
