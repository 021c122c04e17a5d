//! Many clients on one thread: each client is a future, which runs until it waits for its socket or for a time.
//!
//! Responsible for: which future runs next.
//! Not responsible for: sending and receiving; a connection does that, and registers here for readiness.
//! Invariants: a pending future waits for one event, which it has registered, and runs again only after that event. Readiness of a
//! socket is reported once, when it arrives (edge-triggered): the future reads until nothing is left. The end of a connection, which
//! may have come with the last bytes, is reported each time.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::mem::{replace, take};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

/// How long a server may take over an answer before the connection counts as lost; here, how long all connections of a thread may be
/// silent, and it may be noticed after twice that time.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// What a future waits for.
#[derive(Clone, Copy)]
enum Wait {
    News,
    Until(Instant),
}

thread_local! {
    /// What the future that is being polled waits for.
    static WAIT: Cell<Option<Wait>> = const { Cell::new(None) };
    /// Nothing has arrived for too long.
    static LATE: Cell<bool> = const { Cell::new(false) };
    /// The task whose turn it is watches another socket now.
    static WATCHES: Cell<bool> = const { Cell::new(false) };
    /// The thread's reactor, and whose turn it is.
    static TURN: RefCell<Option<(Rc<OwnedFd>, u64)>> = const { RefCell::new(None) };
}

/// Ready when it is polled again: the reactor does that when what was waited for has come.
async fn wait(what: Wait) {
    let mut asked = false;
    poll_fn(|_| {
        if replace(&mut asked, true) {
            return Poll::Ready(());
        }
        WAIT.set(Some(what));
        Poll::Pending
    })
    .await
}

/// From now on the present task is told of what arrives on a socket, and of what has arrived before.
///
/// # Errors
/// Of the system, which is short of memory.
pub fn watch(socket: BorrowedFd<'_>) -> io::Result<()> {
    TURN.with_borrow(|turn| {
        let (epoll, task) = turn.as_ref().expect("only tasks watch");
        WATCHES.set(true);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(epoll, socket, epoll::EventData::new_u64(*task), flags)?)
    })
}

/// Waits until something has arrived, since this was last waited for, on the socket that is watched.
///
/// # Errors
/// If nothing has arrived for too long on any socket of the thread.
pub async fn news() -> io::Result<()> {
    wait(Wait::News).await;
    if LATE.take() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) }
}

/// Waits until a time, or until somebody has raised the [`Alarm`].
pub async fn until(time: Instant) {
    wait(Wait::Until(time)).await
}

/// Ends what all futures of all reactors have to wait for in [`until`].
pub struct Alarm(OwnedFd);

impl Alarm {
    /// One that is not raised.
    ///
    /// # Errors
    /// Of the system, if it has no more descriptors.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Raises it, for good.
    pub fn raise(&self) {
        // It cannot overflow, for it is raised once or twice.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

/// What one of a thread's clients does.
pub type Task<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// With these nothing more comes.
const ENDS: epoll::EventFlags = epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);

/// Of the alarm among the events; tasks have their numbers.
const ALARM: u64 = u64::MAX;

struct Seat<'f, T> {
    future: Option<Task<'f, T>>,
    wait: Option<Wait>,
    /// Something has arrived while it did not wait for it.
    news: bool,
    /// Its connection has been ended by the other side.
    ended: bool,
    result: Option<T>,
}

struct Reactor<'f, T> {
    epoll: Rc<OwnedFd>,
    seats: Vec<Seat<'f, T>>,
    running: usize,
    /// How many wait for a time.
    timed: usize,
    patience: Duration,
    /// Since when nothing has arrived, if that was noticed.
    silent: Option<Instant>,
}

/// Runs tasks to their end, on this thread. Answers their results in their order.
///
/// # Errors
/// Of the system, if it has no more descriptors.
pub fn run<'f, T>(tasks: Vec<Task<'f, T>>, alarm: &Alarm) -> io::Result<Vec<T>> {
    run_patiently(tasks, alarm, PATIENCE)
}

fn run_patiently<'f, T>(tasks: Vec<Task<'f, T>>, alarm: &Alarm, patience: Duration) -> io::Result<Vec<T>> {
    let epoll = Rc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
    epoll::add(&epoll, &alarm.0, epoll::EventData::new_u64(ALARM), epoll::EventFlags::IN)?;
    let seat = |task| Seat { future: Some(task), wait: None, news: false, ended: false, result: None };
    let seats: Vec<_> = tasks.into_iter().map(seat).collect();
    let mut reactor = Reactor { epoll, running: seats.len(), seats, timed: 0, patience, silent: None };
    for number in 0..reactor.seats.len() {
        reactor.poll(number);
    }
    let mut events = Vec::with_capacity(64);
    while reactor.running > 0 {
        reactor.turn(&mut events, alarm)?;
    }
    Ok(reactor.seats.into_iter().filter_map(|seat| seat.result).collect())
}

