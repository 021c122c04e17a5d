CREATE TYPE entry_sorting_direction AS ENUM ('asc', 'desc');
CREATE TYPE entry_sorting_order AS ENUM ('published_at', 'created_at');
CREATE TYPE entry_status AS ENUM ('unread', 'read', 'removed');
CREATE TYPE webapp_display_mode AS ENUM ('fullscreen', 'standalone', 'minimal-ui', 'browser');
CREATE TABLE users (
    id serial,
    username text NOT NULL,
    password text,
    is_admin boolean DEFAULT false,
    language text DEFAULT 'en_US'::text,
    timezone text DEFAULT 'UTC'::text,
    theme text DEFAULT 'light_serif'::text,
    last_login_at timestamp with time zone,
    entry_direction entry_sorting_direction DEFAULT 'asc'::entry_sorting_direction,
    keyboard_shortcuts boolean DEFAULT true,
    entries_per_page integer DEFAULT 100,
    show_reading_time boolean DEFAULT true,
    entry_swipe boolean DEFAULT true,
    stylesheet text DEFAULT ''::text NOT NULL,
    google_id text DEFAULT ''::text NOT NULL,
    openid_connect_id text DEFAULT ''::text NOT NULL,
    display_mode webapp_display_mode DEFAULT 'standalone'::webapp_display_mode,
    entry_order entry_sorting_order DEFAULT 'published_at'::entry_sorting_order,
    default_reading_speed integer DEFAULT 265,
    cjk_reading_speed integer DEFAULT 500,
    default_home_page text DEFAULT 'unread'::text,
    categories_sorting_order text DEFAULT 'unread_count'::text NOT NULL,
    gesture_nav text DEFAULT 'tap'::text,
    mark_read_on_view boolean DEFAULT true,
    media_playback_rate numeric DEFAULT 1,
    block_filter_entry_rules text DEFAULT ''::text NOT NULL,
    keep_filter_entry_rules text DEFAULT ''::text NOT NULL,
    mark_read_on_media_player_completion boolean DEFAULT false,
    custom_js text DEFAULT ''::text NOT NULL,
    external_font_hosts text DEFAULT ''::text NOT NULL,
    always_open_external_links boolean DEFAULT false,
    open_external_links_in_new_tab boolean DEFAULT true,
    CONSTRAINT users_username_key UNIQUE (username),
    PRIMARY KEY (id)
);
CREATE TABLE categories (
    id serial,
    user_id integer NOT NULL,
    title text NOT NULL,
    hide_globally boolean DEFAULT false NOT NULL,
    CONSTRAINT categories_user_id_title_key UNIQUE (user_id, title),
    PRIMARY KEY (id)
);
CREATE TABLE icons (
    id bigserial,
    hash text NOT NULL,
    mime_type text NOT NULL,
    content bytea NOT NULL,
    external_id text DEFAULT ''::text,
    CONSTRAINT icons_hash_key UNIQUE (hash),
    PRIMARY KEY (id)
);
CREATE TABLE feeds (
    id bigserial,
    user_id integer NOT NULL,
    category_id integer NOT NULL,
    title text NOT NULL,
    feed_url text NOT NULL,
    site_url text NOT NULL,
    checked_at timestamp with time zone DEFAULT now(),
    etag_header text DEFAULT ''::text,
    last_modified_header text DEFAULT ''::text,
    parsing_error_msg text DEFAULT ''::text,
    parsing_error_count integer DEFAULT 0,
    scraper_rules text DEFAULT ''::text,
    rewrite_rules text DEFAULT ''::text,
    crawler boolean DEFAULT false,
    username text DEFAULT ''::text,
    password text DEFAULT ''::text,
    user_agent text DEFAULT ''::text,
    disabled boolean DEFAULT false,
    next_check_at timestamp with time zone DEFAULT now(),
    ignore_http_cache boolean DEFAULT false,
    fetch_via_proxy boolean DEFAULT false,
    blocklist_rules text DEFAULT ''::text NOT NULL,
    keeplist_rules text DEFAULT ''::text NOT NULL,
    allow_self_signed_certificates boolean DEFAULT false NOT NULL,
    cookie text DEFAULT ''::text,
    hide_globally boolean DEFAULT false NOT NULL,
    url_rewrite_rules text DEFAULT ''::text NOT NULL,
    no_media_player boolean DEFAULT false,
    apprise_service_urls text DEFAULT ''::text,
    disable_http2 boolean DEFAULT false,
    description text DEFAULT ''::text,
    ntfy_enabled boolean DEFAULT false,
    ntfy_priority integer DEFAULT 3,
    webhook_url text DEFAULT ''::text,
    pushover_enabled boolean DEFAULT false,
    pushover_priority integer DEFAULT 0,
    ntfy_topic text DEFAULT ''::text,
    proxy_url text DEFAULT ''::text,
    block_filter_entry_rules text DEFAULT ''::text NOT NULL,
    keep_filter_entry_rules text DEFAULT ''::text NOT NULL,
    ignore_entry_updates boolean DEFAULT false,
    language text DEFAULT ''::text NOT NULL,
    CONSTRAINT feeds_user_id_feed_url_key UNIQUE (user_id, feed_url),
    PRIMARY KEY (id)
);
CREATE TABLE feed_icons (
    feed_id bigint NOT NULL,
    icon_id bigint NOT NULL,
    PRIMARY KEY (feed_id, icon_id)
);
CREATE TABLE entries (
    id bigserial,
    user_id integer NOT NULL,
    feed_id bigint NOT NULL,
    hash text NOT NULL,
    published_at timestamp with time zone NOT NULL,
    title text NOT NULL,
    url text NOT NULL,
    author text,
    content text,
    status entry_status DEFAULT 'unread'::entry_status,
    starred boolean DEFAULT false,
    comments_url text DEFAULT ''::text,
    changed_at timestamp with time zone NOT NULL,
    share_code text DEFAULT ''::text NOT NULL,
    reading_time integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    tags text[] DEFAULT '{}'::text[],
    language text DEFAULT ''::text NOT NULL,
    CONSTRAINT entries_feed_id_hash_key UNIQUE (feed_id, hash),
    PRIMARY KEY (id)
);
CREATE TABLE enclosures (
    id bigserial,
    user_id integer NOT NULL,
    entry_id bigint NOT NULL,
    url text NOT NULL,
    size bigint DEFAULT 0,
    mime_type text DEFAULT ''::text,
    media_progression integer DEFAULT 0,
    PRIMARY KEY (id)
);
-- indexes
CREATE UNIQUE INDEX users_google_id_idx ON users (google_id) WHERE (google_id <> ''::text);
CREATE UNIQUE INDEX users_openid_connect_id_idx ON users (openid_connect_id) WHERE (openid_connect_id <> ''::text);
CREATE UNIQUE INDEX icons_external_id_idx ON icons (external_id) WHERE (external_id <> ''::text);
CREATE INDEX feeds_feed_id_hide_globally_idx ON feeds (id, hide_globally);
CREATE INDEX feeds_user_category_idx ON feeds (user_id, category_id);
CREATE INDEX entries_feed_id_status_hash_idx ON entries (feed_id, status, hash);
CREATE INDEX entries_id_user_status_idx ON entries (id, user_id, status);
CREATE UNIQUE INDEX entries_share_code_idx ON entries (share_code) WHERE (share_code <> ''::text);
CREATE INDEX entries_user_feed_idx ON entries (user_id, feed_id);
CREATE INDEX entries_user_id_status_starred_idx ON entries (user_id, status, starred);
CREATE INDEX entries_user_status_changed_published_idx ON entries (user_id, status, changed_at, published_at);
CREATE INDEX entries_user_status_created_idx ON entries (user_id, status, created_at);
CREATE INDEX entries_user_status_feed_idx ON entries (user_id, status, feed_id);
CREATE INDEX entries_user_status_published_idx ON entries (user_id, status, published_at);
CREATE INDEX enclosures_entry_id_idx ON enclosures (entry_id);
CREATE UNIQUE INDEX enclosures_user_entry_url_unique_idx ON enclosures (user_id, entry_id, sha256((url)::bytea));
ALTER TABLE categories ADD CONSTRAINT categories_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE feeds ADD CONSTRAINT feeds_category_id_fkey FOREIGN KEY (category_id) REFERENCES categories(id) ON DELETE CASCADE;
ALTER TABLE feeds ADD CONSTRAINT feeds_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE feed_icons ADD CONSTRAINT feed_icons_feed_id_fkey FOREIGN KEY (feed_id) REFERENCES feeds(id) ON DELETE CASCADE;
ALTER TABLE feed_icons ADD CONSTRAINT feed_icons_icon_id_fkey FOREIGN KEY (icon_id) REFERENCES icons(id) ON DELETE CASCADE;
ALTER TABLE entries ADD CONSTRAINT entries_feed_id_fkey FOREIGN KEY (feed_id) REFERENCES feeds(id) ON DELETE CASCADE;
ALTER TABLE entries ADD CONSTRAINT entries_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
ALTER TABLE enclosures ADD CONSTRAINT enclosures_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES entries(id) ON DELETE CASCADE;
ALTER TABLE enclosures ADD CONSTRAINT enclosures_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE;
