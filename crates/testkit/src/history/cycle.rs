//! A directed graph of transactions, and its cycles.

use std::collections::{BTreeSet, VecDeque};

/// Edges between the transactions 0..n. Edges of a transaction to itself say nothing and are left out.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    next: Vec<BTreeSet<usize>>,
}

impl Graph {
    pub(super) fn new(size: usize) -> Graph {
        Graph { next: vec![BTreeSet::new(); size] }
    }

    pub(super) fn edge(&mut self, from: usize, to: usize) {
        if from != to {
            self.next[from].insert(to);
        }
    }

    /// A shortest path, both ends included.
    pub(super) fn path(&self, from: usize, to: usize) -> Option<Vec<usize>> {
        let mut came_from = vec![None; self.next.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for next in &self.next[at] {
                if came_from[*next].is_none() && *next != from {
                    came_from[*next] = Some(at);
                    queue.push_back(*next);
                }
            }
            if came_from[to].is_some() {
                let steps = std::iter::successors(Some(to), |at| came_from[*at]);
                let mut path: Vec<usize> = steps.collect();
                path.reverse();
                return Some(path);
            }
        }
        None
    }

    /// A shortest cycle through some transaction, if the graph has any cycle.
    pub(super) fn cycle(&self) -> Option<Vec<usize>> {
        let rest = self.without_acyclic_part();
        rest.iter().find_map(|start| {
            let closing = self.next[*start].iter().filter(|next| rest.contains(next));
            closing.filter_map(|next| self.path(*next, *start)).min_by_key(Vec::len)
        })
    }

    /// What is left after taking away, again and again, all that nothing leads to: empty if there is no cycle.
    fn without_acyclic_part(&self) -> BTreeSet<usize> {
        let mut incoming = vec![0usize; self.next.len()];
        for to in self.next.iter().flatten() {
            incoming[*to] += 1;
        }
        let mut rest: BTreeSet<usize> = (0..self.next.len()).collect();
        let mut free: Vec<usize> = rest.iter().copied().filter(|id| incoming[*id] == 0).collect();
        while let Some(id) = free.pop() {
            rest.remove(&id);
            for next in &self.next[id] {
                incoming[*next] -= 1;
                if incoming[*next] == 0 {
                    free.push(*next);
                }
            }
        }
        rest
    }
}
