//! A headless Chromium, driven over its debugging pipe: two named pipes, messages in JSON that end with a zero byte, no listener anywhere.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long any one answer may take; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    session: String,
    next_id: u64,
    /// What the page complained about: exceptions, errors and warnings on the console, what the policy refused.
    pub complaints: Vec<String>,
    _profile: TempDir,
}

fn program() -> String {
    let named = std::env::var("HYPERFOLD_CHROMIUM").ok();
    let candidates = named.into_iter().chain(["chromium", "chromium-browser", "google-chrome"].map(String::from));
    let works = |p: &String| {
        Command::new(p).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|s| s.success())
    };
    candidates
        .into_iter()
        .find(works)
        .expect("no Chromium: run scripts/setup-chromium.sh first, or name one in HYPERFOLD_CHROMIUM")
}

impl Browser {
    /// Starts one.
    pub fn start() -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let (to, from) = (profile.path().join("to"), profile.path().join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().expect("mkfifo starts").success());
        // The shell opens the pipes as descriptors 3 and 4, which is where Chromium looks for them. Tests run as root in containers, where
        // its sandbox cannot; it opens files of these tests only, and resolves no name.
        let child = Command::new("sh")
            .arg("-c")
            .arg("to=$1; from=$2; shift 2; exec \"$@\" 3<\"$to\" 4>\"$from\"")
            .arg("sh")
            .args([&to, &from])
            .arg(program())
            .args([
                "--headless",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--no-proxy-server",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-dev-shm-usage",
                "--host-resolver-rules=MAP * ~NOTFOUND",
            ])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        // In the order in which the shell opens them; each waits for the other side.
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = File::open(from).unwrap();
        let (send, received) = channel();
        thread::spawn(move || {
            for message in BufReader::new(from).split(0) {
                let Ok(bytes) = message else { return };
                let Ok(value) = serde_json::from_slice(&bytes) else { return };
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            child,
            to,
            from: received,
            session: String::new(),
            next_id: 0,
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").into();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// One command's result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let mut message = json!({ "id": self.next_id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.receive();
            if answer["id"] == json!(self.next_id) {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let message = self.from.recv_timeout(PATIENCE).expect("the browser answers in time");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") => self.complaints.push(params["entry"]["text"].to_string()),
            Some("Runtime.consoleAPICalled") => self.complaints.push(params["args"].to_string()),
            Some("Page.javascriptDialogOpening") => {
                self.complaints.push(format!("a dialog opened: {}", params["message"]))
            }
            _ => {}
        }
        message
    }

    /// Opens a file, waits until it is loaded and drawn; how long that took.
    pub fn open(&mut self, page: &Path) -> Duration {
        let start = Instant::now();
        let url = format!("file://{}", page.canonicalize().unwrap().display());
        self.next_id += 1;
        let message = json!({ "id": self.next_id, "method": "Page.navigate", "params": { "url": url }, "sessionId": self.session });
        self.to.write_all(&[message.to_string().as_bytes(), &[0]].concat()).expect("the browser listens");
        while self.receive()["method"] != "Page.loadEventFired" {}
        // Two frames: what was loaded is laid out and painted.
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");
        start.elapsed()
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let result = self
            .call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// The value of an expression in the page that is text.
    pub fn text(&mut self, expression: &str) -> String {
        let value = self.eval(expression);
        value.as_str().unwrap_or_else(|| panic!("{expression} is {value}, not text")).into()
    }

    /// The page as PDF would be printed; its bytes in base 64.
    pub fn print(&mut self) -> String {
        self.call("Page.printToPDF", json!({ "printBackground": true, "preferCSSPageSize": true }))["data"]
            .as_str()
            .expect("a PDF")
            .into()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell has become the browser, so this ends it and what it started ends with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
