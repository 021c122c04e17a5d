//! Health and figures over HTTP: a thread of its own, up before the log is read back, so that a start that takes long can
//! be told from one that has failed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use console::{Exposition, FamilyKind, ServerState, Source};
use engine::{Progress, Shard};
use engine_api::MemoryKind;
use pgwire::Registry;

use crate::config::{HttpAddress, ServeOptions};
use crate::memory::resident_bytes;
use crate::{starting, watchdog};

/// Where HTTP is served if nothing else is said.
const DEFAULT_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8432);

/// What the parts of the server tell of themselves.
struct Figures {
    /// Seconds since 1970.
    started: f64,
    progress: Arc<Progress>,
    /// Set once the log has been read back.
    running: OnceLock<Running>,
    ending: AtomicBool,
    max_connections: u32,
}

struct Running {
    shard: Shard,
    registry: Arc<Registry>,
    data: PathBuf,
}

/// The server's side of its health: it tells what it is doing.
pub struct Health(Arc<Figures>);

impl Health {
    /// From now on statements are served.
    pub fn serves(&self, shard: Shard, registry: Arc<Registry>, data: PathBuf) {
        // Said once: there is one life.
        let _ = self.0.running.set(Running { shard, registry, data });
    }

    /// From now on no longer.
    pub fn ends(&self) {
        self.0.ending.store(true, Ordering::Release);
    }
}

/// Starts to answer requests, if that is wanted.
///
/// # Errors
/// If an address that was asked for cannot be had. The default one may be another server's: that is a warning.
pub fn start(options: &ServeOptions, progress: &Arc<Progress>) -> Result<Health, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let figures = Arc::new(Figures {
        started: now,
        progress: Arc::clone(progress),
        running: OnceLock::new(),
        ending: AtomicBool::new(false),
        max_connections: options.max_connections,
    });
    let (address, asked_for) = match options.http {
        Some(HttpAddress::Off) => return Ok(Health(figures)),
        Some(HttpAddress::At(address)) => (address, true),
        None => (DEFAULT_ADDRESS.into(), false),
    };
    match console::Server::bind(address) {
        Ok(server) => {
            listen(server, Arc::clone(&figures)).map_err(|e| format!("cannot serve HTTP on {address}: {e}"))?;
        }
        Err(error) if asked_for => return Err(format!("cannot listen on {address} for HTTP: {error}")),
        Err(error) => {
            tracing::warn!("no health and metrics over HTTP: cannot listen on {address}: {error}; choose with --http");
        }
    }
    Ok(Health(figures))
}

/// Serves on a thread that ends with the process.
fn listen(server: console::Server, figures: Arc<Figures>) -> std::io::Result<()> {
    let address = server.local_address()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".to_string()).spawn(move || {
        let Err(error) = runtime.block_on(server.run(figures));
        tracing::error!("HTTP is no longer served: {error}");
    })?;
    tracing::info!("health and metrics on http://{address}/metrics");
    Ok(())
}

impl Source for Figures {
    fn state(&self) -> ServerState {
        match (self.ending.load(Ordering::Acquire), self.running.get()) {
            (true, _) => ServerState::NotReady("ending".into()),
            (false, None) => ServerState::NotReady(starting::message(&self.progress).into()),
            (false, Some(_)) => ServerState::Ready,
        }
    }

    fn metrics(&self, out: &mut Exposition) {
        let ready = u8::from(self.state() == ServerState::Ready);
        out.family("nyala_build_info", FamilyKind::Gauge, "Always 1; the version and the commit are labels.");
        out.sample("nyala_build_info", &[("version", env!("CARGO_PKG_VERSION")), ("commit", env!("NYALA_COMMIT"))], 1);
        out.single("nyala_ready", FamilyKind::Gauge, "Whether statements are served.", ready);
        let percent = if self.running.get().is_some() { 100 } else { self.progress.percent() };
        out.single("nyala_startup_percent", FamilyKind::Gauge, "How far the start is: image, log, indexes.", percent);
        out.single("process_start_time_seconds", FamilyKind::Gauge, "Start, in seconds since 1970.", self.started);
        out.single("nyala_connections_max", FamilyKind::Gauge, "Connections that may be open.", self.max_connections);
        console::expose_statements(out);
        let (held, longest) = watchdog::held();
        let help = "Turns of a core that lasted for 100 ms or more, while its other connections waited.";
        out.single("nyala_core_holds_total", FamilyKind::Counter, help, held);
        out.single("nyala_core_hold_max_seconds", FamilyKind::Gauge, "The longest of them.", longest);
        if let Some(running) = self.running.get() {
            let connections = running.registry.len();
            out.single("nyala_connections", FamilyKind::Gauge, "Connections open, logging in included.", connections);
            shard(out, &running.shard);
            log(out, &running.shard, &running.data);
            checkpoints(out, &running.shard);
        }
    }
}

