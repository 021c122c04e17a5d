//! Which transaction comes next: the deck of clause 5.2.4.2, and the times of clause 5.2.5.7.

use std::time::Duration;

use crate::rng::Rng;

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionKind {
    /// Clause 2.4.
    NewOrder,
    /// Clause 2.5.
    Payment,
    /// Clause 2.6.
    OrderStatus,
    /// Clause 2.7.
    Delivery,
    /// Clause 2.8.
    StockLevel,
}

impl TransactionKind {
    /// All of them, in the order of the specification.
    pub const ALL: [TransactionKind; 5] = [
        TransactionKind::NewOrder,
        TransactionKind::Payment,
        TransactionKind::OrderStatus,
        TransactionKind::Delivery,
        TransactionKind::StockLevel,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        ["New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"][self as usize]
    }

    /// Time for filling in the form.
    pub fn keying(self) -> Duration {
        Duration::from_secs([18, 3, 2, 2, 2][self as usize])
    }

    /// Time for reading the answer: exponential with the mean of the kind, cut at ten times the mean.
    pub fn think(self, rng: &mut Rng) -> Duration {
        let mean = [12.0, 12.0, 10.0, 5.0, 5.0][self as usize];
        Duration::from_secs_f64((-(1.0 - rng.unit()).ln() * mean).min(10.0 * mean))
    }
}

/// Cards of each kind in a deck: the mix is right after each 23 transactions, not only on average.
const CARDS: [(TransactionKind, usize); 5] = [
    (TransactionKind::NewOrder, 10),
    (TransactionKind::Payment, 10),
    (TransactionKind::OrderStatus, 1),
    (TransactionKind::Delivery, 1),
    (TransactionKind::StockLevel, 1),
];

/// One client's deck, shuffled anew when it is used up.
pub struct Deck {
    cards: Vec<TransactionKind>,
    next: usize,
}

impl Deck {
    /// A deck that is shuffled at its first draw.
    pub fn new() -> Deck {
        let cards: Vec<TransactionKind> =
            CARDS.iter().flat_map(|&(kind, count)| std::iter::repeat_n(kind, count)).collect();
        Deck { next: cards.len(), cards }
    }

    /// The next transaction.
    pub fn draw(&mut self, rng: &mut Rng) -> TransactionKind {
        if self.next == self.cards.len() {
            rng.shuffle(&mut self.cards);
            self.next = 0;
        }
        self.next += 1;
        self.cards[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deck_has_the_mix() {
        let (mut deck, mut rng) = (Deck::new(), Rng::new(5, 0));
        let mut orders = Vec::new();
        for _ in 0..100 {
            let drawn: Vec<TransactionKind> = (0..23).map(|_| deck.draw(&mut rng)).collect();
            let counts = TransactionKind::ALL.map(|kind| drawn.iter().filter(|&&k| k == kind).count());
            assert_eq!(counts, [10, 10, 1, 1, 1]);
            orders.push(drawn);
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 95, "decks are shuffled");
    }

    #[test]
    fn thinking_has_the_mean_of_its_kind_and_an_end() {
        let mut rng = Rng::new(6, 0);
        let times: Vec<f64> = (0..20_000).map(|_| TransactionKind::NewOrder.think(&mut rng).as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((11.5..12.5).contains(&mean), "{mean}");
        assert!(times.iter().all(|t| *t <= 120.0));
        assert_eq!(TransactionKind::NewOrder.keying(), Duration::from_secs(18));
    }
}
