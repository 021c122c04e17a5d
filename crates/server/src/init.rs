//! `nyala init`: a new database in a directory that has none.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::{Shard, ShardOptions};

use crate::directory::{self, Content};
use crate::identity::{Identity, Origin};
use crate::{config, serve, starting};

/// Options of `nyala init`.
#[derive(Clone, Debug, Args)]
pub struct InitOptions {
    /// The data directory: one that is not there, or is empty.
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Size of the log's files, as `nyala serve` is given it.
    #[arg(long, env = "NYALA_LOG_SEGMENT", value_name = "SIZE", default_value = "64MB", value_parser = config::segment)]
    pub log_segment: u64,
}

/// Makes a database and says which: 0 if it is there, 1 if not.
pub fn main(options: &InitOptions) -> ExitCode {
    match make(&options.data, options.log_segment) {
        Ok(identity) => {
            println!("{} is database {identity}", options.data.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("nyala: {message}");
            ExitCode::FAILURE
        }
    }
}

fn make(path: &Path, log_segment: u64) -> Result<Identity, String> {
    let shown = path.display();
    if directory::content(path)? == Content::Database {
        return Err(format!("the data directory {shown} has a database already"));
    }
    let (world, _lock) = serve::open_directory(path, true)?;
    let failed = |error: &dyn std::fmt::Display| format!("cannot make a database in {shown}: {error}");
    let options = ShardOptions { log: starting::batches(log_segment), threads: 1, ..ShardOptions::default() };
    let (identity, origin) = Identity::settle(&*world.disk, &*world.clock).map_err(|error| failed(&error))?;
    let (shard, _) = Shard::open(&world, options, Box::new(|_| {})).map_err(|error| failed(&error))?;
    shard.close().map_err(|error| failed(&error))?;
    if origin != Origin::File {
        identity.write(&*world.disk).map_err(|error| failed(&error))?;
    }
    Ok(identity)
}
