INSERT INTO django_site (id, domain, name)
SELECT i,
    'shop.example.com',
    'shop'
FROM noise WHERE i <= 1 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('django_site', 'id'), 1);
INSERT INTO address_country (iso_3166_1_a2, iso_3166_1_a3, iso_3166_1_numeric, printable_name, name, display_order, is_shipping_country)
SELECT (ARRAY['DE','FR','GB','IT','US'])[i],
    (ARRAY['DEU','FRA','GBR','ITA','USA'])[i],
    lpad(i::text, 3, '0'),
    (ARRAY['Germany','France','United Kingdom','Italy','United States'])[i],
    (ARRAY['Germany','France','United Kingdom','Italy','United States'])[i],
    floor(q * 10)::int,
    e < 0.8
FROM noise WHERE i <= 5 ORDER BY noise.i;
INSERT INTO auth_user (id, password, last_login, is_superuser, username, first_name, last_name, email, is_staff, is_active, date_joined)
SELECT i,
    '!' || md5('u' || i),
    CASE WHEN b < 0.7 THEN timestamptz '2025-06-01 00:00:00+00' + floor(a * 15000000)::int * interval '1 second' END,
    i <= 3,
    'user' || i,
    x || ' ' || w || ' ' || i,
    x || ' ' || y || ' ' || i,
    'auth_user' || i || '@example.com',
    i <= 20,
    c < 0.97,
    timestamptz '2025-01-01 00:00:00+00' + (i * 788 + floor(o * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 40000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('auth_user', 'id'), 40000);
INSERT INTO catalogue_productclass (id, name, slug, requires_shipping, track_stock)
SELECT i,
    x || ' ' || y || ' ' || i,
    'catalogue_productclass-' || i,
    f < 0.8,
    l < 0.8
FROM noise WHERE i <= 10 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('catalogue_productclass', 'id'), 10);
INSERT INTO catalogue_productattribute (id, name, code, type, required, product_class_id)
SELECT i,
    y || ' ' || x || ' ' || i,
    'attr' || (1 + (i - 1) / 10),
    'text',
    false,
    1 + i % 10
FROM noise WHERE i <= 40 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('catalogue_productattribute', 'id'), 40);
INSERT INTO catalogue_product (id, structure, upc, title, slug, description, rating, date_created, date_updated, is_discountable, parent_id, product_class_id, is_public, meta_title, priority)
SELECT i,
    CASE WHEN i % 6 = 0 THEN 'parent' WHEN i % 6 IN (1, 2) AND i > 6 THEN 'child' ELSE 'standalone' END,
    CASE WHEN a < 0.9 THEN 'UPC' || lpad(i::text, 8, '0') END,
    x || ' ' || w || ' ' || i,
    'catalogue_product-' || i,
    repeat(x || ' ', 1 + floor(p * 20)::int),
    CASE WHEN d < 0.4 THEN 1 + 4 * e END,
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(f * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(l * 86400)::int) * interval '1 second',
    q < 0.8,
    CASE WHEN i % 6 IN (1, 2) AND i > 6 THEN i - i % 6 END,
    CASE WHEN i % 6 IN (1, 2) AND i > 6 THEN NULL ELSE 1 + floor(10 * k * k)::int END,
    f < 0.95,
    y || ' ' || w || ' ' || i,
    CASE WHEN g < 0.02 THEN 10 ELSE 0 END
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('catalogue_product', 'id'), 60000);
INSERT INTO catalogue_productattributevalue (id, value_text, attribute_id, product_id)
SELECT i,
    (ARRAY['red','green','blue','black'])[1 + floor(c * c * 4)::int],
    1 + floor(40 * a * a)::int,
    i
