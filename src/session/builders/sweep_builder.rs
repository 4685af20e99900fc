//! Sweeps made in code.
//!
//! Layer: session. Writes the text of a sweep file and parses it, so that a sweep made in code and one in a file are the same.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hyperfold_config::keys::SweepKey;
use hyperfold_config::spec::PolicyRegistry;
use hyperfold_config::sweep::{self, SetOverrides, Sweep};

use crate::builders::flow_list::FlowList;
use crate::builders::program_builder::ProgramBuilder;
use crate::builders::topology_builder::TopologyBuilder;
use crate::error::SessionError;

/// A sweep under construction. Keys are those of sweep files, by their constants or by their dotted names.
///
/// ```
/// use hyperfold_config::keys::{self, Cc, WorkloadKind};
/// use hyperfold_session::SweepBuilder;
///
/// let typed = SweepBuilder::new("incast")
///     .set(keys::WORKLOAD_KIND, WorkloadKind::Traffic)
///     .set(keys::TOPOLOGY_LINK_GBPS, 400.0)
///     .axis(keys::TRANSPORT_CC, [Cc::Dcqcn, Cc::Hpcc]);
/// let by_names = SweepBuilder::new("incast")
///     .set("workload.kind", "traffic")
///     .set("topology.link_gbps", 400.0)
///     .axis("transport.cc", ["dcqcn", "hpcc"]);
/// assert_eq!(typed.to_toml(), by_names.to_toml());
/// ```
#[derive(Clone, Debug)]
pub struct SweepBuilder {
    name: String,
    seed: Option<i64>,
    base: Vec<(String, toml::Value)>,
    sweep: Vec<(&'static str, toml::Value)>,
    axes: Vec<(String, toml::Value)>,
    constraints: Vec<String>,
    /// Input files made in code, as (name, content).
    files: Vec<(&'static str, String)>,
    /// Policies that values may name beside the built-in ones.
    registry: PolicyRegistry,
}

impl SweepBuilder {
    /// Begins a sweep made in code.
    pub fn new(name: impl Into<String>) -> SweepBuilder {
        SweepBuilder::with_registry(name, PolicyRegistry::default())
    }

    /// Begins a sweep whose values may name policies of a registry.
    pub(crate) fn with_registry(name: impl Into<String>, registry: PolicyRegistry) -> SweepBuilder {
        SweepBuilder {
            name: name.into(),
            seed: None,
            base: Vec::new(),
            sweep: Vec::new(),
            axes: Vec::new(),
            constraints: Vec::new(),
            files: Vec::new(),
            registry,
        }
    }

    /// Sets a key of `[base]`. With a constant of `keys`, a value of a wrong type does not compile.
    pub fn set<V>(mut self, key: impl SweepKey<V>, value: V) -> SweepBuilder {
        self.base.push((key.name(), key.value(value)));
        self
    }

    /// Varies a key over values. The order of axes is that in which they are added.
    pub fn axis<V>(mut self, key: impl SweepKey<V>, values: impl IntoIterator<Item = V>) -> SweepBuilder {
        let values = values.into_iter().map(|value| key.value(value)).collect();
        self.axes.push((key.name(), toml::Value::Array(values)));
        self
    }

    /// Keeps only experiments for which a condition holds, such as `workload.tp * workload.pp == cluster.gpus`.
    pub fn constraint(mut self, condition: impl Into<String>) -> SweepBuilder {
        self.constraints.push(condition.into());
        self
    }

    /// Sets the seed from which all random choices are derived.
    pub fn seed(mut self, seed: u32) -> SweepBuilder {
        self.seed = Some(i64::from(seed));
        self
    }

    /// Sets the number of repeats of every configuration, with different seeds.
    pub fn replicas(mut self, replicas: u32) -> SweepBuilder {
        self.sweep.push(("replicas", replicas.into()));
        self
    }

    /// Sets how experiments are made from axes: `grid` (the default), `zip`, `random`, `lhs` or `optimize`.
    pub fn method(mut self, method: &str) -> SweepBuilder {
        self.sweep.push(("method", method.into()));
        self
    }

    /// Sets the number of experiments that `random`, `lhs` and `optimize` make.
    pub fn samples(mut self, samples: u32) -> SweepBuilder {
        self.sweep.push(("samples", samples.into()));
        self
    }

    /// Uses this network.
    pub fn topology(mut self, topology: &TopologyBuilder) -> SweepBuilder {
        self.files.push(("topology.txt", topology.to_text()));
        self.set("topology.kind", "file").set("topology.path", "topology.txt")
    }

    /// Uses this program.
    pub fn program(mut self, program: &ProgramBuilder) -> SweepBuilder {
        self.files.push(("program.toml", program.to_text()));
        self.set("workload.kind", "dag").set("workload.path", "program.toml")
    }

    /// Uses these flows, on their own routes if they have any.
    pub fn flows(mut self, flows: &FlowList) -> SweepBuilder {
        self.files.push(("flows.txt", flows.to_text()));
        let routes = flows.routes_text();
        let with_flows =
            self.set("workload.kind", "flows").set("workload.path", "flows.txt").set("workload.start_unit", "ns");
        match routes {
            None => with_flows,
            Some(text) => {
                let mut with_routes = with_flows.set("routing.policy", "file").set("routing.path", "routes.txt");
                with_routes.files.push(("routes.txt", text));
                with_routes
            }
        }
    }

    /// Returns the sweep as the text of a file. Texts and numbers are written as in TOML.
    pub fn to_toml(&self) -> String {
        let mut out = format!("name = {}\n", toml::Value::from(self.name.as_str()));
        let mut line = |text: String| writeln!(out, "{text}").expect("writing to a string cannot fail");
        if let Some(seed) = self.seed {
            line(format!("seed = {seed}"));
        }
        line("\n[base]".into());
        self.base.iter().for_each(|(key, value)| line(format!("{key} = {value}")));
        if !self.sweep.is_empty() {
            line("\n[sweep]".into());
            self.sweep.iter().for_each(|(key, value)| line(format!("{key} = {value}")));
        }
        if !self.axes.is_empty() {
            line("\n[axes]".into());
            self.axes.iter().for_each(|(key, values)| line(format!("\"{key}\" = {values}")));
        }
        for condition in &self.constraints {
            line(format!("\n[[constraints]]\nwhere = {}", toml::Value::from(condition.as_str())));
        }
        out
    }

    /// Expands and checks the sweep. Paths in it are relative to the current folder.
    ///
    /// # Errors
    /// The sweep is wrong, as for a file; or it has inputs made in code, which [`SweepBuilder::build_in`] accepts.
    pub fn build(&self) -> Result<Sweep, SessionError> {
        if let Some((name, _)) = self.files.first() {
            return Err(SessionError::Input(format!(
                "sweep `{}`: {name} is made in code; use build_in, which writes it to a folder",
                self.name
            )));
        }
        self.parse(Path::new("sweep.toml"))
    }

    /// Writes `sweep.toml` and the inputs made in code into a folder, which is created if it does not exist, and expands the sweep. The program can run the
    /// same file, and a folder of its results can be traced as long as these files exist.
    ///
    /// A file cannot be written, or the sweep is wrong.
    pub fn build_in(&self, folder: impl AsRef<Path>) -> Result<Sweep, SessionError> {
        let folder = folder.as_ref();
        let failed = |path: PathBuf| move |source| SessionError::Inputs { path, source };
        std::fs::create_dir_all(folder).map_err(failed(folder.into()))?;
        let path = folder.join("sweep.toml");
        let text = self.to_toml();
        for (name, text) in self.files.iter().chain([&("sweep.toml", text)]) {
            let file = folder.join(name);
            std::fs::write(&file, text).map_err(failed(file.clone()))?;
        }
        self.parse(&path)
    }

    fn parse(&self, path: &Path) -> Result<Sweep, SessionError> {
        Ok(sweep::parse_with(&self.to_toml(), path, &SetOverrides::default(), &self.registry)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builder_writes_what_a_file_says() {
        let text = SweepBuilder::new("a \"b\"")
            .seed(7)
            .set("cluster.gpus", 16)
            .set("transport.hpcc.eta", 0.9)
            .replicas(2)
            .axis("transport.cc", ["dcqcn", "hpcc"])
            .axis("cluster.nics_per_server", [4, 8])
            .constraint("cluster.gpus > 1")
            .to_toml();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["name"].as_str(), Some("a \"b\""));
        assert_eq!(table["base"]["transport"]["hpcc"]["eta"].as_float(), Some(0.9));
        assert_eq!(table["axes"]["transport.cc"].as_array().map(Vec::len), Some(2));
        assert!(text.find("transport.cc").unwrap() < text.find("nics_per_server").unwrap(), "axes keep their order");
        assert_eq!(table["constraints"][0]["where"].as_str(), Some("cluster.gpus > 1"));
    }

    #[test]
    fn inputs_made_in_code_need_a_folder() {
        let mut net = TopologyBuilder::new();
        let (a, b) = (net.host(), net.host());
        net.link(a, b, 100, 1000);
        let error = SweepBuilder::new("x").topology(&net).build().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("build_in"), "{error}");
    }
}
