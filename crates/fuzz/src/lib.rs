//! Readers of bytes that others wrote, each as a function that a fuzzer calls with any bytes at all.
//!
//! Responsible for: one target per reader – what comes over the wire, the log, images, the manifest, COPY, SQL text, values –
//! and the property that it must keep for every input.
//! Not responsible for: making inputs (libFuzzer does, in the binary `nyala-fuzz`; `tests/fuzz/corpus` keeps them), what the
//! readers do with bytes that are right.
//! Invariants: a target returns for every input, or the input has found a fault; it depends on nothing but its input.
//!
//! Files of the disk carry checksums that a fuzzer never guesses: the first byte of an input says whether the target puts them
//! right before it reads (see [`seal`]). Start at [`TARGETS`].

#![forbid(unsafe_code)]

mod copy;
mod image;
mod log;
mod manifest;
pub mod seal;
mod sql_text;
mod values;

/// A reader under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Reads an input. A panic is a fault.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: [Target; 7] = [
    Target { name: "wire", run: pgwire::fuzz_decode },
    Target { name: "log", run: log::run },
    Target { name: "checkpoint", run: image::run },
    Target { name: "manifest", run: manifest::run },
    Target { name: "copy", run: copy::run },
    Target { name: "sql", run: sql_text::run },
    Target { name: "values", run: values::run },
];

/// A target by its name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
