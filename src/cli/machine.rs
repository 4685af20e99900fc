//! Description of this machine: system, cores, memory, disk, and what a GPU needs to be used by Vulkan.
//!
//! Layer: cli. It only reads. A value that cannot be found out is `None` or left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;

use hyperfold_base::budget::{self, kib_of};

/// The machine as `hyperfold doctor` shows it. Sizes are in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MachineInfo {
    /// Name and version of the system.
    pub system: String,
    pub kernel: Option<String>,
    /// Processor architecture.
    pub arch: &'static str,
    /// Number of threads that this process may use.
    pub threads: u64,
    pub memory_bytes: Option<u64>,
    /// Memory that is still free, within the limit of a container.
    pub memory_free_bytes: Option<u64>,
    /// Free disk space in the current folder.
    pub disk_free_bytes: Option<u64>,
    /// Path of the Vulkan loader, which adapters need on Linux.
    pub vulkan_loader: Option<PathBuf>,
    /// Vulkan drivers that the loader would find.
    pub vulkan_drivers: Vec<PathBuf>,
    /// Whether the device files of an NVIDIA GPU exist.
    pub nvidia: bool,
    /// Whether `sbatch` exists, which `submit --slurm` needs.
    pub sbatch: bool,
}

/// Folders in which distributions keep shared libraries.
const LIBRARIES: [&str; 6] =
    ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib64", "/usr/local/lib"];
/// Folders in which drivers register with the loader.
const DRIVERS: [&str; 4] =
    ["/etc/vulkan/icd.d", "/usr/local/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/usr/share/vulkan/icd.d"];

impl MachineInfo {
    /// Describes this machine.
    pub fn look() -> MachineInfo {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let meminfo = read("/proc/meminfo");
        let memory_bytes = kib_of(&meminfo, "MemTotal");
        MachineInfo {
            system: value_of(&read("/etc/os-release"), "PRETTY_NAME").unwrap_or_else(|| std::env::consts::OS.into()),
            kernel: Some(read("/proc/sys/kernel/osrelease").trim().to_string()).filter(|k| !k.is_empty()),
            arch: std::env::consts::ARCH,
            threads: std::thread::available_parallelism().map_or(1, usize::from) as u64,
            memory_bytes,
            memory_free_bytes: budget::free_memory(),
            disk_free_bytes: disk_free(),
            vulkan_loader: LIBRARIES.iter().map(|dir| Path::new(dir).join("libvulkan.so.1")).find(|path| path.exists()),
            vulkan_drivers: vulkan_drivers(),
            nvidia: Path::new("/dev/nvidiactl").exists(),
            sbatch: on_path("sbatch"),
        }
    }
}

/// A value of `/etc/os-release`.
pub fn value_of(os_release: &str, key: &str) -> Option<String> {
    let line = os_release.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix('='));
    line.map(|value| value.trim_matches('"').to_string())
}

/// Free bytes in the current folder, from `df`, because the standard library has no function for it.
fn disk_free() -> Option<u64> {
    let output = Command::new("df").args(["-Pk", "."]).output().ok()?;
    free_of(&String::from_utf8_lossy(&output.stdout))
}

/// Free bytes from the output of `df`: the fourth column of the second line, in KiB. The name of a file system may have spaces, so columns are counted from
/// the first number.
fn free_of(df: &str) -> Option<u64> {
    let words: Vec<&str> = df.lines().nth(1)?.split_whitespace().collect();
    let first = words.iter().skip(1).position(|w| w.parse::<u64>().is_ok())? + 1;
    words.get(first + 2)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Drivers that the loader would find. A variable replaces the folders; the older variable counts only without the newer one.
fn vulkan_drivers() -> Vec<PathBuf> {
    match std::env::var_os("VK_DRIVER_FILES").or_else(|| std::env::var_os("VK_ICD_FILENAMES")) {
        Some(files) => std::env::split_paths(&files).filter(|path| path.exists()).collect(),
        None => DRIVERS.iter().flat_map(|dir| json_files(Path::new(dir))).collect(),
    }
}

fn json_files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "json"));
    files.sort();
    files
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_systems_say_is_understood() {
        let meminfo = "MemTotal:       24683660 kB\nMemFree:          1 kB\nMemAvailable:   15 kB\n";
        assert_eq!(
            (kib_of(meminfo, "MemTotal"), kib_of(meminfo, "MemAvailable"), kib_of("", "MemTotal")),
            (Some(24683660 << 10), Some(15 << 10), None)
        );
        let df = "Filesystem 1024-blocks Used Available Capacity Mounted on\n//nas/my disk 1000 300 700 30% /mnt\n";
        assert_eq!((free_of(df), free_of("Filesystem\n")), (Some(700 << 10), None));
        assert_eq!(value_of("ID=debian\nPRETTY_NAME=\"Debian 12\"\n", "PRETTY_NAME"), Some("Debian 12".into()));
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let machine = MachineInfo::look();
        assert!(machine.threads >= 1 && !machine.system.is_empty());
        if cfg!(target_os = "linux") {
            assert!(
                machine.memory_bytes.is_some_and(|b| b > 1 << 20) && machine.disk_free_bytes.is_some(),
                "{machine:?}"
            );
        }
    }
}
