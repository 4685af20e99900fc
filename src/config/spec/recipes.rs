//! Recipes: what a release of a framework sets unless told otherwise, by name, from `assets/recipes`.
//!
//! Layer: spec. A recipe gives defaults of other keys of workloads and does nothing else. Keys that are written win.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use toml::de::DeValue;

use super::key_id::KeyId;
use super::key_path::WORKLOAD;
use super::lookup::find;
use super::value::{Value, Values};

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeFile {
    recipe: Vec<RecipeTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeTable {
    names: Vec<String>,
    /// Where the defaults are stated, for the page of presets.
    #[serde(rename = "source")]
    _source: String,
    defaults: toml::Table,
    #[serde(default)]
    by_precision: BTreeMap<String, toml::Table>,
}

/// A recipe with typed values.
#[derive(Debug)]
struct Recipe {
    names: Vec<String>,
    defaults: Vec<(KeyId, Value)>,
    /// Further defaults by `workload.precision`.
    by_precision: Vec<(String, Vec<(KeyId, Value)>)>,
}

impl Recipe {
    fn read(table: RecipeTable) -> Result<Recipe, String> {
        let by_precision = table.by_precision.iter().map(|(name, keys)| Ok((name.clone(), typed(keys)?)));
        Ok(Recipe {
            by_precision: by_precision.collect::<Result<_, String>>()?,
            defaults: typed(&table.defaults)?,
            names: table.names,
        })
    }
}

/// Values of keys of workloads, as the key table reads them.
fn typed(table: &toml::Table) -> Result<Vec<(KeyId, Value)>, String> {
    let typed = |(name, value): (&String, &toml::Value)| {
        let key = find(&format!("{WORKLOAD}{name}")).ok_or_else(|| format!("`{name}` is no key of workloads"))?;
        let text = value.to_string();
        let parsed = DeValue::parse(&text).map_err(|e| e.to_string())?;
        key.read(parsed.get_ref()).map(|value| (key.id, value)).map_err(|why| format!("`{name}`: {why}"))
    };
    table.iter().map(typed).collect()
}

fn recipes() -> &'static [Recipe] {
    static ASSET: OnceLock<Vec<Recipe>> = OnceLock::new();
    ASSET.get_or_init(|| {
        let file: RecipeFile = toml::from_str(include_str!("../../../assets/recipes/recipes.toml"))
            .expect("the asset is part of the program and a test reads it");
        let read = file.recipe.into_iter().map(Recipe::read);
        read.collect::<Result<_, _>>().expect("the asset is part of the program and a test reads it")
    })
}

/// Defaults of the recipe that is named, of keys that are not written. PRECONDITION: before derived defaults.
pub(super) fn recipe_defaults(v: &Values) -> Vec<(KeyId, Value)> {
    let name = v.text(KeyId::Recipe);
    let Some(recipe) = recipes().iter().find(|r| r.names.iter().any(|n| n == name)) else { return Vec::new() };
    let precision = match (v.text(KeyId::Precision), v.bool(KeyId::Fp8)) {
        ("", true) => "fp8",
        ("", false) => "bf16",
        (written, _) => written,
    };
    // Stages of ZeRO mean other things in other frameworks.
    let own = recipe.defaults.iter().find(|(key, _)| *key == KeyId::Framework).map(|(_, value)| value);
    let is_own_framework = !v.given(KeyId::Framework) || own == Some(v.get(KeyId::Framework));
    let further = recipe.by_precision.iter().filter(|(name, _)| name == precision).flat_map(|(_, keys)| keys);
    let counts = |key: KeyId| !v.given(key) && (key != KeyId::Zero || is_own_framework);
    recipe.defaults.iter().chain(further).filter(|(key, _)| counts(*key)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::recipe_names::RECIPES;
    use super::*;

    #[test]
    fn every_choice_is_in_the_asset_and_only_those() {
        let file: RecipeFile = toml::from_str(include_str!("../../../assets/recipes/recipes.toml")).unwrap();
        let read: Vec<Recipe> = file.recipe.into_iter().map(|r| Recipe::read(r).unwrap()).collect();
        let names: Vec<&str> = read.iter().flat_map(|r| &r.names).map(String::as_str).collect();
        assert_eq!(names, RECIPES);
    }

    /// Values of a recipe with some keys written.
    fn followed(written: &[(KeyId, Value)]) -> Values {
        let mut v = Values::layered(&[written]);
        v.derive();
        v
    }

    #[test]
    fn written_keys_win_and_precision_decides_bytes() {
        let model = (KeyId::WorkloadKind, Value::Choice("model"));
        let recipe = (KeyId::Recipe, Value::Choice("megatron-bridge-26.06"));
        let bytes = |more: &[(KeyId, Value)]| {
            let v = followed(&[&[model.clone(), recipe.clone()], more].concat());
            (v.int(KeyId::ParamBytes), v.int(KeyId::GradBytes), v.bool(KeyId::FusedLoss), v.int(KeyId::Zero))
        };
        assert_eq!(bytes(&[]), (2, 2, true, 1));
        assert_eq!(bytes(&[(KeyId::Fp8, Value::Bool(true))]), (1, 2, true, 1));
        assert_eq!(bytes(&[(KeyId::Precision, Value::Choice("mxfp8"))]), (1, 2, true, 1));
        assert_eq!(bytes(&[(KeyId::Precision, Value::Choice("nvfp4"))]), (2, 2, true, 1));
        assert_eq!(
            bytes(&[(KeyId::GradBytes, Value::Int(4)), (KeyId::FusedLoss, Value::Bool(false))]),
            (2, 4, false, 1)
        );
        // FSDP's stages are its own.
        assert_eq!(bytes(&[(KeyId::Framework, Value::Choice("fsdp"))]), (2, 2, true, 3));
        // Without a recipe, defaults are those of the key table.
        let v = followed(&[model]);
        assert_eq!((v.int(KeyId::GradBytes), v.int(KeyId::Zero), v.bool(KeyId::FusedLoss)), (4, 0, false));
    }

    #[test]
    fn a_recipe_brings_its_framework() {
        let keys = [(KeyId::WorkloadKind, Value::Choice("model")), (KeyId::Recipe, Value::Choice("torchtitan-2025"))];
        let v = followed(&keys);
        assert_eq!((v.text(KeyId::Framework), v.int(KeyId::Zero), v.bool(KeyId::Compile)), ("fsdp2", 3, true));
    }
}
