//! What `scripts/release.sh` packs, and the Dockerfile.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::support::program::Folder;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a TOML file of the repository.
fn manifest(path: &str) -> toml::Table {
    std::fs::read_to_string(root().join(path)).unwrap().parse().unwrap()
}

fn script(args: &[&str]) -> std::process::Output {
    Command::new("bash").arg("scripts/release.sh").args(args).current_dir(root()).output().expect("bash is here")
}

#[test]
fn a_release_has_program_completions_pages_and_licences() {
    let folder = Folder::new(&[]);
    let program = env!("CARGO_BIN_EXE_hyperfold");
    let out = folder.file("dist").display().to_string();
    let packed = script(&["--binary", program, "--out", &out]);
    let said = String::from_utf8_lossy(&packed.stdout);
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    let archive = Path::new(said.trim()).to_path_buf();
    let name = archive.file_name().unwrap().to_str().unwrap().strip_suffix(".tar.gz").unwrap();
    assert!(name.starts_with(concat!("hyperfold-", env!("CARGO_PKG_VERSION"), "-")), "{name}");
    let done = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    done(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()));
    done(Command::new("sha256sum").args(["--check", "--quiet", &format!("{name}.tar.gz.sha256")]).current_dir(&out));
    let file = |path: &str| folder.text(&format!("{name}/{path}"));
    for path in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "licenses/LICENSE-DejaVu"] {
        assert!(file(path).len() > 100, "{path}");
    }
    assert!(
        file("completions/hyperfold.bash").contains("_hyperfold()")
            && file("completions/_hyperfold").starts_with("#compdef hyperfold")
    );
    assert!(
        file("completions/hyperfold.fish").contains("complete -c hyperfold")
            && file("man/man1/hyperfold-run.1").contains("--resume")
            || file("man/man1/hyperfold-run.1").contains("\\-\\-resume")
    );
    assert!(serde_json::from_str::<serde_json::Value>(&file("sweep.schema.json")).is_ok());
    let crates = file("licenses/crates.txt");
    for (name, licence) in
        [("clap v", "MIT OR Apache-2.0"), ("wgpu v", "MIT OR Apache-2.0"), ("parquet v", "Apache-2.0")]
    {
        assert!(crates.lines().any(|l| l.starts_with(name) && l.ends_with(licence)), "{name}: {crates}");
    }
    assert!(!crates.contains("proptest"), "what only tests need is not in the program");
    assert!(!crates.contains("hyperfold"), "crates of this workspace are the program itself: {crates}");
    let texts = std::fs::read_dir(folder.file(&format!("{name}/licenses"))).unwrap().count();
    assert!(texts > crates.lines().count() / 2, "{texts} licence texts");
    let version = Command::new(folder.file(&format!("{name}/hyperfold"))).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), concat!("hyperfold ", env!("CARGO_PKG_VERSION")));

    // `cargo binstall` looks for this archive, and for the program at this place inside it.
    let binstall = &manifest("Cargo.toml")["package"]["metadata"]["binstall"];
    let target = name.strip_prefix(concat!("hyperfold-", env!("CARGO_PKG_VERSION"), "-")).unwrap();
    let filled = |key: &str| {
        let values =
            [("version", env!("CARGO_PKG_VERSION")), ("target", target), ("bin", "hyperfold"), ("binary-ext", "")];
        let text = binstall[key].as_str().unwrap().to_string();
        values.iter().fold(text, |text, (key, value)| text.replace(&format!("{{ {key} }}"), value))
    };
    assert!(filled("pkg-url").ends_with(&format!("/{name}.tar.gz")), "{}", filled("pkg-url"));
    assert_eq!((filled("bin-dir"), filled("pkg-fmt")), (format!("{name}/hyperfold"), "tgz".to_string()));
}

#[test]
fn a_release_that_cannot_be_is_refused() {
    for (args, why) in [
        (&["--binary", "absent"][..], "absent is no program"),
        (&["--binary"], "needs a value"),
        (&["--faster", "1"], "unknown option --faster"),
    ] {
        let ran = script(args);
        assert_eq!(ran.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains(why), "{args:?}");
    }
}

#[test]
fn cargo_install_finds_what_it_needs() {
    let manifest = manifest("Cargo.toml");
    let package = manifest["package"].as_table().unwrap();
    for key in ["description", "license", "rust-version", "readme", "keywords", "categories"] {
        assert!(package.contains_key(key), "{key}");
    }
    let names: Vec<&str> = manifest["bin"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hyperfold"], "one program is installed, and that is `cargo run`'s");
    assert_eq!(package["default-run"].as_str(), Some("hyperfold"));
    assert!(root().join(package["readme"].as_str().unwrap()).exists() && root().join("Cargo.lock").exists());
}

#[test]
fn one_version_stands_everywhere() {
    let cargo = manifest("Cargo.toml");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(cargo["workspace"]["package"]["version"].as_str(), Some(version));
    for (name, dependency) in cargo["workspace"]["dependencies"].as_table().unwrap() {
        if name.starts_with("hyperfold-") {
            assert_eq!(dependency["version"].as_str(), Some(version), "{name}");
        }
    }
    let package = &manifest("python/pyproject.toml")["project"];
    assert_eq!(package["version"].as_str(), Some(version), "python/pyproject.toml");
    let changelog = std::fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let released = changelog.lines().find_map(|l| l.strip_prefix("## ").filter(|l| *l != "Unreleased")).unwrap();
    assert!(released.starts_with(&format!("{version} - ")), "the changelog's latest release is {released}");
    // The wheel with the program and the package alone are one package.
    let wheel = &manifest("pyproject.toml")["project"];
    for key in ["name", "requires-python", "dependencies"] {
        assert_eq!(wheel[key], package[key], "{key} of pyproject.toml and python/pyproject.toml");
    }
}

/// Instructions of a Dockerfile with their words, continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let code: Vec<&str> = text.lines().filter(|l| !l.trim_start().starts_with('#')).collect();
    let joined = code.join("\n").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|l| !l.is_empty());
    lines
        .map(|l| l.split_once(' ').unwrap_or((l, "")))
        .map(|(word, rest)| (word.to_string(), rest.trim().to_string()))
        .collect()
}

