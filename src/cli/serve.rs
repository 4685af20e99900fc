//! `hyperfold report --serve`: serves one page over HTTP, on this machine only.
//!
//! Layer: cli. It answers GET requests for the page from memory. Nothing in a request is ever opened. A request for another host is refused; a stranger's
//! page whose host name leads to 127.0.0.1 would send such a request.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Largest size of a request's head in bytes. `PATIENCE` is the longest time for it: a browser on this machine sends it in one piece.
const LONGEST_HEAD: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest time of an answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of an answer that are written between two looks at the clock.
const PIECE: usize = 64 << 10;
/// Maximum number of open connections. A further one closes the oldest, so that silent clients cannot keep others from the page.
const MAX_CONNECTIONS: usize = 32;

/// A page with the socket that serves it.
pub(super) struct PageServer {
    listener: TcpListener,
    port: u16,
    page: Arc<[u8]>,
}

impl PageServer {
    /// Listens on 127.0.0.1. Port 0 stands for any free port.
    ///
    /// # Errors
    /// The port is in use, or must not be used.
    pub(super) fn new(page: Vec<u8>, port: u16) -> std::io::Result<PageServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let port = listener.local_addr()?.port();
        Ok(PageServer { listener, port, page: page.into() })
    }

    /// Address of the page for a browser.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Answers requests until the process ends.
    pub(super) fn run(self) -> std::io::Result<()> {
        let open = Arc::new(OpenConnections::default());
        loop {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                // The client has gone again, or file descriptors ran out for a moment.
                Err(_) => {
                    thread::sleep(Duration::from_millis(50));
                    continue;
                }
            };
            let Ok(number) = open.begin(&stream) else { continue };
            let (page, port, of_thread) = (Arc::clone(&self.page), self.port, Arc::clone(&open));
            let spawned = thread::Builder::new().name("page".into()).spawn(move || {
                // An error means that the client did not read the whole answer, and is ignored.
                let _ = serve(stream, &page, port);
                of_thread.end(number);
            });
            if spawned.is_err() {
                open.end(number);
            }
        }
    }
}

/// Open connections with their numbers, oldest first.
#[derive(Default)]
struct OpenConnections {
    list: Mutex<(u64, VecDeque<(u64, TcpStream)>)>,
}

impl OpenConnections {
    /// Adds a connection, and closes the oldest if there are too many. Returns its number.
    fn begin(&self, stream: &TcpStream) -> std::io::Result<u64> {
        let handle = stream.try_clone()?;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.0 += 1;
        let number = list.0;
        list.1.push_back((number, handle));
        if list.1.len() > MAX_CONNECTIONS
            && let Some((_, oldest)) = list.1.pop_front()
        {
            // The thread of that connection then sees that the other side has gone. Closing fails if it has gone already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        Ok(number)
    }

    fn end(&self, number: u64) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).1.retain(|(other, _)| *other != number);
    }
}

fn serve(mut stream: TcpStream, page: &[u8], port: u16) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(head) = head(&mut stream)? else { return Ok(()) };
    let answer = answer(&head, port);
    let body: &[u8] = match answer {
        Answer::Page { .. } => page,
        Answer::Refused(status) => status.as_bytes(),
    };
    let (status, kind) = match answer {
        Answer::Page { .. } => ("200 OK", "text/html; charset=utf-8"),
        Answer::Refused(status) => (status, "text/plain; charset=utf-8"),
    };
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}Connection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: frame-ancestors 'none'\r\n\r\n",
        body.len()
    )?;
    if !matches!(answer, Answer::Page { head_only: true }) {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut rest = body;
        while !rest.is_empty() && Instant::now() < deadline {
            let written = stream.write(&rest[..rest.len().min(PIECE)])?;
            rest = &rest[written..];
        }
    }
    stream.flush()
}

/// The head of a request, up to its empty line. `None`: it was too long, too slow, or broken off.
fn head(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    let mut looked = 0usize;
    while !head[looked.saturating_sub(3)..].windows(4).any(|w| w == b"\r\n\r\n") {
        looked = head.len();
        let left = deadline.saturating_duration_since(Instant::now());
        if head.len() > LONGEST_HEAD || left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Ok(None),
            n => head.extend_from_slice(&chunk[..n]),
        }
    }
    Ok(Some(head))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Page { head_only: bool },
    Refused(&'static str),
}

