//! Reads `transport.classes`: traffic classes with queues and pauses of their own.
//!
//! Layer: spec. Levels and quanta are made of priorities and weights here.

use super::error::Conflict;
use super::key_id::KeyId;
use super::value::Values;
use hyperfold_network::transport::TrafficClass;

/// Dimensions of a program's messages, in the order of their numbers.
pub(super) const DIMENSIONS: [&str; 6] = ["tp", "pp", "dp", "ep", "cp", "other"];
/// Largest weight of a class (our choice: more would let one class send for longer than a queue lasts).
const MAX_WEIGHT: u32 = 100;
/// Highest priority: a frame has three bits for it.
const MAX_PRIORITY: u32 = 7;
/// An example for messages.
const EXAMPLE: &str = "write for example [\"small priority 1 for tp pp\", \"bulk weight 3\", \"rest lossy\"]";

/// A traffic class as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedClass {
    /// Its name.
    name: String,
    /// Classes with a higher priority are served first.
    priority: u32,
    /// Its share among classes of the same priority.
    weight: u32,
    /// Whether switches drop its packets although PFC is on.
    lossy: bool,
    /// Whether messages of a dimension belong to it, in the order of [`DIMENSIONS`].
    dimensions: [bool; 6],
}

/// The traffic classes of an experiment, in the order of their numbers; empty: there is one, which has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficClasses {
    classes: Vec<NamedClass>,
    /// Number of the class of what no class is `for`.
    default: u8,
}

impl TrafficClasses {
    /// Reads the classes of an experiment, and `workload.class`. Only packets have classes.
    pub(super) fn new(v: &Values) -> Result<TrafficClasses, Conflict> {
        let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
        let text = v.text(KeyId::Classes);
        if text.trim().is_empty() || !v.is(KeyId::Mode, "packet") {
            return Ok(TrafficClasses::default());
        }
        let mut classes: Vec<NamedClass> = Vec::new();
        for entry in text.split(',').map(str::trim) {
            let class = match class(entry) {
                Ok(class) => class,
                Err(why) => return fail(KeyId::Classes, format!("`{entry}`: {why}; {EXAMPLE}")),
            };
            if classes.iter().any(|other| other.name == class.name) {
                return fail(
                    KeyId::Classes,
                    format!("two classes are called `{}`: give each its own name", class.name),
                );
            }
            if let Some(dim) = (0..6).find(|&d| class.dimensions[d] && classes.iter().any(|c| c.dimensions[d])) {
                let why =
                    format!("`{entry}`: another class is for {} already; a dimension belongs to one", DIMENSIONS[dim]);
                return fail(KeyId::Classes, why);
            }
            classes.push(class);
        }
        if !(2..=TrafficClass::MOST).contains(&classes.len()) {
            let (n, most) = (classes.len(), TrafficClass::MOST);
            return fail(
                KeyId::Classes,
                format!("there are from 2 to {most} classes, not {n}; without the key there is one"),
            );
        }
        excluded(v)?;
        let name = v.text(KeyId::WorkloadClass);
        let default = match name {
            "" => Some(0),
            name => classes.iter().position(|class| class.name == name),
        };
        let Some(default) = default else {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            return fail(KeyId::WorkloadClass, format!("`{name}` is none of transport.classes: {}", names.join(", ")));
        };
        Ok(TrafficClasses { classes, default: default as u8 })
    }

    /// Whether switches drop packets of some class.
    pub fn has_lossy(&self) -> bool {
        self.classes.iter().any(|class| class.lossy)
    }

    /// Whether some class is `for` a dimension.
    pub fn has_dimensions(&self) -> bool {
        self.classes.iter().any(|class| class.dimensions.contains(&true))
    }

    /// Number of classes; 0: there is one, which has no name.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there is one class, which has no name.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Names of the classes whose numbers are not among `used`.
    pub fn unused(&self, used: &[u8]) -> Vec<&str> {
        let is_unused = |(number, _): &(u8, &NamedClass)| !used.contains(number);
        (0u8..).zip(&self.classes).filter(is_unused).map(|(_, class)| class.name.as_str()).collect()
    }

    /// Number of the class of messages of dimension number `dim`: tp, pp, dp, ep, cp, other.
    pub fn of_dimension(&self, dim: usize) -> u8 {
        self.classes.iter().position(|class| class.dimensions[dim]).map_or(self.default, |class| class as u8)
    }

    /// Number of the class of what belongs to no dimension: generated traffic.
    pub fn of_traffic(&self) -> u8 {
        self.default
    }

    /// The classes as the engine has them. `largest_packet`: bytes on the wire; `pfc`: whether switches pause anybody.
    pub(super) fn as_integers(&self, largest_packet: u32, pfc: bool) -> Vec<TrafficClass> {
        let mut priorities: Vec<u32> = self.classes.iter().map(|class| class.priority).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        priorities.dedup();
        let made = self.classes.iter().map(|class| {
            let same = self.classes.iter().filter(|other| other.priority == class.priority);
            let smallest = same.map(|other| other.weight).min().expect("the class itself is one of them");
            TrafficClass {
                level: priorities.iter().position(|p| *p == class.priority).expect("it is one of them") as u32,
                quantum_bytes: (largest_packet * class.weight / smallest).max(largest_packet),
                lossless: pfc && !class.lossy,
            }
        });
        made.collect()
    }
}