/// What is wrong with a Dockerfile, as far as can be told without building it.
fn faults(text: &str, rust_version: &str) -> Vec<String> {
    const KNOWN: [&str; 12] =
        ["FROM", "RUN", "COPY", "WORKDIR", "ENV", "ENTRYPOINT", "CMD", "ARG", "LABEL", "USER", "EXPOSE", "HEALTHCHECK"];
    let mut wrong = Vec::new();
    let mut stages: BTreeSet<String> = BTreeSet::new();
    let all = instructions(text);
    if all.first().is_none_or(|(word, _)| word != "FROM" && word != "ARG") {
        wrong.push("it does not begin with FROM".to_string());
    }
    for (word, rest) in &all {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match word.as_str() {
            _ if !KNOWN.contains(&word.as_str()) => wrong.push(format!("{word}: unknown instruction")),
            _ if rest.is_empty() => wrong.push(format!("{word}: nothing follows")),
            "FROM" => {
                let image = words[0];
                if !stages.contains(image) && (!image.contains(':') || image.ends_with(":latest")) {
                    wrong.push(format!("{image}: no version"));
                }
                if let Some(tag) = image.strip_prefix("rust:")
                    && !tag.starts_with(rust_version)
                {
                    wrong.push(format!("{image}: Cargo.toml asks for Rust {rust_version}"));
                }
                if let [_, "AS", name] = words[..] {
                    stages.insert(name.to_string());
                }
            }
            "COPY" => match words[0].strip_prefix("--from=") {
                Some(stage) if !stages.contains(stage) => wrong.push(format!("COPY: no stage {stage}")),
                Some(_) => {}
                None => {
                    for source in &words[..words.len() - 1] {
                        if !root().join(source).exists() {
                            wrong.push(format!("COPY: {source} is not there"));
                        }
                    }
                }
            },
            "RUN" => {
                if rest.contains("apt-get install")
                    && !(rest.contains("apt-get update")
                        && rest.contains(" -y")
                        && rest.contains("--no-install-recommends")
                        && rest.contains("rm -rf /var/lib/apt/lists"))
                {
                    wrong.push("RUN apt-get install: update, -y, --no-install-recommends and the removal of the lists belong to it".to_string());
                }
                if rest.contains("cargo build") && !rest.contains("--locked") {
                    wrong.push("RUN cargo build: without --locked".to_string());
                }
            }
            "ENTRYPOINT" | "CMD" if serde_json::from_str::<Vec<String>>(rest).is_err() => {
                wrong.push(format!("{word}: not in the form [\"program\", ...], so signals do not reach the program"));
            }
            "WORKDIR" if !rest.starts_with('/') => wrong.push(format!("WORKDIR {rest}: not absolute")),
            _ => {}
        }
    }
    if !all.iter().any(|(word, _)| word == "ENTRYPOINT") {
        wrong.push("no ENTRYPOINT".to_string());
    }
    wrong
}

#[test]
fn the_dockerfile_is_sound() {
    let path = root().join("Dockerfile");
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(faults(&text, "1.95"), Vec::<String>::new());
    assert!(
        text.contains("--bin hyperfold") && text.contains("/src/target/release/hyperfold"),
        "it builds what it copies"
    );
    assert_eq!(manifest("Cargo.toml")["workspace"]["package"]["rust-version"].as_str(), Some("1.95"));
    let ignored = std::fs::read_to_string(root().join(".dockerignore")).unwrap();
    for folder in ["target", ".git", "out"] {
        assert!(ignored.lines().any(|l| l.trim_end_matches('/') == folder), "{folder} is sent to the builder");
    }
    // The linter proper, where there is one.
    if let Ok(linted) = Command::new("hadolint").arg("--ignore").arg("DL3008").arg(&path).output() {
        assert!(linted.status.success(), "{}", String::from_utf8_lossy(&linted.stdout));
    }
}

#[test]
fn faults_of_a_dockerfile_are_found() {
    let sound = "# c\nFROM rust:1.95-slim AS build\nCOPY . .\nRUN cargo build --locked\nFROM debian:trixie\nCOPY --from=build /a /b\nENTRYPOINT [\"a\"]\n";
    assert_eq!(faults(sound, "1.95"), Vec::<String>::new());
    for (from, to, why) in [
        ("AS build", "AS built", "no stage build"),
        ("1.95", "1.80", "asks for Rust"),
        ("debian:trixie", "debian", "no version"),
        ("[\"a\"]", "a", "signals"),
        ("COPY . .", "COPY absent .", "absent is not there"),
        (" --locked", "", "--locked"),
        ("RUN cargo", "RUM cargo", "RUM"),
        ("ENTRYPOINT [\"a\"]", "RUN apt-get update && apt-get install -y x", "removal"),
    ] {
        let text = sound.replacen(from, to, 1);
        assert!(faults(&text, "1.95").iter().any(|f| f.contains(why)), "{text}: {:?}", faults(&text, "1.95"));
    }
}