impl<T> Reactor<'_, T> {
    /// Waits for events, and lets everybody go on whose time has come.
    fn turn(&mut self, events: &mut Vec<epoll::Event>, alarm: &Alarm) -> io::Result<()> {
        let left = |time: Instant| time.saturating_duration_since(Instant::now());
        let left = self.next_time().map_or(self.patience, |time| left(time).min(self.patience));
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut alarmed = false;
        for event in events.iter() {
            if event.data.u64() == ALARM {
                // Who has gone on does not wait again.
                epoll::delete(&self.epoll, &alarm.0)?;
                alarmed = true;
                continue;
            }
            let number = event.data.u64() as usize;
            let (seat, flags) = (&mut self.seats[number], event.flags);
            seat.ended |= flags.intersects(ENDS);
            match seat.wait {
                Some(Wait::News) => self.poll(number),
                _ => seat.news = true,
            }
        }
        if !events.is_empty() {
            self.silent = None;
        } else if self.silent.get_or_insert_with(Instant::now).elapsed() >= self.patience {
            self.silent = None;
            self.give_up();
        }
        if self.timed > 0 {
            let now = Instant::now();
            for number in 0..self.seats.len() {
                if matches!(self.seats[number].wait, Some(Wait::Until(time)) if alarmed || time <= now) {
                    self.timed -= 1;
                    self.poll(number);
                }
            }
        }
        Ok(())
    }

    /// Tells all that wait for news that none will come.
    fn give_up(&mut self) {
        for number in 0..self.seats.len() {
            if matches!(self.seats[number].wait, Some(Wait::News)) {
                LATE.set(true);
                self.poll(number);
            }
        }
    }

    fn next_time(&self) -> Option<Instant> {
        let time = |seat: &Seat<'_, T>| match seat.wait {
            Some(Wait::Until(time)) => Some(time),
            _ => None,
        };
        if self.timed > 0 { self.seats.iter().filter_map(time).min() } else { None }
    }

    /// Lets a task go on until it has to wait.
    fn poll(&mut self, number: usize) {
        TURN.set(Some((Rc::clone(&self.epoll), number as u64)));
        let seat = &mut self.seats[number];
        seat.wait = None;
        while let Some(future) = &mut seat.future {
            if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                (seat.future, seat.result) = (None, Some(result));
                self.running -= 1;
                return;
            }
            let wait = WAIT.take().expect("who is pending has said what for");
            if WATCHES.take() {
                (seat.news, seat.ended) = (false, false);
            }
            if matches!(wait, Wait::News) && (take(&mut seat.news) || seat.ended) {
                continue;
            }
            self.timed += usize::from(matches!(wait, Wait::Until(_)));
            seat.wait = Some(wait);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    fn boxed<'f, T>(future: impl Future<Output = T> + 'f) -> Task<'f, T> {
        Box::pin(future)
    }

    #[test]
    fn tasks_take_turns_as_their_sockets_have_news() {
        const LAPS: usize = 200;
        let (left, right) = UnixStream::pair().unwrap();
        let play = |mut own: UnixStream, serves: bool| {
            boxed(async move {
                watch(own.as_fd()).unwrap();
                let mut seen = 0;
                if serves {
                    own.write_all(b"x").unwrap();
                }
                while seen < LAPS {
                    news().await.unwrap();
                    // Told once for each.
                    let mut byte = [0];
                    assert_eq!(rustix::net::recv(&own, &mut byte, rustix::net::RecvFlags::DONTWAIT).unwrap().0, 1);
                    seen += 1;
                    own.write_all(b"x").unwrap();
                }
                // Open until the other is done, too.
                (seen, own)
            })
        };
        let done = run(vec![play(left, true), play(right, false)], &Alarm::new().unwrap()).unwrap();
        assert!(done.iter().all(|(seen, _)| *seen == LAPS));
    }

    #[test]
    fn news_that_come_early_are_kept() {
        let (mut far, near) = UnixStream::pair().unwrap();
        let task = boxed(async move {
            watch(near.as_fd()).unwrap();
            until(Instant::now() + Duration::from_millis(50)).await;
            news().await.unwrap();
        });
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            far.write_all(b"x").unwrap();
            far
        });
        run(vec![task], &Alarm::new().unwrap()).unwrap();
        writer.join().unwrap();
    }

    #[test]
    fn an_end_that_came_with_the_last_bytes_is_told() {
        let (mut far, near) = UnixStream::pair().unwrap();
        far.write_all(b"bye").unwrap();
        drop(far);
        let task = boxed(async move {
            watch(near.as_fd()).unwrap();
            let mut lengths = Vec::new();
            for _ in 0..2 {
                news().await.unwrap();
                let mut bytes = [0; 16];
                lengths.push(rustix::net::recv(&near, &mut bytes, rustix::net::RecvFlags::DONTWAIT).unwrap().0);
            }
            lengths
        });
        let read = run_patiently(vec![task], &Alarm::new().unwrap(), Duration::from_secs(1)).unwrap();
        assert_eq!(read, [[3, 0]]);
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let (_far, near) = UnixStream::pair().unwrap();
        let silent = boxed(async move {
            watch(near.as_fd()).unwrap();
            news().await.unwrap_err().kind()
        });
        let busy = boxed(async {
            // Times that come are no news.
            for _ in 0..100 {
                until(Instant::now() + Duration::from_millis(1)).await;
            }
            io::ErrorKind::Other
        });
        let ended = run_patiently(vec![silent, busy], &Alarm::new().unwrap(), Duration::from_millis(20)).unwrap();
        assert_eq!(ended[0], io::ErrorKind::TimedOut);
    }

    #[test]
    fn times_come_in_their_order_and_an_alarm_ends_them_all() {
        let (alarm, order) = (Alarm::new().unwrap(), RefCell::new(Vec::new()));
        let sleep = |ms| {
            let order = &order;
            boxed(async move {
                until(Instant::now() + Duration::from_millis(ms)).await;
                order.borrow_mut().push(ms);
            })
        };
        run(vec![sleep(30), sleep(1), sleep(10)], &alarm).unwrap();
        assert_eq!(order.take(), [1, 10, 30]);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let long = boxed(until(Instant::now() + Duration::from_secs(3600)));
                run(vec![long, boxed(until(Instant::now() + Duration::from_secs(7200)))], &alarm).unwrap();
            });
            alarm.raise();
            sleeper.join().unwrap();
        });
    }
}
