-- Permissions as tuples: openfga 1.5.4 (Go) with squirrel 1.5.4 and pgx 5.5.5: checks, lists of objects, reads, writes and changes.

-- name: insert_tuple_1
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001', 'document', 'new', 'viewer', 'user:anne', 'user', '', NULL, '01M8MATN7FEYW8CZN8ZW0SKKK4'
INSERT INTO tuple (store,object_type,object_id,relation,_user,user_type,condition_name,condition_context,ulid,inserted_at) VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,NOW());

-- name: authorization_model_1
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001'
SELECT DISTINCT authorization_model_id FROM authorization_model WHERE store = $1 ORDER BY authorization_model_id desc LIMIT 51;

-- name: authorization_model_2
-- from: pkg/storage/postgres/postgres.go
-- with: '01M8MATMP8WDT9ACYE8W1YK21K', '01HSTARE000000000000000001'
SELECT authorization_model_id, schema_version, type, type_definition, serialized_protobuf FROM authorization_model WHERE authorization_model_id = $1 AND store = $2;

-- name: authorization_model_3
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001'
SELECT authorization_model_id, schema_version, type, type_definition, serialized_protobuf FROM authorization_model WHERE store = $1 ORDER BY authorization_model_id desc LIMIT 1;

-- name: store_1
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001'
SELECT id, name, created_at, updated_at FROM store WHERE deleted_at IS NULL AND id = $1;

-- name: store_2
-- from: pkg/storage/postgres/postgres.go
SELECT id, name, created_at, updated_at FROM store WHERE deleted_at IS NULL ORDER BY id LIMIT 11;

-- name: tuple_1
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001', 'document', 'user:12'
SELECT store, object_type, object_id, relation, _user, condition_name, condition_context, ulid, inserted_at FROM tuple WHERE store = $1 AND object_type = $2 AND _user = $3 ORDER BY ulid LIMIT 21;

-- name: tuple_2
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001', '01J00000000000000000000152'
SELECT store, object_type, object_id, relation, _user, condition_name, condition_context, ulid, inserted_at FROM tuple WHERE store = $1 AND ulid >= $2 ORDER BY ulid LIMIT 51;

-- name: tuple_3
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001', 'userset', 'document', '1', 'viewer', 'group:%#member'
SELECT store, object_type, object_id, relation, _user, condition_name, condition_context, ulid, inserted_at FROM tuple WHERE store = $1 AND user_type = $2 AND object_type = $3 AND object_id = $4 AND relation = $5 AND (_user LIKE $6);

-- name: changelog_1
-- from: pkg/storage/postgres/postgres.go
-- with: '01HSTARE000000000000000001'
SELECT ulid, object_type, object_id, relation, _user, operation, condition_name, condition_context, inserted_at FROM changelog WHERE store = $1 AND inserted_at < NOW() - interval '0ms' ORDER BY ulid asc LIMIT 20;
