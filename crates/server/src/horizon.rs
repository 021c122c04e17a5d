//! Gates of one core's connections (rule R1): all of them together have one waker with the log.
//!
//! When a group becomes durable, the flusher wakes the core once – one system call at most –, and the *bell*, a task of the
//! core, wakes the connections whose gate has opened. They all write their replies in the same turn of the core.
//!
//! ```text
//!   flusher ──wake──► bell ──► connection 3 (gate 120)
//!                          ──► connection 7 (gate 250)
//!                              connection 9 (gate 900) waits on; the bell asks for 900
//! ```

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base::Lsn;
use pgwire::DurableHorizon;

const NOTHING: Lsn = Lsn(u64::MAX);

/// Where the log's durable position comes from.
pub trait Watch: 'static {
    /// The position. Never goes back.
    fn current(&self) -> Lsn;
    /// Wakes `waker` once `lsn` is durable. `true` if it is already; then nothing is registered.
    fn register(&self, lsn: Lsn, waker: &Waker) -> bool;
}

impl Watch for engine::Shard {
    fn current(&self) -> Lsn {
        self.durable().current()
    }

    fn register(&self, lsn: Lsn, waker: &Waker) -> bool {
        self.durable().register(lsn, waker)
    }
}

/// The durable horizon as the connections of one core see it.
pub struct Horizon<W> {
    core: Rc<Core<W>>,
}

struct Core<W> {
    watch: W,
    waiting: RefCell<Waiting>,
}

struct Waiting {
    /// One per waiting connection; vacant ones are listed in `free`.
    slots: Vec<Option<(Lsn, Waker)>>,
    free: Vec<usize>,
    /// What the bell has asked the log for and has not been woken for; [`NOTHING`] if there is no such thing.
    asked: Lsn,
    /// The bell's own waker, once it has run.
    bell: Option<Waker>,
}

impl<W: Watch> Horizon<W> {
    /// The horizon of the core whose runtime this is called in.
    pub fn start(watch: W) -> Horizon<W> {
        let waiting = Waiting { slots: Vec::new(), free: Vec::new(), asked: NOTHING, bell: None };
        let core = Rc::new(Core { watch, waiting: RefCell::new(waiting) });
        let ringing = Rc::clone(&core);
        tokio::task::spawn_local(async move { poll_fn(|cx| ringing.ring(cx)).await });
        Horizon { core }
    }
}

impl<W: Watch> DurableHorizon for Horizon<W> {
    #[inline]
    fn current(&self) -> Lsn {
        self.core.watch.current()
    }

    fn wait(&self, lsn: Lsn) -> impl Future<Output = ()> {
        Gate { core: &self.core, lsn, slot: None }
    }
}

impl<W: Watch> Core<W> {
    /// Wakes whose gate is open and asks for the next. Never completes.
    fn ring(&self, cx: &mut Context<'_>) -> Poll<()> {
        let waiting = &mut *self.waiting.borrow_mut();
        if !waiting.bell.as_ref().is_some_and(|bell| bell.will_wake(cx.waker())) {
            waiting.bell = Some(cx.waker().clone());
        }
        loop {
            let durable = self.watch.current();
            let mut next = NOTHING;
            for slot in &mut waiting.slots {
                match slot {
                    // Wakes put a task into the core's queue; none runs inside this borrow.
                    Some((lsn, waker)) if *lsn <= durable => {
                        waker.wake_by_ref();
                        *lsn = NOTHING;
                    }
                    Some((lsn, _)) => next = next.min(*lsn),
                    None => {}
                }
            }
            if waiting.asked <= durable {
                waiting.asked = NOTHING;
            }
            if waiting.ask(&self.watch, next) {
                return Poll::Pending;
            }
        }
    }
}

impl Waiting {
    /// Makes sure that the bell is woken when `lsn` is durable; `false` if it is already.
    fn ask(&mut self, watch: &impl Watch, lsn: Lsn) -> bool {
        if lsn >= self.asked {
            return true;
        }
        // Before its first run the bell cannot be woken; it looks at all slots then.
        let Some(bell) = &self.bell else { return true };
        if watch.register(lsn, bell) {
            return false;
        }
        self.asked = lsn;
        true
    }
}

/// One connection's wait.
struct Gate<'a, W> {
    core: &'a Core<W>,
    lsn: Lsn,
    slot: Option<usize>,
}

