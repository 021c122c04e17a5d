-- Experiments and their measurements: optuna 5.0.0 (PyPI) with SQLAlchemy 2.1.9 and psycopg 3.3.9: its storage's calls and an optimization.

-- name: trial_heartbeats_1
-- from: optuna/storages/_rdb/models.py
-- with: '60001'
SELECT trial_heartbeats.trial_heartbeat_id AS trial_heartbeats_trial_heartbeat_id, trial_heartbeats.trial_id AS trial_heartbeats_trial_id, trial_heartbeats.heartbeat AS trial_heartbeats_heartbeat FROM trial_heartbeats WHERE trial_heartbeats.trial_id = $1::INTEGER;

-- name: trial_heartbeats_2
-- from: optuna/storages/_rdb/models.py
-- with: '59906', '59907', '59919', '59937', '59939', '59950', '59954', '59966', '59977', '59979', '59983', '60000'
SELECT trial_heartbeats.trial_id, trial_heartbeats.trial_heartbeat_id, trial_heartbeats.heartbeat FROM trial_heartbeats WHERE trial_heartbeats.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER, $8::INTEGER, $9::INTEGER, $10::INTEGER, $11::INTEGER, $12::INTEGER);

-- name: trial_intermediate_values_1
-- from: optuna/storages/_rdb/models.py
-- with: '4261', '5322', '6659', '7236', '7299', '8215', '9306', '9709', '10119', '10464', '10514', '10934', '11972', '12143', '12490', '12867', '13435', '15594', '16044', '16499', '16718', '17882', '18052', '19340', '19488', '20642', '21440', '22592', '22648', '23815', '24110', '24975', '25208', '25314', '25348', '25787', '26129', '26189', '26911', '28228', '28690', '28735', '29340', '30811', '31019', '32265', '32503', '32877', '34830', '35653', '36474', '37438', '39955', '40377', '40694', '40915', '41715', '41718', '42321', '42436', '42908', '43606', '43820', '45478', '46789', '48038', '49488', '49709', '50113', '50577', '50870', '52180', '53102', '54411', '54492', '54834', '54913', '55268', '55350', '56035', '56573', '58679', '59113', '59698', '59934'
SELECT trial_intermediate_values.trial_id, trial_intermediate_values.trial_intermediate_value_id, trial_intermediate_values.step, trial_intermediate_values.intermediate_value, trial_intermediate_values.intermediate_value_type FROM trial_intermediate_values WHERE trial_intermediate_values.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER, $8::INTEGER, $9::INTEGER, $10::INTEGER, $11::INTEGER, $12::INTEGER, $13::INTEGER, $14::INTEGER, $15::INTEGER, $16::INTEGER, $17::INTEGER, $18::INTEGER, $19::INTEGER, $20::INTEGER, $21::INTEGER, $22::INTEGER, $23::INTEGER, $24::INTEGER, $25::INTEGER, $26::INTEGER, $27::INTEGER, $28::INTEGER, $29::INTEGER, $30::INTEGER, $31::INTEGER, $32::INTEGER, $33::INTEGER, $34::INTEGER, $35::INTEGER, $36::INTEGER, $37::INTEGER, $38::INTEGER, $39::INTEGER, $40::INTEGER, $41::INTEGER, $42::INTEGER, $43::INTEGER, $44::INTEGER, $45::INTEGER, $46::INTEGER, $47::INTEGER, $48::INTEGER, $49::INTEGER, $50::INTEGER, $51::INTEGER, $52::INTEGER, $53::INTEGER, $54::INTEGER, $55::INTEGER, $56::INTEGER, $57::INTEGER, $58::INTEGER, $59::INTEGER, $60::INTEGER, $61::INTEGER, $62::INTEGER, $63::INTEGER, $64::INTEGER, $65::INTEGER, $66::INTEGER, $67::INTEGER, $68::INTEGER, $69::INTEGER, $70::INTEGER, $71::INTEGER, $72::INTEGER, $73::INTEGER, $74::INTEGER, $75::INTEGER, $76::INTEGER, $77::INTEGER, $78::INTEGER, $79::INTEGER, $80::INTEGER, $81::INTEGER, $82::INTEGER, $83::INTEGER, $84::INTEGER, $85::INTEGER);

