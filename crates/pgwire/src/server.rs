//! Listeners, one acceptor, and one thread per core that serves connections.
//!
//! The acceptor hands a new connection to a core; there it stays, and all it does runs there. Cancel requests the acceptor
//! answers itself: the core they would go to may be busy with just what is to be cancelled.
//!
//! When there is one thread per processor, each stays on its own, and takes the connections whose packets that processor
//! receives as long as the load is about even: a reply then wakes a client (or a network queue) of the same processor. On
//! loopback that saves an interrupt between processors per reply; see decision 0007.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use base::{Error, SqlState};
use rustix::net::{RecvFlags, recv, sockopt};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinSet, LocalSet};

use crate::conn::{self, Options};
use crate::proto::{self, Initial};
use crate::registry::{BackendKey, Registry};
use crate::{Backend, Peer};

/// Bytes of a cancel request.
const CANCEL_REQUEST: usize = 16;
/// How long the acceptor waits for a connection's first bytes.
const FIRST_WORDS: Duration = Duration::from_secs(1);
/// Connections waiting to be accepted.
const BACKLOG: u32 = 1024;
/// A silent peer is asked for a sign of life after this long, …
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// … again so often, …
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// … and is gone after so many unanswered questions, …
const KEEPALIVE_PROBES: u32 = 6;
/// … or when it has not taken what was sent to it for so long.
const UNACKNOWLEDGED_MS: u32 = 120_000;
/// Stack of a core's thread. Statements are parsed, bound, planned, run and dropped by recursion; what they may nest to is
/// chosen to fit this. Only what is used takes memory.
const CORE_STACK: usize = 64 << 20;

/// Connections by which a core may exceed the one with the fewest before it takes no more for being near.
const NEAR_EXCESS: usize = 2;

/// What to listen on and how much to take.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// TCP addresses.
    pub listen: Vec<SocketAddr>,
    /// Directories for a Unix socket `.s.PGSQL.<port>`.
    pub unix_directories: Vec<PathBuf>,
    /// The port in the name of Unix sockets.
    pub port: u16,
    /// Connections beyond this are refused with `53300`.
    pub max_connections: usize,
    /// Threads that serve connections.
    pub cores: usize,
    /// Time limits of each connection.
    pub connection: Options,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 5432))],
            unix_directories: Vec::new(),
            port: 5432,
            max_connections: 1000,
            cores: 1,
            connection: Options::default(),
        }
    }
}

/// Bound listeners, ready to [`run`](Server::run).
pub struct Server {
    config: ServerConfig,
    listeners: Vec<Listener>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "held for its Drop")] SocketFile),
}

/// Removes the socket's file when dropped.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Nobody is left to tell; the next start removes a stale file.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An accepted connection that has not said what it wants.
enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// An accepted connection on its way to a core, detached from the acceptor's reactor.
enum Incoming {
    Tcp(std::net::TcpStream, SocketAddr),
    Unix(std::os::unix::net::UnixStream),
}

/// A core's thread.
struct Core {
    door: Door,
    done: oneshot::Receiver<()>,
}

/// The acceptor's view of a core.
#[derive(Clone)]
struct Door {
    queue: mpsc::UnboundedSender<(Incoming, Option<Error>)>,
    /// Connections given to the core and not ended yet: raised by the acceptor, lowered by the core.
    load: Arc<AtomicUsize>,
    /// The processor it stays on.
    processor: Option<usize>,
}

impl Server {
    /// Binds all listeners. Must be called on a tokio runtime, the one that [`run`](Server::run) will be on.
    pub fn bind(config: ServerConfig) -> io::Result<Server> {
        let mut listeners = Vec::new();
        for &address in &config.listen {
            listeners.push(Listener::Tcp(bind_tcp(address)?));
        }
        for directory in &config.unix_directories {
            let path = directory.join(format!(".s.PGSQL.{}", config.port));
            listeners.push(bind_unix(&path)?);
        }
        Ok(Server { config, listeners })
    }

