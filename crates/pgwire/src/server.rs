//! Listeners, one acceptor, and one thread per core that serves connections.
//!
//! The acceptor hands a new connection to a core; there it stays, and all it does runs there. Cancel requests the acceptor
//! answers itself: the core they would go to may be busy with just what is to be cancelled.
//!
//! When there is one thread per processor, each stays on its own, and connections go to the core whose processor receives
//! their packets, as long as the load stays about even; between two messages they follow when that changes. A reply then
//! wakes a client, or feeds a network queue, of the same processor; see decision 0007.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use base::watch::Watched;
use base::{Error, SqlState};
use rustix::net::{RecvFlags, SendFlags, recv, sockopt};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::auth::guesses::PLACES;
use crate::conn::{self, Arrival, Newcomer, Options, Parked};
use crate::outbox::{MakeSendMany, Outbox, Wire};
use crate::proto::{self, Initial};
use crate::registry::{BackendKey, Registry, Ticket};
use crate::timers;
use crate::tls::Greeted;
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

/// Looks in a row at which a connection's packets must have arrived at another core's processor before it goes there.
const LEAVE_AFTER: u32 = 3;

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
    /// Makes what sends the replies of several connections by one system call; without it each is sent by its own.
    pub sends: Option<MakeSendMany>,
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
            sends: None,
        }
    }
}

/// Bound listeners, ready to [`run`](Server::run).
pub struct Server {
    pub(crate) config: ServerConfig,
    pub(crate) listeners: Vec<Listener>,
}

pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "held for its Drop")] SocketFile),
}

/// Removes the socket's file when dropped.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Nobody is left to tell; the next start removes a stale file.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// An accepted connection that has not said what it wants.
pub(crate) enum Accepted {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

/// An accepted connection on its way to a core, detached from the acceptor's reactor.
enum Incoming {
    Tcp(std::net::TcpStream, SocketAddr),
    Unix(std::os::unix::net::UnixStream),
}

/// A connection on its way to a core.
enum Arriving<Se> {
    New(Incoming, Option<Error>),
    Parked(Parked<std::net::TcpStream, Se>),
}

/// Others' view of a core.
struct Door<Se> {
    queue: mpsc::UnboundedSender<Arriving<Se>>,
    /// Connections given to the core and not ended yet: raised by who gives them, lowered by the core.
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

