//! What shells, `man` and editors are told: completions, man pages, hints for names that other tools have.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::program::{Folder, hyperfold};

/// The commands, as the help lists them.
fn commands(folder: &Folder) -> Vec<String> {
    let help = folder.run(&["--help"]).stdout;
    let listed = help.split("Commands:\n").nth(1).expect("the help lists commands").split("\n\n").next().unwrap();
    let names: Vec<String> = listed.lines().map(|l| l.split_whitespace().next().unwrap().to_string()).collect();
    assert!(names.len() > 12 && names.contains(&"run".to_string()), "{names:?}");
    names
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    let folder = Folder::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = folder.run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        for command in commands(&folder) {
            assert!(ran.stdout.contains(&command), "{shell}: {command}");
        }
        assert!(ran.stdout.contains("memo-limit-mib"), "{shell} knows options");
    }
    let none = folder.run(&["completions", "tcsh"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("bash, elvish, fish, powershell, zsh"), "{}", none.stderr);
}

#[test]
fn bash_completes_with_them() {
    let folder = Folder::new(&[]);
    folder.write("hyperfold.bash", &folder.run(&["completions", "bash"]).stdout);
    let script = "source ./hyperfold.bash\n\
                  COMP_WORDS=(hyperfold pl) COMP_CWORD=1\n_hyperfold hyperfold pl hyperfold\necho \"${COMPREPLY[@]}\"\n\
                  COMP_WORDS=(hyperfold run --eng) COMP_CWORD=2\n_hyperfold hyperfold --eng run\necho \"${COMPREPLY[@]}\"\n";
    let bash = Command::new("bash").args(["--norc", "-c", script]).current_dir(folder.path()).output();
    let output = bash.expect("bash is here");
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].split(' ').any(|word| word == "plan"), "{said}");
    assert_eq!(lines[1], "--engine", "{said}");
}

#[test]
fn there_is_a_man_page_a_command() {
    let folder = Folder::new(&[]);
    let ran = folder.run(&["man", "--out", "man/man1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for command in commands(&folder).iter().filter(|c| *c != "help") {
        let page = folder.text(&format!("man/man1/hyperfold-{command}.1"));
        assert!(page.starts_with(".ie") || page.contains(&format!(".TH hyperfold-{command} 1")), "{page}");
        assert_eq!(folder.run(&["man", command]).stdout, page, "printed and written alike");
    }
    assert!(
        folder.text("man/man1/hyperfold.1").contains("hyperfold\\-run(1)"),
        "the program's page leads to the others"
    );
    assert!(folder.text("man/man1/hyperfold-run.1").contains("\\-\\-memo\\-limit\\-mib"));
    let absent = folder.run(&["man", "simulate"]);
    assert_eq!((absent.code, absent.stdout.as_str()), (2, ""));
    assert!(absent.stderr.contains("no command `simulate`; there are: run, plan"), "{}", absent.stderr);
    folder.write("taken", "");
    let taken = folder.run(&["man", "--out", "taken"]);
    assert!(taken.code == 2 && taken.stderr.contains("--out taken"), "{}", taken.stderr);
}

#[test]
fn a_closed_pipe_is_no_fault() {
    for args in [&["schema"][..], &["man", "run"], &["completions", "zsh"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_hyperfold"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{args:?}");
    }
}

const SWEEP: &str = "name = \"s\"\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\n";

#[test]
fn names_of_other_tools_lead_to_the_keys() {
    let root = tempfile::tempdir().unwrap();
    let said = |text: &str| {
        fs::write(root.path().join("s.toml"), text).unwrap();
        let ran = hyperfold(root.path(), &["plan", "s.toml"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{text}");
        ran.stderr
    };
    for (below, hint) in [
        ("[[constraints]]\nexpr = \"true\"\n", "`constraints.expr`; did you mean `where`?"),
        ("[base.transport]\npayload = 1000\n", "`transport.payload`; did you mean `transport.payload_bytes`?"),
        ("[base.transport]\nmtu = 1000\n", "`transport.mtu`; did you mean `transport.payload_bytes`?"),
        ("[base.network]\nbandwidth = 400\n", "`network.bandwidth`; did you mean `topology.link_gbps`?"),
        ("[base.topology]\ngpus = 8\n", "`topology.gpus`; did you mean `cluster.gpus`?"),
        ("[base]\ngpus = 8\n", "`gpus`; did you mean `cluster.gpus`?"),
        ("[axes]\nbandwidth = [100, 400]\n", "`bandwidth`; did you mean `topology.link_gbps`?"),
        ("[axes]\n\"transport.algo\" = [\"hpcc\"]\n", "`transport.algo`; did you mean `transport.cc`?"),
        ("[base.cluster]\nmodel = \"gpt3-13b\"\n", "`cluster.model`; did you mean `workload.model`?"),
        ("[[constraints]]\nwhere = \"world_size > 4\"\n", "unknown key `world_size`; did you mean `cluster.gpus`?"),
        ("[sweep]\nrepeats = 3\n", "`sweep.repeats`; did you mean `sweep.replicas`?"),
        ("[sweep]\nseed = 3\n", "`sweep.seed`; `seed` stands at the top of the file"),
        ("[grid]\n\"transport.cc\" = [\"hpcc\"]\n", "`grid`; did you mean `axes`?"),
        ("[network]\nkind = \"clos\"\n", "`network`; did you mean `topology.kind`? Write `kind` in [base.topology]"),
        ("[base.transport]\ncc = \"DCQCN\"\n", "did you mean \"dcqcn\"?"),
    ] {
        let said = said(&format!("{SWEEP}{below}"));
        assert!(said.contains(hint), "{below}: {said}");
    }
    for (top, hint) in [
        ("gpus = 8\n", "`gpus`; did you mean `cluster.gpus`? Write `gpus` in [base.cluster]"),
        ("payload = 8\n", "did you mean `transport.payload_bytes`? Write `payload_bytes` in [base.transport]"),
        ("replicas = 8\n", "did you mean `sweep`? `replicas` stands below it"),
        (
            "algo = \"ring\"\n",
            "did you mean `transport.cc` or `workload.algorithm`? Keys of experiments stand below `base`",
        ),
    ] {
        let said = said(&format!("{top}{SWEEP}"));
        assert!(said.contains(hint), "{top}: {said}");
    }
}
