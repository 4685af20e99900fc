//! No importer panics or takes memory that a hostile count asks for, whatever it is given; and what reads, is sound.

use std::fs;
use std::path::{Path, PathBuf};

use hyperfold_llm::workload::export;
use hyperfold_llm::workload::import::{ImportOptions, Imported, chakra, flight_recorder, goal, htsim, kineto, simai};
use hyperfold_llm::workload::inspect::summary;
use hyperfold_network::topology::parse_htsim;
use hyperfold_network::topology::text::text_of;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<PathBuf> = Vec::new();
    for kind in ["simai", "htsim", "goal", "topo"] {
        files.extend(fs::read_dir(root.join(kind)).unwrap().map(|e| e.unwrap().path()));
    }
    files.sort();
    let ok = files.iter().filter(|f| f.file_name().unwrap().to_string_lossy().starts_with("ok"));
    let [trace, dump] = ["kineto", "flight_recorder"].map(|of| root.join(format!("../../fuzz/seeds/{of}/rank0.json")));
    ok.chain([&trace, &dump]).map(|f| fs::read(f).unwrap()).collect()
}

/// Traces of a small pipeline with groups: messages, collectives, compute.
fn traces() -> Vec<Vec<u8>> {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/simai/ok-pipeline.txt")).unwrap();
    let w = simai::parse("pipeline", &text, &ImportOptions::default()).unwrap().workload;
    (0..w.ranks.len() as u32).map(|r| export::chakra::trace(&w, r).unwrap()).collect()
}

/// Whatever was read can be counted and, where the forms can say it, written. Bounded, as a mutation may well ask for a million ranks.
fn sound(read: Result<Imported, impl std::fmt::Display>) {
    match read {
        Err(e) => assert!(e.to_string().starts_with("fuzz"), "{e}"),
        Ok(i) => {
            let w = &i.workload;
            for p in &w.programs {
                assert!((0..p.ops.len() as u32).all(|i| p.deps_of(i).iter().all(|&d| d < i)));
            }
            if w.ranks.len() <= 64 {
                summary(w);
                export::chakra::trace(w, 0).unwrap();
                let _ = export::simai::text(w);
                let _ = export::flows::text(w);
            }
        }
    }
}

fn parse_all(bytes: Vec<u8>) {
    let with_flops = ImportOptions { flops_per_s: 1_000_000, memory_bytes_per_s: 1, ..ImportOptions::default() };
    for options in [ImportOptions::default(), with_flops] {
        sound(chakra::parse("fuzz", &[("fuzz.0.et".to_string(), bytes.clone())], None, &options));
    }
    for ranks in [None, Some(3), Some(u32::MAX)] {
        let options = ImportOptions { ranks, ..ImportOptions::default() };
        sound(kineto::parse("fuzz", &[("fuzz0.json".to_string(), bytes.clone())], &options));
        sound(flight_recorder::parse("fuzz", &[("fuzz0.json".to_string(), bytes.clone())], &options));
    }
    let Ok(text) = text_of("fuzz", bytes) else { return };
    for ranks in [None, Some(3), Some(u32::MAX)] {
        let options = ImportOptions { ranks, ..ImportOptions::default() };
        sound(simai::parse("fuzz", &text, &options));
        sound(htsim::parse("fuzz", &text, &options));
        sound(goal::parse("fuzz", &text, &options));
    }
    if let Ok(topology) = parse_htsim("fuzz", &text) {
        topology.network.validate().unwrap();
    }
    let trace = traces().swap_remove(0);
    sound(chakra::parse("fuzz", &[("fuzz.0.et".to_string(), trace)], Some(("fuzz", &text)), &ImportOptions::default()));
}

/// What a mutation puts in.
const TOKENS: [&str; 18] = [
    "0",
    "1",
    "-1",
    "4294967295",
    "18446744073709551616",
    "999999",
    "nan",
    "\n",
    " ",
    "\t",
    "#",
    "\u{feff}",
    "é",
    ":",
    "->",
    "{",
    "}",
    "ALLREDUCE",
];

/// So many cases, times HYPERFOLD_SOAK where a soak sets it.
fn cases(n: u32) -> ProptestConfig {
    let factor = std::env::var("HYPERFOLD_SOAK").map_or(1, |v| v.parse().expect("HYPERFOLD_SOAK is a whole number"));
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n.saturating_mul(factor)) }
}

fn mutate(mut bytes: Vec<u8>, edits: &[(Index, Index, usize)]) -> Vec<u8> {
    for (from, to, what) in edits {
        let (a, b) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
        match TOKENS.get(*what) {
            // Over a few bytes, a token; else cut a piece out, or repeat one.
            Some(t) => drop(bytes.splice(a..(a + 2).min(bytes.len()), t.bytes())),
            None if what % 2 == 0 => drop(bytes.drain(a.min(b)..a.max(b))),
            None => {
                let piece = bytes[a.min(b)..a.max(b)].to_vec();
                bytes.splice(a..a, piece);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        parse_all(bytes);
    }
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn mutated_files(file in any::<Index>(), edits in vec((any::<Index>(), any::<Index>(), 0usize..TOKENS.len() + 2), 1..4)) {
        let files = corpus();
        parse_all(mutate(files[file.index(files.len())].clone(), &edits));
    }

    #[test]
    fn mutated_traces(which in any::<Index>(), flips in vec((any::<Index>(), any::<u8>()), 1..6), edits in vec((any::<Index>(), any::<Index>(), 0usize..TOKENS.len() + 2), 0..2)) {
        let mut all = traces();
        let at = which.index(all.len());
        for (place, byte) in flips {
            let place = place.index(all[at].len());
            all[at][place] = byte;
        }
        all[at] = mutate(std::mem::take(&mut all[at]), &edits);
        let named: Vec<_> = all.into_iter().enumerate().map(|(r, bytes)| (format!("fuzz.{r}.et"), bytes)).collect();
        sound(chakra::parse("fuzz", &named, None, &ImportOptions::default()));
    }
}
