//! A server that is broken on purpose: full disks, hostile bytes, statements without measure, clients that vanish. It must
//! answer or refuse, live on, and hold no more afterwards than before.
//!
//! Tests with random input print their seed; `NYALA_SEED=n` repeats a run. Tests that need Nyala itself (its process, its
//! log) say so and pass when the target is PostgreSQL.

mod robust {
    mod budget;
    mod bytes;
    mod ceiling;
    mod ceiling_sweep;
    mod clients;
    mod crowds;
    mod disk;
    mod disk_checkpoint;
    mod group;
    mod kill;
    mod large;
    mod memory;
    mod namespace;
    mod nesting;
    mod process;
    mod reader;
    mod readonly;
    mod server;
    mod stop;
    mod wire;
}
