-- Identities of many tenants: Keycloak 26.4.7 (Maven) with Hibernate 7.1.4 and pgjdbc 42.7.7: the admin API and logins.

-- name: admin_event_entity_1
-- from: org/keycloak/events/jpa/AdminEventEntity.java
-- with: 'tenant2', 'CREATE', 'USER', '20'
select aee1_0.ID,aee1_0.AUTH_CLIENT_ID,aee1_0.IP_ADDRESS,aee1_0.AUTH_REALM_ID,aee1_0.AUTH_USER_ID,aee1_0.DETAILS_JSON,aee1_0.ERROR,aee1_0.OPERATION_TYPE,aee1_0.REALM_ID,aee1_0.REPRESENTATION,aee1_0.RESOURCE_PATH,aee1_0.RESOURCE_TYPE,aee1_0.ADMIN_EVENT_TIME from ADMIN_EVENT_ENTITY aee1_0 where aee1_0.REALM_ID=$1 and aee1_0.OPERATION_TYPE in ($2) and aee1_0.RESOURCE_TYPE in ($3) order by aee1_0.ADMIN_EVENT_TIME desc fetch first $4 rows only;

-- name: admin_event_entity_2
-- from: org/keycloak/events/jpa/AdminEventEntity.java
-- with: 'tenant2', 'users/77%', '10'
select aee1_0.ID,aee1_0.AUTH_CLIENT_ID,aee1_0.IP_ADDRESS,aee1_0.AUTH_REALM_ID,aee1_0.AUTH_USER_ID,aee1_0.DETAILS_JSON,aee1_0.ERROR,aee1_0.OPERATION_TYPE,aee1_0.REALM_ID,aee1_0.REPRESENTATION,aee1_0.RESOURCE_PATH,aee1_0.RESOURCE_TYPE,aee1_0.ADMIN_EVENT_TIME from ADMIN_EVENT_ENTITY aee1_0 where aee1_0.REALM_ID=$1 and aee1_0.RESOURCE_PATH like $2 escape '' order by aee1_0.ADMIN_EVENT_TIME desc fetch first $3 rows only;

-- name: admin_event_entity_3
-- from: org/keycloak/events/jpa/AdminEventEntity.java
-- with: 'tenant2', '20'
select aee1_0.ID,aee1_0.AUTH_CLIENT_ID,aee1_0.IP_ADDRESS,aee1_0.AUTH_REALM_ID,aee1_0.AUTH_USER_ID,aee1_0.DETAILS_JSON,aee1_0.ERROR,aee1_0.OPERATION_TYPE,aee1_0.REALM_ID,aee1_0.REPRESENTATION,aee1_0.RESOURCE_PATH,aee1_0.RESOURCE_TYPE,aee1_0.ADMIN_EVENT_TIME from ADMIN_EVENT_ENTITY aee1_0 where aee1_0.REALM_ID=$1 order by aee1_0.ADMIN_EVENT_TIME desc fetch first $2 rows only;

-- name: insert_event_entity_1
-- from: org/keycloak/events/jpa/EventEntity.java
-- with: 'admin-cli', NULL, '{"reason":"Account is not fully set up","auth_method":"openid-connect","grant_type":"password","client_auth_method":"client-secret","username":"fresh"}', 'resolve_required_actions', '127.0.0.1', 'tenant2', NULL, '1795978849867', 'LOGIN_ERROR', NULL, 'fdab4c54-3d8a-45d8-a8e0-26878dee8b00'
insert into EVENT_ENTITY (CLIENT_ID,DETAILS_JSON,DETAILS_JSON_LONG_VALUE,ERROR,IP_ADDRESS,REALM_ID,SESSION_ID,EVENT_TIME,TYPE,USER_ID,ID) values ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11);