    /// The TCP addresses bound, with the ports the system chose for port 0.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        let address = |l: &Listener| match l {
            Listener::Tcp(tcp) => tcp.local_addr().ok(),
            Listener::Unix(..) => None,
        };
        self.listeners.iter().filter_map(address).collect()
    }

    /// Serves until `shutdown` completes; then ends all connections (`57P01`) and returns when they are gone.
    ///
    /// `backend` is called once on each core's thread, inside its runtime and `LocalSet`, with the core's number.
    pub async fn run<B, F>(
        self,
        registry: Arc<Registry>,
        backend: F,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        B: Backend + 'static,
        F: Fn(usize) -> B + Send + Sync + 'static,
    {
        let Server { config, listeners } = self;
        let backend = Arc::new(backend);
        let processors = processors();
        let count = config.cores.max(1);
        let start = |index: usize| {
            let processor = if count == processors.len() { Some(processors[index]) } else { None };
            start_core(index, processor, Arc::clone(&registry), Arc::clone(&backend), config.connection.clone())
        };
        let cores = (0..count).map(start).collect::<io::Result<Vec<Core>>>()?;
        let doors = Doors {
            cores: cores.iter().map(|core| core.door.clone()).collect(),
            max_connections: config.max_connections,
            registry: Arc::clone(&registry),
        };
        tokio::select! {
            _ = shutdown => {}
            _ = accept(&listeners, Arc::new(doors)) => {}
        }
        drop(listeners);
        registry.terminate_all();
        for core in cores {
            drop(core.door);
            // An error means that the core's thread is gone, which is as good.
            let _ = core.done.await;
        }
        Ok(())
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn bind_unix(path: &Path) -> io::Result<Listener> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
    // A socket nobody listens on is left from a process that was killed.
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    let file = SocketFile(path.to_owned());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))?;
    Ok(Listener::Unix(listener, file))
}

impl Listener {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        match self {
            Listener::Tcp(tcp) => tcp.poll_accept(cx).map(|accepted| {
                let (stream, peer) = accepted?;
                // Fails if the client has gone again, which its core will find out.
                if let Err(error) = prepare(&stream) {
                    tracing::debug!(%error, %peer, "could not set the socket's options");
                }
                Ok(Accepted::Tcp(stream, peer))
            }),
            Listener::Unix(unix, _) => unix.poll_accept(cx).map(|accepted| Ok(Accepted::Unix(accepted?.0))),
        }
    }
}

/// Replies leave at once, and a peer that has vanished is found out.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?;
    Ok(())
}

/// Where accepted connections go.
struct Doors {
    cores: Vec<Door>,
    max_connections: usize,
    registry: Arc<Registry>,
}

