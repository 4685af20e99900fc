//! Ctrl-C and SIGTERM, with which schedulers announce the end.
//!
//! Layer: cli. While a run has something to write, the first signal asks it to stop, and the second ends the program. Before and after
//! that there is nothing to lose, and the first one ends it. A terminal that goes away (SIGHUP) is left alone, so that `nohup` does what
//! it always does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use crate::budget;
use crate::session::Interrupt;

use super::exit::Exit;
use super::tell;

/// Whether the first signal ends the program at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Says whether a signal from now on may end the program at once, because nothing that it does would be lost.
pub(super) fn may_end_at_once(may: bool) {
    AT_ONCE.store(may, Ordering::SeqCst);
}

/// A flag that Ctrl-C and SIGTERM set where they do not end the process at once; the second of them does.
pub fn on_ctrl_c() -> Interrupt {
    let flag = Interrupt::default();
    budget::stop_on(flag.flag());
    let set = flag.clone();
    let installed = ctrlc::set_handler(move || {
        if AT_ONCE.load(Ordering::SeqCst) || set.request() {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        // A terminal shows ^C on the line at hand.
        tell("");
        tell("hyperfold: stopping; what is complete is being written (Ctrl-C again ends at once)");
    });
    if let Err(error) = installed {
        // The run is still good: Ctrl-C then ends it the default way.
        tell(&format!("hyperfold: Ctrl-C will not finish writing: {error}"));
    }
    if let Err(error) = on_sigterm(&flag) {
        tell(&format!("hyperfold: SIGTERM will not finish writing: {error}"));
    }
    flag
}

#[cfg(unix)]
fn on_sigterm(interrupt: &Interrupt) -> std::io::Result<()> {
    use signal_hook::{consts::SIGTERM, flag};
    // A file that would grow beyond `ulimit -f` is then an error of the write, which says so, and not the end of the process.
    flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    // In this order: what the last one sets, only the second signal finds.
    let code = i32::from(Exit::Interrupted.code());
    flag::register_conditional_shutdown(SIGTERM, code, Arc::clone(&AT_ONCE))?;
    flag::register_conditional_shutdown(SIGTERM, code, Arc::clone(interrupt.flag()))?;
    flag::register(SIGTERM, Arc::clone(interrupt.flag())).map(drop)
}

#[cfg(not(unix))]
fn on_sigterm(_: &Interrupt) -> std::io::Result<()> {
    Ok(())
}