-- name: event_entity_1
-- from: org/keycloak/events/jpa/EventEntity.java
-- with: 'tenant2', '1740787200000', '1743551999999', '100', '20'
select ee1_0.ID,ee1_0.CLIENT_ID,ee1_0.DETAILS_JSON,ee1_0.DETAILS_JSON_LONG_VALUE,ee1_0.ERROR,ee1_0.IP_ADDRESS,ee1_0.REALM_ID,ee1_0.SESSION_ID,ee1_0.EVENT_TIME,ee1_0.TYPE,ee1_0.USER_ID from EVENT_ENTITY ee1_0 where ee1_0.REALM_ID=$1 and ee1_0.EVENT_TIME>=$2 and ee1_0.EVENT_TIME<=$3 order by ee1_0.EVENT_TIME desc offset $4 rows fetch first $5 rows only;

-- name: event_entity_2
-- from: org/keycloak/events/jpa/EventEntity.java
-- with: 'tenant2', 'LOGIN_ERROR', '20'
select ee1_0.ID,ee1_0.CLIENT_ID,ee1_0.DETAILS_JSON,ee1_0.DETAILS_JSON_LONG_VALUE,ee1_0.ERROR,ee1_0.IP_ADDRESS,ee1_0.REALM_ID,ee1_0.SESSION_ID,ee1_0.EVENT_TIME,ee1_0.TYPE,ee1_0.USER_ID from EVENT_ENTITY ee1_0 where ee1_0.REALM_ID=$1 and ee1_0.TYPE in ($2) order by ee1_0.EVENT_TIME desc fetch first $3 rows only;

-- name: event_entity_3
-- from: org/keycloak/events/jpa/EventEntity.java
-- with: 'tenant2', '20'
select ee1_0.ID,ee1_0.CLIENT_ID,ee1_0.DETAILS_JSON,ee1_0.DETAILS_JSON_LONG_VALUE,ee1_0.ERROR,ee1_0.IP_ADDRESS,ee1_0.REALM_ID,ee1_0.SESSION_ID,ee1_0.EVENT_TIME,ee1_0.TYPE,ee1_0.USER_ID from EVENT_ENTITY ee1_0 where ee1_0.REALM_ID=$1 order by ee1_0.EVENT_TIME desc fetch first $2 rows only;

-- name: delete_credential_1
-- from: org/keycloak/models/jpa/entities/CredentialEntity.java
-- with: 'tenant8'
delete from CREDENTIAL ce1_0 where ce1_0.USER_ID in (select ue1_0.ID from USER_ENTITY ue1_0 where ue1_0.REALM_ID=$1);

-- name: credential_1
-- from: org/keycloak/models/jpa/entities/CredentialEntity.java
-- with: 'db33f9bb-3c53-f183-bf7d-cca45e11d252'
select c1_0.USER_ID,c1_0.ID,c1_0.CREATED_DATE,c1_0.CREDENTIAL_DATA,c1_0.PRIORITY,c1_0.SALT,c1_0.SECRET_DATA,c1_0.TYPE,c1_0.USER_LABEL,c1_0.VERSION from CREDENTIAL c1_0 where c1_0.USER_ID=$1;

-- name: credential_2
-- from: org/keycloak/models/jpa/entities/CredentialEntity.java
-- with: '65dddd26-0c7d-42a3-92c2-9bf4532a8702'
select ce1_0.ID,ce1_0.CREATED_DATE,ce1_0.CREDENTIAL_DATA,ce1_0.PRIORITY,ce1_0.SALT,ce1_0.SECRET_DATA,ce1_0.TYPE,ce1_0.USER_ID,ce1_0.USER_LABEL,ce1_0.VERSION from CREDENTIAL ce1_0 where ce1_0.USER_ID=$1 order by ce1_0.PRIORITY;

-- name: delete_federated_identity_1
-- from: org/keycloak/models/jpa/entities/FederatedIdentityEntity.java
-- with: 'tenant8'
delete from FEDERATED_IDENTITY fie1_0 where fie1_0.USER_ID in (select ue1_0.ID from USER_ENTITY ue1_0 where ue1_0.REALM_ID=$1);

