//! `RUST_LOG`: what the program does inside, for people who look for a fault. Off by default.
//!
//! Layer: cli. Sets up the one logger; layers below only use `log`'s macros. `events.jsonl` is another thing: the record of a run.

use std::io::Write;
use std::time::Instant;

use env_logger::{Builder, Env, WriteStyle};

use crate::printable::printable;

use super::style::Style;

/// Turns logging on if RUST_LOG asks for it (`info`, `hyperfold=debug`, `hyperfold::batch=trace,wgpu_core=warn`): to standard error, with seconds since the start.
pub fn start() {
    if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) {
        return;
    }
    let start = Instant::now();
    let mut builder = Builder::from_env(Env::new().filter("RUST_LOG"));
    builder.write_style(if Style::of_stderr() == Style::PLAIN { WriteStyle::Never } else { WriteStyle::Always });
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
    // A second logger cannot be there: this is called once, first of all.
    builder.try_init().expect("no logger is set before this one");
}

/// Whether lines of the log may come in between.
pub fn is_on() -> bool {
    log::max_level() != log::LevelFilter::Off
}
