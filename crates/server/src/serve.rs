//! The life of a server: open, listen, serve, end.

use std::convert::Infallible;
use std::future::{Future, pending};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use base::Lsn;
use engine::{Progress, Shard};
use engine_api::Engine as _;
use env::{DiskLock, World};
use pgwire::{Registry, Server, ServerConfig, timers};
use sql_session::{Shared, check_configured};
use tokio::signal::unix::{SignalKind, signal};

use crate::access::Access;
use crate::backend::{CoreBackend, SUPERUSER, has_password, is_loopback};
use crate::checkpointer::{Checkpointer, Plan};
use crate::config::{HugePages, ServeOptions};
use crate::directory::{Content, Made};
use crate::garbage::Collector;
use crate::health::{self, Health};
use crate::host::{ProcessHost, random_bytes};
use crate::memory::{self, Meter, memory_total};
use crate::statistics::Watcher;
use crate::watchdog::Watchdog;
use crate::{definitions, directory, listen, password, starting, stderr};

/// How long connections may take to end before the server ends without them.
const SHUTDOWN_MAX: Duration = Duration::from_secs(15);

/// How long they may take once the end has been asked for again. They are told of it, which takes a moment.
const SHUTDOWN_HURRIED: Duration = Duration::from_secs(1);
/// The time slice of a core's thread (decision 0029).
const CORE_SLICE: Duration = Duration::from_micros(300);

/// Serves until a signal comes. Whatever goes wrong is one line in the log.
pub fn run(options: &ServeOptions) -> ExitCode {
    stderr::start();
    stderr::log_panics();
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            tracing::error!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(options: &ServeOptions) -> Result<(), String> {
    listen::check(&options.listen)?;
    check_settings(&options.settings)?;
    memory::check_limit(options.memory_limit, cores(options))?;
    if options.huge_pages == HugePages::Try {
        match env::move_to_huge_pages() {
            Ok(bytes) => tracing::debug!(bytes, "instructions are in huge pages"),
            Err(error) => tracing::debug!(%error, "instructions are not moved to huge pages"),
        }
    }
    match memory::separate_rows() {
        Ok(()) => tracing::debug!("rows are in huge pages"),
        Err(error) => tracing::debug!(%error, "rows are not apart from other memory"),
    }
    let access = Arc::new(Access::open(options)?);
    let password = options.password_file.as_deref().map(password::read).transpose()?;
    // Held to the end of the process.
    let mut made = Made::unless_there(&options.data)?;
    let (world, lock) = open_directory(&options.data, options.init)?;
    let progress = Arc::new(Progress::default());
    let health = health::start(options, &progress)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("cannot start the runtime: {e}"))?;
    runtime.block_on(async {
        let mut stop = pin!(stop_signals().map_err(|e| format!("cannot receive signals: {e}"))?);
        let server = listen::bind(server_config(options, &access))?;
        made.stays();
        let opening = starting::open(&world, lock, options, &progress)?;
        let opened = tokio::select! {
            biased;
            opened = starting::until_open(&server, &progress, opening) => opened?,
            signal = &mut stop => starting::give_up(signal),
        };
        // The lock is held to the end of the process.
        let (shard, _lock) = opened;
        if let Some(password) = password {
            let result = password::set(&shard, &password).await;
            result.map_err(|e| format!("cannot set the password of {SUPERUSER}: {}", e.fields().message))?;
        }
        if !access.has_rules() {
            refuse_open_doors(options, &shard)?;
        }
        let result = definitions::convert_all(&shard).await;
        result.map_err(|e| format!("cannot convert definitions of an earlier version: {}", e.fields().message))?;
        let collector = Collector::start(&*world.spawn, shard.clone());
        let plan = Plan {
            log_bytes: options.checkpoint_log.bytes(memory_total(cores(options))),
            interval: Duration::from_secs(options.checkpoint_interval.into()),
            threads: cores(options),
        };
        let checkpointer = Checkpointer::start(Arc::clone(&world.spawn), shard.clone(), plan);
        ready(&server, options);
        let served = serve_until(server, &world, &shard, options, &health, &access, stop).await;
        drop(checkpointer);
        drop(collector);
        end(&shard, served?)
    })
}

