//! Work that may be long, and what interrupts it.
//!
//! Responsible for: counting units of work on the current thread, and looking, each [`QUANTUM`] units, whether the statement
//! should stop ([`Stop`]) and whether it is the turn of others ([`Host`]); sending work away that cannot be counted.
//! Not responsible for: what a turn is, and how one is given away (`env::strand`); when a statement should stop (`sql-session`).
//! Invariants: a loop whose length a user chooses passes [`step`] or [`beat`]; a unit is a few nanoseconds of work at most, about
//! that of looking at a byte. Neither is passed where a latch or a borrow is held that others of the thread may want, except
//! inside [`closed`].

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Waker};

use crate::{Error, Result, watch};

/// Units between two looks.
pub const QUANTUM: u32 = 1 << 15;

/// Says when the work of a thread should stop.
pub trait Stop: Send + Sync {
    /// Whether it may go on.
    ///
    /// # Errors
    /// Why it should stop.
    fn look(&self) -> Result<()>;
}

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(QUANTUM) };
    /// Units counted before the current quantum.
    static SPENT: Cell<u64> = const { Cell::new(0) };
    /// The most units that one call has counted.
    static LARGEST: Cell<u64> = const { Cell::new(0) };
    /// Sections in which nobody else may have a turn.
    static CLOSED: Cell<u32> = const { Cell::new(0) };
    /// A look fell into such a section: the next one is due when it is left.
    static DUE: Cell<bool> = const { Cell::new(false) };
    /// Looks after which a section that is to be brief is given up.
    static PATIENCE: Cell<u32> = const { Cell::new(u32::MAX) };
    /// Somebody further out takes an unwinding for an error.
    static CAUGHT: Cell<u32> = const { Cell::new(0) };
    static STOP: RefCell<Option<Arc<dyn Stop>>> = const { RefCell::new(None) };
    /// The strand that runs; 0 for the thread itself.
    static STRAND: Cell<u32> = const { Cell::new(0) };
    /// Where the strand's stack begins and ends: it grows downward.
    static STACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// What a thread can do about long work.
pub struct Host {
    /// Called after each quantum: may give others of the thread their turn.
    pub pause: fn(),
    /// Whether what runs can wait for another thread.
    pub can_leave: fn() -> bool,
    /// Runs work on another thread.
    pub send: fn(Box<dyn FnOnce() + Send>),
    /// Runs work on a thread that serves nobody, beside what runs; `false`, and the work is dropped, if there is none to spare.
    pub assist: fn(Box<dyn FnOnce() + Send>) -> bool,
    /// Nanoseconds of a clock that never steps back, for those threads.
    pub now: fn() -> u64,
    /// Suspends what runs, after its waker was taken by the argument, until it is woken, or for a while.
    pub wait: fn(&mut dyn FnMut(Waker)),
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Says what can be done about long work. The first word counts.
pub fn host(host: Host) {
    let _ = HOST.set(host);
}

/// What another thread has made, and who waits for it.
struct Away<T> {
    made: Option<std::thread::Result<T>>,
    waker: Option<Waker>,
}

/// Runs work on another thread, if the calling one has others to serve, and waits for it without holding the thread. For code
/// that cannot count its work. A statement that is stopped no longer waits; the work goes on to its end.
///
/// # Errors
/// Why the statement should stop.
pub fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    sent(work, || look(0))
}

/// As [`elsewhere`], where no error can be answered. A statement that should stop is unwound to [`caught`], if there is one;
/// without one it waits on.
pub fn elsewhere_unwound<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let Ok(made) = sent::<T, Infallible>(work, || {
        if let Err(error) = look(0)
            && CAUGHT.get() > 0
        {
            resume_unwind(Box::new(Stopped(error)));
        }
        Ok(())
    });
    made
}

fn sent<T: Send + 'static, E>(
    work: impl FnOnce() -> T + Send + 'static,
    may_wait: impl Fn() -> Result<(), E>,
) -> Result<T, E> {
    let Some(host) = HOST.get().filter(|host| CLOSED.get() == 0 && (host.can_leave)()) else { return Ok(work()) };
    let away = Arc::new(Mutex::new(Away { made: None, waker: None }));
    let there = Arc::clone(&away);
    (host.send)(Box::new(move || {
        let made = catch_unwind(AssertUnwindSafe(work));
        let mut there = there.lock().unwrap_or_else(PoisonError::into_inner);
        there.made = Some(made);
        if let Some(waker) = there.waker.take() {
            waker.wake();
        }
    }));
    loop {
        let lock = || away.lock().unwrap_or_else(PoisonError::into_inner);
        match lock().made.take() {
            Some(Ok(made)) => return Ok(made),
            Some(Err(panic)) => resume_unwind(panic),
            None => {}
        }
        may_wait()?;
        (host.wait)(&mut |waker| {
            let mut away = lock();
            match away.made {
                Some(_) => waker.wake(),
                None => away.waker = Some(waker),
            }
        });
    }
}

