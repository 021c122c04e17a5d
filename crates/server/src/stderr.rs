//! The server's log: one line per event on stderr.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Starts the log. `NYALA_LOG` says how much is logged (`info`, `debug`, `pgwire=trace,info`…).
pub fn start() {
    let filter = EnvFilter::try_from_env("NYALA_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .with_env_filter(filter)
        .init();
}

/// Logs panics in one line. One in a core's thread ends the session it happened in; one in any other thread (the log's
/// flusher, say) leaves something undone that the server cannot do without, so it ends the process.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.payload();
        let text = text.downcast_ref::<&str>().copied().or(text.downcast_ref::<String>().map(String::as_str));
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        let text = text.unwrap_or("no text").replace('\n', " ");
        tracing::error!("panic in thread {thread} at {place}: {text}");
        if !thread.starts_with("core-") {
            std::process::exit(1);
        }
    }));
}