-- name: trial_intermediate_values_2
-- from: optuna/storages/_rdb/models.py
-- with: '60001', '0'
SELECT trial_intermediate_values.trial_intermediate_value_id AS trial_intermediate_values_trial_intermediate_value_id, trial_intermediate_values.trial_id AS trial_intermediate_values_trial_id, trial_intermediate_values.step AS trial_intermediate_values_step, trial_intermediate_values.intermediate_value AS trial_intermediate_values_intermediate_value, trial_intermediate_values.intermediate_value_type AS trial_intermediate_values_intermediate_value_type FROM trial_intermediate_values WHERE trial_intermediate_values.trial_id = $1::INTEGER AND trial_intermediate_values.step = $2::INTEGER;

-- name: trial_params_1
-- from: optuna/storages/_rdb/models.py
-- with: '7', 'lr', '1'
SELECT trial_params.param_id AS trial_params_param_id, trial_params.trial_id AS trial_params_trial_id, trial_params.param_name AS trial_params_param_name, trial_params.param_value AS trial_params_param_value, trial_params.distribution_json AS trial_params_distribution_json FROM trial_params JOIN trials ON trials.trial_id = trial_params.trial_id WHERE trials.study_id = $1::INTEGER AND trial_params.param_name = $2::VARCHAR LIMIT $3::INTEGER;

-- name: trial_params_2
-- from: optuna/storages/_rdb/models.py
-- with: '33349'
SELECT trial_params.param_id, trial_params.trial_id, trial_params.param_name, trial_params.param_value, trial_params.distribution_json FROM trial_params WHERE $1::INTEGER = trial_params.trial_id;

