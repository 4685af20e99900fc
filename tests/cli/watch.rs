//! `hyperfold watch` and `hyperfold report --serve`: a run and its report from another terminal.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::support::program::{Folder, command};

const SWEEP: &str = "name = \"rings\"\n[base.cluster]\ngpus = 8\ngpus_per_server = 1\n[base.workload]\nkind = \"traffic\"\npattern = \"ring\"\nbytes = 20000\n\
                     [axes]\n\"transport.cc\" = [\"hpcc\", \"dcqcn\", \"none\"]\n";

fn run() -> Folder {
    let folder = Folder::new(&[("s.toml", SWEEP)]);
    let ran = folder.run(&["run", "s.toml", "--out", "o", "--engine", "cpu", "--quiet"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    folder
}

/// Ends with the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Folder, args: &[&str]) -> Background {
    Background(command(folder.path(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn the_state_of_a_run_is_told_from_its_folder() {
    let folder = run();
    for args in [&["watch", "o"][..], &["watch", "o", "--once"]] {
        let ran = folder.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines[0], "rings in o: complete, engine cpu");
        assert_eq!(lines[1], format!("  [{}] 3 of 3 experiments", "#".repeat(30)));
        assert_eq!(lines[2..4], ["  ok  oom  failed  running  waiting", "   3    0       0        0        0"]);
        assert!(lines[4].contains(" elapsed") && !lines[4].contains("left"), "{}", ran.stdout);
        assert!(lines[5].starts_with("  best: experiment "), "{}", ran.stdout);
    }
    for (manifest, told) in
        [(Some("{"), "o/manifest.json: not a manifest of this version ("), (None, "it has no manifest.json")]
    {
        match manifest {
            Some(text) => folder.write("o/manifest.json", text),
            None => fs::remove_file(folder.file("o/manifest.json")).unwrap(),
        }
        let ran = folder.run(&["watch", "o", "--once"]);
        assert!(ran.stdout.contains("nothing is ranked: o") && ran.stdout.contains(told), "{}", ran.stdout);
        let report = folder.run(&["report", "o"]).stderr;
        assert!(report.contains(told) && report.matches("EOF").count() <= 1, "{report}");
    }
    let absent = folder.run(&["watch", "absent", "--once"]);
    assert!(absent.code == 2 && absent.stderr.contains("absent: there is no such folder;"), "{}", absent.stderr);
}

#[test]
fn a_folder_that_is_not_there_is_not_waited_for_for_long() {
    let folder = Folder::new(&[]);
    let begin = Instant::now();
    let absent = folder.run(&["watch", "absent"]);
    assert!(absent.code == 2 && absent.stderr.contains("absent: there is no such folder;"), "{}", absent.stderr);
    let waits = "absent: there is no such folder yet; waiting for 10.0 s at most";
    assert!(absent.stderr.starts_with(waits), "{}", absent.stderr);
    assert!((Duration::from_secs(10)..Duration::from_secs(50)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}

#[test]
fn a_run_is_followed_to_its_end() {
    let folder = run();
    // A run as another machine writes it: its log grows, and nobody here holds the journal.
    let journal = OpenOptions::new().read(true).append(true).open(folder.file("o/journal.bin")).unwrap();
    journal.lock().unwrap();
    let begin = "{\"event\":\"run_started\",\"t_s\":0.0,\"name\":\"other \\u001b[2J\",\"selected\":3,\"known\":0,\"engine\":\"gpu\"}\n\
                 {\"event\":\"started\",\"t_s\":0.1,\"exp_id\":0}\n{\"event\":\"started\",\"t_s\":0.1,\"exp_id\":1}\n\
                 {\"event\":\"finished\",\"t_s\":1.0,\"exp_id\":0,\"status\":\"failed\"}\n";
    fs::write(folder.file("o/events.jsonl"), begin).unwrap();
    let once = folder.run(&["watch", "o", "--once"]).stdout;
    assert!(once.starts_with("other \\u{1b}[2J in o: running, engine gpu\n"), "{once}");
    assert!(once.contains("\n   0    0       1        1        1\n") && once.contains(" elapsed, "), "{once}");
    assert!(once.contains("experiment 0 failed last"), "{once}");
    let mut watch = start(&folder, &["watch", "o"]);
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.starts_with("1 of 3 experiments, 1 running, 1 failed, 1.0 s elapsed, 1.0 experiments a second"),
        "{first}"
    );
    let mut log = OpenOptions::new().append(true).open(folder.file("o/events.jsonl")).unwrap();
    writeln!(log, "{{\"event\":\"run_ended\",\"t_s\":3.0,\"outcome\":\"interrupted\"}}").unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().any(|l| l.ends_with("in o: interrupted, engine gpu")), "{rest:?}");
    assert_eq!(watch.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_that_was_killed_is_not_watched_for_ever() {
    let folder = run();
    let begun =
        "{\"event\":\"run_started\",\"t_s\":0.0,\"name\":\"rings\",\"selected\":3,\"known\":0,\"engine\":\"cpu\"}\n";
    fs::write(folder.file("o/events.jsonl"), begun).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    for file in ["o/events.jsonl", "o/journal.bin"] {
        OpenOptions::new().append(true).open(folder.file(file)).unwrap().set_modified(long_ago).unwrap();
    }
    let once = folder.run(&["watch", "o", "--once"]);
    assert!(
        once.code == 0 && once.stdout.contains("in o: silent for 1 h 00 min, and nobody here holds its journal"),
        "{}",
        once.stdout
    );
    let ran = folder.run(&["watch", "o"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("o: the run has not ended") && ran.stderr.contains("--out o --resume"),
        "{}",
        ran.stderr
    );
}

/// What a server answers to the bytes of a request.
fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn the_report_is_served_to_this_machine_alone() {
    let folder = run();
    let mut server = start(&folder, &["report", "o", "--serve"]);
    let mut lines = BufReader::new(server.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "report: o/report.html");
    let said = lines.next().unwrap().unwrap();
    let url = said.strip_prefix("serving it at http://127.0.0.1:").and_then(|s| s.strip_suffix("/ until Ctrl-C"));
    let port: u16 = url.and_then(|p| p.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    // One that says nothing does not keep others waiting.
    let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let begin = Instant::now();
    let page = ask(port, &format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
    assert!(begin.elapsed() < Duration::from_secs(8));
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Type: text/html; charset=utf-8"),
        "{head}"
    );
    assert_eq!(body, folder.text("o/report.html"));
    assert_eq!(
        ask(port, &format!("HEAD / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).split_once("\r\n\r\n").unwrap().1,
        ""
    );
    for (path, host, status) in [
        ("/", "evil.example", "421"),
        ("/", &format!("evil.example:{port}"), "421"),
        ("/results.csv", &format!("127.0.0.1:{port}"), "404"),
        ("/../s.toml", &format!("127.0.0.1:{port}"), "404"),
        ("//etc/passwd", &format!("127.0.0.1:{port}"), "404"),
    ] {
        let answer = ask(port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {host}: {answer}");
        assert!(!answer.contains("<html"), "{answer}");
    }
    // The page is in memory: what is done to the file does not matter.
    fs::remove_file(folder.file("o/report.html")).unwrap();
    assert!(ask(port, &format!("GET /report.html HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).ends_with(body));
    let taken = folder.run(&["report", "o", "--serve", &port.to_string()]);
    assert!(
        taken.code == 2 && taken.stderr.contains(&format!("--serve {port}: cannot listen on 127.0.0.1")),
        "{}",
        taken.stderr
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_server_listens_on_loopback_only() {
    let folder = run();
    let mut server = start(&folder, &["report", "o", "--serve"]);
    let said = BufReader::new(server.0.stdout.take().unwrap()).lines().nth(1).unwrap().unwrap();
    let port: u16 = said.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    let sockets =
        fs::read_to_string("/proc/net/tcp").unwrap() + &fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let listening: Vec<&str> = sockets
        .lines()
        .filter_map(|l| {
            let fields: Vec<&str> = l.split_whitespace().collect();
            (fields.get(3) == Some(&"0A") && fields[1].ends_with(&format!(":{port:04X}"))).then(|| fields[1])
        })
        .collect();
    assert_eq!(listening, [format!("0100007F:{port:04X}")]);
}

/// A terminal of `script` (util-linux): the table is drawn in place and left at the end.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_the_table_is_drawn_in_place() {
    let folder = run();
    let program = env!("CARGO_BIN_EXE_hyperfold");
    let Ok(output) = Command::new("script")
        .args(["-qec", &format!("{program} watch o"), "/dev/null"])
        .current_dir(folder.path())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
    else {
        return;
    };
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("rings in o: complete, engine cpu\r\n"), "{shown:?}");
}