/// Has another thread work for the statement that runs, beside it; `false`, and the work is dropped, if there is none to spare. The thread is
/// told what time it is ([`Host::now`]).
pub fn assist(work: impl FnOnce(fn() -> u64) + Send + 'static) -> bool {
    let Some(host) = HOST.get().filter(|host| (host.can_leave)()) else { return false };
    let now = host.now;
    (host.assist)(Box::new(move || work(now)))
}

/// Waits for a future without holding the thread, if what runs can leave it. Answers whether it could.
///
/// # Errors
/// Why the statement should stop.
pub fn wait_for(future: impl Future<Output = ()>) -> Result<bool> {
    let Some(host) = HOST.get().filter(|host| CLOSED.get() == 0 && (host.can_leave)()) else { return Ok(false) };
    let mut future = pin!(future);
    let mut is_over = false;
    while !is_over {
        look(0)?;
        (host.wait)(&mut |waker| {
            is_over = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            if is_over {
                waker.wake();
            }
        });
    }
    Ok(true)
}

/// Drops a large value on another thread, if the calling one has others to serve.
pub fn discard_elsewhere<T: Send + 'static>(value: T) {
    if let Some(host) = HOST.get().filter(|host| (host.can_leave)()) {
        (host.send)(Box::new(move || drop(value)));
    }
}

/// Drops what was made since so many units were counted ([`total`]); on another thread if it took long: then it is large.
pub fn discard_made<T: Send + 'static>(value: T, since: u64) {
    if is_long_since(since) {
        discard_elsewhere(value);
    }
}

/// Whether more than a brief section's units were counted since.
pub fn is_long_since(before: u64) -> bool {
    total().saturating_sub(before) > LONG
}

/// Counts work, and stops or lets others have their turn if it is time.
///
/// # Errors
/// Why the statement should stop.
#[inline(always)]
pub fn step(units: usize) -> Result<()> {
    let left = LEFT.get();
    if units < left as usize {
        LEFT.set(left - units as u32);
        return Ok(());
    }
    look(units)
}

/// As [`step`], where no error can be answered: a comparison of a sort, say. A statement that should stop is unwound to
/// [`caught`], if there is one.
#[inline(always)]
pub fn beat(units: usize) {
    let left = LEFT.get();
    if units < left as usize {
        LEFT.set(left - units as u32);
        return;
    }
    if let Err(error) = look(units)
        && CAUGHT.get() > 0
    {
        resume_unwind(Box::new(Stopped(error)));
    }
}

/// What a stopped statement is unwound with.
struct Stopped(Error);

#[cold]
#[inline(never)]
fn look(units: usize) -> Result<()> {
    let before = QUANTUM - LEFT.get();
    SPENT.set(SPENT.get() + u64::from(before) + units as u64);
    LARGEST.set(LARGEST.get().max(units as u64));
    LEFT.set(QUANTUM);
    // What is dropped while a statement is unwound neither waits nor fails.
    if std::thread::panicking() {
        return Ok(());
    }
    if CLOSED.get() > 0 {
        DUE.set(true);
        return lose_patience();
    }
    let may_go_on = || STOP.with_borrow(|stop| stop.as_ref().map_or(Ok(()), |stop| stop.look()));
    may_go_on()?;
    if let Some(host) = HOST.get() {
        (host.pause)();
        return may_go_on();
    }
    Ok(())
}

/// A look inside of a closed section: fails if the section was to be brief and is not.
fn lose_patience() -> Result<()> {
    let patience = PATIENCE.get();
    if patience == u32::MAX {
        return Ok(());
    }
    PATIENCE.set(patience.saturating_sub(1));
    if patience > 1 { Ok(()) } else { Err(Error::internal("work that was to be brief is long")) }
}

