//! Strands: futures that can be suspended in the middle of a poll, wherever they are in their calls.
//!
//! Responsible for: stacks of their own for what is polled, taken from a pool of the thread; giving the thread back when a turn
//! is over and the work says that it can ([`base::work`]); going on where it was.
//! Not responsible for: who has the next turn; counting work.
//! Invariants: a strand stays on its thread. While it is suspended its future is neither moved nor dropped: a strand that is
//! dropped is first unwound. One that is polled to a `Pending` of its own holds no stack.

#![allow(unsafe_code)]

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::VecDeque;
use std::future::Future;
use std::marker::PhantomPinned;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::null;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, Once, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use base::work::{self, Own};
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A turn, from the first look at the clock on.
const TURN: Duration = Duration::from_micros(300);
/// Address space of a stack, as much as the thread has. Only what is used takes memory.
const STACK: usize = 64 << 20;
/// Stacks that a thread keeps for later.
const KEPT: usize = 4;
/// Strands that may be suspended in the middle of a call on one thread; further ones go on.
const SUSPENDED_MAX: u32 = 256;

/// What a worker is to do: a function and its argument.
type Job = Option<(unsafe fn(*const ()), *const ())>;

/// What a worker answers.
enum Answer {
    /// The job is done; it waits for another.
    Done,
    /// In the middle of the job, whose turn is over.
    Interrupted,
    /// In the middle of the job, which waits for another thread.
    Away,
}

/// A stack on which jobs are done, one after the other.
struct Worker {
    stack: Coroutine<Job, Answer, ()>,
    /// What is kept by strand is kept by this: no two of a thread have the same.
    number: u32,
    /// Where the stack begins and ends.
    bounds: (usize, usize),
}

thread_local! {
    // Boxed, as strands hold one each: they are made for every statement.
    #[allow(clippy::vec_box)]
    static IDLE: RefCell<Vec<Box<Worker>>> = const { RefCell::new(Vec::new()) };
    /// Workers that the thread has made, and those that are suspended in the middle of a job.
    static MADE: Cell<u32> = const { Cell::new(0) };
    static SUSPENDED: Cell<u32> = const { Cell::new(0) };
    /// Where the worker that runs is suspended.
    static CURRENT: Cell<*const Yielder<Job, Answer>> = const { Cell::new(null()) };
    /// What wakes the task of the strand that runs.
    static WAKER: Cell<*const Waker> = const { Cell::new(null()) };
    /// When the turn began, if the clock was read.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Who is resumed shall unwind.
    static ABANDONED: Cell<bool> = const { Cell::new(false) };
}

impl Worker {
    fn new() -> Option<Box<Worker>> {
        static PAUSE: Once = Once::new();
        PAUSE.call_once(|| work::host(work::Host { pause, can_leave, send, assist, now, wait }));
        let stack = DefaultStack::new(STACK).ok()?;
        let bounds = (stack.base().get(), stack.limit().get());
        let number = MADE.get() + 1;
        MADE.set(number);
        let stack = Coroutine::with_stack(stack, |yielder: &Yielder<Job, Answer>, mut job: Job| {
            while let Some((run, argument)) = job {
                CURRENT.set(yielder);
                // SAFETY: `Strand::poll` gives the two together, and waits for the answer.
                unsafe { run(argument) };
                job = yielder.suspend(Answer::Done);
            }
        });
        Some(Box::new(Worker { stack, number, bounds }))
    }

    /// Goes on with what it does, or begins the job.
    fn resume(&mut self, job: Job) -> Answer {
        let (outer, outside) = (CURRENT.get(), work::enter(self.number, self.bounds));
        let answer = self.stack.resume(job);
        work::leave(outside);
        CURRENT.set(outer);
        match answer {
            CoroutineResult::Yield(answer) => answer,
            CoroutineResult::Return(()) => Answer::Done,
        }
    }
}

/// Gives back a worker that has nothing to do.
fn rest(mut worker: Box<Worker>) {
    let kept = IDLE.try_with(|idle| {
        let mut idle = idle.borrow_mut();
        if idle.len() < KEPT {
            idle.push(worker);
            return None;
        }
        Some(worker)
    });
    if let Ok(Some(more)) = kept {
        worker = more;
        worker.resume(None);
    }
}

/// Suspends the strand that runs if its turn is over.
fn pause() {
    if CURRENT.get().is_null() || SUSPENDED.get() >= SUSPENDED_MAX {
        return;
    }
    let now = Instant::now();
    match BEGAN.get() {
        None => return BEGAN.set(Some(now)),
        Some(began) if now.duration_since(began) < TURN => return,
        Some(_) => {}
    }
    suspend(Answer::Interrupted);
    // What comes before the next look is part of the new turn: a step may be as long as one.
    BEGAN.set(Some(Instant::now()));
}

