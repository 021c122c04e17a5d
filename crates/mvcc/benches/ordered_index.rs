//! Compares ordered indexes behind [`OrderedIndex`]: ours in three node sizes, and crates that could have been it.
//!
//! `cargo bench -p mvcc --bench ordered_index [keys] [names]` prints a table, of those candidates if there are names;
//! figures are nanoseconds of processor time per operation (per 100-key scan for scans), the least of three rounds, and bytes per entry as the allocator saw them.

use base::RowId;
use mvcc::index::{BTreeIndex, Direction, Edge, EntryBatch, KeyRange, KeyTooLong, OrderedIndex, RowIds};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

/// Counts what is allocated, so that all candidates are measured alike.
struct Counting;

static ALLOCATED: AtomicI64 = AtomicI64::new(0);

// SAFETY: hands everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Key and row in one byte string, for maps that know unique keys only. The rows follow fixed-length keys here.
fn joined(key: &[u8], row: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key[..8]);
    bytes[8..].copy_from_slice(&row.to_be_bytes());
    bytes
}

fn row_of(bytes: &[u8; 16]) -> RowId {
    RowId(u64::from_be_bytes(*bytes[8..].first_chunk().expect("eight bytes")))
}

fn from_edge(range: &KeyRange<'_>) -> [u8; 16] {
    match range.from {
        Edge::Before(key) => joined(key, 0),
        _ => [0; 16],
    }
}

struct Art(artmap::ArtMap<[u8; 16], ()>);
struct Skip(crossbeam_skiplist::SkipSet<[u8; 16]>);
struct Scc(scc::TreeIndex<[u8; 16], ()>);

/// Forward scans over joined keys are all that the table needs.
macro_rules! candidate {
    ($type:ty, $insert:expr, $remove:expr, $scan:expr, $len:expr) => {
        impl OrderedIndex for $type {
            fn insert(&self, key: &[u8], row: RowId) -> Result<bool, KeyTooLong> {
                Ok($insert(&self.0, joined(key, row.0)))
            }

            fn remove(&self, key: &[u8], row: RowId) -> bool {
                $remove(&self.0, joined(key, row.0))
            }

            fn scan(
                &self,
                range: &KeyRange<'_>,
                _direction: Direction,
                _resume: Option<(&[u8], RowId)>,
                limit: usize,
                out: &mut EntryBatch,
            ) -> bool {
                $scan(&self.0, from_edge(range), [0xff; 16], limit, &mut |bytes: &[u8; 16]| {
                    out.append(&bytes[..8], row_of(bytes));
                    true
                });
                true
            }

            fn get(&self, key: &[u8], out: &mut RowIds) {
                $scan(&self.0, joined(key, 0), joined(key, u64::MAX), usize::MAX, &mut |bytes: &[u8; 16]| {
                    out.push(row_of(bytes));
                    true
                });
            }

            fn len(&self) -> usize {
                $len(&self.0)
            }

            fn memory_bytes(&self) -> usize {
                0
            }
        }
    };
}

type Visit<'a> = &'a mut dyn FnMut(&[u8; 16]) -> bool;

candidate!(
    Art,
    |map: &artmap::ArtMap<[u8; 16], ()>, key| map.insert(key, ()).is_none(),
    |map: &artmap::ArtMap<[u8; 16], ()>, key: [u8; 16]| map.remove(&key).is_some(),
    |map: &artmap::ArtMap<[u8; 16], ()>, from: [u8; 16], to: [u8; 16], limit: usize, visit: Visit<'_>| {
        map.range(from..=to).take(limit).for_each(|entry| _ = visit(entry.key()))
    },
    |map: &artmap::ArtMap<[u8; 16], ()>| map.len()
);
candidate!(
    Skip,
    |set: &crossbeam_skiplist::SkipSet<[u8; 16]>, key| {
        let is_new = !set.contains(&key);
        set.insert(key);
        is_new
    },
    |set: &crossbeam_skiplist::SkipSet<[u8; 16]>, key: [u8; 16]| set.remove(&key).is_some(),
    |set: &crossbeam_skiplist::SkipSet<[u8; 16]>, from: [u8; 16], to: [u8; 16], limit: usize, visit: Visit<'_>| {
        set.range(from..=to).take(limit).for_each(|entry| _ = visit(entry.value()))
    },
    |set: &crossbeam_skiplist::SkipSet<[u8; 16]>| set.len()
);
candidate!(
    Scc,
    |tree: &scc::TreeIndex<[u8; 16], ()>, key| tree.insert_sync(key, ()).is_ok(),
    |tree: &scc::TreeIndex<[u8; 16], ()>, key: [u8; 16]| tree.remove_sync(&key),
    |tree: &scc::TreeIndex<[u8; 16], ()>, from: [u8; 16], to: [u8; 16], limit: usize, visit: Visit<'_>| {
        let guard = scc::Guard::new();
        tree.range(from..=to, &guard).take(limit).for_each(|(key, _)| _ = visit(key))
    },
    |tree: &scc::TreeIndex<[u8; 16], ()>| tree.len()
);

