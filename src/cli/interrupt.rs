//! Handles Ctrl-C, and SIGTERM, by which schedulers announce the end.
//!
//! Layer: cli. While a run has something to write, the first signal asks it to stop, and the second one ends the program. At other times nothing can be lost,
//! and the first signal ends it. SIGHUP of a closed terminal is not handled, so that `nohup` works as usual.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use hyperfold_base::budget;
use hyperfold_session::Interrupt;

use super::exit::Exit;
use super::tell;

/// Whether the first signal ends the program at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Sets whether a signal may end the program at once from now on, because nothing would be lost.
pub(super) fn may_end_at_once(may: bool) {
    AT_ONCE.store(may, Ordering::SeqCst);
}

/// Installs the handlers, and returns the flag that the first signal sets. The second signal ends the process, and so does the first one while that is
/// allowed.
pub fn on_ctrl_c() -> Interrupt {
    let flag = Interrupt::default();
    budget::stop_on(flag.flag());
    let set = flag.clone();
    let installed = ctrlc::set_handler(move || {
        if AT_ONCE.load(Ordering::SeqCst) || set.request() {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        // A terminal shows ^C on the current line.
        tell("");
        tell("hyperfold: stopping; what is complete is being written (Ctrl-C again ends at once)");
    });
    if let Err(error) = installed {
        // Without the handler, the run still works, and Ctrl-C ends it in the default way.
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
    // With this handler, a file that would exceed `ulimit -f` is an error of the write, and does not end the process.
    flag::register(signal_hook::consts::SIGXFSZ, Arc::default())?;
    // The order matters: the flag that the last handler sets is seen only by the second signal.
    let code = i32::from(Exit::Interrupted.code());
    flag::register_conditional_shutdown(SIGTERM, code, Arc::clone(&AT_ONCE))?;
    flag::register_conditional_shutdown(SIGTERM, code, Arc::clone(interrupt.flag()))?;
    flag::register(SIGTERM, Arc::clone(interrupt.flag())).map(drop)
}

#[cfg(not(unix))]
fn on_sigterm(_: &Interrupt) -> std::io::Result<()> {
    Ok(())
}
