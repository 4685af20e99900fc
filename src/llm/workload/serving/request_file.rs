//! Reads traces of requests, as CSV with a header. The columns are documented in docs/reference/file-formats.md.

use std::collections::HashMap;
use std::path::Path;

use super::error::ServingError;
use super::request::{Prefix, ServingRequest};
use hyperfold_base::input;
use hyperfold_base::units::PS_PER_S;

/// Columns that a trace may have, both or none: the name of a text that requests have in common, and how much of a request it is.
const PREFIX_COLUMNS: [&str; 2] = ["prefix", "prefix_tokens"];
const COLUMNS: [&str; 3] = ["arrival_s", "prompt_tokens", "output_tokens"];
/// The latest arrival in seconds: eleven days. In picoseconds, many times that fit into 64 bits.
pub const MAX_S: f64 = 1e6;
const MAX_TOKENS: f64 = 1e7;
const MAX_REQUESTS: usize = 1_000_000;

/// The requests of a trace.
#[derive(Clone, Debug)]
pub struct RequestTrace {
    /// In the order of their arrival. Requests that arrive together are in the order of the file.
    pub requests: Vec<ServingRequest>,
    /// Line of the file for each request.
    pub lines: Vec<u64>,
}

/// Reads a trace.
///
/// # Errors
/// The file cannot be read, or one of its lines is wrong.
pub fn read_requests(path: &Path) -> Result<RequestTrace, ServingError> {
    let file = input::open_table(path).map_err(|source| ServingError::Unreadable { path: path.into(), source })?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(file);
    let line = |line: u64, why: String| ServingError::Line { path: path.into(), line, why };
    let malformed = |e: csv::Error| line(e.position().map_or(1, csv::Position::line), input::csv_problem(&e));
    let header = reader.headers().map_err(malformed)?.clone();
    if let Some(twice) = input::column_twice(&header) {
        return Err(line(1, twice));
    }
    let mut column_idx = [0; 3];
    for (place, name) in column_idx.iter_mut().zip(COLUMNS) {
        let missing = || line(1, format!("column `{name}` is missing; columns are {}", COLUMNS.join(", ")));
        *place = header.iter().position(|h| h == name).ok_or_else(missing)?;
    }
    let of_prefix = PREFIX_COLUMNS.map(|name| header.iter().position(|h| h == name));
    if of_prefix[0].is_some() != of_prefix[1].is_some() {
        return Err(line(1, format!("columns {} go together; one of them is missing", PREFIX_COLUMNS.join(" and "))));
    }
    let mut prefixes: HashMap<String, u32> = HashMap::new();
    let mut requests = Vec::new();
    for row in reader.records() {
        let row = row.map_err(malformed)?;
        let number = row.position().map_or(0, csv::Position::line);
        let number_in = |column: usize, name: &str, min: f64, max: f64, whole: bool| {
            let text = row.get(column).unwrap_or("");
            match text.parse::<f64>() {
                Ok(x) if (min..=max).contains(&x) && (!whole || x.fract() == 0.0) => Ok(x),
                _ => {
                    let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
                    let kind = if whole { "a whole number" } else { "a number" };
                    Err(line(number, format!("{name} is `{shown}`; it must be {kind} from {min} to {max}")))
                }
            }
        };
        let field = |i: usize, min: f64, max: f64, whole: bool| number_in(column_idx[i], COLUMNS[i], min, max, whole);
        if requests.len() >= MAX_REQUESTS {
            return Err(line(number, format!("a trace has at most {MAX_REQUESTS} requests")));
        }
        let request = ServingRequest {
            arrival_ps: (field(0, 0.0, MAX_S, false)? * PS_PER_S as f64 + 0.5) as u64,
            prompt: field(1, 1.0, MAX_TOKENS, true)? as u32,
            output: field(2, 1.0, MAX_TOKENS, true)? as u32,
            prefix: None,
        };
        let prefix = match of_prefix {
            [Some(name), Some(tokens)] if !row.get(name).unwrap_or("").is_empty() => {
                let whole = f64::from(request.prompt) + f64::from(request.output);
                let tokens = number_in(tokens, PREFIX_COLUMNS[1], 1.0, whole, true)? as u32;
                let next = prefixes.len() as u32;
                let id = *prefixes.entry(row.get(name).unwrap_or("").to_string()).or_insert(next);
                Some(Prefix { id, tokens })
            }
            [_, Some(tokens)] if !row.get(tokens).unwrap_or("").is_empty() => {
                return Err(line(
                    number,
                    "prefix_tokens without a prefix; name the text, or leave both empty".to_string(),
                ));
            }
            _ => None,
        };
        let request = ServingRequest { prefix, ..request };
        requests.push((request, number));
    }
    if requests.is_empty() {
        return Err(ServingError::NoRequests { path: path.into() });
    }
    requests.sort_by_key(|(r, _)| r.arrival_ps);
    let (requests, lines) = requests.into_iter().unzip();
    Ok(RequestTrace { requests, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RequestTrace, ServingError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        std::fs::write(&path, text).unwrap();
        read_requests(&path)
    }

    #[test]
    fn traces_are_read_in_the_order_of_arrival() {
        let trace = read("# seconds\nprompt_tokens, arrival_s, output_tokens\n7, 1.5, 3\n9, 0.25, 4\n").unwrap();
        let first = ServingRequest { arrival_ps: 250_000_000_000, prompt: 9, output: 4, prefix: None };
        assert_eq!(
            trace.requests,
            [first, ServingRequest { arrival_ps: 1_500_000_000_000, prompt: 7, output: 3, prefix: None }]
        );
        assert_eq!(trace.lines, [4, 3]);
        let text =
            "arrival_s,prompt_tokens,output_tokens,prefix,prefix_tokens\n0,9,4,b,5\n1,7,3,,\n2,8,1,a,9\n3,6,2,b,6\n";
        let prefixes: Vec<_> = read(text).unwrap().requests.iter().map(|r| r.prefix).collect();
        let text_of = |id: u32, tokens: u32| Some(Prefix { id, tokens });
        assert_eq!(prefixes, [text_of(0, 5), None, text_of(1, 9), text_of(0, 6)]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, why) in [
            ("arrival_s,prompt_tokens,output_tokens,arrival_s\n", "line 1: column `arrival_s` is there twice"),
            ("arrival_s,prompt_tokens,output_tokens\n0,5\n", "line 2: the line has 2 fields, the header has 3 fields"),
            ("arrival_s,prompt_tokens\n1,2\n", "line 1: column `output_tokens` is missing"),
            ("arrival_s,prompt_tokens,output_tokens\n0,5,5\n1,0,5\n", "line 3: prompt_tokens is `0`"),
            ("arrival_s,prompt_tokens,output_tokens\n1,2.5,5\n", "it must be a whole number from 1"),
            ("arrival_s,prompt_tokens,output_tokens\n-1,2,5\n", "arrival_s is `-1`"),
            ("arrival_s,prompt_tokens,output_tokens\nnan,2,5\n", "arrival_s is `nan`"),
            ("arrival_s,prompt_tokens,output_tokens\n", "it has no request"),
            ("arrival_s,prompt_tokens,output_tokens,prefix\n0,1,1,a\n", "columns prefix and prefix_tokens go together"),
            ("arrival_s,prompt_tokens,output_tokens,prefix,prefix_tokens\n0,5,5,a,11\n", "from 1 to 10"),
            (
                "arrival_s,prompt_tokens,output_tokens,prefix,prefix_tokens\n0,5,5,,3\n",
                "prefix_tokens without a prefix",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