/// A generator that threads can start anywhere (splitmix64).
fn mix(n: u64) -> u64 {
    let z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn key(n: u64, random: bool) -> [u8; 8] {
    if random { mix(n).to_be_bytes() } else { n.to_be_bytes() }
}

/// Nanoseconds that the calling thread has run.
fn processor_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of processor time per operation.
fn timed(threads: u64, operations: u64, run: &(dyn Fn(u64, std::ops::Range<u64>) + Sync)) -> f64 {
    let share = operations / threads;
    let work = move |thread| {
        let start = processor_nanos();
        run(thread, thread * share..(thread + 1) * share);
        processor_nanos() - start
    };
    let nanos: u64 = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("a round ends")).sum()
    });
    nanos as f64 / (share * threads) as f64
}

/// The columns: insert, get, scan, mixed for one thread, then for two, then bytes per entry.
fn round(make: &dyn Fn() -> Box<dyn OrderedIndex>, keys: u64, random: bool) -> Vec<f64> {
    let mut row = Vec::new();
    let mut bytes = 0.0;
    for threads in [1, 2] {
        let before = ALLOCATED.load(Ordering::Relaxed);
        let index = make();
        let index = index.as_ref();
        row.push(timed(threads, keys, &|thread, range| {
            for n in range {
                // Ascending threads interleave, as sessions that share a sequence do.
                let n = if random { n } else { (n % (keys / threads)) * threads + thread };
                index.insert(&key(n, random), RowId(n)).expect("short");
            }
        }));
        if threads == 1 {
            bytes = (ALLOCATED.load(Ordering::Relaxed) - before) as f64 / keys as f64;
        }
        assert_eq!(index.len() as u64, keys);
        row.push(timed(threads, keys, &|_, range| {
            let mut rows = RowIds::new();
            for n in range {
                let n = mix(n ^ 0x5555) % keys;
                rows.clear();
                index.get(&key(n, random), &mut rows);
                assert_eq!(rows.as_slice(), [RowId(n)]);
            }
        }));
        row.push(timed(threads, keys / 20, &|_, range| {
            let mut batch = EntryBatch::new();
            for n in range {
                batch.clear();
                let from = key(mix(n) % keys, random);
                let range = KeyRange { from: Edge::Before(&from), to: Edge::End };
                index.scan(&range, Direction::Forward, None, 100, &mut batch);
                assert!(!batch.is_empty());
            }
        }));
        row.push(timed(threads, keys, &|_, range| {
            let mut rows = RowIds::new();
            for n in range {
                match n % 4 {
                    // A quarter inserts and a quarter removes of pairs that differ from those read.
                    0 => assert_eq!(index.insert(&key(mix(n) % keys, random), RowId(keys + n)), Ok(true)),
                    1 => assert!(index.remove(&key(mix(n - 1) % keys, random), RowId(keys + n - 1))),
                    _ => {
                        rows.clear();
                        index.get(&key(mix(n) % keys, random), &mut rows);
                        assert!(!rows.is_empty());
                    }
                }
            }
        }));
    }
    row.push(bytes);
    row
}

fn main() {
    // Cargo adds `--bench`.
    let keys = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(200_000);
    let candidates: [(&str, &dyn Fn() -> Box<dyn OrderedIndex>); 6] = [
        ("btree 4 KiB", &|| Box::new(BTreeIndex::<512>::new())),
        ("btree 2 KiB", &|| Box::new(BTreeIndex::<256>::new())),
        ("btree 1 KiB", &|| Box::new(BTreeIndex::<128>::new())),
        ("artmap", &|| Box::new(Art(artmap::ArtMap::new()))),
        ("scc TreeIndex", &|| Box::new(Scc(scc::TreeIndex::new()))),
        ("skiplist", &|| Box::new(Skip(crossbeam_skiplist::SkipSet::new()))),
    ];
    let named = |name: &str| {
        let arguments = std::env::args().skip(1);
        let names: Vec<_> = arguments.filter(|a| !a.starts_with("--") && a.parse::<u64>().is_err()).collect();
        names.is_empty() || names.iter().any(|part| name.contains(part))
    };
    for random in [true, false] {
        println!(
            "\n{keys} {} keys of 8 bytes; ns of processor time per operation",
            if random { "random" } else { "ascending" }
        );
        print!("{:15}", "");
        for column in ["insert", "get", "scan100", "mixed", "insert/2", "get/2", "scan100/2", "mixed/2", "bytes"] {
            print!("{column:>10}");
        }
        println!();
        for (name, make) in candidates.iter().filter(|(name, _)| named(name)) {
            let rounds: Vec<Vec<f64>> = (0..3).map(|_| round(make, keys, random)).collect();
            print!("{name:15}");
            for column in 0..rounds[0].len() {
                let mut values: Vec<f64> = rounds.iter().map(|round| round[column]).collect();
                values.sort_by(f64::total_cmp);
                print!("{:>10.1}", values[0]);
            }
            println!();
        }
    }
}