impl<W: Watch> Future for Gate<'_, W> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let core = self.core;
        if core.watch.current() >= self.lsn {
            return Poll::Ready(());
        }
        let waiting = &mut *core.waiting.borrow_mut();
        let slot = match self.slot {
            Some(slot) => slot,
            None => {
                let slot = waiting.free.pop().unwrap_or_else(|| {
                    waiting.slots.push(None);
                    waiting.slots.len() - 1
                });
                self.slot = Some(slot);
                slot
            }
        };
        match &mut waiting.slots[slot] {
            Some((lsn, waker)) if waker.will_wake(cx.waker()) => *lsn = self.lsn,
            vacant => *vacant = Some((self.lsn, cx.waker().clone())),
        }
        if waiting.ask(&core.watch, self.lsn) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl<W> Drop for Gate<'_, W> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let waiting = &mut *self.core.waiting.borrow_mut();
            waiting.slots[slot] = None;
            waiting.free.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A log whose position is set by hand, and which counts who asks.
    #[derive(Default)]
    struct Hand {
        durable: Cell<u64>,
        registered: RefCell<Vec<(Lsn, Waker)>>,
        asked: Cell<usize>,
    }

    impl Watch for Rc<Hand> {
        fn current(&self) -> Lsn {
            Lsn(self.durable.get())
        }

        fn register(&self, lsn: Lsn, waker: &Waker) -> bool {
            if self.durable.get() >= lsn.0 {
                return true;
            }
            self.asked.set(self.asked.get() + 1);
            self.registered.borrow_mut().push((lsn, waker.clone()));
            false
        }
    }

    impl Hand {
        fn advance(&self, to: u64) {
            self.durable.set(to);
            let mut registered = self.registered.borrow_mut();
            registered.retain(|(lsn, waker)| {
                let open = lsn.0 <= to;
                if open {
                    waker.wake_by_ref();
                }
                !open
            });
        }
    }

    fn on_a_core<F: Future>(body: F) -> F::Output {
        let options = tokio::runtime::LocalOptions::default();
        tokio::runtime::Builder::new_current_thread().build_local(options).unwrap().block_on(body)
    }

    async fn settle() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn many_gates_ask_the_log_once_and_open_in_order() {
        on_a_core(async {
            let hand = Rc::new(Hand::default());
            let horizon = Rc::new(Horizon::start(Rc::clone(&hand)));
            settle().await;
            let opened = Rc::new(RefCell::new(Vec::new()));
            for lsn in [10, 20, 20, 30, 500] {
                let (horizon, opened) = (Rc::clone(&horizon), Rc::clone(&opened));
                tokio::task::spawn_local(async move {
                    horizon.wait(Lsn(lsn)).await;
                    assert!(horizon.current() >= Lsn(lsn));
                    opened.borrow_mut().push(lsn);
                });
            }
            settle().await;
            assert_eq!(hand.asked.get(), 1);
            hand.advance(9);
            settle().await;
            assert!(opened.borrow().is_empty());
            hand.advance(30);
            settle().await;
            assert_eq!(*opened.borrow(), [10, 20, 20, 30]);
            assert_eq!((hand.asked.get(), hand.registered.borrow().len()), (2, 1));
            hand.advance(500);
            settle().await;
            assert_eq!(opened.borrow().len(), 5);
            assert!(hand.registered.borrow().is_empty());
        });
    }

    #[test]
    fn a_lower_gate_that_comes_later_is_not_forgotten_and_a_dropped_one_is() {
        on_a_core(async {
            let hand = Rc::new(Hand::default());
            let horizon = Rc::new(Horizon::start(Rc::clone(&hand)));
            let opened = Rc::new(Cell::new(0));
            let wait = |lsn| {
                let (horizon, opened) = (Rc::clone(&horizon), Rc::clone(&opened));
                tokio::task::spawn_local(async move {
                    horizon.wait(Lsn(lsn)).await;
                    opened.set(opened.get() + lsn);
                })
            };
            // Before the bell has run for the first time.
            let high = wait(100);
            settle().await;
            wait(50);
            settle().await;
            high.abort();
            hand.advance(50);
            settle().await;
            assert_eq!(opened.get(), 50);
            hand.advance(100);
            settle().await;
            assert_eq!(opened.get(), 50);
            assert_eq!(horizon.core.waiting.borrow().free.len(), 2);
            wait(40);
            settle().await;
            assert_eq!(opened.get(), 90);
        });
    }
}
