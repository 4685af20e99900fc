//! Ctrl-C: the first asks the run to stop, the second ends the program.
//!
//! Layer: cli.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;
use super::tell;

/// Whether the user has asked to stop. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// A flag that Ctrl-C sets; a second Ctrl-C ends the process at once.
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
        flag
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