-- name: federated_identity_1
-- from: org/keycloak/models/jpa/entities/FederatedIdentityEntity.java
-- with: '0146884a-998c-f96a-3674-137435409614'
select fie1_0.IDENTITY_PROVIDER,fie1_0.USER_ID,fie1_0.REALM_ID,fie1_0.TOKEN,fie1_0.FEDERATED_USER_ID,fie1_0.FEDERATED_USERNAME from FEDERATED_IDENTITY fie1_0 where fie1_0.USER_ID=$1;

-- name: group_role_mapping_1
-- from: org/keycloak/models/jpa/entities/GroupRoleMappingEntity.java
-- with: '513772ee-5301-1ad9-f4dc-374b2d34d0e9'
select grme1_0.ROLE_ID from GROUP_ROLE_MAPPING grme1_0 where grme1_0.GROUP_ID=$1;

-- name: delete_user_attribute_1
-- from: org/keycloak/models/jpa/entities/UserAttributeEntity.java
-- with: 'tenant8'
delete from USER_ATTRIBUTE uae1_0 where uae1_0.USER_ID in (select ue1_0.ID from USER_ENTITY ue1_0 where ue1_0.REALM_ID=$1);

-- name: user_attribute_1
-- from: org/keycloak/models/jpa/entities/UserAttributeEntity.java
-- with: '{990d67a9-f946-96b1-abe2-dccf06900322,65dddd26-0c7d-42a3-92c2-9bf4532a8702}'
select a1_0.USER_ID,a1_0.ID,a1_0.LONG_VALUE,a1_0.LONG_VALUE_HASH,a1_0.LONG_VALUE_HASH_LOWER_CASE,a1_0.NAME,a1_0.VALUE from USER_ATTRIBUTE a1_0 where a1_0.USER_ID = any ($1);

-- name: user_attribute_2
-- from: org/keycloak/models/jpa/entities/UserAttributeEntity.java
-- with: '65dddd26-0c7d-42a3-92c2-9bf4532a8702'
select a1_0.USER_ID,a1_0.ID,a1_0.LONG_VALUE,a1_0.LONG_VALUE_HASH,a1_0.LONG_VALUE_HASH_LOWER_CASE,a1_0.NAME,a1_0.VALUE from USER_ATTRIBUTE a1_0 where a1_0.USER_ID=$1;

-- name: user_entity_1
-- from: org/keycloak/models/jpa/entities/UserEntity.java
-- with: 'tenant2'
select count(distinct ue1_0.ID) from USER_ENTITY ue1_0 where ue1_0.SERVICE_ACCOUNT_CLIENT_LINK is null and ue1_0.REALM_ID=$1;

-- name: user_entity_2
-- from: org/keycloak/models/jpa/entities/UserEntity.java
-- with: 'department', 'jade', 'tenant2', '0', '10'
select distinct ue1_0.ID,ue1_0.CREATED_TIMESTAMP,ue1_0.EMAIL,ue1_0.EMAIL_CONSTRAINT,ue1_0.EMAIL_VERIFIED,ue1_0.ENABLED,ue1_0.FEDERATION_LINK,ue1_0.FIRST_NAME,ue1_0.LAST_NAME,ue1_0.NOT_BEFORE,ue1_0.REALM_ID,ue1_0.SERVICE_ACCOUNT_CLIENT_LINK,ue1_0.USERNAME from USER_ENTITY ue1_0 left join USER_ATTRIBUTE a1_0 on ue1_0.ID=a1_0.USER_ID where a1_0.NAME=$1 and lower(a1_0.VALUE)=$2 and ue1_0.REALM_ID=$3 order by ue1_0.USERNAME offset $4 rows fetch first $5 rows only;

-- name: user_entity_3
-- from: org/keycloak/models/jpa/entities/UserEntity.java
-- with: '%jade%', '%amber%', 'tenant2', '0', '10'
select distinct ue1_0.ID,ue1_0.CREATED_TIMESTAMP,ue1_0.EMAIL,ue1_0.EMAIL_CONSTRAINT,ue1_0.EMAIL_VERIFIED,ue1_0.ENABLED,ue1_0.FEDERATION_LINK,ue1_0.FIRST_NAME,ue1_0.LAST_NAME,ue1_0.NOT_BEFORE,ue1_0.REALM_ID,ue1_0.SERVICE_ACCOUNT_CLIENT_LINK,ue1_0.USERNAME from USER_ENTITY ue1_0 where lower(ue1_0.LAST_NAME) like $1 escape '' and lower(ue1_0.FIRST_NAME) like $2 escape '' and ue1_0.REALM_ID=$3 order by ue1_0.USERNAME offset $4 rows fetch first $5 rows only;

