//! Parts of the system that run beside the others, in steps.

use crate::{Joined, Spawn};

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There may be more to do.
    Again,
    /// Nothing to do until something happens: [`Task::rest`] waits for it.
    Idle,
    /// The part is over.
    Ended,
}

/// A part of the system that goes on in steps. A thread of its own makes them one after the other; a simulation makes each when
/// its turn comes, between those of all other parts, and never lets it rest.
pub trait Task: Send {
    /// Does what there is to do, or a part of it. Does not wait for other parts of the system.
    fn step(&mut self) -> Turn;

    /// Blocks until there may be something to do, or the part is to end.
    fn rest(&mut self);
}

/// Starts a thread that makes the steps of `task` until it is over.
pub fn start(spawn: &(impl Spawn + ?Sized), name: &str, mut task: Box<dyn Task>) -> Box<dyn Joined> {
    let run = move || loop {
        match task.step() {
            Turn::Again => {}
            Turn::Idle => task.rest(),
            Turn::Ended => return,
        }
    };
    spawn.spawn(name, Box::new(run))
}
