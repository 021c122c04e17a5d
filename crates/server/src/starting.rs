//! While the data directory is opened: a thread reads image and log, clients and the log on stderr get the progress.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::{Error, SqlState};
use engine::{Progress, Shard, ShardOptions, Stage};
use env::{DiskLock, World};
use pgwire::Server;
use redo::DriverError;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use crate::config::ServeOptions;
use crate::identity::{Identity, Origin};
use crate::memory::memory_total;
use crate::serve::cores;

/// Time between two lines in the log.
const TELL: Duration = Duration::from_secs(3);

/// A shard, and the lock of its directory.
pub type Opened = (Shard, Box<dyn DiskLock>);
/// Completes when the directory is open, or cannot be opened.
pub type Opening = oneshot::Receiver<Result<Opened, String>>;

/// What those are told who come too early.
pub fn message(progress: &Progress) -> String {
    format!("starting up: {} %", progress.percent())
}

/// Begins to open the data directory, on a thread of its own.
///
/// # Errors
/// If there cannot be a thread.
pub fn open(
    world: &World,
    lock: Box<dyn DiskLock>,
    options: &ServeOptions,
    progress: &Arc<Progress>,
) -> Result<Opening, String> {
    let (opened, opening) = oneshot::channel();
    let (world, options, progress) = (world.clone(), options.clone(), Arc::clone(progress));
    let open = move || {
        // Nobody waits if the process is about to end.
        let _ = opened.send(open_shard(&world, &options, progress).map(|shard| (shard, lock)));
    };
    let thread = std::thread::Builder::new().name("open".to_string());
    thread.spawn(open).map_err(|e| format!("cannot start a thread: {e}"))?;
    Ok(opening)
}

/// Waits until the directory is open; meanwhile clients are told to come again (57P03).
///
/// # Errors
/// Why it cannot be opened.
pub async fn until_open(server: &Server, progress: &Progress, opening: Opening) -> Result<Opened, String> {
    let refusal = || Error::fatal(SqlState::CANNOT_CONNECT_NOW, message(progress));
    let told = async {
        let mut ticks = interval(TELL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let stage = match progress.stage() {
                Stage::Image => "loading the image",
                Stage::Log => "replaying the log",
                Stage::Indexes => "building indexes",
            };
            tracing::info!("{} ({stage})", message(progress));
        }
    };
    let opened = async {
        tokio::select! {
            opened = opening => opened.map_err(|_| "opening the data directory failed".to_string())?,
            never = told => match never {},
        }
    };
    server.refuse_until(refusal, opened).await
}

/// A signal came before anything was served: nothing is to be ended, and all that is durable stays so.
pub fn give_up(signal: &str) -> ! {
    tracing::info!("{signal} while starting: ended; the log is durable");
    std::process::exit(0)
}

fn open_shard(world: &World, options: &ServeOptions, progress: Arc<Progress>) -> Result<Shard, String> {
    let shard_options = ShardOptions {
        memory_limit: options.memory_limit.bytes(memory_total(cores(options))),
        compiler: Some(sql_catalog::index_code::compiler()),
        threads: cores(options),
        log: batches(options.log_segment),
        progress,
    };
    let began = Instant::now();
    let (identity, origin) = Identity::settle(&*world.disk, &*world.clock)
        .map_err(|e| format!("cannot open the data directory {}: {e}", options.data.display()))?;
    let (shard, replayed) = Shard::open(world, shard_options, Box::new(log_failed))
        .map_err(|e| format!("cannot open the data directory {}: {e}", options.data.display()))?;
    if replayed.was_closed == Some(false) {
        tracing::info!("the log was {}", crate::check::unclosed(replayed.end, &replayed.ending));
    }
    if let Some(place) = &replayed.cut {
        tracing::warn!("the log was cut off in {place}: {}", crate::check::TORN);
    }
    let (image, from) = match shard.last_checkpoint() {
        Some(manifest) => {
            let (number, rows, bytes) = (manifest.checkpoint, manifest.rows(), manifest.bytes());
            (format!("checkpoint {number} ({rows} rows, {bytes} bytes) and "), manifest.log_from)
        }
        None => (String::new(), 0),
    };
    let times = shard.open_times();
    tracing::info!(
        "data directory {} opened: {image}{} bytes of log in {} ms (image {} ms, log {} ms, indexes {} ms)",
        options.data.display(),
        replayed.end.0 - from,
        began.elapsed().as_millis(),
        times.image_ms,
        times.log_ms,
        times.indexes_ms
    );
    identify(world, identity, origin);
    Ok(shard)
}

/// Says which database it is, and writes the file that says it if it is not there.
fn identify(world: &World, identity: Identity, origin: Origin) {
    let written = if origin == Origin::File { Ok(()) } else { identity.write(&*world.disk) };
    match (written, origin) {
        // The disk may be full, which stops no server; the next start writes it.
        (Err(error), _) => {
            tracing::warn!("database {identity}; the file identity is not there yet, it cannot be written: {error}")
        }
        (Ok(()), Origin::File) => tracing::info!("database {identity}"),
        (Ok(()), Origin::Log) => {
            tracing::warn!("database {identity}, as the log says; the file identity was missing, and is made again")
        }
        (Ok(()), Origin::New) => tracing::info!("database {identity}, from now on"),
    }
}

/// Batches that fit into segments of this size.
pub(crate) fn batches(segment_bytes: u64) -> redo::FileOptions {
    let usual = redo::FileOptions::default();
    let batch_bytes_max = usual.batch_bytes_max.min((segment_bytes / 4) as usize);
    redo::FileOptions { segment_bytes, batch_bytes_max }
}

/// The log cannot take what was promised: nothing more can be answered. The next start recovers (rule R5).
fn log_failed(error: DriverError) {
    tracing::error!("{error}; the server ends");
    std::process::exit(1);
}
