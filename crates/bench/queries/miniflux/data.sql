INSERT INTO users (id, username, password, is_admin, language, timezone, theme, last_login_at, entry_direction, keyboard_shortcuts, entries_per_page, show_reading_time, entry_swipe, google_id, openid_connect_id, display_mode, entry_order, default_reading_speed, cjk_reading_speed, default_home_page, gesture_nav, mark_read_on_view, media_playback_rate, mark_read_on_media_player_completion, always_open_external_links, open_external_links_in_new_tab)
SELECT i,
    'user' || i,
    '',
    l < 0.8,
    y,
    'UTC',
    y,
    timestamptz '2025-01-01 00:00:00+00' + (i * 63072 + floor(k * 86400)::int) * interval '1 second',
    (ARRAY['asc', 'desc'])[1 + floor(p * p * 2)::int]::entry_sorting_direction,
    d < 0.8,
    floor(j * j * 100)::int,
    o < 0.8,
    c < 0.8,
    '',
    '',
    (ARRAY['fullscreen', 'standalone', 'minimal-ui', 'browser'])[1 + floor(n * n * 4)::int]::webapp_display_mode,
    (ARRAY['published_at', 'created_at'])[1 + floor(b * b * 2)::int]::entry_sorting_order,
    floor(g * g * 100)::int,
    floor(m * m * 100)::int,
    x,
    w,
    q < 0.8,
    round((e * e * 500)::numeric, 2),
    d < 0.8,
    c < 0.8,
    h < 0.8
FROM noise WHERE i <= 500 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('users', 'id'), 500);
INSERT INTO categories (id, user_id, title, hide_globally)
SELECT i,
    1 + (i - 1) / 5,
    'category ' || i,
    q < 0.8
FROM noise WHERE i <= 2500 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('categories', 'id'), 2500);
INSERT INTO icons (id, hash, mime_type, content, external_id)
SELECT i,
    md5('icon' || i),
    'image/png',
    decode(md5('c' || i), 'hex'),
    md5('ext' || i)
FROM noise WHERE i <= 2000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('icons', 'id'), 2000);
INSERT INTO feeds (id, user_id, category_id, title, feed_url, site_url, checked_at, etag_header, last_modified_header, parsing_error_msg, parsing_error_count, scraper_rules, rewrite_rules, crawler, username, password, user_agent, disabled, next_check_at, ignore_http_cache, fetch_via_proxy, allow_self_signed_certificates, cookie, hide_globally, url_rewrite_rules, no_media_player, apprise_service_urls, disable_http2, description, ntfy_enabled, ntfy_priority, webhook_url, pushover_enabled, pushover_priority, ntfy_topic, ignore_entry_updates)
SELECT i,
    1 + (i - 1) / 20,
    1 + (i - 1) / 4,
    w || ' ' || x || ' ' || i,
    'https://example.com/feed/' || i,
    'https://example.com/' || i,
    timestamptz '2025-12-01 00:00:00+00',
    w,
    y,
    y,
    CASE WHEN b < 0.9 THEN 0 ELSE floor(c * 10)::int END,
    y,
    x,
    d < 0.8,
    'feeds-' || i,
    w,
    w,
    d < 0.05,
    timestamptz '2025-12-01 00:00:00+00' + floor(a * 86400)::int * interval '1 second',
    h < 0.8,
    n < 0.8,
    m < 0.8,
    x,
    e < 0.05,
    'feeds-' || i,
    l < 0.8,
    'feeds-' || i,
    e < 0.8,
    repeat(y || ' ', 1 + floor(h * 20)::int),
    p < 0.8,
    floor(d * d * 100)::int,
    'feeds-' || i,
    o < 0.8,
    floor(c * c * 100)::int,
    y,
    g < 0.8
FROM noise WHERE i <= 10000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('feeds', 'id'), 10000);
INSERT INTO feed_icons (feed_id, icon_id)
SELECT i,
    1 + floor(2000 * a)::int
FROM noise WHERE i <= 9000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
INSERT INTO entries (id, user_id, feed_id, hash, published_at, title, url, author, content, status, starred, comments_url, changed_at, share_code, reading_time, created_at, tags, language)
SELECT i,
    1 + floor(10000 * a * a)::int / 20,
    1 + floor(10000 * a * a)::int,
    md5('e' || i),
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(n * 86400)::int) * interval '1 second',
    w || ' ' || x || ' ' || y || ' ' || i,
    'https://example.com/e/' || i,
    x || ' ' || y,
    repeat(w || ' ', 20 + floor(e * 100)::int),
    (CASE WHEN b < 0.3 AND i > 50000 THEN 'unread' ELSE 'read' END)::entry_status,
    c < 0.01,
    '',
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(b * 86400)::int) * interval '1 second',
    CASE WHEN d < 0.002 THEN 'share' || i ELSE '' END,
    floor(f * 20)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(g * 86400)::int) * interval '1 second',
    ARRAY[w, x],
    ''
FROM noise WHERE i <= 150000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('entries', 'id'), 150000);
INSERT INTO enclosures (id, user_id, entry_id, url, size, mime_type, media_progression)
SELECT i,
    1 + i % 500,
    1 + (i * 3),
    'https://example.com/a/' || i || '.mp3',
    floor(q * q * 100)::int,
    (ARRAY['new', 'open', 'done', 'failed'])[1 + floor(e * e * 4)::int],
    floor(k * k * 100)::int
FROM noise WHERE i <= 40000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('enclosures', 'id'), 40000);
UPDATE enclosures SET user_id = e.user_id FROM entries e WHERE e.id = entry_id;
