//! Starting, and what lies on the disk: what clients are told during a start, data directories of every format version,
//! `nyala check`, damage to the log's end, copies of a running directory, directories that are no database, definitions that are
//! prepared, and the size of a data directory under endless load.

mod recovery {
    mod bounded;
    mod check;
    mod copies;
    mod directory;
    mod ends;
    mod fixtures;
    mod prepared_definitions;
    mod sequences;
    mod start;
}