/// Gives up the thread until the strand is polled again.
fn suspend(answer: Answer) {
    let current = CURRENT.get();
    work::while_suspended(|| {
        // SAFETY: the worker whose yielder it is runs on this stack, below this call.
        unsafe { (*current).suspend(answer) };
    });
    CURRENT.set(current);
    if ABANDONED.replace(false) {
        resume_unwind(Box::new(Abandoned));
    }
}

/// Whether a strand runs that may be suspended.
fn can_leave() -> bool {
    !CURRENT.get().is_null() && SUSPENDED.get() < SUSPENDED_MAX && !std::thread::panicking()
}

fn wait(take: &mut dyn FnMut(Waker)) {
    // SAFETY: the state of the strand that runs is pinned while it does.
    if let Some(waker) = unsafe { WAKER.get().as_ref() } {
        take(waker.clone());
        suspend(Answer::Away);
    }
}

/// Threads for what is sent away.
const THREADS: usize = 2;
/// How much such a thread gives way to those that serve clients.
const NICE: i32 = 10;

/// What is to be done by other threads.
#[derive(Default)]
struct Errands {
    waiting: Mutex<(VecDeque<Box<dyn FnOnce() + Send>>, usize)>,
    come: Condvar,
}

static ERRANDS: LazyLock<Errands> = LazyLock::new(Errands::default);

fn send(errand: Box<dyn FnOnce() + Send>) {
    let mut waiting = ERRANDS.waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = waiting.1;
    if threads < THREADS {
        let thread = std::thread::Builder::new().name(format!("errands-{threads}")).stack_size(STACK);
        match thread.spawn(run_errands) {
            Ok(_) => waiting.1 += 1,
            Err(_) if threads == 0 => {
                drop(waiting);
                return errand();
            }
            Err(_) => {}
        }
    }
    waiting.0.push_back(errand);
    drop(waiting);
    ERRANDS.come.notify_one();
}

/// The processors of the process: those of its first thread, for threads that serve clients stay on one.
fn processors() -> Option<CpuSet> {
    sched_getaffinity(Some(rustix::process::getpid())).ok()
}

/// Lets the thread run on any processor, which one that a core's thread has started does not, and lets the cores' threads go first. Where that
/// is refused, it competes with the others.
fn give_way() {
    if let Some(all) = processors() {
        let _ = sched_setaffinity(None, &all);
    }
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE);
}

fn run_errands() {
    give_way();
    loop {
        let mut waiting = ERRANDS.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let errand = loop {
            match waiting.0.pop_front() {
                Some(errand) => break errand,
                None => waiting = ERRANDS.come.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(waiting);
        errand();
    }
}

/// Threads that assist a statement now.
static ASSISTANTS: AtomicUsize = AtomicUsize::new(0);

/// At most one for each processor but one, so that nobody is helped where there is one processor.
fn assist(work: Box<dyn FnOnce() + Send>) -> bool {
    static MOST: LazyLock<usize> =
        LazyLock::new(|| processors().map_or(0, |all| (all.count() as usize).saturating_sub(1)));
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ASSISTANTS.fetch_sub(1, Ordering::Relaxed);
        }
    }
    if ASSISTANTS.fetch_add(1, Ordering::Relaxed) >= *MOST {
        drop(Leave);
        return false;
    }
    let leave = Leave;
    let run = move || {
        let _leave = leave;
        give_way();
        work();
    };
    std::thread::Builder::new().name("assistant".to_string()).stack_size(STACK).spawn(run).is_ok()
}

fn now() -> u64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed().as_nanos() as u64
}

/// What a strand is unwound with that nobody waits for any more.
struct Abandoned;

/// How far a strand is.
pub enum Polled<T> {
    /// The future is done, or has panicked.
    Ready(std::thread::Result<T>),
    /// The future waits, and will wake its task.
    Pending,
    /// The turn is over. Nobody wakes the task: it is to be polled when the others have had theirs.
    Interrupted,
    /// It waits for another thread, which will wake its task; it is to be polled now and then, to see whether it should stop.
    Away,
}

/// A future that is polled on a stack of its own.
pub struct Strand<F: Future> {
    /// What it is suspended on.
    worker: Option<Box<Worker>>,
    /// Changes places with that of the thread whenever the strand begins to run, or ceases to.
    own: Own,
    /// The copy of the waker is one that lasts. It becomes one when the strand is suspended, which most never are.
    is_counted: bool,
    state: UnsafeCell<StrandState<F>>,
    _pinned: PhantomPinned,
}

