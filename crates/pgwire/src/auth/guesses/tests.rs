//! The policy on a clock that goes as told, among clients that are fair and clients that are not.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::lines::{FIRST_PAUSE, KEYS_MAX, MEMORY, SITES_MAX};
use super::trusted::TRUSTED_MAX;
use super::*;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const STEP: Duration = Duration::from_millis(50);

fn peer(address: &str) -> Peer {
    Peer::Tcp(address.parse().expect("an address"))
}

/// The wait of one proof that is alone; `None` if it is not heard.
fn wait(guesses: &Guesses, peer: &Peer, role: &str, now: Instant) -> Option<Duration> {
    match guesses.turn(peer, role, now) {
        Turn::Now => Some(Duration::ZERO),
        Turn::Wait(waiting) => waiting.remaining(now),
        Turn::Never => None,
    }
}

/// One wrong password after the other; the time after the last.
fn fail(guesses: &Guesses, peer: &Peer, role: &str, times: usize, mut now: Instant) -> Instant {
    for _ in 0..times {
        now += wait(guesses, peer, role, now).expect("the room is empty");
        guesses.failed(peer, role, now);
    }
    now
}

/// A crowd of connections, each of which sends a wrong proof as soon as its last one was refused.
struct Crowd<'a> {
    connections: Vec<(Peer, String, Option<Waiting<'a>>)>,
    heard: usize,
    unheard: usize,
}

impl<'a> Crowd<'a> {
    fn new(connections: impl IntoIterator<Item = (Peer, String)>) -> Crowd<'a> {
        let connections = connections.into_iter().map(|(peer, role)| (peer, role, None)).collect();
        Crowd { connections, heard: 0, unheard: 0 }
    }

    /// What they do at this moment.
    fn act(&mut self, guesses: &'a Guesses, now: Instant) {
        let Crowd { connections, heard, unheard } = self;
        for (peer, role, waiting) in connections {
            match waiting.as_ref().map(|waiting| waiting.remaining(now)) {
                Some(Some(left)) if left > Duration::ZERO => continue,
                Some(Some(_)) => {
                    *waiting = None;
                    *heard += 1;
                    guesses.failed(peer, role, now);
                }
                Some(None) => {
                    *waiting = None;
                    *unheard += 1;
                }
                None => {}
            }
            match guesses.turn(peer, role, now) {
                Turn::Now => {
                    *heard += 1;
                    guesses.failed(peer, role, now);
                }
                Turn::Wait(place) => *waiting = Some(place),
                Turn::Never => *unheard += 1,
            }
        }
    }

    fn go_on(&mut self, guesses: &'a Guesses, now: &mut Instant, time: Duration) {
        let end = *now + time;
        while *now < end {
            self.act(guesses, *now);
            *now += STEP;
        }
    }

    /// One more client with the right password beside them: how long it waits; `None` if it is turned away.
    fn login_beside(&mut self, guesses: &'a Guesses, peer: &Peer, role: &str, now: &mut Instant) -> Option<Duration> {
        let came = *now;
        let waiting = match guesses.turn(peer, role, came) {
            Turn::Now => None,
            Turn::Wait(waiting) => Some(waiting),
            Turn::Never => return None,
        };
        while let Some(waiting) = &waiting {
            if waiting.remaining(*now)?.is_zero() {
                break;
            }
            self.act(guesses, *now);
            *now += STEP;
        }
        drop(waiting);
        guesses.succeeded(peer, role, *now);
        Some(*now - came)
    }
}

fn same(peer: Peer, role: &str, count: usize) -> Vec<(Peer, String)> {
    vec![(peer, role.to_string()); count]
}

