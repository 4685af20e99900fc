//! Gradient-boosted trees in XGBoost's JSON form. They are evaluated as XGBoost does: in f32, with trees added in order to the base score.
//!
//! Accepted models have booster `gbtree` with objective `reg:squarederror`, `reg:absoluteerror`, `reg:pseudohubererror` or `reg:linear` (whose prediction is
//! the sum itself), one output, numerical and categorical splits, and `feature_names` among [`FEATURES`]. All trees are used, even if early stopping recorded a
//! best iteration.

use serde_json::Value;

use super::{FEATURES, KernelFeatures};
use crate::compute::Error;

/// A node: a split or a leaf's value.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    Leaf(f32),
    Split { feature: usize, condition: Condition, default_left: bool, left: usize, right: usize },
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// Goes left if the value is below.
    Below(f32),
    /// Goes right if the value is one of these categories.
    Among(Vec<u32>),
}

/// A model of boosted trees.
#[derive(Clone, Debug, PartialEq)]
pub struct Trees {
    base: f32,
    trees: Vec<Vec<Node>>,
}

impl Trees {
    /// Parses a model as written by XGBoost's `save_model("name.json")`.
    pub fn parse(file: &str, text: &str) -> Result<Trees, Error> {
        parse(text).map_err(|message| Error::Trees { file: file.to_string(), message })
    }

    /// The model's prediction.
    pub fn predict(&self, features: &KernelFeatures) -> f32 {
        self.trees.iter().fold(self.base, |sum, tree| sum + leaf(tree, features))
    }
}

fn leaf(tree: &[Node], features: &KernelFeatures) -> f32 {
    let mut node = 0;
    loop {
        match &tree[node] {
            Node::Leaf(value) => return *value,
            Node::Split { feature, condition, default_left, left, right } => {
                let value = features.value(*feature);
                let go_left = match condition {
                    _ if value.is_nan() => *default_left,
                    Condition::Below(threshold) => value < *threshold,
                    // A value that is no category goes left, as in XGBoost.
                    Condition::Among(categories) => !(value >= 0.0 && categories.contains(&(value as u32))),
                };
                node = if go_left { *left } else { *right };
            }
        }
    }
}

/// A member of a JSON object. The path is also used in messages.
fn member<'v>(value: &'v Value, path: &str) -> Result<&'v Value, String> {
    path.split('/')
        .try_fold(value, |v, key| v.get(key))
        .ok_or_else(|| format!("lacks {path}; a model saved by XGBoost as JSON would be right"))
}

fn array<'v>(value: &'v Value, key: &str) -> Result<&'v Vec<Value>, String> {
    member(value, key)?.as_array().ok_or_else(|| format!("{key} is not an array"))
}

fn float(value: &Value) -> Option<f32> {
    value.as_f64().map(|v| v as f32)
}

/// Parses `"5E-1"`, and `"[5E-1]"` as versions from 3.1 on write it.
fn base_score(value: &Value) -> Result<f32, String> {
    let text = value.as_str().map(|s| s.trim_matches(['[', ']']).to_string()).unwrap_or_else(|| value.to_string());
    text.parse().map_err(|_| format!("base_score = {text:?}; one number would be right"))
}

fn parse(text: &str) -> Result<Trees, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| format!("is not JSON: {e}"))?;
    let learner = member(&json, "learner")?;
    let objective = member(learner, "objective/name")?.as_str().unwrap_or_default();
    if !["reg:squarederror", "reg:absoluteerror", "reg:pseudohubererror", "reg:linear"].contains(&objective) {
        return Err(format!("objective is {objective:?}; a regression such as reg:squarederror would be right"));
    }
    let booster = member(learner, "gradient_booster/name")?.as_str().unwrap_or_default();
    if booster != "gbtree" {
        return Err(format!("booster is {booster:?}; gbtree would be right"));
    }
    let outputs = learner.pointer("/learner_model_param/num_target").and_then(Value::as_str).unwrap_or("1");
    if outputs != "1" {
        return Err(format!("num_target = {outputs}; one output, the slowdown, would be right"));
    }
    let encoded =
        learner.pointer("/gradient_booster/model/cats/enc").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
    if encoded {
        return Err("it was trained on a data frame's categories, whose codes are its own; train on the numbers of the table of features instead".to_string());
    }
    let places = array(learner, "feature_names")?.iter().map(feature).collect::<Result<Vec<_>, _>>()?;
    if places.is_empty() {
        return Err(format!("feature_names is empty; train with names, which are among {}", FEATURES.join(", ")));
    }
    let base = base_score(member(learner, "learner_model_param/base_score")?)?;
    let trees = array(member(learner, "gradient_booster/model")?, "trees")?;
    let trees = trees
        .iter()
        .enumerate()
        .map(|(i, t)| tree(t, &places).map_err(|e| format!("tree {i}: {e}")))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Trees { base, trees })
}

