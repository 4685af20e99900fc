//! Logging with `RUST_LOG`, for people who look for a fault. It is off by default.
//!
//! Layer: cli. It sets up the only logger; lower layers only use the macros of `log`. `events.jsonl`, the record of a run, is separate.

use std::io::Write;
use std::time::Instant;

use env_logger::{Builder, Env};

use hyperfold_base::printable::printable;

/// Turns logging to standard error on if RUST_LOG asks for it (`info`, `hyperfold=debug`, `hyperfold_host=trace,wgpu_core=warn`). Lines begin with the
/// seconds since the start.
pub fn start() {
    if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) {
        return;
    }
    let start = Instant::now();
    let mut builder = Builder::from_env(Env::new().filter("RUST_LOG"));
    builder.format(move |out, record| {
        let level = record.level();
        let style = out.default_level_style(level);
        let seconds = start.elapsed().as_secs_f64();
        writeln!(
            out,
            "{seconds:9.3} {style}{level:5}{style:#} {}: {}",
            record.target(),
            printable(&record.args().to_string())
        )
    });
    // There is no other logger yet, because this is called once and before anything else.
    builder.try_init().expect("no logger is set before this one");
}

/// Whether log lines may appear.
pub fn is_on() -> bool {
    log::max_level() != log::LevelFilter::Off
}
