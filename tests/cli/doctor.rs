//! `doctor` on this machine. These tests need an adapter that passes: `scripts/setup-vulkan.sh` installs one in software.

use std::path::Path;

use crate::support::program::{Ran, command, seen};

fn doctor(args: &[&str], env: &[(&str, &str)]) -> Ran {
    let args = [&["doctor"], args].concat();
    seen(&args, command(Path::new("."), &args).envs(env.iter().copied()).output().expect("the program starts"))
}

#[test]
fn an_adapter_of_this_machine_passes_the_self_test() {
    let Ran { code, stdout, stderr } = doctor(&["--json"], &[]);
    assert_eq!(code, 0, "no adapter passes; run scripts/setup-vulkan.sh\n{stdout}{stderr}");
    let mut adapters: Vec<serde_json::Value> =
        stdout.lines().map(|l| serde_json::from_str(l).expect("a JSON object a line")).collect();
    let machine = adapters.pop().expect("the machine's line is the last");
    assert!(
        machine["machine"]["threads"].is_u64() && machine["install"].as_array().is_some_and(Vec::is_empty),
        "{machine}"
    );
    assert!(adapters.iter().any(|a| a["self_test"] == "pass"), "{stdout}");
    for (at, adapter) in adapters.iter().enumerate() {
        assert_eq!(adapter["index"], at);
        assert!(
            adapter["name"].is_string() && adapter["driver"].is_string() && adapter["storage_binding_bytes"].is_u64()
        );
        assert_eq!(adapter["self_test"] == "pass", adapter["failures"].as_array().is_some_and(Vec::is_empty));
    }
}

#[test]
fn people_are_told_the_same() {
    let Ran { code, stdout, .. } = doctor(&[], &[]);
    assert_eq!(code, 0, "no adapter passes; run scripts/setup-vulkan.sh\n{stdout}");
    assert!(stdout.contains("self-test: passed (6 kernels, "), "{stdout}");
    assert!(stdout.contains("CPU engine: ready"), "{stdout}");
}

/// The cases of two congestion controls, whose kernels the tests of `gpu` use too: software Vulkan takes minutes for larger ones.
#[test]
fn the_engine_has_the_bytes_of_the_cpu_on_every_adapter_that_passes() {
    let names = check_engine(&["--cases", "dcqcn,none"]);
    assert!(names.len() >= 15, "{names:?}");
    assert!(names.iter().all(|name| name.contains("dcqcn") || name.contains("none")), "{names:?}");
}

/// Compiles kernels with every part.
#[test]
#[ignore = "soak: ten minutes of compiling on software Vulkan; scripts/test.sh --soak and CI run it"]
fn soak_every_kernel_of_the_engine_has_the_bytes_of_the_cpu() {
    assert_eq!(check_engine(&[]).len(), 48);
}

#[test]
fn a_word_that_is_in_no_case_is_refused_with_the_names_there_are() {
    let Ran { code, stdout, stderr } = doctor(&["--engine", "--cases", "dcqcn,bbr"], &[]);
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(stderr.contains("no case has `bbr` in its name; the cases are dcqcn with marks; "), "{stderr}");
    let Ran { code, stderr, .. } = doctor(&["--cases", "dcqcn"], &[]);
    assert!(code == 2 && stderr.contains("--engine"), "{stderr}");
}

/// Names of the cases that `doctor --engine` with these arguments compares. All must be the same on every adapter.
fn check_engine(args: &[&str]) -> Vec<String> {
    let Ran { code, stdout, stderr } = doctor(&[&["--engine", "--json"], args].concat(), &[]);
    assert_eq!(code, 0, "no adapter passes, or one differs; run scripts/setup-vulkan.sh\n{stdout}{stderr}");
    let adapters: Vec<serde_json::Value> =
        stdout.lines().map(|l| serde_json::from_str(l).expect("a JSON object a line")).collect();
    let checked: Vec<_> = adapters.iter().filter(|a| a["self_test"] == "pass").map(|a| &a["engine_check"]).collect();
    let mut names = Vec::new();
    for check in &checked {
        assert!(check["outcome"] == "same" && check["systems"] == 8, "{check}");
        let cases = check["cases"].as_array().expect("a list of cases");
        assert!(cases.iter().all(|c| c["sha256_16"].as_str().is_some_and(|d| d.len() == 16)), "{check}");
        names = cases.iter().map(|c| c["name"].as_str().expect("a name").to_string()).collect();
    }
    assert!(!checked.is_empty(), "{stdout}");
    names
}

/// The Vulkan loader is pointed at no driver at all, as on a machine that has none.
#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_an_adapter_is_told_what_to_install() {
    let Ran { code, stdout, .. } =
        doctor(&[], &[("VK_ICD_FILENAMES", "/nonexistent.json"), ("VK_DRIVER_FILES", "/nonexistent.json")]);
    assert_eq!(code, 2, "{stdout}");
    assert!(stdout.contains("no GPU adapter found") && stdout.contains("to install: "), "{stdout}");
}