-- name: user_entity_4
-- from: org/keycloak/models/jpa/entities/UserEntity.java
-- with: 'user77%', 'user77%', 'user77%', 'user77%', 'tenant2', '0', '20'
select distinct ue1_0.ID,ue1_0.CREATED_TIMESTAMP,ue1_0.EMAIL,ue1_0.EMAIL_CONSTRAINT,ue1_0.EMAIL_VERIFIED,ue1_0.ENABLED,ue1_0.FEDERATION_LINK,ue1_0.FIRST_NAME,ue1_0.LAST_NAME,ue1_0.NOT_BEFORE,ue1_0.REALM_ID,ue1_0.SERVICE_ACCOUNT_CLIENT_LINK,ue1_0.USERNAME from USER_ENTITY ue1_0 where ue1_0.SERVICE_ACCOUNT_CLIENT_LINK is null and (ue1_0.USERNAME like $1 escape '\' or ue1_0.EMAIL like $2 escape '\' or lower(ue1_0.FIRST_NAME) like $3 escape '\' or lower(ue1_0.LAST_NAME) like $4 escape '\') and ue1_0.REALM_ID=$5 order by ue1_0.USERNAME offset $6 rows fetch first $7 rows only;

-- name: user_entity_5
-- from: org/keycloak/models/jpa/entities/UserEntity.java
-- with: 'tenant2', '0', '20'
select distinct ue1_0.ID,ue1_0.CREATED_TIMESTAMP,ue1_0.EMAIL,ue1_0.EMAIL_CONSTRAINT,ue1_0.EMAIL_VERIFIED,ue1_0.ENABLED,ue1_0.FEDERATION_LINK,ue1_0.FIRST_NAME,ue1_0.LAST_NAME,ue1_0.NOT_BEFORE,ue1_0.REALM_ID,ue1_0.SERVICE_ACCOUNT_CLIENT_LINK,ue1_0.USERNAME from USER_ENTITY ue1_0 where ue1_0.SERVICE_ACCOUNT_CLIENT_LINK is null and ue1_0.REALM_ID=$1 order by ue1_0.USERNAME offset $2 rows fetch first $3 rows only;

-- name: user_group_membership_1
-- from: org/keycloak/models/jpa/entities/UserGroupMembershipEntity.java
-- with: '0146884a-998c-f96a-3674-137435409614'
select count(*) from USER_GROUP_MEMBERSHIP ugme1_0 where ugme1_0.USER_ID=$1;

-- name: user_group_membership_2
-- from: org/keycloak/models/jpa/entities/UserGroupMembershipEntity.java
-- with: 'b4104c0c-3f91-e2c1-25f4-ac27014b642e', '0', '20'
select u1_0.ID,u1_0.CREATED_TIMESTAMP,u1_0.EMAIL,u1_0.EMAIL_CONSTRAINT,u1_0.EMAIL_VERIFIED,u1_0.ENABLED,u1_0.FEDERATION_LINK,u1_0.FIRST_NAME,u1_0.LAST_NAME,u1_0.NOT_BEFORE,u1_0.REALM_ID,u1_0.SERVICE_ACCOUNT_CLIENT_LINK,u1_0.USERNAME from USER_GROUP_MEMBERSHIP ugme1_0 join USER_ENTITY u1_0 on u1_0.ID=ugme1_0.USER_ID where ugme1_0.GROUP_ID=$1 order by u1_0.USERNAME offset $2 rows fetch first $3 rows only;

-- name: user_group_membership_3
-- from: org/keycloak/models/jpa/entities/UserGroupMembershipEntity.java
-- with: '0146884a-998c-f96a-3674-137435409614'
select ugme1_0.GROUP_ID from USER_GROUP_MEMBERSHIP ugme1_0 join KEYCLOAK_GROUP ge1_0 on ge1_0.ID=ugme1_0.GROUP_ID where ge1_0.TYPE=1 and ugme1_0.USER_ID=$1;

-- name: user_group_membership_4
-- from: org/keycloak/models/jpa/entities/UserGroupMembershipEntity.java
-- with: '4a6e26c6-41ab-446d-8e3e-8018eb5c6a40', 'b4104c0c-3f91-e2c1-25f4-ac27014b642e'
select ugme1_0.GROUP_ID,ugme1_0.USER_ID,ugme1_0.MEMBERSHIP_TYPE from USER_GROUP_MEMBERSHIP ugme1_0 where ugme1_0.USER_ID=$1 and ugme1_0.GROUP_ID=$2 for no key update of ugme1_0;

-- name: delete_user_required_action_1
-- from: org/keycloak/models/jpa/entities/UserRequiredActionEntity.java
-- with: 'tenant8'
delete from USER_REQUIRED_ACTION urae1_0 where urae1_0.USER_ID in (select ue1_0.ID from USER_ENTITY ue1_0 where ue1_0.REALM_ID=$1);

-- name: user_required_action_1
-- from: org/keycloak/models/jpa/entities/UserRequiredActionEntity.java
-- with: '{990d67a9-f946-96b1-abe2-dccf06900322,65dddd26-0c7d-42a3-92c2-9bf4532a8702}'
select ra1_0.USER_ID,ra1_0.REQUIRED_ACTION from USER_REQUIRED_ACTION ra1_0 where ra1_0.USER_ID = any ($1);

-- name: user_required_action_2
-- from: org/keycloak/models/jpa/entities/UserRequiredActionEntity.java
-- with: '65dddd26-0c7d-42a3-92c2-9bf4532a8702'
select ra1_0.USER_ID,ra1_0.REQUIRED_ACTION from USER_REQUIRED_ACTION ra1_0 where ra1_0.USER_ID=$1;

-- name: delete_user_role_mapping_1
-- from: org/keycloak/models/jpa/entities/UserRoleMappingEntity.java
-- with: 'tenant8'
delete from USER_ROLE_MAPPING urme1_0 where urme1_0.USER_ID in (select ue1_0.ID from USER_ENTITY ue1_0 where ue1_0.REALM_ID=$1);

-- name: user_role_mapping_1
-- from: org/keycloak/models/jpa/entities/UserRoleMappingEntity.java
-- with: '65dddd26-0c7d-42a3-92c2-9bf4532a8702'
select urme1_0.ROLE_ID from USER_ROLE_MAPPING urme1_0 where urme1_0.USER_ID=$1;

-- name: delete_offline_client_session_1
-- from: org/keycloak/models/jpa/session/PersistentClientSessionEntity.java
-- with: 'tenant8'
delete from OFFLINE_CLIENT_SESSION pcse1_0 where pcse1_0.USER_SESSION_ID in (select puse1_0.USER_SESSION_ID from OFFLINE_USER_SESSION puse1_0 where puse1_0.REALM_ID=$1);

-- name: offline_client_session_1
-- from: org/keycloak/models/jpa/session/PersistentClientSessionEntity.java
-- with: 'a9feba09-00b7-4b9a-bd4d-2f04edf8509e', 'local', 'local', '0', '9fd9329d-7897-19b3-2263-f04009e1bcb9'
select pcse1_0.CLIENT_ID,pcse1_0.CLIENT_STORAGE_PROVIDER,pcse1_0.EXTERNAL_CLIENT_ID,pcse1_0.OFFLINE_FLAG,pcse1_0.USER_SESSION_ID,pcse1_0.DATA,pcse1_0.TIMESTAMP,pcse1_0.VERSION from OFFLINE_CLIENT_SESSION pcse1_0 where (pcse1_0.CLIENT_ID,pcse1_0.CLIENT_STORAGE_PROVIDER,pcse1_0.EXTERNAL_CLIENT_ID,pcse1_0.OFFLINE_FLAG,pcse1_0.USER_SESSION_ID) in (($1,$2,$3,$4,$5));

-- name: offline_client_session_2
-- from: org/keycloak/models/jpa/session/PersistentClientSessionEntity.java
-- with: '9fd9329d-7897-19b3-2263-f04009e1bcb9', '0', 'a9feba09-00b7-4b9a-bd4d-2f04edf8509e', '1'
select pcse1_0.CLIENT_ID,pcse1_0.CLIENT_STORAGE_PROVIDER,pcse1_0.EXTERNAL_CLIENT_ID,pcse1_0.OFFLINE_FLAG,pcse1_0.USER_SESSION_ID,pcse1_0.DATA,pcse1_0.TIMESTAMP,pcse1_0.VERSION from OFFLINE_CLIENT_SESSION pcse1_0 where pcse1_0.USER_SESSION_ID=$1 and pcse1_0.OFFLINE_FLAG=$2 and pcse1_0.CLIENT_ID=$3 and pcse1_0.CLIENT_ID<>'external' fetch first $4 rows only;

-- name: offline_client_session_3
-- from: org/keycloak/models/jpa/session/PersistentClientSessionEntity.java
-- with: '0', 'tenant2', '1795977048'
select pcse1_0.CLIENT_ID,pcse1_0.EXTERNAL_CLIENT_ID,pcse1_0.CLIENT_STORAGE_PROVIDER,count(*) from OFFLINE_CLIENT_SESSION pcse1_0 join OFFLINE_USER_SESSION puse1_0 on pcse1_0.USER_SESSION_ID=puse1_0.USER_SESSION_ID and puse1_0.OFFLINE_FLAG=pcse1_0.OFFLINE_FLAG where puse1_0.OFFLINE_FLAG=$1 and puse1_0.REALM_ID=$2 and puse1_0.LAST_SESSION_REFRESH>=$3 group by pcse1_0.CLIENT_ID,pcse1_0.EXTERNAL_CLIENT_ID,pcse1_0.CLIENT_STORAGE_PROVIDER;

-- name: offline_user_session_1
-- from: org/keycloak/models/jpa/session/PersistentUserSessionEntity.java
-- with: '0', 'tenant2', '0146884a-998c-f96a-3674-137435409614', '1795977045', '0', '1073741823'
select puse1_0.OFFLINE_FLAG,puse1_0.USER_SESSION_ID,puse1_0.BROKER_SESSION_ID,puse1_0.CREATED_ON,puse1_0.DATA,puse1_0.LAST_SESSION_REFRESH,puse1_0.REALM_ID,puse1_0.USER_ID,puse1_0.VERSION from OFFLINE_USER_SESSION puse1_0 where puse1_0.OFFLINE_FLAG=$1 and puse1_0.REALM_ID=$2 and puse1_0.USER_ID=$3 and puse1_0.LAST_SESSION_REFRESH>=$4 order by puse1_0.USER_SESSION_ID offset $5 rows fetch first $6 rows only;

-- name: offline_user_session_2
-- from: org/keycloak/models/jpa/session/PersistentUserSessionEntity.java
-- with: '0', '9fd9329d-7897-19b3-2263-f04009e1bcb9', 'f6c507a9-72fd-42a9-a4e8-b6670e33e83a', '1795977033', '1'
select puse1_0.OFFLINE_FLAG,puse1_0.USER_SESSION_ID,puse1_0.BROKER_SESSION_ID,puse1_0.CREATED_ON,puse1_0.DATA,puse1_0.LAST_SESSION_REFRESH,puse1_0.REALM_ID,puse1_0.USER_ID,puse1_0.VERSION from OFFLINE_USER_SESSION puse1_0 where puse1_0.OFFLINE_FLAG=$1 and puse1_0.USER_SESSION_ID=$2 and puse1_0.REALM_ID=$3 and puse1_0.LAST_SESSION_REFRESH>=$4 fetch first $5 rows only;
