//! Transactions in two phases: prepared, left so over crashes and checkpoints, committed or rolled back later.

use std::collections::{BTreeMap, BTreeSet};

use testkit::{Connection, Random};

use super::ask::{Said, ask, ask_all, must, numbers};
use super::clients::Client;

/// Each open transaction holds one of these rows.
const SLOTS: i64 = 6;

/// What was acknowledged of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    /// It holds this slot.
    Prepared(i64),
    Committed,
    RolledBack,
}

/// The client.
#[derive(Default)]
pub struct Prepared {
    next: i64,
    states: BTreeMap<i64, Acknowledged>,
    /// What is asked for, and nobody knows.
    under_way: Option<(i64, Acknowledged)>,
    committed: i64,
}

impl Prepared {
    fn open(&self) -> Vec<(i64, i64)> {
        let open = self.states.iter().filter_map(|(id, state)| match state {
            Acknowledged::Prepared(slot) => Some((*id, *slot)),
            _ => None,
        });
        open.collect()
    }

    fn end(&mut self, connection: &mut Connection, id: i64, commits: bool) -> Said {
        let (verb, state) =
            if commits { ("COMMIT", Acknowledged::Committed) } else { ("ROLLBACK", Acknowledged::RolledBack) };
        self.under_way = Some((id, state));
        let said = ask(connection, &format!("{verb} PREPARED 'p{id}'"));
        if let Said::Done(_) = said {
            self.note(id, state);
        }
        said
    }

    fn begin(&mut self, connection: &mut Connection, slot: i64) -> Said {
        self.next += 1;
        let (id, state) = (self.next, Acknowledged::Prepared(slot));
        self.under_way = Some((id, state));
        let statements = [
            "BEGIN".to_owned(),
            format!("INSERT INTO marks VALUES ({id}, 'mark ' || {id})"),
            format!("UPDATE held SET n = n + 1 WHERE id = {slot}"),
            format!("PREPARE TRANSACTION 'p{id}'"),
        ];
        let said = ask_all(connection, &statements);
        if let Said::Done(_) = said {
            self.note(id, state);
        }
        said
    }

    fn note(&mut self, id: i64, state: Acknowledged) {
        self.committed += i64::from(state == Acknowledged::Committed);
        self.states.insert(id, state);
    }
}

impl Client for Prepared {
    fn name(&self) -> &'static str {
        "phases of prepared transactions"
    }

    fn setup(&self) -> Vec<String> {
        vec![
            "CREATE TABLE marks (id bigint PRIMARY KEY, v text)".to_owned(),
            "CREATE INDEX marks_v ON marks (v)".to_owned(),
            "CREATE TABLE held (id bigint PRIMARY KEY, n bigint NOT NULL)".to_owned(),
            format!("INSERT INTO held SELECT i, 0 FROM generate_series(0, {}) AS g (i)", SLOTS - 1),
        ]
    }

    fn run(&mut self, mut connection: Connection, mut random: Random) -> u64 {
        for done in 0.. {
            let open = self.open();
            let free: Vec<i64> = (0..SLOTS).filter(|slot| open.iter().all(|(_, held)| held != slot)).collect();
            let ends = !open.is_empty() && (free.is_empty() || random.below(5) < 2);
            let said = if ends {
                let (id, _) = open[random.below(open.len() as u64) as usize];
                self.end(&mut connection, id, random.below(3) > 0)
            } else {
                self.begin(&mut connection, free[random.below(free.len() as u64) as usize])
            };
            if let Said::Lost = said {
                return done;
            }
            self.under_way = None;
        }
        unreachable!("the loop ends by a return")
    }

    fn check(&mut self, connection: &mut Connection) {
        let gids = "SELECT substr(gid, 2) FROM pg_prepared_xacts WHERE gid LIKE 'p%'";
        let prepared: BTreeSet<i64> = numbers(connection, gids).into_iter().collect();
        let marks: BTreeSet<i64> = numbers(connection, "SELECT id FROM marks").into_iter().collect();
        if let Some((id, wanted)) = self.under_way.take() {
            let has_come = match wanted {
                Acknowledged::Prepared(_) => prepared.contains(&id),
                Acknowledged::Committed => marks.contains(&id),
                Acknowledged::RolledBack => !prepared.contains(&id),
            };
            if has_come {
                self.note(id, wanted);
            }
        }
        for (id, state) in &self.states {
            let expected = (matches!(state, Acknowledged::Prepared(_)), *state == Acknowledged::Committed);
            let found = (prepared.contains(id), marks.contains(id));
            assert_eq!(found, expected, "transaction {id} is {state:?}: (prepared, its row is there)");
        }
        let unknown: Vec<_> = prepared.union(&marks).filter(|id| !self.states.contains_key(id)).collect();
        assert!(unknown.is_empty(), "transactions that nobody asked for: {unknown:?}");
        assert_eq!(numbers(connection, "SELECT sum(n) FROM held"), [self.committed], "each counts itself once");
        for (id, slot) in self.open() {
            let reply = connection.query(&format!("SELECT n FROM held WHERE id = {slot} FOR UPDATE NOWAIT"));
            assert_eq!(reply.code(), "55P03", "prepared transaction {id} has lost its lock: {reply}");
            let reply = connection.query(&format!("SET lock_timeout = 1; INSERT INTO marks VALUES ({id}, 'x')"));
            assert_eq!(reply.code(), "55P03", "prepared transaction {id} has lost its key: {reply}");
            must(connection, "RESET lock_timeout");
        }
        self.states.retain(|_, state| *state != Acknowledged::RolledBack);
    }

    fn tidy(&mut self, connection: &mut Connection) {
        must(connection, "DELETE FROM marks");
        self.states.retain(|_, state| matches!(state, Acknowledged::Prepared(_)));
    }
}