/// The answer to a request.
fn answer(head: &[u8], port: u16) -> Answer {
    const BAD: Answer = Answer::Refused("400 Bad Request");
    let Ok(text) = std::str::from_utf8(head) else { return BAD };
    let mut lines = text.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return BAD;
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return BAD;
    }
    let mut hosts = lines
        .take_while(|l| !l.is_empty())
        .filter_map(|l| l.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let (Some((_, host)), None) = (hosts.next(), hosts.next()) else { return BAD };
    if !is_here(host.trim(), port) {
        return Answer::Refused("421 Misdirected Request");
    }
    let path = target.split('?').next().unwrap_or_default();
    match (method, path) {
        ("GET" | "HEAD", "/" | "/report.html") => Answer::Page { head_only: method == "HEAD" },
        ("GET" | "HEAD", _) => Answer::Refused("404 Not Found"),
        _ => Answer::Refused("405 Method Not Allowed"),
    }
}

/// Whether a Host header names this machine's loopback and this port.
fn is_here(host: &str, port: u16) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        let rest = host.get(..name.len()).filter(|h| h.eq_ignore_ascii_case(name)).map(|_| &host[name.len()..]);
        rest.is_some_and(|rest| rest == format!(":{port}") || (rest.is_empty() && port == 80))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(port: u16) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        Ok(said)
    }

    #[test]
    fn clients_that_say_nothing_keep_nobody_from_the_page() {
        let server = PageServer::new(b"<p>here</p>".to_vec(), 0).unwrap();
        let port = server.port;
        thread::spawn(move || server.run());
        let silent: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS)
            .map(|n| {
                let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                // Every second one has begun to speak.
                if n % 2 == 0 {
                    stream.write_all(b"GET / HT").unwrap();
                }
                stream
            })
            .collect();
        let clock = Instant::now();
        for _ in 0..5 {
            let said = ask(port).unwrap();
            assert!(said.starts_with("HTTP/1.1 200 OK") && said.ends_with("<p>here</p>"), "{said}");
        }
        assert!(clock.elapsed() < PATIENCE, "others waited {:?}", clock.elapsed());
        // Clients that still say nothing are let go soon.
        let mut last = silent.last().expect("there are some");
        last.set_read_timeout(Some(3 * PATIENCE)).unwrap();
        assert_eq!(last.read(&mut [0; 8]).unwrap_or(0), 0);
        assert!(clock.elapsed() < 2 * PATIENCE, "{:?}", clock.elapsed());
    }

    #[test]
    fn only_the_page_is_answered_and_only_here() {
        let answer = |request: &str| answer(format!("{request}\r\n\r\n").as_bytes(), 8080);
        let page = Answer::Page { head_only: false };
        for sound in [
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080",
            "GET /report.html HTTP/1.1\r\nhost:LOCALHOST:8080\r\nA: b",
            "GET /?x=1 HTTP/1.0\r\nHost: [::1]:8080",
        ] {
            assert_eq!(answer(sound), page, "{sound}");
        }
        assert_eq!(answer("HEAD / HTTP/1.1\r\nHost: localhost:8080"), Answer::Page { head_only: true });
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: evil.example:8080", "421"),
            ("GET / HTTP/1.1\r\nHost: localhost.evil.example:8080", "421"),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:8081", "421"),
            ("GET / HTTP/1.1\r\nHost: localhost", "421"),
            ("GET / HTTP/1.1", "400"),
            ("GET / HTTP/1.1\r\nHost: localhost:8080\r\nHost: evil.example", "400"),
            ("GET /etc/passwd HTTP/1.1\r\nHost: localhost:8080", "404"),
            ("GET /../results.csv HTTP/1.1\r\nHost: localhost:8080", "404"),
            ("GET http://localhost:8080/ HTTP/1.1\r\nHost: localhost:8080", "404"),
            ("POST / HTTP/1.1\r\nHost: localhost:8080", "405"),
            ("GET /", "400"),
            ("GET / HTTP/2\r\nHost: localhost:8080", "400"),
        ] {
            let Answer::Refused(said) = answer(request) else { panic!("{request} is answered") };
            assert!(said.starts_with(status), "{request}: {said}");
        }
    }
}