/// Opens the data directory and takes it for this process. One that is there without a database, empty or with the beginnings of
/// one, is refused unless a database is to be made.
pub(crate) fn open_directory(path: &Path, is_made: bool) -> Result<(World, Box<dyn DiskLock>), String> {
    let shown = path.display();
    let found = directory::content(path)?;
    if found == Content::Nothing && !is_made && directory::stays_empty(path)? {
        return Err(format!(
            "the data directory {shown} is there and empty: perhaps a file system is not mounted; for a new database in it, run \
             nyala init {shown}, or start the server with --init"
        ));
    }
    let world = env::real::world(path).map_err(|e| format!("cannot open the data directory {shown}: {e}"))?;
    directory::check(path)?;
    let lock = world.disk.lock().map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => format!("the data directory {shown} is in use by another server"),
        _ => format!("cannot lock the data directory {shown}: {e}"),
    })?;
    // Whoever has begun one is not at it any more, as the lock is ours.
    if found != Content::Absent && !is_made && directory::content(path)? != Content::Database {
        return Err(format!(
            "the data directory {shown} has no database, only what is left of one that was being made, or of one that is lost; to \
             make a new one in it, run nyala init {shown}, or start the server with --init"
        ));
    }
    Ok((world, lock))
}

/// Without a password, nobody beyond this machine may reach the server.
fn refuse_open_doors(options: &ServeOptions, shard: &Shard) -> Result<(), String> {
    match options.listen.iter().find(|address| !is_loopback(address)) {
        Some(address) if !has_password(&shard.catalog()) => Err(format!(
            "refusing to listen on {address}: the role {SUPERUSER} has no password; set one with --password-file, or \
             with ALTER ROLE {SUPERUSER} PASSWORD '...' over loopback"
        )),
        _ => Ok(()),
    }
}

/// Refuses settings that sessions could not begin with.
fn check_settings(settings: &[(String, String)]) -> Result<(), String> {
    check_configured(settings).map_err(|error| {
        let more = [&error.fields().detail, &error.fields().hint].into_iter().flatten();
        let texts = more.fold(error.fields().message.to_string(), |text, more| format!("{text}; {more}"));
        format!("the configuration is wrong: {texts}")
    })
}

pub(crate) fn cores(options: &ServeOptions) -> usize {
    match options.cores {
        Some(cores) => usize::from(cores),
        None => std::thread::available_parallelism().map_or(1, usize::from),
    }
}

/// The port that names the Unix socket; 0 if there is none.
fn socket_port(options: &ServeOptions) -> u16 {
    let port = options.listen.first().map_or(0, |address| address.port());
    if options.socket_dir.as_os_str().is_empty() { 0 } else { port }
}

fn server_config(options: &ServeOptions, access: &Access) -> ServerConfig {
    let port = socket_port(options);
    ServerConfig {
        listen: options.listen.clone(),
        unix_directories: if port == 0 { Vec::new() } else { vec![options.socket_dir.clone()] },
        port,
        max_connections: options.max_connections as usize,
        cores: cores(options),
        connection: pgwire::conn::Options { tls: access.tls(), ..Default::default() },
        sends: Some(|| Ok(Box::new(Ring(env::sends::Sends::new()?)))),
    }
}

/// Replies to several clients leave by one call of the kernel.
struct Ring(env::sends::Sends);