/// Accepts for ever.
async fn accept(listeners: &[Listener], doors: Arc<Doors>) {
    // Dropped with this future: connections on their way are closed then.
    let mut on_their_way = JoinSet::new();
    loop {
        let next = poll_fn(|cx| {
            while let Poll::Ready(Some(_)) = on_their_way.poll_join_next(cx) {}
            for listener in listeners {
                if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        });
        match next.await {
            Ok(accepted) => _ = on_their_way.spawn(route(accepted, Arc::clone(&doors))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of descriptors, most likely. A short rest keeps this from spinning.
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Looks at what a connection says first: a cancel request is answered, anything else goes to a core, as does one that
/// says nothing for a while.
async fn route(accepted: Accepted, doors: Arc<Doors>) {
    let mut first = [0; CANCEL_REQUEST];
    let look = async {
        loop {
            let looked = match &accepted {
                Accepted::Tcp(tcp, _) => {
                    tcp.readable().await?;
                    tcp.try_io(Interest::READABLE, || Ok(recv(tcp, &mut first, RecvFlags::PEEK)?))
                }
                Accepted::Unix(unix) => {
                    unix.readable().await?;
                    unix.try_io(Interest::READABLE, || Ok(recv(unix, &mut first, RecvFlags::PEEK)?))
                }
            };
            match looked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                looked => return looked,
            }
        }
    };
    // Whatever goes wrong here goes wrong again at the core, which knows what to do about it.
    let looked = tokio::time::timeout(FIRST_WORDS, look).await;
    let seen = looked.map_or(0, |looked| looked.map_or(0, |(_, length)| length.min(CANCEL_REQUEST)));
    if let Ok(Some((Initial::Cancel { pid, secret }, _))) = proto::initial(&first[..seen]) {
        doors.registry.cancel_with_secret(BackendKey { pid, secret });
        return;
    }
    // Leaving the acceptor's reactor fails only if the socket is dead already.
    let incoming = match accepted {
        Accepted::Tcp(tcp, peer) => tcp.into_std().map(|tcp| Incoming::Tcp(tcp, peer)),
        Accepted::Unix(unix) => unix.into_std().map(Incoming::Unix),
    };
    if let Ok(incoming) = incoming {
        hand_over(incoming, &doors);
    }
}

fn hand_over(incoming: Incoming, doors: &Doors) {
    let Doors { cores, max_connections, .. } = doors;
    let total: usize = cores.iter().map(|c| c.load.load(Ordering::Relaxed)).sum();
    let refuse = (total >= *max_connections)
        .then(|| Error::fatal(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already"));
    // A refusal takes a place, too, until it is read: beyond twice the limit there is not even that.
    if total >= max_connections.saturating_mul(2).saturating_add(16) {
        return;
    }
    let Some(core) = choose(cores, &incoming) else { return };
    core.load.fetch_add(1, Ordering::Relaxed);
    if core.queue.send((incoming, refuse)).is_err() {
        core.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The core on whose processor the connection's packets arrive, unless it has enough; else the one with the fewest.
fn choose<'a>(cores: &'a [Door], incoming: &Incoming) -> Option<&'a Door> {
    let load = |core: &Door| core.load.load(Ordering::Relaxed);
    let idlest = cores.iter().min_by_key(|core| load(core))?;
    let Incoming::Tcp(socket, _) = incoming else { return Some(idlest) };
    let Ok(processor) = sockopt::socket_incoming_cpu(socket) else { return Some(idlest) };
    let near = cores.iter().find(|core| core.processor == Some(processor as usize));
    near.filter(|core| load(core) <= load(idlest) + NEAR_EXCESS).or(Some(idlest))
}

/// The processors this process may use; none if the system does not say.
fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// Keeps this thread on a processor. Where that is refused, it runs where it may.
fn stay_on(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    if let Err(error) = sched_setaffinity(None, &set) {
        tracing::debug!(%error, processor, "a core's thread is not kept on its processor");
    }
}

fn start_core<B, F>(
    index: usize,
    processor: Option<usize>,
    registry: Arc<Registry>,
    backend: Arc<F>,
    options: Options,
) -> io::Result<Core>
where
    B: Backend + 'static,
    F: Fn(usize) -> B + Send + Sync + 'static,
{
    let (queue, incoming) = mpsc::unbounded_channel();
    let (ended, done) = oneshot::channel();
    let load = Arc::new(AtomicUsize::new(0));
    let core_load = Arc::clone(&load);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let thread = std::thread::Builder::new().name(format!("core-{index}")).stack_size(CORE_STACK);
    thread.spawn(move || {
        if let Some(processor) = processor {
            stay_on(processor);
        }
        let local = LocalSet::new();
        local.block_on(&runtime, serve_core(incoming, core_load, registry, || backend(index), options));
        // Nobody waits if the server's future was dropped.
        let _ = ended.send(());
    })?;
    Ok(Core { door: Door { queue, load, processor }, done })
}

/// Counts a connection while it lives.
struct Counted {
    load: Arc<AtomicUsize>,
    gone: Rc<Notify>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
        self.gone.notify_one();
    }
}

/// Serves the connections of one core until no more can come and all are gone.
async fn serve_core<B: Backend + 'static>(
    mut queue: mpsc::UnboundedReceiver<(Incoming, Option<Error>)>,
    load: Arc<AtomicUsize>,
    registry: Arc<Registry>,
    backend: impl FnOnce() -> B,
    options: Options,
) {
    let (backend, options, gone) = (Rc::new(backend()), Rc::new(options), Rc::new(Notify::new()));
    while let Some((incoming, refuse)) = queue.recv().await {
        let counted = Counted { load: Arc::clone(&load), gone: Rc::clone(&gone) };
        let (backend, options, registry) = (Rc::clone(&backend), Rc::clone(&options), Arc::clone(&registry));
        tokio::task::spawn_local(async move {
            let _counted = counted;
            // Attaching to the core's reactor fails only if the socket is dead already.
            match incoming {
                Incoming::Tcp(stream, peer) => {
                    let Ok(stream) = TcpStream::from_std(stream) else { return };
                    conn::serve(stream, &Peer::Tcp(peer), &*backend, &registry, &options, refuse).await;
                }
                Incoming::Unix(stream) => {
                    let Ok(stream) = UnixStream::from_std(stream) else { return };
                    conn::serve(stream, &Peer::Unix, &*backend, &registry, &options, refuse).await;
                }
            }
        });
    }
    while load.load(Ordering::Relaxed) > 0 {
        gone.notified().await;
    }
}