/// Checks that nothing is asked for that has no traffic classes.
fn excluded(v: &Values) -> Result<(), Conflict> {
    let fail = |key: KeyId, why: &str| Err(Conflict { job: None, key, why: why.to_string() });
    if v.is(KeyId::LossRecovery, "uec") {
        return fail(
            KeyId::Classes,
            "Ultra Ethernet has one class of data here: leave it out, or another transport.cc",
        );
    }
    if v.bool(KeyId::PortQueue) {
        return fail(
            KeyId::PortQueue,
            "classes have queues in a buffer that all ports share: false, or no transport.classes",
        );
    }
    let says_lossless = |entry: &str| entry.split_whitespace().skip(1).any(|word| word == "lossless");
    if !v.bool(KeyId::Pfc) && v.text(KeyId::Classes).split(',').any(says_lossless) {
        return fail(KeyId::Pfc, "a class of transport.classes is to be lossless: true, or leave `lossless` out");
    }
    Ok(())
}

/// Whether one of the classes in `text`, the value of `transport.classes`, says that it may lose packets.
pub(super) fn has_lossy(text: &str) -> bool {
    text.split(',').any(|entry| entry.split_whitespace().skip(1).any(|word| word == "lossy"))
}

/// Reads one class. The error says what is wrong with it.
fn class(text: &str) -> Result<NamedClass, String> {
    let mut words = text.split_whitespace();
    let name = words.next().ok_or("a class needs a name")?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(is_name) || name.len() > 32 {
        return Err(format!("`{name}` is no name: up to 32 letters, digits, - and _"));
    }
    let name = name.to_string();
    let mut read = NamedClass { name, priority: 0, weight: 1, lossy: false, dimensions: [false; 6] };
    let is_loss = |word: &&str| matches!(*word, "lossy" | "lossless");
    let said = |what: &str| text.split_whitespace().skip(1).filter(|word| *word == what).count();
    if ["priority", "weight", "for"].into_iter().any(|what| said(what) > 1)
        || text.split_whitespace().skip(1).filter(is_loss).count() > 1
    {
        return Err("it says one thing twice".to_string());
    }
    let number = |word: Option<&str>, what: &str, least: u32, most: u32| {
        let given = word.and_then(|word| word.parse().ok()).filter(|n| (least..=most).contains(n));
        given.ok_or_else(|| format!("`{what}` needs a whole number from {least} to {most}"))
    };
    while let Some(word) = words.next() {
        match word {
            "priority" => read.priority = number(words.next(), word, 0, MAX_PRIORITY)?,
            "weight" => read.weight = number(words.next(), word, 1, MAX_WEIGHT)?,
            "lossy" => read.lossy = true,
            "lossless" => read.lossy = false,
            "for" => {
                for dim in words.by_ref() {
                    let known = DIMENSIONS.iter().position(|known| *known == dim);
                    read.dimensions[known.ok_or_else(|| format!("`{dim}` is none of {}", DIMENSIONS.join(", ")))?] =
                        true;
                }
                if read.dimensions == [false; 6] {
                    return Err(format!("`for` needs some of {}", DIMENSIONS.join(", ")));
                }
            }
            _ => return Err(format!("`{word}` is none of priority, weight, lossy, lossless and, at the end, for")),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(entries: &[&str]) -> TrafficClasses {
        let classes = entries.iter().map(|entry| class(entry).expect("it is right")).collect();
        TrafficClasses { classes, default: 1 }
    }

    #[test]
    fn priorities_become_levels_and_weights_quanta() {
        let read = classes(&["a priority 2 for tp pp", "b weight 2 lossy", "c weight 5", "d priority 7"]);
        let integers = read.as_integers(1000, true);
        let told: Vec<_> = integers.iter().map(|c| (c.level, c.quantum_bytes, c.lossless)).collect();
        assert_eq!(told, [(1, 1000, true), (2, 1000, false), (2, 2500, true), (0, 1000, true)]);
        assert!(read.as_integers(1000, false).iter().all(|class| !class.lossless), "without PFC all are lossy");
        let class_of = |name| read.of_dimension(DIMENSIONS.iter().position(|dim| *dim == name).expect("a dimension"));
        assert!(has_lossy("a, b weight 2 lossy") && !has_lossy("lossy, b"));
        assert_eq!(
            [class_of("tp"), class_of("pp"), class_of("dp"), class_of("other"), read.of_traffic()],
            [0, 0, 1, 1, 1]
        );
    }

    #[test]
    fn what_is_no_class_is_refused() {
        for wrong in [
            "",
            "a!",
            "a priority",
            "a priority 8",
            "a weight 0",
            "a weight 1.5",
            "a fast",
            "a for",
            "a for xp",
            "a weight 1 weight 2",
            "a lossy lossless",
        ] {
            assert!(class(wrong).is_err(), "{wrong}");
        }
    }
}