/// An iterator whose steps are counted ([`beat`]).
pub struct Counted<I> {
    inner: I,
    units: usize,
}

impl<I: Iterator> Iterator for Counted<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        beat(self.units);
        self.inner.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<I: DoubleEndedIterator> DoubleEndedIterator for Counted<I> {
    #[inline]
    fn next_back(&mut self) -> Option<I::Item> {
        beat(self.units);
        self.inner.next_back()
    }
}

impl<I: ExactSizeIterator> ExactSizeIterator for Counted<I> {}

/// Counting the steps of iterators over what a user has made.
pub trait Count: Iterator + Sized {
    /// The same, each step so many units of work.
    #[inline]
    fn counted(self, units: usize) -> Counted<Self> {
        Counted { inner: self, units }
    }
}

impl<I: Iterator> Count for I {}

/// Units that copying or scanning so many bytes is, where the processor takes many at once.
#[inline]
pub fn bytes(count: usize) -> usize {
    count / 16
}

/// Bytes that are copied or scanned between two counts.
pub const STRETCH: usize = 1 << 18;

/// Appends bytes that may be many.
#[inline]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= STRETCH { out.extend_from_slice(bytes) } else { append_many(out, bytes) }
}

#[cold]
fn append_many(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len());
    for part in bytes.chunks(STRETCH) {
        beat(self::bytes(part.len()));
        out.extend_from_slice(part);
    }
}

/// As [`append`], where nothing may be left half done: nothing stops it.
#[inline]
pub fn append_unstopped(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= STRETCH { out.extend_from_slice(bytes) } else { unstopped(|| append_many(out, bytes)) }
}

/// As [`append`], of text.
#[inline]
pub fn append_text(out: &mut String, text: &str) {
    if text.len() <= STRETCH { out.push_str(text) } else { append_long_text(out, text) }
}

#[cold]
fn append_long_text(out: &mut String, mut text: &str) {
    out.reserve(text.len());
    while !text.is_empty() {
        let (part, rest) = text.split_at(text.floor_char_boundary(STRETCH));
        beat(bytes(part.len()));
        out.push_str(part);
        text = rest;
    }
}

/// A text that may be long between two others: `format!` would copy it in one step, and again as the whole grows.
pub fn between(before: &str, text: &str, after: &str) -> String {
    let mut whole = String::with_capacity(before.len() + text.len() + after.len());
    whole.push_str(before);
    append_text(&mut whole, text);
    whole.push_str(after);
    whole
}

/// Drops many values, counted. Nothing stops it. While a statement is unwound others have no turn: the values are dropped on another thread
/// then, if the calling one has others to serve.
#[inline]
pub fn discard<T: Send + 'static>(values: &mut Vec<T>) {
    if values.len() > AT_ONCE && std::mem::needs_drop::<T>() {
        discard_many(values);
    }
    values.clear();
}

/// Bytes of a list whose memory is given back on another thread: the system takes it back in one step.
const LARGE: usize = 16 << 20;

/// A list that may become long before its maker is done, or stopped. What is in it at its end is discarded ([`discard`]), and its memory is given
/// back elsewhere if it is much.
#[derive(Debug)]
pub struct List<T: Send + 'static>(Vec<T>);

impl<T: Send + 'static> List<T> {
    /// An empty list.
    pub const fn new() -> List<T> {
        List(Vec::new())
    }

    /// The values, when all are there.
    pub fn done(mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

impl<T: Send + 'static> Default for List<T> {
    fn default() -> List<T> {
        List::new()
    }
}

impl<T: Send + 'static> Deref for List<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Send + 'static> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for List<T> {
    fn drop(&mut self) {
        discard(&mut self.0);
        if self.0.capacity().saturating_mul(size_of::<T>()) > LARGE {
            discard_elsewhere(std::mem::take(&mut self.0));
        }
    }
}

impl<T: Send + 'static> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = Values<T>;

    fn into_iter(self) -> Values<T> {
        Values(self.done().into_iter())
    }
}

/// The values of a [`List`], one after the other. Those that nobody takes are discarded.
#[derive(Debug)]
pub struct Values<T: Send + 'static>(std::vec::IntoIter<T>);

impl<T: Send + 'static> Iterator for Values<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T: Send + 'static> Drop for Values<T> {
    fn drop(&mut self) {
        discard(&mut std::mem::take(&mut self.0).collect());
    }
}

/// Values dropped between two counts.
const AT_ONCE: usize = 1024;