-- name: trial_params_3
-- from: optuna/storages/_rdb/models.py
-- with: '40188', '40233', '40271', '40393', '40408', '40650', '40705', '40829', '40883', '40916', '41095', '41115', '41155', '41236', '41293', '41299', '41367', '41419', '41439', '41532', '41743', '41768', '41868', '41889', '41972', '42181', '42510', '42658', '42689', '42714', '42771', '42792', '42853', '42896', '42913', '42923', '43032', '43147', '43189', '43274', '43278', '43531', '43732', '43740', '43761', '43767', '43805', '43873', '43924', '43965', '44176', '44350', '44383', '44384', '44511', '44579', '44799', '45124', '45163', '45447', '45559', '45661', '45770', '45830', '45930', '45934', '45937', '46080', '46261', '46426', '46548', '46602', '46635', '46689', '46813', '46896', '46968', '46996', '47051', '47096', '47145', '47157', '47226', '47274', '47728', '47738', '47819', '47854', '47933', '47936', '48059', '48173', '48332', '48351', '48589', '48760', '48775', '48860', '49038', '49111', '49126', '49205', '49344', '49397', '49619', '49726', '49773', '49812', '49874', '49958', '50133', '50177', '50197', '50279', '50381', '50477', '50574', '50716', '50940', '51092', '51333', '51644', '51744', '51750', '51955', '52281', '52338', '52485', '52558', '52653', '52716', '52734', '52807', '52839', '52887', '53017', '53045', '53094', '53131', '53159', '53280', '53300', '53307', '53483', '53752', '53843', '53858', '53923', '53942', '54053', '54099', '54115', '54135', '54206', '54233', '54351', '54485', '54510', '54530', '54575', '54664', '54730', '54965', '55026', '55083', '55304', '55556', '55611', '55700', '55716', '55747', '55879', '55918', '56079', '56093', '56161', '56197', '56346', '56421', '56457', '56673', '56697', '56832', '56888', '57137', '57150', '57251', '57257', '57322', '57405', '57462', '57525', '57561', '57587', '57802', '57858', '57895', '57940', '57953', '57964', '57969', '58220', '58276', '58401', '58490', '58690', '58868', '58869', '58936', '58970', '58978', '59083', '59199', '59238', '59380', '59399', '59536', '59543', '59647', '59667', '59695', '59859'
SELECT trial_params.trial_id, trial_params.param_id, trial_params.param_name, trial_params.param_value, trial_params.distribution_json FROM trial_params WHERE trial_params.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER, $8::INTEGER, $9::INTEGER, $10::INTEGER, $11::INTEGER, $12::INTEGER, $13::INTEGER, $14::INTEGER, $15::INTEGER, $16::INTEGER, $17::INTEGER, $18::INTEGER, $19::INTEGER, $20::INTEGER, $21::INTEGER, $22::INTEGER, $23::INTEGER, $24::INTEGER, $25::INTEGER, $26::INTEGER, $27::INTEGER, $28::INTEGER, $29::INTEGER, $30::INTEGER, $31::INTEGER, $32::INTEGER, $33::INTEGER, $34::INTEGER, $35::INTEGER, $36::INTEGER, $37::INTEGER, $38::INTEGER, $39::INTEGER, $40::INTEGER, $41::INTEGER, $42::INTEGER, $43::INTEGER, $44::INTEGER, $45::INTEGER, $46::INTEGER, $47::INTEGER, $48::INTEGER, $49::INTEGER, $50::INTEGER, $51::INTEGER, $52::INTEGER, $53::INTEGER, $54::INTEGER, $55::INTEGER, $56::INTEGER, $57::INTEGER, $58::INTEGER, $59::INTEGER, $60::INTEGER, $61::INTEGER, $62::INTEGER, $63::INTEGER, $64::INTEGER, $65::INTEGER, $66::INTEGER, $67::INTEGER, $68::INTEGER, $69::INTEGER, $70::INTEGER, $71::INTEGER, $72::INTEGER, $73::INTEGER, $74::INTEGER, $75::INTEGER, $76::INTEGER, $77::INTEGER, $78::INTEGER, $79::INTEGER, $80::INTEGER, $81::INTEGER, $82::INTEGER, $83::INTEGER, $84::INTEGER, $85::INTEGER, $86::INTEGER, $87::INTEGER, $88::INTEGER, $89::INTEGER, $90::INTEGER, $91::INTEGER, $92::INTEGER, $93::INTEGER, $94::INTEGER, $95::INTEGER, $96::INTEGER, $97::INTEGER, $98::INTEGER, $99::INTEGER, $100::INTEGER, $101::INTEGER, $102::INTEGER, $103::INTEGER, $104::INTEGER, $105::INTEGER, $106::INTEGER, $107::INTEGER, $108::INTEGER, $109::INTEGER, $110::INTEGER, $111::INTEGER, $112::INTEGER, $113::INTEGER, $114::INTEGER, $115::INTEGER, $116::INTEGER, $117::INTEGER, $118::INTEGER, $119::INTEGER, $120::INTEGER, $121::INTEGER, $122::INTEGER, $123::INTEGER, $124::INTEGER, $125::INTEGER, $126::INTEGER, $127::INTEGER, $128::INTEGER, $129::INTEGER, $130::INTEGER, $131::INTEGER, $132::INTEGER, $133::INTEGER, $134::INTEGER, $135::INTEGER, $136::INTEGER, $137::INTEGER, $138::INTEGER, $139::INTEGER, $140::INTEGER, $141::INTEGER, $142::INTEGER, $143::INTEGER, $144::INTEGER, $145::INTEGER, $146::INTEGER, $147::INTEGER, $148::INTEGER, $149::INTEGER, $150::INTEGER, $151::INTEGER, $152::INTEGER, $153::INTEGER, $154::INTEGER, $155::INTEGER, $156::INTEGER, $157::INTEGER, $158::INTEGER, $159::INTEGER, $160::INTEGER, $161::INTEGER, $162::INTEGER, $163::INTEGER, $164::INTEGER, $165::INTEGER, $166::INTEGER, $167::INTEGER, $168::INTEGER, $169::INTEGER, $170::INTEGER, $171::INTEGER, $172::INTEGER, $173::INTEGER, $174::INTEGER, $175::INTEGER, $176::INTEGER, $177::INTEGER, $178::INTEGER, $179::INTEGER, $180::INTEGER, $181::INTEGER, $182::INTEGER, $183::INTEGER, $184::INTEGER, $185::INTEGER, $186::INTEGER, $187::INTEGER, $188::INTEGER, $189::INTEGER, $190::INTEGER, $191::INTEGER, $192::INTEGER, $193::INTEGER, $194::INTEGER, $195::INTEGER, $196::INTEGER, $197::INTEGER, $198::INTEGER, $199::INTEGER, $200::INTEGER, $201::INTEGER, $202::INTEGER, $203::INTEGER, $204::INTEGER, $205::INTEGER, $206::INTEGER, $207::INTEGER, $208::INTEGER, $209::INTEGER, $210::INTEGER, $211::INTEGER, $212::INTEGER, $213::INTEGER, $214::INTEGER, $215::INTEGER, $216::INTEGER, $217::INTEGER, $218::INTEGER, $219::INTEGER, $220::INTEGER, $221::INTEGER, $222::INTEGER);

