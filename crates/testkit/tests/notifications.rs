//! LISTEN and NOTIFY with many sessions: who hears what, when, and in which order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{Connection, Event, Target};

/// How long a notification may take.
const SOON: Duration = Duration::from_secs(10);

/// How long is waited for what must not come.
const A_WHILE: Duration = Duration::from_millis(300);

fn done(connection: &mut Connection, sql: &str) {
    let reply = connection.query(sql);
    assert_eq!(reply.error(), None, "{sql}");
}

fn notified(channel: &str, payload: &str) -> Event {
    Event::Notified(channel.to_owned(), payload.to_owned())
}

fn payloads(events: &[Event]) -> Vec<String> {
    let payload = |event: &Event| match event {
        Event::Notified(_, payload) => Some(payload.clone()),
        _ => None,
    };
    events.iter().filter_map(payload).collect()
}

#[test]
fn idle_sessions_hear_at_once_and_busy_ones_between_transactions() {
    let target = Target::start();
    let (mut listener, mut sender) = (target.connect(), target.connect());
    done(&mut listener, "LISTEN news");
    done(&mut sender, "NOTIFY news, 'one'");
    assert_eq!(listener.listen(1, SOON), [notified("news", "one")]);
    done(&mut listener, "BEGIN");
    done(&mut sender, "SELECT pg_notify('news', 'two')");
    assert_eq!(listener.listen(1, A_WHILE), []);
    let inside = listener.query("SELECT 1");
    assert_eq!(payloads(&inside.events), [""; 0]);
    let end = listener.query("COMMIT");
    assert_eq!(end.events.last(), Some(&notified("news", "two")));
    listener.send("SELECT pg_sleep(1)");
    assert!(listener.receive(A_WHILE).is_none(), "it sleeps");
    done(&mut sender, "NOTIFY news, 'three'");
    let busy = listener.receive(SOON).expect("a second is over soon");
    assert_eq!(payloads(&busy.events), ["three"]);
    assert!(matches!(busy.events.last(), Some(Event::Notified(..))), "it comes behind the rows: {busy}");
}

#[test]
fn nothing_is_heard_of_what_is_rolled_back_or_said_elsewhere() {
    let target = Target::start();
    let (mut listener, mut sender) = (target.connect(), target.connect());
    done(&mut listener, "BEGIN");
    done(&mut listener, "LISTEN undone");
    done(&mut listener, "ROLLBACK");
    done(&mut listener, "LISTEN c");
    for sql in [
        "NOTIFY undone, 'a'",
        "NOTIFY other, 'b'",
        "BEGIN",
        "NOTIFY c, 'c'",
        "ROLLBACK",
        "BEGIN",
        "NOTIFY c, 'd'",
        "SAVEPOINT s",
        "NOTIFY c, 'e'",
        "NOTIFY c, 'd'",
        "ROLLBACK TO s",
        "NOTIFY c, 'f'",
        "NOTIFY c, 'd'",
        "NOTIFY c",
        "NOTIFY c, ''",
    ] {
        done(&mut sender, sql);
    }
    assert_eq!(listener.listen(1, A_WHILE), []);
    done(&mut sender, "COMMIT");
    assert_eq!(payloads(&listener.listen(3, SOON)), ["d", "f", ""]);
    done(&mut listener, "UNLISTEN c");
    done(&mut sender, "NOTIFY c, 'g'");
    assert_eq!(listener.listen(1, A_WHILE), []);
    let failed = sender.query("NOTIFY c, 'h'; SELECT 1/0");
    assert_eq!(failed.code(), "22012");
    done(&mut listener, "LISTEN c");
    assert_eq!(listener.listen(1, A_WHILE), []);
}

#[test]
fn every_listener_hears_all_commits_in_their_order() {
    const SENDERS: usize = 8;
    const EACH: usize = 60;
    let target = Target::start();
    let mut first = target.connect();
    done(&mut first, "CREATE TABLE line (id int PRIMARY KEY, n int NOT NULL)");
    done(&mut first, "INSERT INTO line VALUES (1, 0)");
    let mut listeners: Vec<Connection> = (0..10).map(|_| target.connect()).collect();
    listeners.iter_mut().for_each(|listener| done(listener, "LISTEN ticks"));
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            let mut sender = target.connect();
            scope.spawn(move || {
                for _ in 0..EACH {
                    // The row's lock puts the commits in the order of the numbers; a second commit follows at once.
                    done(&mut sender, "BEGIN");
                    let reply = sender.query("UPDATE line SET n = n + 1 WHERE id = 1 RETURNING n");
                    let n = reply.value().expect("a row").to_owned();
                    done(&mut sender, &format!("NOTIFY ticks, '{n}'"));
                    done(&mut sender, "COMMIT");
                }
            });
        }
    });
    let expected: Vec<String> = (1..=SENDERS * EACH).map(|n| n.to_string()).collect();
    for listener in &mut listeners {
        assert_eq!(payloads(&listener.listen(expected.len(), SOON)), expected);
    }
}

#[test]
fn what_a_listener_was_told_of_is_there() {
    let target = Target::start();
    let (mut listener, mut sender) = (target.connect(), target.connect());
    done(&mut sender, "CREATE TABLE jobs (id int PRIMARY KEY)");
    done(&mut listener, "LISTEN jobs");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                done(&mut sender, &format!("INSERT INTO jobs VALUES ({n}); NOTIFY jobs, '{n}'"));
            }
            stop.store(true, Ordering::Release);
        });
        let mut queue: Vec<String> = Vec::new();
        for n in 0..200 {
            if queue.is_empty() {
                queue = payloads(&listener.listen(1, SOON));
            }
            assert_eq!(queue.remove(0), n.to_string());
            let reply = listener.query(&format!("SELECT count(*) FROM jobs WHERE id = {n}"));
            assert_eq!(reply.value(), Some("1"));
            queue.extend(payloads(&reply.events));
        }
    });
    assert!(stop.load(Ordering::Acquire));
}

#[test]
fn a_listener_that_does_not_read_is_no_burden() {
    if Target::is_postgres() {
        return;
    }
    let target = Target::start();
    let (mut listener, mut sender) = (target.connect(), target.connect());
    done(&mut listener, "LISTEN c");
    done(&mut listener, "BEGIN");
    let start = Instant::now();
    // 100 MB for somebody who stays in his transaction.
    for n in 0..32 {
        let sql = format!("SELECT pg_notify('c', {n} || '-' || i || repeat('x', 7900)) FROM generate_series(1, 400) i");
        assert_eq!(sender.query(&sql).error(), None);
    }
    let usage = sender.query("SELECT pg_notification_queue_usage()");
    assert_eq!(usage.value(), Some("1"));
    let end = listener.query("COMMIT");
    assert_eq!((end.code(), end.status), ("54000", None));
    done(&mut sender, "NOTIFY c, 'nobody is there'");
    assert!(start.elapsed() < Duration::from_secs(60));
}
