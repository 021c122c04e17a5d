//! A client: one connection, a deck and a generator of its own.

use std::sync::Arc;
use std::time::Duration;

use super::ledger::Made;
use super::mix::{Deck, TransactionKind};
use super::random::{Constants, DISTRICTS};
use super::transactions::{Input, Outcome, Terminal};
use crate::client::{AsyncConnection, Failure};
use crate::drive::{Done, Worker};
use crate::rng::Rng;

/// What all clients of a run share.
pub struct Shared {
    /// Clients.
    pub clients: usize,
    /// Warehouses in the database.
    pub warehouses: i64,
    /// Whether clients wait as people would.
    pub think: bool,
    /// Whether statements travel together where they can.
    pub pipelined: bool,
    /// The run's constants.
    pub constants: Constants,
}

/// One of them.
pub struct Client {
    shared: Arc<Shared>,
    number: usize,
    rng: Rng,
    deck: Deck,
    /// The transaction drawn last.
    input: Option<(TransactionKind, Input)>,
    /// Time to read the answer of the one before.
    thinking: Duration,
    /// What its transactions have made, warm-up included.
    pub made: Made,
}

impl Client {
    /// Client `number`, from 0.
    pub fn new(shared: &Arc<Shared>, number: usize, mut rng: Rng) -> Client {
        // Terminals do not start in step.
        let thinking =
            if shared.think { TransactionKind::NewOrder.keying().mul_f64(rng.unit()) } else { Duration::ZERO };
        let shared = Arc::clone(shared);
        Client { shared, number, rng, deck: Deck::new(), input: None, thinking, made: Made::default() }
    }

    /// With as many clients as warehouses or more, a client stays at one warehouse; with fewer, each serves its share.
    fn terminal(shared: &Shared, number: usize, rng: &mut Rng) -> (i64, i64) {
        let (number, clients, warehouses) = (number as i64, shared.clients as i64, shared.warehouses);
        let warehouse = if clients >= warehouses {
            number % warehouses
        } else {
            let share = (warehouses - number + clients - 1) / clients;
            number + clients * rng.uniform(0, share - 1)
        };
        (warehouse + 1, number / warehouses % DISTRICTS + 1)
    }
}

impl Worker for Client {
    fn draw(&mut self) -> Option<usize> {
        let kind = self.deck.draw(&mut self.rng);
        let (warehouse, district) = Client::terminal(&self.shared, self.number, &mut self.rng);
        let shared = &self.shared;
        let terminal = Terminal { warehouses: shared.warehouses, warehouse, district, constants: &shared.constants };
        self.input = Some((kind, Input::draw(kind, &terminal, &mut self.rng)));
        Some(kind as usize)
    }

    async fn run(&mut self, connection: &mut AsyncConnection) -> Result<Done, Failure> {
        let (kind, input) = self.input.as_ref().expect("a transaction is drawn before it is run");
        let outcome = match input.run(connection, self.shared.pipelined).await {
            Ok(outcome) => outcome,
            Err(failure) => {
                if matches!(failure, Failure::Lost(_)) {
                    self.made.unknown(*kind);
                }
                return Err(failure);
            }
        };
        let rolled_back = outcome == Outcome::RolledBack;
        self.made.acknowledged(*kind, outcome);
        if self.shared.think {
            self.thinking = kind.think(&mut self.rng);
        }
        Ok(Done { statements: connection.take_count(), rows: 0, rolled_back })
    }

    fn pause(&mut self) -> Duration {
        let keying =
            self.input.as_ref().filter(|_| self.shared.think).map_or(Duration::ZERO, |(kind, _)| kind.keying());
        std::mem::take(&mut self.thinking) + keying
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(clients: usize, warehouses: i64) -> Shared {
        Shared { clients, warehouses, think: false, pipelined: false, constants: Constants::run(&mut Rng::new(1, 0)) }
    }

    #[test]
    fn many_clients_share_warehouses_evenly() {
        let shared = shared(8, 4);
        let mut rng = Rng::new(1, 1);
        let places: Vec<_> = (0..8).map(|number| Client::terminal(&shared, number, &mut rng)).collect();
        assert_eq!(places, [(1, 1), (2, 1), (3, 1), (4, 1), (1, 2), (2, 2), (3, 2), (4, 2)]);
    }

    #[test]
    fn few_clients_serve_all_warehouses_between_them() {
        let shared = shared(3, 8);
        let mut rng = Rng::new(1, 1);
        let mut seen = [0; 9];
        for number in 0..3 {
            for _ in 0..200 {
                let (warehouse, _) = Client::terminal(&shared, number, &mut rng);
                assert_eq!((warehouse as usize - 1) % 3, number);
                seen[warehouse as usize] += 1;
            }
        }
        assert!(seen[1..].iter().all(|&count| count > 0), "{seen:?}");
    }
}
