//! kill -9 under all kinds of load, cycle after cycle: transfers, single rows, lists, keys that move, large transactions,
//! savepoints, prepared transactions, COPY, sequences, commits that do not wait, definitions, checkpoints.
//!
//! After each start every client looks for what it did: what was acknowledged is there, what was not is there whole or not at
//! all. Then each index is read beside its table. `NYALA_KILLS` says how many cycles there are. Cycle n draws from seed
//! `NYALA_SEED` + n, which is printed; `NYALA_SEED=that NYALA_KILLS=1` repeats what its clients do on an empty directory.

mod cycles {
    mod ask;
    mod bank;
    mod clients;
    mod definitions;
    mod indexes;
    mod phases;
    mod prepared;
    mod rows;
    mod run;
}
