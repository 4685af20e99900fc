//! Reads which links and nodes an entry of `topology.outages` is about.
//!
//! Layer: spec. Names are not looked up here, because the network is not made yet.

/// What fails together, or has a rate together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailingPart {
    /// A node, with all its links.
    Node(String),
    /// The links between two nodes.
    Links {
        /// Name of one node.
        a: String,
        /// Name of the other node.
        b: String,
        /// Number of the link among those between the two nodes, from 1; `None`: all of them.
        number: Option<u32>,
    },
    /// A number of different links between switches, which the seed of the experiment draws.
    Random(u32),
    /// All links that packets cross; for a rate or a loss those to which no other entry gives one.
    All,
}

/// Reads the names of what fails or is slow.
pub(super) fn part(names: &[&str]) -> Result<FailingPart, String> {
    match *names {
        [] => Err("it names no link and no node".to_string()),
        ["random"] => Err("`random` needs a number of links, as in `random 3`".to_string()),
        ["random", count] => match count.parse() {
            Ok(count @ 1..=1_000_000) => Ok(FailingPart::Random(count)),
            _ => Err(format!("`{count}` is no number of links, from 1")),
        },
        ["all"] => Ok(FailingPart::All),
        [node] => Ok(FailingPart::Node(node.to_string())),
        [a, b] => {
            let (b, number) = match b.rsplit_once('#') {
                None => (b, None),
                Some((b, number)) => match number.parse() {
                    Ok(number @ 1..) => (b, Some(number)),
                    _ => return Err(format!("`{number}` is no number of a link, from 1")),
                },
            };
            Ok(FailingPart::Links { a: a.to_string(), b: b.to_string(), number })
        }
        _ => Err("it names more than two nodes".to_string()),
    }
}
