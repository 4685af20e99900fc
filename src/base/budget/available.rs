//! How much memory this process can still get.
//!
//! Layer: budget. Reads what Linux reports. On other systems it knows nothing and takes [`UNKNOWN`].

use std::fs;

/// Bytes that are assumed if nothing is known.
const UNKNOWN: u64 = 8 << 30;

/// Returns the free memory in bytes, of the machine and within the limit of a container. It is `None` if the system does not report it.
pub fn free_memory() -> Option<u64> {
    let meminfo = read("/proc/meminfo");
    [kib_of(&meminfo, "MemAvailable"), cgroup_left()].into_iter().flatten().min()
}

/// Returns the bytes that this process should use at most: three quarters of the free memory, so that others and buffers keep some, and half of what `ulimit
/// -v` leaves, because address space is used up sooner than memory.
pub fn available() -> u64 {
    let free = free_memory().map(|bytes| bytes / 4 * 3);
    let address_space =
        address_space_left(&read("/proc/self/limits"), &read("/proc/self/statm")).map(|bytes| bytes / 2);
    [free, address_space].into_iter().flatten().min().unwrap_or(UNKNOWN)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns a row of `/proc/meminfo` in bytes.
pub fn kib_of(meminfo: &str, key: &str) -> Option<u64> {
    let row = meminfo.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    row.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the least that the process's control group or one above it leaves.
fn cgroup_left() -> Option<u64> {
    let own = read("/proc/self/cgroup");
    // Version 2 has one line, `0::/path`. Inside a container the path is `/`.
    let path = own.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("/").trim_matches('/').to_string();
    let mut groups = vec![String::new()];
    for name in path.split('/').filter(|name| !name.is_empty() && *name != "..") {
        groups.push(format!("{}/{name}", groups[groups.len() - 1]));
    }
    let left = |group: &String| {
        let read_file = |file: &str| read(&format!("/sys/fs/cgroup{group}/{file}"));
        limit_left(&read_file("memory.max"), &read_file("memory.current"))
    };
    groups.iter().filter_map(left).min()
}

/// Returns the bytes that are left below a limit, or `None` if there is no limit.
fn limit_left(max: &str, current: &str) -> Option<u64> {
    let (max, current): (u64, u64) = (max.trim().parse().ok()?, current.trim().parse().ok()?);
    Some(max.saturating_sub(current))
}

/// Returns the bytes of address space that are left below the soft limit of `ulimit -v`, or `None` if there is no limit.
fn address_space_left(limits: &str, statm: &str) -> Option<u64> {
    let row = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    let limit: u64 = row.split_whitespace().next()?.parse().ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages.saturating_mul(4096)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_meminfo_are_read() {
        let meminfo = "MemTotal:       24683660 kB\nMemFree:          1 kB\nMemAvailable:   15 kB\n";
        assert_eq!(kib_of(meminfo, "MemTotal"), Some(24_683_660 << 10));
        assert_eq!(kib_of(meminfo, "MemAvailable"), Some(15 << 10));
        assert_eq!(kib_of("", "MemTotal"), None);
    }

    #[test]
    fn a_container_and_ulimit_count() {
        assert_eq!(limit_left("4096\n", "96\n"), Some(4000));
        assert_eq!(limit_left("max\n", "96\n"), None);
        let limits = "Limit   Soft Limit  Hard Limit  Units\nMax address space         2097152000           unlimited            bytes     \n";
        assert_eq!(address_space_left(limits, "1000 200 30"), Some(2_097_152_000 - 4_096_000));
        let none = "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(address_space_left(none, "1000 200 30"), None);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available() > 1 << 20);
    }
}
