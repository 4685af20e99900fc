//! Ctrl-C and SIGTERM, with which schedulers announce the end: the first asks the run to stop, the second ends the program.
//!
//! Layer: cli. A terminal that goes away (SIGHUP) is left alone, so that `nohup` does what it always does.

use crate::session::Interrupt;

use super::exit::Exit;
use super::tell;

/// A flag that Ctrl-C and SIGTERM set; the second of them ends the process at once.
pub fn on_ctrl_c() -> Interrupt {
    let flag = Interrupt::default();
    let set = flag.clone();
    let installed = ctrlc::set_handler(move || {
        if set.request() {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        tell("\nhyperfold: stopping; what is complete is being written (Ctrl-C again ends at once)");
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
    use std::sync::Arc;
    // In this order: what the first one sets, only the second one finds.
    flag::register_conditional_shutdown(SIGTERM, i32::from(Exit::Interrupted.code()), Arc::clone(interrupt.flag()))?;
    flag::register(SIGTERM, Arc::clone(interrupt.flag())).map(drop)
}

#[cfg(not(unix))]
fn on_sigterm(_: &Interrupt) -> std::io::Result<()> {
    Ok(())
}
