INSERT INTO forum_permission_forumpermission VALUES
	(1, 'can_see_forum'),
	(2, 'can_read_forum'),
	(3, 'can_start_new_topics'),
	(4, 'can_reply_to_topics'),
	(5, 'can_post_announcements'),
	(6, 'can_post_stickies'),
	(7, 'can_delete_own_posts'),
	(8, 'can_edit_own_posts'),
	(9, 'can_post_without_approval'),
	(10, 'can_create_polls'),
	(11, 'can_vote_in_polls'),
	(12, 'can_attach_file'),
	(13, 'can_download_file'),
	(14, 'can_lock_topics'),
	(15, 'can_move_topics'),
	(16, 'can_edit_posts'),
	(17, 'can_delete_posts'),
	(18, 'can_approve_posts'),
	(19, 'can_reply_to_locked_topics');
INSERT INTO auth_user (id, password, last_login, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined)
SELECT i,
    '!' || md5('u' || i),
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576 + floor(p * 86400)::int) * interval '1 second',
    i <= 3,
    'user' || i,
    x || ' ' || y || ' ' || i,
    x || ' ' || y || ' ' || i,
    'auth_user' || i || '@example.com',
    i <= 20,
    c < 0.97,
    timestamptz '2025-01-01 00:00:00+00' + (i * 1576 + floor(c * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 20000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('auth_user', 'id'), 20000);
INSERT INTO auth_group (id, name)
SELECT i,
    'group ' || i
FROM noise WHERE i <= 5 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('auth_group', 'id'), 5);
INSERT INTO auth_user_groups (id, user_id, group_id)
SELECT i,
    i,
    1 + floor(a * a * 5)::int
FROM noise WHERE i <= 20000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('auth_user_groups', 'id'), 20000);
INSERT INTO forum_forum (id, created, updated, name, slug, link_redirects, type, link_redirects_count, last_post_on, display_sub_forum_list, lft, rght, tree_id, level, parent_id, direct_posts_count, direct_topics_count)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 262800 + floor(a * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 262800 + floor(f * 86400)::int) * interval '1 second',
    w || ' ' || x || ' ' || i,
    'forum-' || i,
    false,
    CASE WHEN i <= 20 THEN 1 ELSE 0 END,
    floor(p * p * 100)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 262800 + floor(d * 86400)::int) * interval '1 second',
    j < 0.8,
    CASE WHEN i <= 20 THEN 1 ELSE 2 + 2 * ((i - 21) % 5) END,
    CASE WHEN i <= 20 THEN 12 ELSE 3 + 2 * ((i - 21) % 5) END,
    CASE WHEN i <= 20 THEN i ELSE 1 + (i - 21) / 5 END,
    CASE WHEN i <= 20 THEN 0 ELSE 1 END,
    CASE WHEN i > 20 THEN 1 + (i - 21) / 5 END,
    floor(c * c * 100)::int,
    floor(h * h * 100)::int
FROM noise WHERE i <= 120 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('forum_forum', 'id'), 120);
INSERT INTO forum_conversation_topic (id, created, updated, subject, slug, type, status, approved, posts_count, views_count, forum_id, poster_id)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 788 + floor(o * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 788 + floor(c * 86400)::int) * interval '1 second',
    y || ' ' || x || ' ' || i,
    'topic-' || i,
    CASE WHEN d < 0.01 THEN 2 WHEN d < 0.03 THEN 1 ELSE 0 END,
    CASE WHEN e < 0.95 THEN 0 ELSE 1 END,
    f < 0.98,
    5,
    floor(n * n * 100)::int,
    21 + floor(100 * a * a)::int,
    CASE WHEN b < 0.9 THEN 1 + floor(20000 * c * c)::int END