FROM noise WHERE i <= 60000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('catalogue_productattributevalue', 'id'), 60000);
INSERT INTO catalogue_productimage (id, original, caption, display_order, date_created, product_id)
SELECT i,
    'images/' || i || '.jpg',
    '',
    0,
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(a * 86400)::int) * interval '1 second',
    i
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('catalogue_productimage', 'id'), 60000);
INSERT INTO partner_stockrecord (id, partner_sku, price_currency, price, num_in_stock, num_allocated, low_stock_threshold, date_created, date_updated, partner_id, product_id)
SELECT i,
    'partner_stockrecord-' || i,
    'EUR',
    round((o * o * 500)::numeric, 2),
    CASE WHEN a < 0.2 THEN 0 ELSE floor(b * 100)::int END,
    CASE WHEN c < 0.5 THEN floor(d * 5)::int END,
    CASE WHEN e < 0.3 THEN 10 END,
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(c * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 525 + floor(h * 86400)::int) * interval '1 second',
    1 + floor(20 * h * h)::int,
    i
FROM noise WHERE i <= 60000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('partner_stockrecord', 'id'), 60000);
INSERT INTO order_shippingaddress (id, title, first_name, last_name, line1, line2, line3, line4, state, postcode, search_text, phone_number, notes, country_id, code)
SELECT i,
    w || ' ' || x || ' ' || i,
    y || ' ' || x || ' ' || i,
    y || ' ' || x || ' ' || i,
    '',
    '',
    '',
    '',
    (ARRAY['new', 'open', 'done', 'failed'])[1 + floor(o * o * 4)::int],
    'order_shippingaddress-' || i,
    repeat(y || ' ', 1 + floor(f * 20)::int),
    'order_shippingaddress-' || i,
    '',
    (ARRAY['DE','FR','GB','IT','US'])[1 + floor(c * c * 5)::int],
    'order_shippingaddress-' || i
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('order_shippingaddress', 'id'), 60000);
INSERT INTO order_billingaddress (id, title, first_name, last_name, line1, line2, line3, line4, state, postcode, search_text, country_id, code)
SELECT i,
    y || ' ' || w || ' ' || i,
    x || ' ' || w || ' ' || i,
    x || ' ' || y || ' ' || i,
    '',
    '',
    '',
    '',
    (ARRAY['new', 'open', 'done', 'failed'])[1 + floor(n * n * 4)::int],
    'order_billingaddress-' || i,
    repeat(x || ' ', 1 + floor(e * 20)::int),
    (ARRAY['DE','FR','GB','IT','US'])[1 + floor(c * c * 5)::int],
    'order_billingaddress-' || i
FROM noise WHERE i <= 30000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('order_billingaddress', 'id'), 30000);
INSERT INTO basket_basket (id, status, date_created, date_merged, date_submitted, owner_id)
SELECT i,
    CASE WHEN i <= 110000 AND a < 0.8 THEN 'Submitted' WHEN b < 0.9 THEN 'Open' WHEN b < 0.95 THEN 'Merged' ELSE 'Saved' END,
    timestamptz '2025-01-01 00:00:00+00' + (i * 262 + floor(c * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 262 + floor(h * 86400)::int) * interval '1 second',
    timestamptz '2025-01-01 00:00:00+00' + (i * 262 + floor(n * 86400)::int) * interval '1 second',
    CASE WHEN c < 0.7 THEN 1 + floor(40000 * d * d)::int END
FROM noise WHERE i <= 120000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('basket_basket', 'id'), 120000);
INSERT INTO basket_line (id, line_reference, quantity, price_currency, price_excl_tax, price_incl_tax, date_created, basket_id, product_id, stockrecord_id, date_updated)
SELECT i,
    (1 + floor(60000 * a * a)::int)::text || '_' || (1 + floor(60000 * a * a)::int),
    floor(a * a * 100)::int,
    'EUR',
    round((f * f * 500)::numeric, 2),
    round((l * l * 500)::numeric, 2),
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(q * 86400)::int) * interval '1 second',
    1 + (i * 4 / 5) % 120000,
    1 + floor(60000 * a * a)::int,
    1 + floor(60000 * a * a)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 210 + floor(e * 86400)::int) * interval '1 second'