fn feature(name: &Value) -> Result<usize, String> {
    let name = name.as_str().unwrap_or_default();
    FEATURES
        .iter()
        .position(|f| *f == name)
        .ok_or_else(|| format!("feature {name:?} is not known; known are {}", FEATURES.join(", ")))
}

fn tree(json: &Value, places: &[usize]) -> Result<Vec<Node>, String> {
    let (left, right) = (array(json, "left_children")?, array(json, "right_children")?);
    let (indices, conditions) = (array(json, "split_indices")?, array(json, "split_conditions")?);
    let defaults = array(json, "default_left")?;
    let n = left.len();
    if n == 0 || [right, indices, conditions, defaults].iter().any(|a| a.len() != n) {
        return Err("its arrays differ in length, or are empty".to_string());
    }
    let types = json.get("split_type").and_then(Value::as_array);
    let nodes = (0..n).map(|i| {
        let wrong = |problem: &str| format!("node {i}: {problem}");
        let child = |a: &[Value]| a[i].as_i64().ok_or_else(|| wrong("a child is not a number"));
        let (l, r) = (child(left)?, child(right)?);
        let value = float(&conditions[i]).ok_or_else(|| wrong("split_conditions is not a number"))?;
        if l == -1 && r == -1 {
            return Ok(Node::Leaf(value));
        }
        // Children must come after their parent, as XGBoost numbers them, so that every walk ends.
        let inside = |c: i64| {
            usize::try_from(c)
                .ok()
                .filter(|c| *c < n && *c > i)
                .ok_or_else(|| wrong("a child is not a later node of the tree"))
        };
        let place = indices[i]
            .as_u64()
            .and_then(|f| places.get(f as usize))
            .ok_or_else(|| wrong("split_indices is beyond feature_names"))?;
        let default_left = defaults[i]
            .as_bool()
            .or(defaults[i].as_u64().map(|d| d != 0))
            .ok_or_else(|| wrong("default_left is neither 0 nor 1"))?;
        let categorical = types.and_then(|t| t.get(i)).and_then(Value::as_u64) == Some(1);
        let condition = if categorical {
            Condition::Among(categories(json, i).ok_or_else(|| wrong("its categories are not there"))?)
        } else {
            Condition::Below(value)
        };
        Ok(Node::Split { feature: *place, condition, default_left, left: inside(l)?, right: inside(r)? })
    });
    nodes.collect()
}

