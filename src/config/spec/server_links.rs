//! Decides what joins the GPUs of one server: what was written, else the named server, else the GPU's own table. If none of them says it, the configuration is
//! refused.
//!
//! Layer: spec. `host` reads files that describe a server or a GPU.

use super::applies_when::{generated, job_mode, measured_iterations};
use super::error::Conflict;
use super::gpu_links::{GpuLinks, LinkKind, LinksOfGpu, links_of};
use super::key_id::KeyId;
use super::servers::{find_server, servers_of_gpu};
use super::value::{Value, Values};
use hyperfold_base::printable::shortened;

/// Whether a server is named, or a file in NCCL's form describes one.
fn has_server(v: &Values) -> bool {
    find_server(v.text(KeyId::Server)).is_some() || has_server_file(v)
}

/// Whether a file in NCCL's form describes the servers.
pub(super) fn has_server_file(v: &Values) -> bool {
    v.has(KeyId::ServerXml) || v.has(KeyId::NcclTopoFile)
}

/// Returns the links in the GPU's own table, if no server is described.
pub(super) fn own_links(v: &Values) -> Option<GpuLinks> {
    match links_of(v.text(KeyId::Gpu)) {
        Ok(LinksOfGpu::Known(links)) if !has_server(v) => Some(links),
        _ => None,
    }
}

/// Returns what joins GPUs of one server, if no server says it. If an NVLink rate was written for a GPU that has only PCIe, the GPUs are joined by switches.
pub(super) fn link_kind(v: &Values) -> LinkKind {
    match own_links(v) {
        Some(links) if generated(v) && !(links.kind == LinkKind::Pcie && v.given(KeyId::NvlinkGbps)) => links.kind,
        _ => LinkKind::NvSwitch,
    }
}

/// Refuses a configuration in which neither keys nor server nor GPU describe the links inside a server, if there are any.
pub(super) fn check_links(v: &Values) -> Result<(), Conflict> {
    let fail = |key: KeyId, why: String| Err(Conflict { job: None, key, why });
    let links = match links_of(v.text(KeyId::Gpu)) {
        Ok(links) => links,
        Err(why) => return fail(KeyId::Gpu, why),
    };
    let gpus = v.int(KeyId::GpusPerServer) as u32;
    let is_described = *v.get(KeyId::NvlinkGbps) != Value::Unset || has_server(v);
    if is_described || gpus < 2 || !generated(v) || (job_mode(v) && !measured_iterations(v)) {
        return Ok(());
    }
    let gpu = v.text(KeyId::Gpu);
    let give = "give the rate of one GPU to the others of its server in Gbit/s, one direction";
    match links {
        LinksOfGpu::Elsewhere => Ok(()),
        LinksOfGpu::ByServer(how) => {
            let named: Vec<String> = servers_of_gpu(gpu).map(|s| format!("cluster.server = \"{s}\"")).collect();
            let alternatives =
                if named.is_empty() { String::new() } else { format!(", or name {}", named.join(" or ")) };
            fail(
                KeyId::NvlinkGbps,
                format!("{gpu} does not say how GPUs of one server are joined ({how}); {give}{alternatives}"),
            )
        }
        LinksOfGpu::Unsaid => fail(
            KeyId::NvlinkGbps,
            format!(
                "cluster.gpu = {} does not say how GPUs of one server are joined; {give}, or in the table `like` (a GPU that says it) or links (nvswitch, mesh, pcie) and links_gbps, or name a cluster.server",
                shortened(gpu, 60)
            ),
        ),
        LinksOfGpu::Known(links) => fail(
            KeyId::GpusPerServer,
            format!(
                "the links of cluster.gpu = {gpu} are a mesh that joins at most {} GPUs; for more, cluster.nvlink_gbps or a cluster.server says what joins them",
                links.max_gpus().unwrap_or(gpus)
            ),
        ),
    }
}