impl pgwire::SendMany for Ring {
    fn send(&mut self, sends: &[(BorrowedFd<'_>, &[u8])], results: &mut Vec<io::Result<usize>>) {
        self.0.send(sends, results);
    }
}

fn ready(server: &Server, options: &ServeOptions) {
    let mut places: Vec<String> = server.local_addresses().iter().map(ToString::to_string).collect();
    let port = socket_port(options);
    if port != 0 {
        places.push(listen::socket_path(&options.socket_dir, port).display().to_string());
    }
    tracing::info!("ready: listening on {}", places.join(", "));
}

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Nobody is connected any more.
    All,
    /// Some connections have not ended in time, and may still be at work.
    Some,
}

/// Serves until `stop` completes and the connections have ended, or should have.
async fn serve_until(
    server: Server,
    world: &World,
    shard: &Shard,
    options: &ServeOptions,
    health: &Health,
    access: &Arc<Access>,
    stop: impl Future<Output = &'static str>,
) -> Result<Served, String> {
    let registry = Arc::new(Registry::new(random_bytes().map_err(no_randomness)?));
    let host = ProcessHost::new(Arc::clone(&world.clock), Arc::clone(access), Arc::clone(&registry));
    let host = host.map_err(no_randomness)?;
    let shared = Shared::new(
        Arc::new(shard.clone()),
        Arc::new(host),
        options.max_connections as usize,
        options.settings.clone(),
    );
    health.serves(shard.clone(), Arc::clone(&registry), options.data.clone());
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let shutdown = async {
        let signal = stop.await;
        health.ends();
        tracing::info!("{signal}: ending {} connections", registry.len());
        let _ = stopping.send(());
    };
    // Who asks again does not want to wait for connections; what was appended becomes durable all the same.
    let overdue = async {
        if stopped.await.is_ok() {
            let again = stop_signals();
            let asked_again = async {
                match again {
                    Ok(again) => _ = again.await,
                    Err(_) => pending().await,
                }
                timers::sleep(SHUTDOWN_HURRIED).await;
            };
            tokio::select! {
                () = timers::sleep(SHUTDOWN_MAX) => {}
                () = asked_again => {}
            }
        }
    };
    let _meter = Meter::start(&*world.spawn, shard.clone(), Arc::clone(&shared));
    let _watcher = Watcher::start(&*world.spawn, Arc::clone(&world.disk), &shared);
    let _watchdog = Watchdog::start(&*world.spawn, Arc::clone(&shared.monitor));
    let core_shard = shard.clone();
    let core_access = Arc::clone(access);
    let reloaded = Arc::clone(&shared);
    let core_registry = Arc::clone(&registry);
    let backend = move |_| {
        if let Err(error) = env::set_time_slice(CORE_SLICE) {
            tracing::debug!(%error, "a core's thread has the default time slice");
        }
        let registry = Arc::clone(&core_registry);
        CoreBackend::new(Arc::clone(&shared), Arc::clone(&core_access), registry, core_shard.clone())
    };
    let reloads = reload_on_hangup(reloaded).map_err(|e| format!("cannot receive signals: {e}"))?;
    tokio::select! {
        served = server.run(Arc::clone(&registry), backend, shutdown) => {
            served.map(|()| Served::All).map_err(|e| format!("cannot serve: {e}"))
        }
        never = reloads => match never {},
        () = overdue => {
            tracing::warn!("{} connections did not end in time", registry.len());
            Ok(Served::Some)
        }
    }
}

fn no_randomness(error: io::Error) -> String {
    format!("the system has no randomness: {error}")
}

/// Reads the configuration's files again whenever SIGHUP comes.
fn reload_on_hangup(shared: Arc<Shared>) -> io::Result<impl Future<Output = Infallible>> {
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            hangup.recv().await;
            shared.reload();
        }
    })
}

/// A write beyond the limit on file sizes. Unless it is received, it kills; received, the write fails as others do.
const SIGXFSZ: i32 = 25;

/// Completes with the name of the first signal that asks the server to end. Signals count from this call on.
fn stop_signals() -> io::Result<impl Future<Output = &'static str>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let too_large = signal(SignalKind::from_raw(SIGXFSZ))?;
    Ok(async move {
        let _received = too_large;
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// Makes everything appended durable, also what nobody waited for, and closes the log there. Beside connections that are still at
/// work it stays open: the next start reads it as after a crash.
fn end(shard: &Shard, served: Served) -> Result<(), String> {
    if !shard.durable().block(Lsn(shard.log_stats().bytes)) {
        return Err("the log failed while the server ended".to_string());
    }
    if served == Served::All {
        shard.close().map_err(|error| format!("the log is durable, and cannot be closed: {error}"))?;
    }
    tracing::info!("ended; the log is durable");
    Ok(())
}