FROM noise WHERE i <= 150000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('basket_line', 'id'), 150000);
INSERT INTO order_order (id, number, currency, total_incl_tax, total_excl_tax, shipping_incl_tax, shipping_excl_tax, shipping_method, shipping_code, status, guest_email, date_placed, basket_id, billing_address_id, shipping_address_id, site_id, user_id, analytics_tracked)
SELECT i,
    (100000 + i)::text,
    'EUR',
    round((a * a * 500)::numeric, 2),
    round((f * f * 500)::numeric, 2),
    round((l * l * 500)::numeric, 2),
    round((q * q * 500)::numeric, 2),
    '',
    'order_order-' || i,
    CASE WHEN i > 97000 THEN 'Pending' WHEN a < 0.9 THEN 'Complete' WHEN a < 0.97 THEN 'Being processed' ELSE 'Cancelled' END,
    CASE WHEN c < 0.8 THEN '' ELSE 'guest' || i || '@example.com' END,
    timestamptz '2025-01-01 00:00:00+00' + (i * 315 + floor(p * 86400)::int) * interval '1 second',
    i,
    CASE WHEN i <= 30000 THEN i END,
    CASE WHEN i <= 60000 THEN i END,
    1,
    CASE WHEN c < 0.8 THEN 1 + floor(40000 * d * d)::int END,
    d < 0.8
FROM noise WHERE i <= 100000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('order_order', 'id'), 100000);
INSERT INTO order_orderdiscount (id, category, offer_id, offer_name, voucher_id, voucher_code, frequency, amount, message, order_id)
SELECT i,
    'Basket',
    1 + floor(50 * b * b)::int,
    'offer ' || (1 + floor(50 * b * b)::int),
    CASE WHEN c < 0.5 THEN 1 + floor(2000 * d * d)::int END,
    CASE WHEN c < 0.5 THEN 'VOUCHER' || (1 + floor(2000 * d * d)::int) ELSE '' END,
    floor(j * j * 100)::int,
    round((o * o * 500)::numeric, 2),
    '',
    1 + floor(100000 * a)::int
FROM noise WHERE i <= 20000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('order_orderdiscount', 'id'), 20000);
INSERT INTO analytics_productrecord (id, num_views, num_basket_additions, num_purchases, score, product_id)
SELECT i,
    floor(n * n * 100)::int,
    floor(b * b * 100)::int,
    floor(g * g * 100)::int,
    m * 100,
    i
FROM noise WHERE i <= 60000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('analytics_productrecord', 'id'), 60000);
INSERT INTO analytics_userrecord (id, num_product_views, num_basket_additions, num_orders, num_order_lines, num_order_items, total_spent, date_last_order, user_id)
SELECT i,
    floor(k * k * 100)::int,
    floor(p * p * 100)::int,
    floor(d * d * 100)::int,
    floor(j * j * 100)::int,
    floor(o * o * 100)::int,
    round((c * c * 500)::numeric, 2),
    timestamptz '2025-01-01 00:00:00+00' + (i * 788 + floor(h * 86400)::int) * interval '1 second',
    i
FROM noise WHERE i <= 40000 ORDER BY noise.i;
SELECT setval(pg_get_serial_sequence('analytics_userrecord', 'id'), 40000);
INSERT INTO reviews_productreview (id, score, title, body, name, email, homepage, status, total_votes, delta_votes, date_created, product_id, user_id, code)
SELECT i,
    1 + floor(5 * sqrt(a))::int,
    'review ' || i,
    repeat(w || ' ', 1 + floor(j * 20)::int),
    y || ' ' || x || ' ' || i,
    'reviews_productreview' || i || '@example.com',
    '',
    CASE WHEN b < 0.9 THEN 1 WHEN b < 0.97 THEN 0 ELSE 2 END,
    floor(p * p * 100)::int,
    floor(d * d * 100)::int,
    timestamptz '2025-01-01 00:00:00+00' + (i * 788 + floor(j * 86400)::int) * interval '1 second',
    1 + floor(60000 * c * c)::int,
    i,
    'reviews_productreview-' || i
FROM noise WHERE i <= 40000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('reviews_productreview', 'id'), 40000);
INSERT INTO offer_rangeproduct (id, display_order, product_id, range_id)
SELECT i,
    0,
    1 + floor(60000 * b)::int,
    2 + floor(19 * a * a)::int
FROM noise WHERE i <= 20000 ORDER BY noise.i
ON CONFLICT DO NOTHING;
SELECT setval(pg_get_serial_sequence('offer_rangeproduct', 'id'), 20000);