/// Categories of a categorical node, which are a segment of the tree's `categories`.
fn categories(json: &Value, node: usize) -> Option<Vec<u32>> {
    let numbers = |key: &str| {
        json.get(key)?.as_array()?.iter().map(|v| v.as_u64().map(|v| v as usize)).collect::<Option<Vec<_>>>()
    };
    let segment = numbers("categories_nodes")?.iter().position(|n| *n == node)?;
    let first = *numbers("categories_segments")?.get(segment)?;
    let count = *numbers("categories_sizes")?.get(segment)?;
    Some(numbers("categories")?.get(first..first.checked_add(count)?)?.iter().map(|c| *c as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Slowdown;
    use super::*;
    use crate::collective::CollectiveOp;
    use crate::compute::{Dtype, Gpu, Kernel, Timing};

    /// Two trees: one on the collective's bytes, with a missing value going right, and one on the collective's kind as a category.
    const MODEL: &str = r#"{"learner": {"attributes": {}, "feature_names": ["bucket_size", "collective", "l2_hit_rate"], "feature_types": ["float", "c", "float"],
      "gradient_booster": {"model": {"gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "2"}, "tree_info": [0, 0], "trees": [
        {"left_children": [1, -1, 3, -1, -1], "right_children": [2, -1, 4, -1, -1], "split_indices": [0, 0, 2, 0, 0], "split_conditions": [1E6, 1E-1, 5E1, 2E-1, 3E-1],
         "default_left": [0, 0, 1, 0, 0], "split_type": [0, 0, 0, 0, 0], "categories": [], "categories_nodes": [], "categories_segments": [], "categories_sizes": []},
        {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [1, 0, 0], "split_conditions": [0, 4E-1, 5E-1],
         "default_left": [0, 0, 0], "split_type": [1, 0, 0], "categories": [0, 3], "categories_nodes": [0], "categories_segments": [0], "categories_sizes": [2]}
      ]}, "name": "gbtree"},
      "learner_model_param": {"base_score": "5E-1", "boost_from_average": "1", "num_class": "0", "num_feature": "3", "num_target": "1"},
      "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}}, "version": [2, 1, 0]}"#;

    fn features(op: CollectiveOp, bytes: u64) -> KernelFeatures {
        let timing = Timing::new(&Gpu::named("a800").unwrap(), None).unwrap();
        KernelFeatures::new(&timing, &Kernel::gemm(512, 512, 512, Dtype::Bf16), op, bytes)
    }

    #[test]
    fn predictions_are_sums_of_leaves_in_f32() {
        let trees = Trees::parse("m.json", MODEL).unwrap();
        // The value is below the threshold. All-gather is category 1, not in {0, 3}: left.
        assert_eq!(trees.predict(&features(CollectiveOp::AllGather, 999_999)), 0.5f32 + 0.1 + 0.4);
        // The value equals the threshold: right. The cache's hit rate is missing: left by default. All-reduce is category 0: right.
        let mut f = features(CollectiveOp::AllReduce, 1_000_000);
        assert_eq!(trees.predict(&f), 0.5f32 + 0.2 + 0.5);
        assert!(f.set("l2_hit_rate", 80.0) && !f.set("l3_hit_rate", 1.0));
        assert_eq!(trees.predict(&f), 0.5f32 + 0.3 + 0.5);
        f.set("bucket_size", f64::NAN);
        assert_eq!(trees.predict(&f), 0.5f32 + 0.3 + 0.5);
        let slowdown = Slowdown::Trees(trees);
        assert_eq!(slowdown.stretched_ps(1000, 1.0, &f), 1300);
    }

    #[test]
    fn newer_base_scores_are_read() {
        let text = MODEL.replace("\"5E-1\"", "\"[5E-1]\"");
        assert_eq!(Trees::parse("m.json", &text), Trees::parse("m.json", MODEL));
    }

    #[test]
    fn other_models_are_refused_with_the_reason() {
        for (from, to, word) in [
            ("reg:squarederror", "binary:logistic", "binary:logistic"),
            ("\"gbtree\"", "\"dart\"", "dart"),
            ("bucket_size", "bucket", "bucket_size"),
            ("[1, -1, 3, -1, -1]", "[0, -1, 3, -1, -1]", "tree 0: node 0"),
            ("[1, -1, 3, -1, -1]", "[1, -1, 9, -1, -1]", "tree 0: node 2"),
            ("\"split_indices\": [1, 0, 0]", "\"split_indices\": [7, 0, 0]", "tree 1"),
            ("\"categories_sizes\": [2]", "\"categories_sizes\": [3]", "categories"),
            ("\"num_target\": \"1\"", "\"num_target\": \"2\"", "num_target"),
            ("\"trees\"", "\"shrubs\"", "trees"),
            ("{\"learner\"", "{learner", "JSON"),
        ] {
            let error = Trees::parse("m.json", &MODEL.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains("m.json") && error.contains(word), "{to}: {error}");
        }
    }
}