/// What the worker works with while it is suspended. It is not touched from elsewhere meanwhile.
struct StrandState<F: Future> {
    future: F,
    /// A copy of the one that the task is polled with.
    waker: Option<ManuallyDrop<Waker>>,
    outcome: Option<std::thread::Result<Poll<F::Output>>>,
}

impl<F: Future> Strand<F> {
    /// A strand that has not begun.
    pub fn new(future: F) -> Strand<F> {
        let state = UnsafeCell::new(StrandState { future, waker: None, outcome: None });
        Strand { worker: None, own: Own::default(), is_counted: false, state, _pinned: PhantomPinned }
    }

    /// Drops the copy of the waker. No worker has the state.
    fn forget_waker(&mut self) {
        // SAFETY: it is called only before a worker gets the state and after it has given it back.
        let waker = unsafe { &mut *self.state.get() }.waker.take();
        if let (Some(waker), true) = (waker, std::mem::take(&mut self.is_counted)) {
            drop(ManuallyDrop::into_inner(waker));
        }
    }

    /// Goes on until the future answers or the turn is over. It must not be polled after it was ready.
    pub fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled<F::Output> {
        // SAFETY: nothing is moved out of it.
        let this = unsafe { self.get_unchecked_mut() };
        let (mut worker, job): (_, Job) = match this.worker.take() {
            Some(worker) => {
                SUSPENDED.set(SUSPENDED.get() - 1);
                (worker, None)
            }
            None => {
                // SAFETY: no worker has the state.
                let state = unsafe { &mut *this.state.get() };
                let idle = IDLE.with_borrow_mut(Vec::pop).or_else(Worker::new);
                let Some(worker) = idle else {
                    // Without memory for a stack it runs on that of the thread, where it is not interrupted.
                    // SAFETY: the future is pinned with the strand.
                    let future = unsafe { Pin::new_unchecked(&mut state.future) };
                    return finished(catch_unwind(AssertUnwindSafe(|| future.poll(cx))));
                };
                // SAFETY: it is not dropped, and not used when this call is over unless it is counted by then.
                state.waker = Some(ManuallyDrop::new(unsafe { std::ptr::read(cx.waker()) }));
                (worker, Some((run::<F>, this.state.get().cast_const().cast())))
            }
        };
        BEGAN.set(None);
        // SAFETY: nobody writes it while the state has it.
        let waker = unsafe { &(*this.state.get()).waker }.as_deref().map_or(null(), std::ptr::from_ref);
        let outer = WAKER.replace(waker);
        this.own.swap();
        let answer = worker.resume(job);
        this.own.swap();
        WAKER.set(outer);
        match answer {
            Answer::Interrupted | Answer::Away => {
                SUSPENDED.set(SUSPENDED.get() + 1);
                this.worker = Some(worker);
                if !std::mem::replace(&mut this.is_counted, true) {
                    // SAFETY: nobody writes it while the state has it.
                    std::mem::forget(unsafe { &(*this.state.get()).waker }.as_deref().cloned());
                }
                if matches!(answer, Answer::Away) { Polled::Away } else { Polled::Interrupted }
            }
            Answer::Done => {
                rest(worker);
                this.forget_waker();
                // SAFETY: the worker has given the state back.
                let outcome = unsafe { &mut *this.state.get() }.outcome.take();
                finished(outcome.unwrap_or(Ok(Poll::Pending)))
            }
        }
    }
}

fn finished<T>(outcome: Result<Poll<T>, Box<dyn Any + Send>>) -> Polled<T> {
    match outcome {
        Ok(Poll::Ready(value)) => Polled::Ready(Ok(value)),
        Ok(Poll::Pending) => Polled::Pending,
        Err(panic) => Polled::Ready(Err(panic)),
    }
}

/// Polls the future of a state.
///
/// # Safety
/// `state` is a [`StrandState`] of this type, pinned, that nobody else touches until this returns or is unwound.
unsafe fn run<F: Future>(state: *const ()) {
    // SAFETY: the caller's promise.
    let state = unsafe { &mut *state.cast_mut().cast::<StrandState<F>>() };
    // SAFETY: it is pinned.
    let future = unsafe { Pin::new_unchecked(&mut state.future) };
    let waker = state.waker.as_deref().unwrap_or(Waker::noop());
    let outcome = catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(waker))));
    state.outcome = Some(outcome);
}