#[cold]
fn discard_many<T: Send + 'static>(values: &mut Vec<T>) {
    if std::thread::panicking() {
        return discard_elsewhere(std::mem::take(values));
    }
    while values.len() > AT_ONCE {
        values.truncate(values.len() - AT_ONCE);
        // It is often what is left of a statement that was stopped.
        unstopped(|| beat(8 * AT_ONCE));
    }
}

/// Drops lists of many values, each in one step, counted. Nothing stops it.
pub fn discard_lists<T>(lists: &mut Vec<Vec<T>>) {
    while let Some(list) = lists.pop() {
        let units = 8 * list.len();
        drop(list);
        unstopped(|| beat(units));
    }
}

/// Runs `work`, in which others have their turn, but which nothing stops: it would leave something half done.
pub fn unstopped<T>(work: impl FnOnce() -> T) -> T {
    let caught = CAUGHT.replace(0);
    let result = work();
    CAUGHT.set(caught);
    result
}

/// Looks at once, whatever has been counted.
///
/// # Errors
/// Why the statement should stop.
pub fn look_now() -> Result<()> {
    look(0)
}

/// Runs `work`, in which nobody else of the thread gets a turn and nothing is stopped: what it holds others may want.
pub fn closed<T>(work: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CLOSED.set(CLOSED.get() - 1);
            if CLOSED.get() == 0 && DUE.replace(false) {
                let early = LEFT.replace(1) - 1;
                SPENT.set(SPENT.get().saturating_sub(u64::from(early)));
            }
        }
    }
    CLOSED.set(CLOSED.get() + 1);
    let _leave = Leave;
    work()
}

/// Looks that a brief section may take: about a millisecond.
const BRIEF: u32 = 4;

/// Units of work that are no longer brief.
pub const LONG: u64 = BRIEF as u64 * QUANTUM as u64;

/// Runs `work` as [`closed`] does, but gives it up when it turns out to be long: `None`. It is to be done where nothing is held.
///
/// # Errors
/// Those of `work`.
pub fn brief<T>(work: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    struct Leave(u32);
    impl Drop for Leave {
        fn drop(&mut self) {
            PATIENCE.set(self.0);
        }
    }
    let leave = Leave(PATIENCE.replace(BRIEF));
    let result = closed(|| caught(work));
    let is_given_up = PATIENCE.get() == 0;
    drop(leave);
    if is_given_up { Ok(None) } else { result.map(Some) }
}

/// Runs `work`, and takes a statement that was unwound because it should stop for one that failed.
///
/// # Errors
/// Those of `work`; why it was stopped.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            CAUGHT.set(CAUGHT.get() - 1);
        }
    }
    CAUGHT.set(CAUGHT.get() + 1);
    let leave = Leave;
    let result = catch_unwind(AssertUnwindSafe(work));
    drop(leave);
    result.unwrap_or_else(|payload| match payload.downcast::<Stopped>() {
        Ok(stopped) => Err(stopped.0),
        Err(payload) => resume_unwind(payload),
    })
}

/// Says what stops the work that follows on this thread, unless it is that already.
pub fn stopped_by(stop: &Arc<dyn Stop>) {
    STOP.with_borrow_mut(|current| {
        if !current.as_ref().is_some_and(|current| Arc::ptr_eq(current, stop)) {
            *current = Some(Arc::clone(stop));
        }
    });
}

/// Whether what runs can be stopped. Beside strands a thread has only what is short, and what stopped one must not stop the next.
#[inline]
pub fn is_stoppable() -> bool {
    STRAND.get() != 0 || HOST.get().is_none()
}

/// The strand that runs: a small number, that of the thread itself is 0. What is kept by thread between two calls of one
/// statement must be kept by strand.
#[inline]
pub fn strand() -> usize {
    STRAND.get() as usize
}

/// What the thread had when a strand began to run on it, or went on.
#[must_use]
pub struct Outside {
    strand: u32,
    stack: (usize, usize),
    caught: u32,
}

/// The strand of this number runs from now on, on a stack that begins and ends there.
#[inline]
pub fn enter(strand: u32, stack: (usize, usize)) -> Outside {
    debug_assert_eq!(CLOSED.get(), 0, "no other work runs within a closed section");
    Outside { strand: STRAND.replace(strand), stack: STACK.replace(stack), caught: CAUGHT.replace(0) }
}