FROM noise WHERE i <= 40000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('forum_conversation_topic', 'id'), 40000);
INSERT INTO forum_conversation_post (id, created, updated, subject, content, approved, updates_count, poster_id, topic_id, anonymous_key, enable_signature)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 157 + floor(n * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 157 + floor(b * 86400)::int) * interval '1 second',
    x || ' ' || w || ' ' || i,
    repeat(w || ' ', 5 + floor(h * 30)::int),
    f < 0.98,
    floor(m * m * 100)::int,
    CASE WHEN b < 0.9 THEN 1 + floor(20000 * c * c)::int END,
    CASE WHEN i <= 40000 THEN i ELSE 1 + floor(40000 * g * g)::int END,
    CASE WHEN b >= 0.9 THEN md5('k' || i) END,
    a < 0.8
FROM noise WHERE i <= 200000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('forum_conversation_post', 'id'), 200000);
INSERT INTO forum_conversation_topic_subscribers (id, topic_id, user_id)
SELECT i,
    1 + floor(40000 * a * a)::int,
    1 + floor(20000 * b)::int
FROM noise WHERE i <= 40000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('forum_conversation_topic_subscribers', 'id'), 40000);
INSERT INTO forum_permission_groupforumpermission (id, has_perm, forum_id, group_id, permission_id)
SELECT i,
    l < 0.8,
    1 + (i - 1) % 120,
    1 + (i / 120) % 5,
    1 + floor(a * 19)::int
FROM noise WHERE i <= 1500 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('forum_permission_groupforumpermission', 'id'), 1500);
INSERT INTO forum_permission_userforumpermission (id, has_perm, anonymous_user, forum_id, permission_id, user_id, authenticated_user)
SELECT i,
    e < 0.9,
    i <= 200,
    CASE WHEN a < 0.9 THEN 1 + floor(120 * b)::int END,
    1 + floor(d * 19)::int,
    CASE WHEN i > 400 THEN 1 + floor(20000 * c)::int END,
    i BETWEEN 201 AND 400
FROM noise WHERE i <= 8000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('forum_permission_userforumpermission', 'id'), 8000);
INSERT INTO forum_polls_topicpolloption (id, text, poll_id)
SELECT i,
    repeat(x || ' ', 1 + floor(p * 20)::int),
    1 + (i - 1) / 4
FROM noise WHERE i <= 8000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('forum_polls_topicpolloption', 'id'), 8000);
INSERT INTO forum_polls_topicpollvote (id, timestamp, poll_option_id, voter_id)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(p * 86400)::int) * interval '1 second',
    1 + floor(8000 * a * a)::int,
    1 + floor(20000 * b)::int
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('forum_polls_topicpollvote', 'id'), 60000);
INSERT INTO forum_tracking_forumreadtrack (id, mark_time, forum_id, user_id)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + floor(c * 31536000)::int * interval '1 second',
    1 + floor(120 * a)::int,
    1 + floor(20000 * b * b)::int
FROM noise WHERE i <= 30000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('forum_tracking_forumreadtrack', 'id'), 30000);
INSERT INTO forum_tracking_topicreadtrack (id, mark_time, topic_id, user_id)
SELECT i,
    timestamptz '2025-01-01 00:00:00+00' + floor(c * 31536000)::int * interval '1 second',
    1 + floor(40000 * a)::int,
    1 + floor(20000 * b * b)::int
FROM noise WHERE i <= 80000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('forum_tracking_topicreadtrack', 'id'), 80000);
UPDATE forum_conversation_topic t SET first_post_id = p.first, last_post_id = p.last, last_post_on = p.at, posts_count = p.n FROM (SELECT topic_id, min(id) AS first, max(id) AS last, max(created) AS at, count(*) AS n FROM forum_conversation_post GROUP BY topic_id) p WHERE p.topic_id = t.id;
UPDATE forum_forum f SET direct_topics_count = t.n, last_post_id = t.last, last_post_on = t.at FROM (SELECT forum_id, count(*) AS n, max(last_post_id) AS last, max(last_post_on) AS at FROM forum_conversation_topic GROUP BY forum_id) t WHERE t.forum_id = f.id;