#[test]
fn each_failure_costs_twice_the_one_before() {
    let (guesses, here, mut now) = (Guesses::default(), peer("10.0.0.1:1"), Instant::now());
    let mut waits = Vec::new();
    for _ in 0..12 {
        let wait = wait(&guesses, &here, "app", now).expect("a place");
        now += wait;
        waits.push(wait.as_millis());
        guesses.failed(&here, "app", now);
    }
    assert_eq!(waits, [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    assert_eq!(wait(&guesses, &peer("10.0.0.2:1"), "app", now), Some(Duration::ZERO), "from elsewhere");
    assert_eq!(wait(&guesses, &here, "other", now), Some(Duration::ZERO), "another role");
    assert_eq!(wait(&guesses, &here, "app", now + MEMORY), Some(Duration::ZERO), "forgotten");
}

#[test]
fn who_is_trusted_waits_a_second_at_most_whatever_others_do_there() {
    let (guesses, here, mut now) = (Guesses::default(), peer("10.0.0.1:1"), Instant::now());
    guesses.succeeded(&here, "app", now);
    let mut crowd = Crowd::new(same(here, "app", 60));
    crowd.go_on(&guesses, &mut now, Duration::from_secs(60));
    for _ in 0..20 {
        let waited = crowd.login_beside(&guesses, &here, "app", &mut now).expect("a place");
        assert!(waited <= PATIENCE_TRUSTED, "{waited:?}");
        assert_eq!(wait(&guesses, &here, "other", now), Some(Duration::ZERO), "another role of the address");
    }
    assert_eq!(crowd.unheard, 0, "there were places");
    // A day after its last login it is one of many.
    now = fail(&guesses, &here, "app", 20, now + DAY - Duration::from_secs(60));
    assert!(wait(&guesses, &here, "app", now).expect("a place") <= PATIENCE_TRUSTED);
    now = fail(&guesses, &here, "app", 1, now + Duration::from_secs(60));
    assert!(wait(&guesses, &here, "app", now).expect("a place") > PATIENCE_TRUSTED);
}

#[test]
fn a_stranger_among_those_who_guess_is_heard_and_then_trusted() {
    let (guesses, here, mut now) = (Guesses::default(), peer("10.0.0.1:1"), Instant::now());
    let mut crowd = Crowd::new(same(here, "app", 60));
    crowd.go_on(&guesses, &mut now, Duration::from_secs(60));
    let pool: Vec<_> = (0..10).map(|_| guesses.turn(&here, "app", now)).collect();
    let first = crowd.login_beside(&guesses, &here, "app", &mut now).expect("a place");
    assert!(first <= PATIENCE, "{first:?}");
    // The others of its pool, which wait, gain by it.
    for turn in pool {
        let Turn::Wait(waiting) = turn else { panic!("{turn:?}") };
        assert!(waiting.remaining(now).expect("its place") <= PATIENCE_TRUSTED);
    }
    let second = crowd.login_beside(&guesses, &here, "app", &mut now).expect("a place");
    assert!(second <= PATIENCE_TRUSTED, "{second:?}");
    assert_eq!(crowd.unheard, 0);
}

#[test]
fn many_at_once_pay_what_one_after_the_other_would() {
    let (guesses, here, now) = (Guesses::default(), Peer::Unix, Instant::now());
    (0..3).for_each(|_| guesses.failed(&here, "app", now));
    let turns: Vec<_> = (0..100).map(|_| guesses.turn(&here, "app", now)).collect();
    let wait = |turn: &Turn<'_>| match turn {
        Turn::Wait(waiting) => waiting.remaining(now).expect("its place").as_millis(),
        turn => panic!("{turn:?}"),
    };
    let waits: Vec<_> = turns.iter().map(wait).collect();
    assert_eq!(waits[..10], [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 22_800, 30_000]);
    assert!(waits[10..].iter().all(|wait| *wait == 30_000), "to the end of patience, and no further");
    drop(turns);
    assert_eq!(guesses.state().room.count(), 0);
}

/// Guesses in four minutes by those who do nothing else.
fn guessed(guesses: &Guesses, connections: Vec<(Peer, String)>) -> usize {
    let (mut crowd, mut now) = (Crowd::new(connections), Instant::now());
    for _ in 0..4 * 240 {
        crowd.act(guesses, now);
        now += Duration::from_millis(250);
    }
    crowd.heard
}

#[test]
fn the_rate_of_guesses_is_bounded() {
    let here = peer("10.0.0.1:1");
    let one = guessed(&Guesses::default(), same(here, "app", 1));
    assert!(one <= 3 + 7 + 24, "one connection: {one}");
    // As many as have places, and no more by those who have none.
    let most = PLACES * 240 / PATIENCE.as_secs() as usize;
    for count in [PLACES, PLACES + 20] {
        let many = guessed(&Guesses::default(), same(here, "app", count));
        assert!(many <= most + 100, "{count} connections: {many}");
    }
    // From networks and with roles of their own each.
    let site = |n: usize| Peer::Tcp((Ipv4Addr::from((n as u32) << 8 | 1), 1).into());
    let wide = (0..PLACES).map(|n| (site(n), format!("role{n}"))).collect();
    let many = guessed(&Guesses::default(), wide);
    assert!(many <= PLACES * (240 / 10 + 12), "many networks: {many}");
    // Those who have logged in there do not make it faster for the others, and for themselves to a bound.
    let guesses = Guesses::default();
    guesses.succeeded(&here, "other", Instant::now());
    let many = guessed(&guesses, same(here, "app", PLACES));
    assert!(many <= most + 100, "trusted with another role: {many}");
    let guesses = Guesses::default();
    guesses.succeeded(&here, "app", Instant::now());
    let trusted = guessed(&guesses, same(here, "app", PLACES));
    assert!(trusted <= PLACES * 240 + 100, "trusted: {trusted}");
}

/// An IPv6 client has as many networks as it likes, and tries as many roles, of which most do not exist.
#[test]
fn networks_and_names_without_end_gain_nothing() {
    let (guesses, mut now) = (Guesses::default(), Instant::now());
    let mut heard_at_once = 0;
    for n in 0..50_000u32 {
        let address = Ipv6Addr::new(0x2001, 0xdb8, 7, n as u16, 0, 0, 0, 1);
        let peer = Peer::Tcp((address, 1).into());
        let role = format!("role{}", n % 9_000);
        if wait(&guesses, &peer, &role, now) == Some(Duration::ZERO) {
            heard_at_once += 1;
            guesses.failed(&peer, &role, now);
        }
        now += Duration::from_millis(1);
    }
    // 50 s: sixty that are free, then fewer and fewer.
    assert!(heard_at_once <= 60 + 20, "{heard_at_once}");
    assert_eq!(wait(&guesses, &peer("[2001:db8:8::1]:1"), "app", now), Some(Duration::ZERO), "elsewhere");
}

#[test]
fn a_great_number_of_sites_is_slowed_as_one() {
    let (guesses, mut now) = (Guesses::default(), Instant::now());
    let site = |n: u32| Peer::Tcp((Ipv4Addr::from(n << 8 | 1), 1).into());
    let trusted = site(1 << 23);
    guesses.succeeded(&trusted, "app", now);
    let mut heard_at_once = 0;
    for n in 0..20_000 {
        if wait(&guesses, &site(n), "app", now) == Some(Duration::ZERO) {
            heard_at_once += 1;
            guesses.failed(&site(n), "app", now);
        }
        now += Duration::from_millis(1);
    }
    // 20 s: a thousand that are free, then ten a second.
    assert!(heard_at_once <= 1000 + 20 + 200, "{heard_at_once}");
    assert_eq!(wait(&guesses, &trusted, "app", now), Some(Duration::ZERO));
    let newcomer = wait(&guesses, &site(1 << 22), "app", now).expect("a place");
    assert!(newcomer <= PATIENCE, "{newcomer:?}");
}

/// To be forgotten does not pay: names without end push out a record, and what it cost is asked for by the site's line.
#[test]
fn records_are_not_washed_away() {
    let (guesses, here) = (Guesses::default(), peer("10.0.0.1:1"));
    let mut now = fail(&guesses, &here, "app", 12, Instant::now());
    for n in 0..KEYS_MAX + 1 {
        guesses.failed(&here, &format!("role{n}"), now);
        now += Duration::from_millis(1);
    }
    let waits = [(); 5].map(|()| {
        let wait = wait(&guesses, &here, "app", now).expect("a place");
        guesses.failed(&here, "app", now + wait);
        wait
    });
    assert!(waits.iter().all(|wait| !wait.is_zero()), "{waits:?}");
    // A role that is trusted there does not notice.
    guesses.succeeded(&here, "pool", now);
    assert_eq!(wait(&guesses, &here, "pool", now), Some(Duration::ZERO));
}

#[test]
fn what_is_kept_is_bounded() {
    let (guesses, mut now) = (Guesses::default(), Instant::now());
    let early = peer("10.0.0.1:1");
    guesses.succeeded(&early, "app", now);
    for n in 0..KEYS_MAX.max(TRUSTED_MAX) as u32 + 100 {
        now += STEP;
        // From a site of its own each, and all by one role.
        let peer = Peer::Tcp((Ipv4Addr::from(n << 8), 1).into());
        guesses.failed(&peer, "app", now);
        guesses.succeeded(&peer, "wide", now);
    }
    let state = guesses.state();
    assert!(state.lines.count() <= KEYS_MAX + SITES_MAX, "{}", state.lines.count());
    assert!(state.trusted.count() <= TRUSTED_MAX);
    drop(state);
    (0..5).for_each(|_| guesses.failed(&early, "app", now));
    let waited = wait(&guesses, &early, "app", now).expect("a place");
    assert!(waited <= PATIENCE_TRUSTED, "one role cannot push out the networks of another: {waited:?}");
}

/// A full room: who comes alone has a place, and who is trusted always.
#[test]
fn a_crowd_shuts_out_nobody_else() {
    let (guesses, crowded) = (Guesses::default(), peer("10.0.0.1:1"));
    guesses.state().room.places = 20;
    let elsewhere = peer("10.9.0.1:1");
    let mut now = fail(&guesses, &crowded, "app", 12, Instant::now());
    now = fail(&guesses, &crowded, "other", 12, now);
    now = fail(&guesses, &peer("10.0.0.2:1"), "app", 12, now);
    now = fail(&guesses, &elsewhere, "app", 12, now);
    now = fail(&guesses, &elsewhere, "other", 12, now);
    let mut crowd = Crowd::new(same(crowded, "app", 100));
    crowd.go_on(&guesses, &mut now, Duration::from_secs(60));
    assert_eq!(guesses.state().room.count(), 20);
    for (peer, role, what) in [
        (crowded, "other", "another role of the network"),
        (peer("10.0.0.2:1"), "app", "another network of the site"),
        (elsewhere, "app", "another site"),
    ] {
        let waited = crowd.login_beside(&guesses, &peer, role, &mut now).unwrap_or_else(|| panic!("{what}"));
        assert!(waited <= PATIENCE, "{what}: {waited:?}");
    }
    assert!(crowd.unheard > 0);
    // Strangers from as many sites as there are places: another one has no place, one that is trusted has.
    let far = |n: u8| peer(&format!("10.200.{n}.1:1"));
    let (guesses, mut now) = (Guesses::default(), Instant::now());
    guesses.state().room.places = 20;
    for n in 0..=20 {
        (0..12).for_each(|_| guesses.failed(&far(n), "app", now));
    }
    let _crowd: Vec<_> = (0..20).map(|n| guesses.turn(&far(n), "app", now)).collect();
    assert!(matches!(guesses.turn(&far(20), "app", now), Turn::Never));
    guesses.succeeded(&far(20), "app", now);
    let Turn::Wait(waiting) = guesses.turn(&far(20), "app", now) else { panic!("a place") };
    now += PATIENCE_TRUSTED;
    assert_eq!(waiting.remaining(now), Some(Duration::ZERO));
    assert_eq!(guesses.state().room.count(), 20, "one stranger has gone");
}

/// Whatever crowds do, the room holds what it holds, nobody waits longer than it may, and all is given back.
#[test]
fn random_crowds_keep_the_bounds() {
    let seed = std::env::var("NYALA_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(4711u64);
    println!("NYALA_SEED={seed}");
    let mut state = seed | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (guesses, mut now) = (Guesses::default(), Instant::now());
    guesses.state().room.places = 40;
    let mut waiting: BTreeMap<u64, (Peer, String, Instant, Waiting<'_>)> = BTreeMap::new();
    for n in 0..20_000 {
        now += Duration::from_millis(random(200));
        let peer = peer(&format!("10.0.{}.{}:1", random(4), random(3)));
        let role = format!("role{}", random(3));
        let turn = guesses.turn(&peer, &role, now);
        let known = guesses.state().trusted.has(Key::new(&peer, &role, &guesses.names), now);
        match turn {
            Turn::Now => guesses.failed(&peer, &role, now),
            Turn::Never => assert!(guesses.state().room.count() == 40, "turned away while there were places"),
            Turn::Wait(place) => {
                let left = place.remaining(now).expect("a new place");
                assert!(left <= if known { PATIENCE_TRUSTED } else { PATIENCE });
                assert!(left >= Duration::from_nanos(1) && left <= PATIENCE.max(FIRST_PAUSE));
                waiting.insert(n, (peer, role, now, place));
            }
        }
        assert!(guesses.state().room.count() <= 40);
        waiting.retain(|_, (peer, role, came, place)| {
            match place.remaining(now) {
                Some(left) if left.is_zero() => {
                    assert!(now - *came <= PATIENCE + Duration::from_millis(200), "it was heard too late");
                    if random(20) == 0 {
                        guesses.succeeded(peer, role, now)
                    } else {
                        guesses.failed(peer, role, now)
                    }
                    false
                }
                // Some lose patience.
                Some(_) => random(200) > 0,
                None => false,
            }
        });
    }
    waiting.clear();
    assert_eq!(guesses.state().room.count(), 0);
    // No line believes that somebody waits.
    now += MEMORY;
    for site in 0..4 {
        for host in 0..3 {
            for role in 0..3 {
                let peer = peer(&format!("10.0.{site}.{host}:1"));
                assert_eq!(wait(&guesses, &peer, &format!("role{role}"), now), Some(Duration::ZERO));
            }
        }
    }
}
