//! Models by name: the embedded presets, and users' own files.
//!
//! Layer: model. It opens no file; the caller passes the text.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::raw::RawModel;
use super::{Model, ModelError};
use hyperfold_base::nearest::nearest;

/// The preset files: (name, text).
const FAMILIES: [(&str, &str); 7] = [
    ("gpt3.toml", include_str!("../../../assets/models/gpt3.toml")),
    ("mcore.toml", include_str!("../../../assets/models/mcore.toml")),
    ("llama.toml", include_str!("../../../assets/models/llama.toml")),
    ("mpt.toml", include_str!("../../../assets/models/mpt.toml")),
    ("moe.toml", include_str!("../../../assets/models/moe.toml")),
    ("open.toml", include_str!("../../../assets/models/open.toml")),
    ("classic.toml", include_str!("../../../assets/models/classic.toml")),
];

/// A file of presets: keys that its transformers have in common, then the models.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    #[serde(default)]
    transformer: toml::Table,
    model: Vec<toml::Table>,
}

/// A preset and its other names.
struct Preset {
    model: Arc<Model>,
    aliases: Vec<String>,
}

fn presets() -> &'static [Preset] {
    static PRESETS: OnceLock<Vec<Preset>> = OnceLock::new();
    // The files are part of the program, and a test reads all of them.
    PRESETS.get_or_init(|| {
        FAMILIES.iter().flat_map(|(file, text)| family(text, file).expect("embedded presets are valid")).collect()
    })
}

fn family(text: &str, file: &str) -> Result<Vec<Preset>, ModelError> {
    let family: Family = toml::from_str(text).map_err(|e| syntax(&e, text, file))?;
    let mut presets = Vec::with_capacity(family.model.len());
    for mut table in family.model {
        if let Some(toml::Value::Table(own)) = table.get_mut("transformer") {
            for (key, value) in &family.transformer {
                own.entry(key.as_str()).or_insert_with(|| value.clone());
            }
        }
        let mut raw: RawModel = table.try_into().map_err(|e| syntax(&e, text, file))?;
        let aliases = std::mem::take(&mut raw.aliases);
        presets.push(Preset { model: Arc::new(raw.model(file)?), aliases });
    }
    Ok(presets)
}

/// An error of the TOML reader with file and line.
fn syntax(e: &toml::de::Error, text: &str, file: &str) -> ModelError {
    let place = match e.span() {
        Some(span) => format!("{file}:{}", 1 + text[..span.start.min(text.len())].matches('\n').count()),
        None => file.to_string(),
    };
    ModelError::Syntax { place, why: e.message().to_string() }
}

impl Model {
    /// The preset with this name or alias. The error names the most similar ones.
    pub fn named(name: &str) -> Result<Arc<Model>, ModelError> {
        let lower = name.to_ascii_lowercase();
        if let Some(p) = presets().iter().find(|p| p.model.name == lower || p.aliases.contains(&lower)) {
            return Ok(p.model.clone());
        }
        let all = || {
            presets()
                .iter()
                .flat_map(|p| std::iter::once(p.model.name.as_str()).chain(p.aliases.iter().map(String::as_str)))
        };
        let family = lower.split(['-', '_']).next().unwrap_or_default();
        let same_family: Vec<&str> = Model::names().filter(|n| !family.is_empty() && n.starts_with(family)).collect();
        let hint = match nearest(&lower, all()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if !same_family.is_empty() => format!("of that family there are {}", same_family.join(", ")),
            None => {
                format!("there are {}; or give the path of a .toml file", Model::names().collect::<Vec<_>>().join(", "))
            }
        };
        Err(ModelError::Unknown { name: name.to_string(), hint })
    }

    /// Names of all presets, without aliases, by family and size.
    pub fn names() -> impl Iterator<Item = &'static str> {
        presets().iter().map(|p| p.model.name.as_str())
    }

    /// Parses a user's model: `name`, `source` (optional) and one of `[transformer]`, `[dlrm]` and `[[blocks]]`, as in `assets/models`. `file` is the name used
    /// in messages.
    pub fn parse(text: &str, file: &str) -> Result<Model, ModelError> {
        let raw: RawModel = toml::from_str(text).map_err(|e| syntax(&e, text, file))?;
        raw.model(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_is_valid_and_no_name_is_given_twice() {
        let mut names = Vec::new();
        for (file, text) in FAMILIES {
            for preset in family(text, file).unwrap_or_else(|e| panic!("{e}")) {
                assert!(!preset.model.source.is_empty(), "{} has no source", preset.model.name);
                names.push(preset.model.name.clone());
                names.extend(preset.aliases);
            }
        }
        let n = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), n);
        assert!(
            names.iter().all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c)))
        );
    }

    #[test]
    fn aliases_and_capitals_find_the_same_model() {
        assert_eq!(Model::named("GPT3-18B").unwrap().name, "gpt3-18.4b");
    }

    #[test]
    fn unknown_names_are_answered_with_near_ones() {
        assert_eq!(
            Model::named("gtp3-13b").unwrap_err().to_string(),
            "`workload.model = \"gtp3-13b\"`: no model is called that; did you mean \"gpt3-13b\"?"
        );
        assert!(Model::named("llama-something").unwrap_err().to_string().contains("llama3-405b"));
        assert!(Model::named("???").unwrap_err().to_string().contains("deepseek-v3"));
    }

    #[test]
    fn a_users_transformer_needs_only_its_sizes() {
        let m = Model::parse(
            "name = \"mine\"\n[transformer]\nlayers = 4\nhidden = 64\nheads = 8\nvocab = 100\nseq = 32\n",
            "m.toml",
        )
        .unwrap();
        let t = m.transformer().unwrap();
        assert_eq!((t.ffn, t.kv_heads, t.head_dim, t.causal, t.gated), (256, 8, 8, true, false));
    }

    #[test]
    fn mistakes_name_file_key_and_what_would_be_right() {
        let text = |more: &str| {
            format!(
                "name = \"mine\"\n[transformer]\nlayers = 4\nhidden = 64\nheads = 8\nvocab = 100\nseq = 32\n{more}\n"
            )
        };
        let error = |more: &str| Model::parse(&text(more), "m.toml").unwrap_err().to_string();
        assert_eq!(error("kv_heads = 3"), "m.toml: `transformer.kv_heads = 3`: it must be a divisor of `heads = 8`");
        assert!(error("kvheads = 3").starts_with("m.toml:8: unknown field `kvheads`"), "{}", error("kvheads = 3"));
        assert_eq!(
            error("moe = { experts = 4, top_k = 5 }"),
            "m.toml: `transformer.moe.top_k = 5`: it must be from 1 to `experts = 4`"
        );
        assert!(error("gated = true").contains("`ffn`"));
        assert!(Model::parse("name = \"mine\"", "m.toml").unwrap_err().to_string().contains("exactly one of"));
        let block = "name = \"cnn\"\n[[blocks]]\nlayers = [{ name = \"a\", conv = [3, 8, 3, 10], linear = [3, 8] }]\n";
        assert!(Model::parse(block, "m.toml").unwrap_err().to_string().contains("blocks.layers = a"));
    }
}