    /// Serves until `shutdown` completes; then ends all connections (`57P01`), refuses those that still come (`57P03`), and returns
    /// when all that were served are gone.
    ///
    /// `backend` is called once on each core's thread, inside its runtime, which has no timers (see [`timers`]), with the core's number.
    pub async fn run<B, F>(
        self,
        registry: Arc<Registry>,
        backend: F,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        B: Backend<Session: Send> + 'static,
        F: Fn(usize) -> B + Send + Sync + 'static,
    {
        let Server { config, listeners } = &self;
        timers::start()?;
        registry.limit_places(config.max_connections);
        let backend = Arc::new(backend);
        let processors = processors();
        let count = config.cores.max(1);
        let (mut cores, mut queues) = (Vec::new(), Vec::new());
        for index in 0..count {
            let (queue, arriving) = mpsc::unbounded_channel();
            let processor = if count == processors.len() { Some(processors[index]) } else { None };
            cores.push(Door { queue, load: Arc::default(), processor });
            queues.push(arriving);
        }
        let doors = Arc::new(Doors {
            cores,
            max_connections: config.max_connections,
            registry: Arc::clone(&registry),
            closing: watch::Sender::new(false),
        });
        let mut ends = Vec::new();
        for (index, arriving) in queues.into_iter().enumerate() {
            ends.push(start_core(index, &doors, arriving, Arc::clone(&backend), config)?);
        }
        let mut on_their_way = JoinSet::new();
        tokio::select! {
            _ = shutdown => {}
            _ = accept(listeners, &doors, &mut on_their_way) => {}
        }
        registry.terminate_all();
        doors.closing.send_replace(true);
        let all_have_ended = async {
            // Those that were accepted are told as all others are.
            while on_their_way.join_next().await.is_some() {}
            // The queues end with the doors, which cores hold weakly.
            drop(doors);
            for end in ends {
                // An error means that the core's thread is gone, which is as good.
                let _ = end.await;
            }
        };
        self.refuse_until(shutting_down, all_have_ended).await;
        Ok(())
    }
}

/// What those are told who come too late.
fn shutting_down() -> Error {
    Error::fatal(SqlState::CANNOT_CONNECT_NOW, "the database system is shutting down")
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
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
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
struct Doors<Se> {
    cores: Vec<Door<Se>>,
    max_connections: usize,
    registry: Arc<Registry>,
    /// Set when the server ends.
    closing: watch::Sender<bool>,
}

/// Accepts for ever. Connections that have not come to a core yet are `on_their_way`.
async fn accept<Se: Send + 'static>(listeners: &[Listener], doors: &Arc<Doors<Se>>, on_their_way: &mut JoinSet<()>) {
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
            Ok(accepted) => _ = on_their_way.spawn(route(accepted, Arc::clone(doors))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of descriptors, most likely. A short rest keeps this from spinning.
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection");
                timers::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Looks at what a connection says first: a cancel request is answered, anything else goes to a core, as does one that
/// says nothing for a while, or when the server ends.
async fn route<Se>(accepted: Accepted, doors: Arc<Doors<Se>>) {
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
    let mut closing = doors.closing.subscribe();
    let looked = tokio::select! {
        looked = timers::timeout(FIRST_WORDS, look) => looked.ok(),
        _ = closing.wait_for(|closing| *closing) => None,
    };
    let seen = looked.map_or(0, |looked| looked.map_or(0, |(_, length)| length.min(CANCEL_REQUEST)));
    if let Ok(Some((Initial::Cancel { pid, secret }, _))) = proto::initial(&first[..seen]) {
        doors.registry.cancel_with_secret(BackendKey { pid, secret });
        // Were the request left unread, the system would reset the connection instead of closing it.
        let taken = &mut first[..CANCEL_REQUEST];
        let _ = match &accepted {
            Accepted::Tcp(tcp, _) => recv(tcp, taken, RecvFlags::DONTWAIT),
            Accepted::Unix(unix) => recv(unix, taken, RecvFlags::DONTWAIT),
        };
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

/// Connections that may be open: of clients, of those whose password waits for its turn, and of those that are on their way there, as many
/// as of clients and some.
fn open_max(clients: usize) -> usize {
    clients.saturating_mul(2).saturating_add(PLACES + 16)
}

fn hand_over<Se>(incoming: Incoming, doors: &Doors<Se>) {
    let Doors { cores, max_connections, registry, .. } = doors;
    let total: usize = cores.iter().map(|c| c.load.load(Ordering::Relaxed)).sum();
    // Those that log in, and those that say nothing, need no place for clients; there is an end to them, too. Of more, one that has been there
    // longer without logging in makes way.
    if total >= open_max(*max_connections) && !registry.crowd_out() {
        refuse(&incoming);
        return;
    }
    let Some(core) = choose(cores, &incoming) else { return };
    core.give(Arriving::New(incoming, None));
}

/// Refuses a connection without another word, as far as that can be done at once.
fn refuse(incoming: &Incoming) {
    let mut message = Vec::new();
    proto::backend::report(&mut message, b'E', &conn::too_many());
    let tell = |socket: BorrowedFd<'_>| {
        // What is left unread when a socket is closed takes back what was sent.
        let mut unread = [0; 4096];
        let _ = recv(socket, &mut unread, RecvFlags::DONTWAIT);
        let _ = rustix::net::send(socket, &message, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    };
    match incoming {
        Incoming::Tcp(socket, _) => tell(socket.as_fd()),
        Incoming::Unix(socket) => tell(socket.as_fd()),
    }
}

impl<Se> Door<Se> {
    fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Gives the core a connection. It is closed if the core ends.
    fn give(&self, arriving: Arriving<Se>) {
        self.load.fetch_add(1, Ordering::Relaxed);
        if self.queue.send(arriving).is_err() {
            self.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The core on whose processor the connection's packets arrive, unless it has enough; else the one with the fewest.
fn choose<'a, Se>(cores: &'a [Door<Se>], incoming: &Incoming) -> Option<&'a Door<Se>> {
    let idlest = cores.iter().min_by_key(|core| core.load())?;
    let Incoming::Tcp(socket, _) = incoming else { return Some(idlest) };
    near(cores, socket).filter(|core| core.load() <= idlest.load() + NEAR_EXCESS).or(Some(idlest))
}

/// The core on whose processor the last packet of a connection arrived.
fn near<Se>(cores: &[Door<Se>], socket: impl AsFd) -> Option<&Door<Se>> {
    let processor = sockopt::socket_incoming_cpu(socket).ok()? as usize;
    cores.iter().find(|core| core.processor == Some(processor))
}

/// Where a connection's packets have arrived of late, as seen from the core that serves it.
struct Whereabouts<'a, Se> {
    doors: &'a Weak<Doors<Se>>,
    home: usize,
    /// How often in a row they arrived at another core's.
    away: u32,
    goal: Option<usize>,
}

impl<Se> Whereabouts<'_, Se> {
    /// Looks again; whether the connection should go to its goal now. Moving must not make the load less even.
    fn should_leave(&mut self, socket: &TcpStream) -> bool {
        let Some(doors) = self.doors.upgrade() else { return false };
        let cores = &doors.cores;
        let goal = near(cores, socket).and_then(|near| cores.iter().position(|core| std::ptr::eq(core, near)));
        let elsewhere = goal.is_some_and(|goal| goal != self.home);
        self.away = if elsewhere && goal == self.goal { self.away + 1 } else { u32::from(elsewhere) };
        self.goal = goal;
        let Some(goal) = goal.filter(|_| self.away >= LEAVE_AFTER) else { return false };
        cores[goal].load() < cores[self.home].load() + NEAR_EXCESS
    }
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

/// Starts a core's thread; what it answers completes when the thread has ended.
fn start_core<B, F>(
    index: usize,
    doors: &Arc<Doors<B::Session>>,
    arriving: mpsc::UnboundedReceiver<Arriving<B::Session>>,
    backend: Arc<F>,
    config: &ServerConfig,
) -> io::Result<oneshot::Receiver<()>>
where
    B: Backend<Session: Send> + 'static,
    F: Fn(usize) -> B + Send + Sync + 'static,
{
    let (ended, end) = oneshot::channel();
    let (started, start) = std::sync::mpsc::channel();
    let Door { load, processor, .. } = &doors.cores[index];
    let (load, processor, registry) = (Arc::clone(load), *processor, Arc::clone(&doors.registry));
    let doors = Arc::downgrade(doors);
    let (options, sends) = (config.connection.clone(), config.sends);
    let thread = std::thread::Builder::new().name(format!("core-{index}")).stack_size(CORE_STACK);
    thread.spawn(move || {
        if let Some(processor) = processor {
            stay_on(processor);
        }
        let built = tokio::runtime::Builder::new_current_thread().enable_io().build_local(LocalOptions::default());
        // Who starts the thread waits for it.
        let (runtime, result) = built.map_or_else(|error| (None, Err(error)), |runtime| (Some(runtime), Ok(())));
        let _ = started.send(result);
        let Some(runtime) = runtime else { return };
        let core = async {
            let gone = Notify::new();
            let outbox = sends.and_then(outbox);
            let core = Core { index, doors, registry, load, gone, backend: backend(index), options, outbox };
            core.serve(arriving).await;
        };
        runtime.block_on(core);
        // Nobody waits if the server's future was dropped.
        let _ = ended.send(());
    })?;
    start.recv().map_err(io::Error::other)??;
    Ok(end)
}

/// Gathers what the core's connections send, where the system can send it by one call.
fn outbox(make: MakeSendMany) -> Option<Rc<Outbox>> {
    let many = make().inspect_err(|error| tracing::debug!(%error, "replies are sent one by one")).ok()?;
    let outbox = Rc::new(Outbox::new(many));
    tokio::task::spawn_local(Rc::clone(&outbox).run());
    Some(outbox)
}

/// What the connections of a core share.
struct Core<B: Backend> {
    index: usize,
    doors: Weak<Doors<B::Session>>,
    registry: Arc<Registry>,
    load: Arc<AtomicUsize>,
    gone: Notify,
    backend: B,
    options: Options,
    outbox: Option<Rc<Outbox>>,
}

/// Counts a connection while it is with a core.
struct Counted<B: Backend>(Rc<Core<B>>);

impl<B: Backend> Drop for Counted<B> {
    fn drop(&mut self) {
        self.0.load.fetch_sub(1, Ordering::Relaxed);
        self.0.gone.notify_one();
    }
}

/// Notes the turns of a connection.
async fn watched(connection: impl Future<Output = ()>, watch: &'static Watched) {
    let mut connection = pin!(connection);
    poll_fn(|cx| {
        watch.turns();
        let polled = connection.as_mut().poll(cx);
        watch.turns();
        polled
    })
    .await;
}

impl<B: Backend + 'static> Core<B> {
    /// Serves connections until no more can come and all are gone.
    async fn serve(self, mut arriving: mpsc::UnboundedReceiver<Arriving<B::Session>>) {
        let core = Rc::new(self);
        let watch = base::watch::this_thread();
        while let Some(connection) = arriving.recv().await {
            let counted = Counted(Rc::clone(&core));
            tokio::task::spawn_local(watched(async move { counted.0.attend(connection).await }, watch));
        }
        while core.load.load(Ordering::Relaxed) > 0 {
            core.gone.notified().await;
        }
    }

    /// Serves one connection. Attaching a socket to the core's reactor, or taking it off, fails only if it is dead already.
    async fn attend(&self, connection: Arriving<B::Session>) {
        let registry = &self.registry;
        match connection {
            Arriving::New(Incoming::Tcp(stream, peer), refuse) => {
                let Ok(stream) = TcpStream::from_std(stream) else { return };
                let ticket = registry.register(&Peer::Tcp(peer));
                let Some((stream, ticket)) = self.encrypted(stream, ticket, peer, &refuse).await else { return };
                let newcomer = Newcomer { peer: &Peer::Tcp(peer), registry, refuse };
                let stream = Wire::tcp(stream, self.outbox.clone());
                self.attend_tcp(Arrival::New { stream, ticket, newcomer }).await;
            }
            Arriving::New(Incoming::Unix(stream), refuse) => {
                let Ok(stream) = UnixStream::from_std(stream) else { return };
                let wire = Wire::unix(stream, self.outbox.clone());
                conn::serve(wire, &Peer::Unix, &self.backend, registry, &self.options, refuse).await;
            }
            Arriving::Parked(parked) => {
                let wire = |stream| Ok(Wire::tcp(TcpStream::from_std(stream)?, self.outbox.clone()));
                let Ok(parked) = parked.with_stream(wire) else { return };
                self.attend_tcp(Arrival::Parked(parked)).await;
            }
        }
    }

    /// Serves a connection to its end if its client asks for encryption and there is a certificate; otherwise answers it.
    async fn encrypted(
        &self,
        stream: TcpStream,
        ticket: Ticket,
        peer: SocketAddr,
        refuse: &Option<Error>,
    ) -> Option<(TcpStream, Ticket)> {
        let Some(tls) = &self.options.tls else { return Some((stream, ticket)) };
        let greeted = tokio::select! {
            greeted = timers::timeout(self.options.login_timeout, tls.greet(stream)) => greeted,
            () = ticket.control.has_ended() => return None,
        };
        // A handshake that fails, or takes too long, ends the connection without a word, as there is none in common.
        match greeted {
            Ok(Ok(Greeted::Plain(stream))) => Some((stream, ticket)),
            Ok(Ok(Greeted::Encrypted(stream, encryption))) => {
                let peer = &Peer::Tls(peer, encryption);
                let newcomer = Newcomer { peer, registry: &self.registry, refuse: refuse.clone() };
                let arrival = Arrival::New { stream, ticket, newcomer };
                // Only its own core has the keys.
                let _ = conn::serve_here(arrival, &self.backend, &self.options, |_| false).await;
                None
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, %peer, "a connection could not be encrypted");
                None
            }
            Err(_) => None,
        }
    }

    /// Serves a connection by TCP until it ends or goes to another core.
    async fn attend_tcp(&self, arrival: Arrival<'_, Wire, B::Session>) {
        let mut whereabouts = Whereabouts { doors: &self.doors, home: self.index, away: 0, goal: None };
        let leave = |wire: &Wire| wire.tcp_socket().is_some_and(|socket| whereabouts.should_leave(socket));
        let Some(mut parked) = conn::serve_here(arrival, &self.backend, &self.options, leave).await else { return };
        if parked.stream.flush().await.is_err() {
            return;
        }
        // Without doors the server is ending, and so is the connection.
        let (Some(doors), Some(goal)) = (self.doors.upgrade(), whereabouts.goal) else { return };
        let detached = |wire: Wire| wire.into_tcp().ok_or(io::ErrorKind::BrokenPipe)?.into_std();
        if let Ok(parked) = parked.with_stream(detached) {
            doors.cores[goal].give(Arriving::Parked(parked));
        }
    }
}