fn shard(out: &mut Exposition, shard: &Shard) {
    let figures = shard.figures();
    out.single("nyala_commits_total", FamilyKind::Counter, "Commits that changed something.", figures.commits);
    out.family("nyala_memory_bytes", FamilyKind::Gauge, "Memory held, by kind.");
    let mut kinds = vec![
        ("row_headers", figures.header_bytes),
        ("row_versions", figures.version_bytes),
        ("indexes", figures.index_bytes),
    ];
    kinds.extend(MemoryKind::ALL.iter().map(|kind| (kind.name(), figures.other_bytes[*kind as usize])));
    let known: u64 = kinds.iter().map(|kind| kind.1).sum();
    kinds.push(("other", figures.held_bytes.saturating_sub(known)));
    for (kind, bytes) in kinds {
        out.sample("nyala_memory_bytes", &[("kind", kind)], bytes);
    }
    let help = "Memory that may be used; growth is slowed down from nine tenths of it on.";
    out.single("nyala_memory_limit_bytes", FamilyKind::Gauge, help, figures.limit_bytes);
    let help = "Calls that waited for memory, and that were refused it.";
    out.family("nyala_memory_waits_total", FamilyKind::Counter, help);
    out.sample("nyala_memory_waits_total", &[("end", "delayed")], figures.memory_delays);
    out.sample("nyala_memory_waits_total", &[("end", "refused")], figures.memory_refusals);
    out.single(
        "nyala_rows",
        FamilyKind::Gauge,
        "Rows held, deleted ones that somebody may still see included.",
        figures.rows,
    );
    let help = "Rows with versions that wait to be freed.";
    out.single("nyala_garbage_rows", FamilyKind::Gauge, help, figures.garbage_rows);
    out.single("nyala_views", FamilyKind::Gauge, "Read views open.", figures.views);
    out.single(
        "nyala_lock_waits",
        FamilyKind::Gauge,
        "Transactions that wait for another one's lock.",
        figures.lock_waits,
    );
    if let Some(bytes) = resident_bytes() {
        out.single("process_resident_memory_bytes", FamilyKind::Gauge, "Resident memory of the process.", bytes);
    }
}

fn log(out: &mut Exposition, shard: &Shard, data: &Path) {
    let stats = shard.log_stats();
    out.single("nyala_log_records_total", FamilyKind::Counter, "Records appended to the log.", stats.records);
    out.single("nyala_log_position_bytes", FamilyKind::Counter, "End of the log.", stats.bytes);
    let durable = shard.durable().current().0;
    out.single("nyala_log_durable_bytes", FamilyKind::Counter, "How far the log is durable.", durable);
    let classes = |first: f64| (0..redo::GROUP_BUCKETS - 1).map(move |i| first * f64::from(1u32 << i));
    out.histograms("nyala_log_group_records", "Records made durable together, by groups.");
    let sizes = classes(1.0).zip(stats.groups_by_records);
    out.histogram("nyala_log_group_records", &[], sizes, stats.records as f64, stats.groups);
    out.histograms("nyala_log_sync_seconds", "Time to write a group and to make it durable.");
    let times = classes(64e-6).zip(stats.groups_by_time);
    out.histogram("nyala_log_sync_seconds", &[], times, stats.flush_nanos as f64 * 1e-9, stats.groups);
    out.single(
        "nyala_data_bytes",
        FamilyKind::Gauge,
        "Size of the files in the data directory.",
        directory_bytes(data),
    );
}

fn checkpoints(out: &mut Exposition, shard: &Shard) {
    let figures = shard.checkpoint_figures();
    out.single("nyala_checkpoints_total", FamilyKind::Counter, "Checkpoints made.", figures.made);
    let help = "Checkpoints that failed or were given up.";
    out.single("nyala_checkpoint_failures_total", FamilyKind::Counter, help, figures.failed);
    let seconds = figures.last_nanos as f64 * 1e-9;
    let help = "Time that the last checkpoint took; 0 before the first of this start.";
    out.single("nyala_checkpoint_duration_seconds", FamilyKind::Gauge, help, seconds);
    if let Some(last) = shard.last_checkpoint() {
        let number = last.checkpoint;
        out.single("nyala_checkpoint_number", FamilyKind::Gauge, "Number of the checkpoint that counts.", number);
        out.single("nyala_checkpoint_bytes", FamilyKind::Gauge, "Bytes of its image on disk.", last.bytes());
        out.single("nyala_checkpoint_rows", FamilyKind::Gauge, "Rows in its image.", last.rows());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let age = (now - last.made_at as f64 * 1e-6).max(0.0);
        out.single("nyala_checkpoint_age_seconds", FamilyKind::Gauge, "Time since it was begun.", age);
        let behind = shard.log_stats().bytes.saturating_sub(last.upto);
        let help = "Log written since: what a start would replay.";
        out.single("nyala_checkpoint_log_bytes", FamilyKind::Gauge, help, behind);
    }
}

/// Sizes of the files in a directory and those below it, as far as they can be read.
fn directory_bytes(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => directory_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_directories_add_up() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        std::fs::write(dir.path().join("a"), [0; 10]).unwrap();
        std::fs::write(dir.path().join("log").join("b"), [0; 32]).unwrap();
        assert_eq!(directory_bytes(dir.path()), 42);
    }
}