/// Whether what runs has a stack of its own, which is long: a statement of a session. What it leaves behind is dropped by who has
/// as much.
#[inline]
pub fn has_long_stack() -> bool {
    STACK.get().0 != 0
}

/// Whether less than so many hundredths of the stack are left, where it is known.
#[inline]
pub fn stack_is_below(hundredths: usize) -> bool {
    let (begin, end) = STACK.get();
    let here = std::ptr::from_ref(&begin).addr();
    // What has run elsewhere meanwhile, on another stack, is not measured.
    (end..begin).contains(&here) && here - end < (begin - end) / 100 * hundredths
}

/// It runs no more.
#[inline]
pub fn leave(outside: Outside) {
    STRAND.set(outside.strand);
    STACK.set(outside.stack);
    CAUGHT.set(outside.caught);
}

/// Runs `suspend`, which returns when the strand goes on; it was within as many sections that catch what stops it as before.
#[inline]
pub fn while_suspended(suspend: impl FnOnce()) {
    let caught = CAUGHT.get();
    suspend();
    CAUGHT.set(caught);
}

/// What a strand has, whichever stack it runs on: what stops it, and whose work it is.
#[derive(Default)]
pub struct Own {
    stop: Option<Arc<dyn Stop>>,
    session: i32,
}

impl Own {
    /// Changes places with that of what runs now.
    #[inline]
    pub fn swap(&mut self) {
        STOP.with_borrow_mut(|stop| std::mem::swap(stop, &mut self.stop));
        self.session = watch::session(self.session);
    }
}

/// Units counted on this thread.
pub fn total() -> u64 {
    SPENT.get() + u64::from(QUANTUM - LEFT.get())
}

/// The most units that one call has counted on this thread since this was last asked: work between two looks.
pub fn largest() -> u64 {
    LARGEST.replace(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SqlState;

    struct Always;

    impl Stop for Always {
        fn look(&self) -> Result<()> {
            Err(Error::new(SqlState::QUERY_CANCELED, "stop"))
        }
    }

    fn stop_always() {
        stopped_by(&(Arc::new(Always) as Arc<dyn Stop>));
    }

    #[test]
    fn long_work_is_stopped_and_short_work_is_not() {
        stop_always();
        let before = total();
        assert!((0..100).all(|_| step(1).is_ok()));
        assert_eq!(total() - before, 100);
        let steps = (0..).position(|_| step(100).is_err());
        assert!(steps.unwrap() <= QUANTUM as usize / 100);
        assert!(step(QUANTUM as usize).is_err() && largest() >= u64::from(QUANTUM));
    }

    #[test]
    fn an_unwound_statement_has_failed() {
        stop_always();
        let failed = caught(|| -> Result<()> {
            loop {
                beat(1000)
            }
        });
        assert_eq!(failed.unwrap_err().code(), SqlState::QUERY_CANCELED);
        // Nobody would catch it here.
        (0..100).for_each(|_| beat(10_000));
        assert!(closed(|| (0..100).all(|_| step(10_000).is_ok())));
    }

    #[test]
    fn what_is_not_brief_is_given_up() {
        let endless = || -> Result<()> {
            loop {
                beat(1000)
            }
        };
        let before = total();
        assert_eq!(brief(endless), Ok(None));
        assert!((LONG..2 * LONG).contains(&(total() - before)));
        let stubborn = || loop {
            if step(1000).is_err() {
                return Ok(());
            }
        };
        assert_eq!(brief(stubborn), Ok(None));
        assert_eq!(brief(|| closed(|| step(1000).map(|()| 7))), Ok(Some(7)));
        // A look that was due inside is made outside.
        stop_always();
        assert!(closed(|| step(2 * QUANTUM as usize)).is_ok() && step(1).is_err());
    }

    #[test]
    fn what_is_of_a_strand_changes_places() {
        stop_always();
        let mut other = Own::default();
        let stopped = caught(|| {
            let outside = enter(7, (0, 0));
            other.swap();
            assert!(strand() == 7 && look_now().is_ok());
            stop_always();
            // The section that catches is not the strand's.
            (0..100).for_each(|_| beat(10_000));
            other.swap();
            leave(outside);
            assert!(strand() == 0);
            beat(QUANTUM as usize);
            Ok(())
        });
        assert_eq!(stopped.unwrap_err().code(), SqlState::QUERY_CANCELED);
    }
}
