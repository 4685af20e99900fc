//! Ctrl-C and SIGTERM, with which schedulers announce the end: the first asks the run to stop, the second ends the program.
//!
//! Layer: cli. A terminal that goes away (SIGHUP) is left alone, so that `nohup` does what it always does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;
use super::tell;

/// Whether the user has asked to stop. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that Ctrl-C and SIGTERM set; the second of them ends the process at once.
    pub fn on_ctrl_c() -> Interrupt {
        let flag = Interrupt::default();
        let set = flag.clone();
        let installed = ctrlc::set_handler(move || {
            if set.0.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
            tell("\nhyperfold: stopping; what is complete is being written (Ctrl-C again ends at once)");
        });
        if let Err(error) = installed {
            // The run is still good: Ctrl-C then ends it the default way.
            tell(&format!("hyperfold: Ctrl-C will not finish writing: {error}"));
        }
        if let Err(error) = flag.on_sigterm() {
            tell(&format!("hyperfold: SIGTERM will not finish writing: {error}"));
        }
        flag
    }

    #[cfg(unix)]
    fn on_sigterm(&self) -> std::io::Result<()> {
        use signal_hook::{consts::SIGTERM, flag};
        // In this order: what the first one sets, only the second one finds.
        flag::register_conditional_shutdown(SIGTERM, i32::from(Exit::Interrupted.code()), Arc::clone(&self.0))?;
        flag::register(SIGTERM, Arc::clone(&self.0)).map(drop)
    }

    #[cfg(not(unix))]
    fn on_sigterm(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Whether to stop.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks to stop, as Ctrl-C does.
    pub fn request(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