-- name: trial_system_attributes_1
-- from: optuna/storages/_rdb/models.py
-- with: '1395', '4662', '17842', '26715', '38764', '45124', '45830'
SELECT trial_system_attributes.trial_id, trial_system_attributes.trial_system_attribute_id, trial_system_attributes.key, trial_system_attributes.value_json FROM trial_system_attributes WHERE trial_system_attributes.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER);

-- name: trial_system_attributes_2
-- from: optuna/storages/_rdb/models.py
-- with: '33349'
SELECT trial_system_attributes.trial_system_attribute_id, trial_system_attributes.trial_id, trial_system_attributes.key, trial_system_attributes.value_json FROM trial_system_attributes WHERE $1::INTEGER = trial_system_attributes.trial_id;

-- name: trial_user_attributes_1
-- from: optuna/storages/_rdb/models.py
-- with: '4261', '5322', '6659', '7236', '7299', '8215', '9306', '9709', '10119', '10464', '10514', '10934', '11972', '12143', '12490', '12867', '13435', '15594', '16044', '16499', '16718', '17882', '18052', '19340', '19488', '20642', '21440', '22592', '22648', '23815', '24110', '24975', '25208', '25314', '25348', '25787', '26129', '26189', '26911', '28228', '28690', '28735', '29340', '30811', '31019', '32265', '32503', '32877', '34830', '35653', '36474', '37438', '39955', '40377', '40694', '40915', '41715', '41718', '42321', '42436', '42908', '43606', '43820', '45478', '46789', '48038', '49488', '49709', '50113', '50577', '50870', '52180', '53102', '54411', '54492', '54834', '54913', '55268', '55350', '56035', '56573', '58679', '59113', '59698', '59934'
SELECT trial_user_attributes.trial_id, trial_user_attributes.trial_user_attribute_id, trial_user_attributes.key, trial_user_attributes.value_json FROM trial_user_attributes WHERE trial_user_attributes.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER, $8::INTEGER, $9::INTEGER, $10::INTEGER, $11::INTEGER, $12::INTEGER, $13::INTEGER, $14::INTEGER, $15::INTEGER, $16::INTEGER, $17::INTEGER, $18::INTEGER, $19::INTEGER, $20::INTEGER, $21::INTEGER, $22::INTEGER, $23::INTEGER, $24::INTEGER, $25::INTEGER, $26::INTEGER, $27::INTEGER, $28::INTEGER, $29::INTEGER, $30::INTEGER, $31::INTEGER, $32::INTEGER, $33::INTEGER, $34::INTEGER, $35::INTEGER, $36::INTEGER, $37::INTEGER, $38::INTEGER, $39::INTEGER, $40::INTEGER, $41::INTEGER, $42::INTEGER, $43::INTEGER, $44::INTEGER, $45::INTEGER, $46::INTEGER, $47::INTEGER, $48::INTEGER, $49::INTEGER, $50::INTEGER, $51::INTEGER, $52::INTEGER, $53::INTEGER, $54::INTEGER, $55::INTEGER, $56::INTEGER, $57::INTEGER, $58::INTEGER, $59::INTEGER, $60::INTEGER, $61::INTEGER, $62::INTEGER, $63::INTEGER, $64::INTEGER, $65::INTEGER, $66::INTEGER, $67::INTEGER, $68::INTEGER, $69::INTEGER, $70::INTEGER, $71::INTEGER, $72::INTEGER, $73::INTEGER, $74::INTEGER, $75::INTEGER, $76::INTEGER, $77::INTEGER, $78::INTEGER, $79::INTEGER, $80::INTEGER, $81::INTEGER, $82::INTEGER, $83::INTEGER, $84::INTEGER, $85::INTEGER);

-- name: trial_user_attributes_2
-- from: optuna/storages/_rdb/models.py
-- with: '33349'
SELECT trial_user_attributes.trial_user_attribute_id, trial_user_attributes.trial_id, trial_user_attributes.key, trial_user_attributes.value_json FROM trial_user_attributes WHERE $1::INTEGER = trial_user_attributes.trial_id;

