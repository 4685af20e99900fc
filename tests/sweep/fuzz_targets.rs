//! The fuzz targets without libFuzzer: every parser gets its seeds, and seeded mutations of them.
//!
//! A few with every run of the tests, which also keeps `fuzz/targets.rs` compiling; many more by `fuzz/run.sh`.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../../fuzz/targets.rs"]
mod targets;

use targets::{FuzzTarget, TARGETS};

/// So long one input may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Numbers that readers trust too easily.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551616",
    "1e308",
    "nan",
    "inf",
    "0.5",
    "1000000",
    "00",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The seeds of a target. PRECONDITION: there is one.
fn seeds(target: &FuzzTarget) -> Vec<Vec<u8>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for seed in target.seeds {
        let path = root().join(seed);
        match path.is_dir() {
            true => files.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file())),
            false => files.push(path),
        }
    }
    files.sort();
    assert!(!files.is_empty(), "{} has no seeds", target.name);
    files.iter().map(|f| fs::read(f).unwrap_or_else(|e| panic!("{}: {e}", f.display()))).collect()
}

/// Xorshift: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Overwrites, cuts, doubles and splices, and puts other numbers in the place of numbers.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let at = random.below(data.len());
        let end = (at + 1 + random.below(64)).min(data.len());
        match random.below(7) {
            _ if data.is_empty() => data.push(random.below(256) as u8),
            0 => data[at] ^= 1 << random.below(8),
            1 => data[at] = random.below(256) as u8,
            2 => drop(data.drain(at..end)),
            3 => {
                let again = data[at..end].repeat(1 + random.below(3));
                data.splice(at..at, again);
            }
            4 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let part = other[from..(from + 64).min(other.len())].to_vec();
                data.splice(at..at, part);
            }
            5 => data.truncate(at),
            _ => {
                let digit = |c: &u8| c.is_ascii_digit();
                let Some(start) = data[at..].iter().position(digit).map(|p| at + p) else { continue };
                let end = data[start..].iter().position(|c| !digit(c)).map_or(data.len(), |p| start + p);
                data.splice(start..end, NUMBERS[random.below(NUMBERS.len())].bytes());
            }
        }
    }
    data
}

/// Gives one input to a target. What panics or takes too long is kept beside the fuzz crate.
fn tried(target: &FuzzTarget, data: &[u8]) {
    let from = Instant::now();
    let ended = catch_unwind(AssertUnwindSafe(|| targets::run(target.name, data)));
    if ended.is_err() || from.elapsed() > PATIENCE {
        let kept = root().join("fuzz/artifacts").join(format!("{}-{}", target.name, std::process::id()));
        fs::create_dir_all(kept.parent().unwrap()).unwrap();
        fs::write(&kept, data).unwrap();
        panic!(
            "{}: {} bytes take {:?} or panic; they are in {}",
            target.name,
            data.len(),
            from.elapsed(),
            kept.display()
        );
    }
}

/// Mutations of every target, `n` each.
fn rounds(n: usize, random: &mut Random) {
    for target in TARGETS {
        let seeds = seeds(target);
        (0..n).for_each(|_| tried(target, &mutated(&seeds, random)));
    }
}

#[test]
fn every_seed_and_some_mutations_of_it_are_read_or_refused() {
    for target in TARGETS {
        seeds(target).iter().for_each(|seed| tried(target, seed));
    }
    rounds(100, &mut Random(0x9e37_79b9_7f4a_7c15));
}

#[test]
fn every_target_has_its_program() {
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    let programs = fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap().count();
    assert_eq!((programs, manifest.matches("[[bin]]").count()), (TARGETS.len(), TARGETS.len()));
    for target in TARGETS {
        let program = fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{}.rs", target.name))).unwrap();
        assert!(program.contains(&format!("targets::run(\"{}\", data)", target.name)), "{}", target.name);
        assert!(manifest.contains(&format!("name = \"{}\"\n", target.name)), "{}", target.name);
    }
}

/// `fuzz/run.sh` calls it where cargo-fuzz is not installed, with its minutes.
#[test]
#[ignore = "mutates inputs for as many minutes as HYPERFOLD_FUZZ_MINUTES says; fuzz/run.sh MINUTES and scripts/test.sh --soak run it"]
fn mutations_for_some_minutes() {
    let minutes: f64 = std::env::var("HYPERFOLD_FUZZ_MINUTES").ok().and_then(|m| m.parse().ok()).unwrap_or(1.0);
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    let (mut random, mut n) = (Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1), 0);
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    while Instant::now() < end {
        rounds(50, &mut random);
        n += 50 * TARGETS.len();
    }
    println!("{n} inputs to {} parsers, seed {seed}", TARGETS.len());
}
