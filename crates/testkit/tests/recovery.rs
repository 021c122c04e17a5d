//! Starting, and what lies on the disk: what clients are told while a start goes on, data directories of every format version,
//! `nyala check`, definitions that are prepared, and the size of a data directory under endless load.

mod recovery {
    mod bounded;
    mod check;
    mod fixtures;
    mod prepared_definitions;
    mod start;
}