-- name: trial_values_1
-- from: optuna/storages/_rdb/models.py
-- with: '1395', '4662', '17842', '26715', '38764', '45124', '45830'
SELECT trial_values.trial_id, trial_values.trial_value_id, trial_values.objective, trial_values.value, trial_values.value_type FROM trial_values WHERE trial_values.trial_id IN ($1::INTEGER, $2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER);

-- name: trial_values_2
-- from: optuna/storages/_rdb/models.py
-- with: '33349'
SELECT trial_values.trial_value_id, trial_values.trial_id, trial_values.objective, trial_values.value, trial_values.value_type FROM trial_values WHERE $1::INTEGER = trial_values.trial_id;

-- name: trials_1
-- from: optuna/storages/_rdb/models.py
-- with: '8', 'COMPLETE', '0', 'INF_NEG', '-1', 'FINITE', '0', 'INF_POS', '1', '1'
SELECT trials.trial_id AS trials_trial_id FROM trials JOIN trial_values ON trials.trial_id = trial_values.trial_id WHERE trials.study_id = $1::INTEGER AND trials.state = $2 AND trial_values.objective = $3::INTEGER ORDER BY CASE WHEN (trial_values.value_type = $4) THEN $5::INTEGER WHEN (trial_values.value_type = $6) THEN $7::INTEGER WHEN (trial_values.value_type = $8) THEN $9::INTEGER END ASC, trial_values.value ASC LIMIT $10::INTEGER;

-- name: trials_2
-- from: optuna/storages/_rdb/models.py
-- with: 'RUNNING', '1'
SELECT trials.trial_id AS trials_trial_id, trials.number AS trials_number, trials.study_id AS trials_study_id, trials.state AS trials_state, trials.datetime_start AS trials_datetime_start, trials.datetime_complete AS trials_datetime_complete FROM trials WHERE trials.state = $1 AND trials.study_id = $2::INTEGER;

-- name: trials_3
-- from: optuna/storages/_rdb/models.py
-- with: '9', '45124', '45830', '38764', '17842', '1395', '4662', '26715', '59859'
SELECT trials.trial_id AS trials_trial_id, trials.number AS trials_number, trials.study_id AS trials_study_id, trials.state AS trials_state, trials.datetime_start AS trials_datetime_start, trials.datetime_complete AS trials_datetime_complete FROM trials WHERE trials.study_id = $1::INTEGER AND (trials.trial_id IN ($2::INTEGER, $3::INTEGER, $4::INTEGER, $5::INTEGER, $6::INTEGER, $7::INTEGER, $8::INTEGER) OR trials.trial_id > $9::INTEGER) ORDER BY trials.trial_id;

-- name: trials_4
-- from: optuna/storages/_rdb/models.py
-- with: '1', 'COMPLETE'
SELECT trials.trial_id AS trials_trial_id, trials.number AS trials_number, trials.study_id AS trials_study_id, trials.state AS trials_state, trials.datetime_start AS trials_datetime_start, trials.datetime_complete AS trials_datetime_complete FROM trials WHERE trials.study_id = $1::INTEGER AND trials.state IN ($2) ORDER BY trials.trial_id;

-- name: delete_trial_params_1
-- from: optuna/storages/_rdb/storage.py
-- with: '1249'
DELETE FROM trial_params WHERE trial_params.param_id = $1::INTEGER;

-- name: delete_trial_system_attributes_1
-- from: optuna/storages/_rdb/storage.py
-- with: '910'
DELETE FROM trial_system_attributes WHERE trial_system_attributes.trial_system_attribute_id = $1::INTEGER;

-- name: delete_trial_user_attributes_1
-- from: optuna/storages/_rdb/storage.py
-- with: '1249'
DELETE FROM trial_user_attributes WHERE trial_user_attributes.trial_user_attribute_id = $1::INTEGER;

-- name: delete_trial_values_1
-- from: optuna/storages/_rdb/storage.py
-- with: '1000'
DELETE FROM trial_values WHERE trial_values.trial_value_id = $1::INTEGER;

-- name: update_trials_1
-- from: optuna/storages/_rdb/storage.py
-- with: 'RUNNING', '2026-11-29 18:59:23.542895', '1395'
UPDATE trials SET state=$1, datetime_start=$2::TIMESTAMP WITHOUT TIME ZONE WHERE trials.trial_id = $3::INTEGER;