impl<F: Future> Drop for Strand<F> {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        SUSPENDED.set(SUSPENDED.get() - 1);
        // Its calls end, and what they hold is dropped, before the future is. What is dropped may still be interrupted once.
        ABANDONED.set(true);
        self.own.swap();
        while !matches!(worker.resume(None), Answer::Done) {
            ABANDONED.set(true);
        }
        self.own.swap();
        ABANDONED.set(false);
        rest(worker);
        self.forget_waker();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::rc::Rc;

    use super::*;

    /// Works for about so many milliseconds; answers what it has seen as its number.
    fn long(millis: u64) -> usize {
        let (began, number) = (Instant::now(), work::strand());
        while began.elapsed() < Duration::from_millis(millis) {
            work::beat(1000);
            assert_eq!(work::strand(), number);
        }
        number
    }

    async fn slow() -> usize {
        long(20)
    }

    fn poll<F: Future>(strand: Pin<&mut Strand<F>>) -> Polled<F::Output> {
        strand.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn two_take_turns_in_the_middle_of_calls() {
        let strands: Vec<_> = (0..2).map(|_| Box::pin(Strand::new(slow()))).collect();
        let (mut waiting, mut turns, mut ends) = (VecDeque::from(strands), 0, Vec::new());
        while let Some(mut strand) = waiting.pop_front() {
            match poll(strand.as_mut()) {
                Polled::Interrupted => {
                    turns += 1;
                    waiting.push_back(strand);
                }
                Polled::Ready(number) => ends.push(number.unwrap()),
                Polled::Pending | Polled::Away => unreachable!("nothing is waited for"),
            }
        }
        assert!(turns >= 2 && ends[0] != ends[1], "{turns} {ends:?}");
        assert_eq!(work::strand(), 0);
    }

    #[test]
    fn what_stops_one_goes_with_it() {
        struct Stopped;
        impl work::Stop for Stopped {
            fn look(&self) -> base::Result<()> {
                Err(base::Error::internal("stopped"))
            }
        }
        let stopped = async {
            work::stopped_by(&(std::sync::Arc::new(Stopped) as std::sync::Arc<dyn work::Stop>));
            let mut polled = false;
            std::future::poll_fn(
                |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
            )
            .await;
            work::look_now().is_err()
        };
        let mut one = pin!(Strand::new(stopped));
        assert!(matches!(poll(one.as_mut()), Polled::Pending));
        // It has the same stack, in the middle of its work; the first one goes on with another.
        let mut other = pin!(Strand::new(slow()));
        assert!(matches!(poll(other.as_mut()), Polled::Interrupted));
        assert!(matches!(poll(one.as_mut()), Polled::Ready(Ok(true))));
        let mut third = pin!(Strand::new(async { work::look_now().is_ok() }));
        assert!(matches!(poll(third.as_mut()), Polled::Ready(Ok(true))));
    }

    #[test]
    fn one_that_is_dropped_is_unwound() {
        struct Told(Rc<Cell<u32>>);
        impl Drop for Told {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let told = Rc::new(Cell::new(0));
        for _ in 0..10 {
            let (held, outer) = (Told(Rc::clone(&told)), Told(Rc::clone(&told)));
            let mut strand = Box::pin(Strand::new(async move {
                let _outer = outer;
                let call = move || {
                    let _held = held;
                    long(10_000)
                };
                call()
            }));
            assert!(matches!(poll(strand.as_mut()), Polled::Interrupted));
        }
        assert_eq!(told.get(), 20);
        assert!(MADE.get() == 1 && SUSPENDED.get() == 0);
    }

    #[test]
    fn another_thread_is_waited_for() {
        let own = std::thread::current().id();
        let mut strand = pin!(Strand::new(async move {
            work::elsewhere(move || {
                std::thread::sleep(Duration::from_millis(20));
                std::thread::current().id() != own
            })
        }));
        let mut away = 0;
        let was_elsewhere = loop {
            match poll(strand.as_mut()) {
                Polled::Away => away += 1,
                Polled::Ready(outcome) => break outcome.unwrap().unwrap(),
                _ => panic!("it should be away or ready"),
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(was_elsewhere && away > 1);
        assert!(work::elsewhere(move || std::thread::current().id() == own).unwrap());
    }

    #[test]
    fn a_panic_ends_the_strand_only() {
        let broken = poll(pin!(Strand::new(async { panic!("on purpose") })));
        let Polled::Ready(Err(_)) = broken else { panic!("it should have panicked") };
        let Polled::Ready(Ok(5)) = poll(pin!(Strand::new(async { 5 }))) else { panic!("it should be ready") };
        let Polled::Pending = poll(pin!(Strand::new(std::future::pending::<()>()))) else { panic!("it should wait") };
    }
}
