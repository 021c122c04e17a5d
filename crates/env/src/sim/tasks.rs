//! Parts of the system that run when they are scheduled, all in one thread.

use std::sync::{Arc, Mutex, MutexGuard};

use super::SimClock;
use crate::{Joined, Spawn, Task, Turn};

/// What time goes on by while somebody waits for a part to end.
const WAITING_NANOS: u64 = 100_000;

/// The parts that were started and are not over. Clones are the same.
#[derive(Clone, Default)]
pub struct SimTasks {
    tasks: Arc<Mutex<Tasks>>,
    clock: SimClock,
}

#[derive(Default)]
struct Tasks {
    /// `None`: over, or making a step.
    list: Vec<(String, Option<Box<dyn Task>>)>,
}

impl SimTasks {
    /// No parts; `clock` goes on while one is waited for.
    pub fn new(clock: &SimClock) -> SimTasks {
        SimTasks { tasks: Arc::default(), clock: clock.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Names of the parts that are not over, by number.
    pub fn list(&self) -> Vec<(usize, String)> {
        let tasks = self.lock();
        let numbered = tasks.list.iter().enumerate();
        numbered.filter(|(_, (_, task))| task.is_some()).map(|(number, (name, _))| (number, name.clone())).collect()
    }

    /// Makes a step of a part.
    pub fn step(&self, number: usize) -> Turn {
        // Not under the lock: a step may start others.
        let taken = self.lock().list.get_mut(number).and_then(|(_, task)| task.take());
        let Some(mut task) = taken else { return Turn::Ended };
        let turn = task.step();
        if turn != Turn::Ended {
            self.lock().list[number].1 = Some(task);
        }
        turn
    }
}

impl Spawn for SimTasks {
    fn spawn(&self, _: &str, task: Box<dyn FnOnce() + Send>) -> Box<dyn Joined> {
        Box::new(Later(Mutex::new(Some(task))))
    }

    fn start(&self, name: &str, task: Box<dyn Task>) -> Box<dyn Joined> {
        let mut tasks = self.lock();
        tasks.list.push((name.to_string(), Some(task)));
        Box::new(Started { tasks: self.clone(), number: tasks.list.len() - 1 })
    }

    fn runs_beside(&self) -> bool {
        false
    }
}

/// Runs when it is joined.
struct Later(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Joined for Later {
    fn join(self: Box<Self>) {
        let task = self.0.lock().unwrap_or_else(|e| e.into_inner()).take();
        task.into_iter().for_each(|task| task());
    }
}

struct Started {
    tasks: SimTasks,
    number: usize,
}

impl Joined for Started {
    fn join(self: Box<Self>) {
        while self.tasks.step(self.number) != Turn::Ended {
            self.tasks.clock.advance(WAITING_NANOS);
        }
    }
}
