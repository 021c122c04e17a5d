//! Every input that was kept, through its target: those that reach much (`corpus`) and those that found something (`found`).

use std::fs;
use std::path::{Path, PathBuf};

/// As large as that of the server's threads, and then some: this is code that is not optimised.
const STACK: usize = 64 << 20;

fn inputs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    files
}

fn replay(target: fuzz::Target) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz");
    let corpus = inputs(&root.join("corpus").join(target.name));
    assert!(corpus.len() >= 5, "{}: {} inputs kept", target.name, corpus.len());
    let files = [corpus, inputs(&root.join("found").join(target.name))].concat();
    let run = move || {
        for file in files {
            let bytes = fs::read(&file).expect("it was listed");
            // Shown if this is where the test ends.
            println!("{}", file.display());
            (target.run)(&bytes);
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(run).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

macro_rules! replays {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(fuzz::target(stringify!($name)).expect("a target"));
        })*

        #[test]
        fn every_target_is_here() {
            let here = [$(stringify!($name)),*];
            assert_eq!(here, fuzz::TARGETS.map(|target| target.name));
        }
    };
}

replays!(wire, log, checkpoint, manifest, copy, sql, values);
