//! Ctrl-C, and a request to terminate: the first ends what is measured so that it can be kept and verified, the second everything.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// What a run says that was ended so.
pub const INTERRUPTED: &str = "interrupted";
/// Exit code after the second: 128 and the number of SIGINT.
const AT_ONCE: i32 = 130;

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on the first signal is only noted. Whoever calls this looks at [`asked`] in whatever takes long.
pub fn arm() {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag not yet set.
        let armed: io::Result<_> = flag::register_conditional_shutdown(signal, AT_ONCE, asked.clone())
            .and_then(|_| flag::register(signal, asked.clone()));
        if let Err(error) = armed {
            eprintln!("an interruption will lose what is being measured: {error}");
        }
    }
}

/// Whether somebody wants the end.
pub fn asked() -> bool {
    ASKED.get().is_some_and(|asked| asked.load(Ordering::Relaxed))
}
