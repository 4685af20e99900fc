//! The self-test that an adapter must pass before it is used.
//!
//! Layer: engine. Runs the kernels of `shaders/selftest.wgsl` and compares each with the same computation in Rust: long loops, 64-bit integers,
//! workgroup and storage barriers, atomics. Reports which of them failed and how. It tests drivers, not the model.

use std::time::{Duration, Instant};

use super::adapter::GpuError;
use super::device::GpuDevice;
use super::faults::COMPILE_TIMEOUT;

/// Steps of the long loop: more than 65,535, at which Mesa 22.3's software Vulkan silently stops.
const LONG_LOOP_STEPS: u32 = 200_000;
const LONG_LOOP_INVOCATIONS: u32 = 128;
const BARRIER_REPEATS: u32 = 300;
const BARRIER_GROUPS: u32 = 4;
/// Not a multiple of the workgroup's 64 threads, so that threads do unequal work between barriers.
const STORAGE_ROWS: u32 = 301;
const STORAGE_REPEATS: u32 = 600;
const STORAGE_GROUPS: u32 = 4;
const ATOMIC_GROUPS: u32 = 8;
const ATOMIC_ROUNDS: u32 = 50;
/// Counters of the atomics kernel: one count, sixteen sums, a maximum, a minimum, eight masks.
const ATOMIC_COUNTERS: usize = 27;

/// Outcome of one sub-test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubTest {
    /// The kernel's name in `shaders/selftest.wgsl`.
    pub name: &'static str,
    /// The fault that was found; `None` if it passed.
    pub failure: Option<String>,
}

/// Outcome of the whole self-test of one adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelfTest {
    /// Each sub-test, in the order in which they ran.
    pub sub_tests: Vec<SubTest>,
    /// Wall time; most of it goes into compiling the kernels.
    pub wall: Duration,
}

impl SelfTest {
    /// Whether every sub-test passed.
    pub fn passed(&self) -> bool {
        self.sub_tests.iter().all(|t| t.failure.is_none())
    }

    /// The sub-tests that failed, each with what was wrong. Empty if none did.
    pub fn failures(&self) -> String {
        let one = |t: &SubTest| t.failure.as_ref().map(|why| format!("{}: {why}", t.name));
        self.sub_tests.iter().filter_map(one).collect::<Vec<_>>().join("; ")
    }
}

/// One kernel with its input, its number of workgroups, and the expected output.
struct Case {
    name: &'static str,
    groups: u32,
    input: Vec<u32>,
    /// Expected words of `output`, from its start.
    output: Vec<u32>,
    /// Counters before the run, and the expected counters after it.
    counters: (Vec<u32>, Vec<u32>),
}

const SOURCE: &str = include_str!("../../../shaders/selftest.wgsl");

/// Runs every sub-test. If the device is lost midway, the remaining sub-tests fail for that reason.
pub fn run(gpu: &GpuDevice) -> SelfTest {
    run_source(gpu, SOURCE)
}

fn run_source(gpu: &GpuDevice, source: &str) -> SelfTest {
    let start = Instant::now();
    let module = gpu.device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("selftest"),
        source: wgpu::ShaderSource::Wgsl(source.into()),
    });
    let layout = bind_layout(&gpu.device);
    let sub_tests = cases()
        .iter()
        .map(|case| SubTest {
            name: case.name,
            failure: match run_case(gpu, &module, &layout, case) {
                Ok((output, counters)) => difference("output", &case.output, &output)
                    .or_else(|| difference("counter", &case.counters.1, &counters)),
                Err(error) => Some(error.to_string()),
            },
        })
        .collect();
    SelfTest { sub_tests, wall: start.elapsed() }
}

fn bind_layout(device: &wgpu::Device) -> wgpu::BindGroupLayout {
    let entry = |binding, read_only| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: wgpu::BufferBindingType::Storage { read_only },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some("selftest"),
        entries: &[entry(0, true), entry(1, false), entry(2, false)],
    })
}

/// Dispatches one kernel. Returns its output and its counters.
fn run_case(
    gpu: &GpuDevice,
    module: &wgpu::ShaderModule,
    layout: &wgpu::BindGroupLayout,
    case: &Case,
) -> Result<(Vec<u32>, Vec<u32>), GpuError> {
    gpu.check()?;
    let device = &gpu.device;
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(case.name),
        bind_group_layouts: &[Some(layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(case.name),
        layout: Some(&pipeline_layout),
        module,
        entry_point: Some(case.name),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    gpu.check()?;

    let buffer = |label, bytes: usize, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes as u64,
            usage,
            mapped_at_creation: false,
        })
    };
    let on_device = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let staging = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    // At least one word each: an empty binding is invalid.
    let (input_bytes, output_bytes) = (4 * case.input.len().max(1), 4 * case.output.len().max(1));
    let counter_bytes = 4 * ATOMIC_COUNTERS;
    let input = buffer("selftest input", input_bytes, on_device);
    let output = buffer("selftest output", output_bytes, on_device);
    let counters = buffer("selftest counters", counter_bytes, on_device);
    let output_back = buffer("selftest output staging", output_bytes, staging);
    let counters_back = buffer("selftest counters staging", counter_bytes, staging);
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some(case.name),
        layout,
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 2, resource: counters.as_entire_binding() },
        ],
    });
    let dispatch = |groups| {
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(case.name) });
        {
            let mut pass = encoder
                .begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some(case.name), timestamp_writes: None });
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            pass.dispatch_workgroups(groups, 1, 1);
        }
        encoder
    };
    // Buffers are zero at first, so this first dispatch takes no steps: drivers compile the rest of a kernel at its first run, which gets the longer
    // timeout.
    gpu.queue.submit([dispatch(1).finish()]);
    gpu.wait(COMPILE_TIMEOUT)?;
    gpu.queue.write_buffer(&input, 0, bytemuck::cast_slice(&case.input));
    gpu.queue.write_buffer(&output, 0, &vec![0; output_bytes]);
    gpu.queue.write_buffer(&counters, 0, bytemuck::cast_slice(&case.counters.0));

    let mut encoder = dispatch(case.groups);
    encoder.copy_buffer_to_buffer(&output, 0, &output_back, 0, output_bytes as u64);
    encoder.copy_buffer_to_buffer(&counters, 0, &counters_back, 0, counter_bytes as u64);
    gpu.queue.submit([encoder.finish()]);
    Ok((gpu.read_words(&output_back)?, gpu.read_words(&counters_back)?))
}

/// Describes the first word that differs from `expected`; `None` if none differs.
fn difference(what: &str, expected: &[u32], got: &[u32]) -> Option<String> {
    let idx = (0..expected.len()).find(|&i| got.get(i) != Some(&expected[i]))?;
    let wrong = (0..expected.len()).filter(|&i| got.get(i) != Some(&expected[i])).count();
    let shown = got.get(idx).map_or("nothing".to_string(), u32::to_string);
    Some(format!("{what} {idx} is {shown}, must be {} ({wrong} of {} words differ)", expected[idx], expected.len()))
}

fn lcg(x: u32) -> u32 {
    x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)
}

fn cases() -> Vec<Case> {
    vec![
        long_loops(),
        wide_integers(),
        barriers("barriers_64", 64),
        barriers("barriers_256", 256),
        storage_barriers(),
        atomics(),
    ]
}

/// A case that does not change the counters.
fn case(name: &'static str, groups: u32, input: Vec<u32>, output: Vec<u32>) -> Case {
    let counters = vec![0; ATOMIC_COUNTERS];
    Case { name, groups, input, output, counters: (counters.clone(), counters) }
}

fn long_loops() -> Case {
    let output = (0..LONG_LOOP_INVOCATIONS)
        .flat_map(|i| [LONG_LOOP_STEPS, (0..LONG_LOOP_STEPS).fold(i, |state, _| lcg(state))])
        .collect();
    case("long_loops", LONG_LOOP_INVOCATIONS / 64, vec![LONG_LOOP_STEPS], output)
}

/// Values near the limits of 64-bit arithmetic: carries between the halves, the sign bit, both ends.
fn wide_values() -> Vec<u64> {
    let mut values = vec![1, 2, 3, 0xffff, 0xffff_ffff, 1 << 32, (1 << 32) + 1, (1 << 53) + 1, i64::MAX as u64];
    values.extend([1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX, 1_000_000_000_000, 0x9e37_79b9_7f4a_7c15]);
    values
}

fn wide_integers() -> Case {
    let values = wide_values();
    let (mut input, mut output) = (Vec::new(), Vec::new());
    for &a in &values {
        for &b in &values {
            let split = |v: u64| [v as u32, (v >> 32) as u32];
            input.extend(split(a).into_iter().chain(split(b)));
            let shift = (b & 63) as u32;
            let results = [
                a.wrapping_mul(b),
                a / b,
                a % b,
                a << shift,
                a >> shift,
                a.wrapping_add(b),
                a.wrapping_sub(b),
                a.min(b),
            ];
            output.extend(results.into_iter().flat_map(split));
            output.push(u32::from(a < b) | u32::from(a >= b) << 1 | u32::from(a == b) << 2);
            output.push((a >> 63) as u32);
        }
    }
    let pairs = (values.len() * values.len()) as u32;
    case("wide_integers", pairs.div_ceil(64), input, output)
}

fn barriers(name: &'static str, width: u32) -> Case {
    let mut output = Vec::new();
    for group in 0..BARRIER_GROUPS {
        let mut lanes: Vec<u32> = (0..width).map(|thread| thread + 1000 * group).collect();
        for round in 0..BARRIER_REPEATS {
            lanes = (0..width).map(|thread| lcg(lanes[((thread + round + 1) % width) as usize]) ^ round).collect();
        }
        output.extend(lanes);
    }
    case(name, BARRIER_GROUPS, vec![BARRIER_REPEATS], output)
}

fn storage_barriers() -> Case {
    let mut output = Vec::new();
    for group in 0..STORAGE_GROUPS {
        let mut generations =
            [(0..STORAGE_ROWS).map(|row| row + 7777 * group).collect(), vec![0_u32; STORAGE_ROWS as usize]];
        for round in 0..STORAGE_REPEATS {
            let read = &generations[(round & 1) as usize];
            let value_at = |row: u32| read[(row % STORAGE_ROWS) as usize];
            let next = (0..STORAGE_ROWS)
                .map(|row| lcg(value_at(row + 1)).wrapping_add(value_at(row * 31 + round) >> 3))
                .collect();
            generations[((round & 1) ^ 1) as usize] = next;
        }
        output.extend(generations.concat());
    }
    case("storage_barriers", STORAGE_GROUPS, vec![STORAGE_REPEATS, STORAGE_ROWS], output)
}

fn atomics() -> Case {
    let mut before = vec![0_u32; ATOMIC_COUNTERS];
    before[18] = u32::MAX;
    let mut after = before.clone();
    for id in 0..ATOMIC_GROUPS * 256 {
        for k in 0..ATOMIC_ROUNDS {
            let value = lcg(lcg(id * 977 + k));
            after[0] += 1;
            let sum = &mut after[1 + (value % 16) as usize];
            *sum = sum.wrapping_add(value);
            after[17] = after[17].max(value);
            after[18] = after[18].min(value);
            after[19 + (id % 8) as usize] |= 1 << (value % 32);
        }
    }
    Case {
        name: "atomics",
        groups: ATOMIC_GROUPS,
        input: vec![ATOMIC_ROUNDS],
        output: Vec::new(),
        counters: (before, after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_stops_early_is_reported_with_both_values() {
        let expected = long_loops().output;
        let mut got = expected.clone();
        got[0] = 65_535;
        let told = difference("output", &expected, &got).expect("differs");
        assert_eq!(told, "output 0 is 65535, must be 200000 (1 of 256 words differ)");
        assert_eq!(difference("output", &expected, &expected), None);
        assert!(difference("output", &expected, &[]).expect("differs").contains("is nothing"));
    }

    #[test]
    fn failures_name_the_sub_test() {
        let test = SelfTest {
            sub_tests: vec![
                SubTest { name: "long_loops", failure: Some("stopped".into()) },
                SubTest { name: "atomics", failure: None },
            ],
            wall: Duration::ZERO,
        };
        assert!(!test.passed());
        assert_eq!(test.failures(), "long_loops: stopped");
    }

    #[test]
    fn every_case_is_a_kernel_of_the_shader() {
        let module = naga::front::wgsl::parse_str(SOURCE).expect("parses");
        let mut kernels: Vec<&str> = module.entry_points.iter().map(|e| e.name.as_str()).collect();
        let all = cases();
        let mut names: Vec<&str> = all.iter().map(|c| c.name).collect();
        kernels.sort_unstable();
        names.sort_unstable();
        assert_eq!(kernels, names);
    }

    /// Needs an adapter; `scripts/setup-vulkan.sh` installs one in software.
    #[test]
    fn a_driver_with_a_fault_fails_the_sub_test_for_it() {
        let gpu = crate::gpu::open::open(None, crate::gpu::SoftwarePolicy::IfNothingElse)
            .expect("an adapter passes; run scripts/setup-vulkan.sh");
        // Each fault is put into the kernels, as if the driver had compiled them so.
        let faults: [(&str, &str, &[&str]); 5] = [
            ("let steps = input[0];", "let steps = min(input[0], 65535u);", &["long_loops"]),
            ("store_u64(out + 2u, a / b);", "store_u64(out + 2u, u64(i64(a) / max(i64(b), 1li)));", &["wide_integers"]),
            ("workgroupBarrier();", "", &["barriers_64", "barriers_256"]),
            ("storageBarrier();", "", &["storage_barriers"]),
            (
                "atomicOr(&shared_counters[19u + (id.x % 8u)],",
                "atomicXor(&shared_counters[19u + (id.x % 8u)],",
                &["atomics"],
            ),
        ];
        for (right, wrong, expected) in faults {
            assert!(SOURCE.contains(right), "{right}");
            let test = run_source(&gpu, &SOURCE.replace(right, wrong));
            let failed: Vec<&str> = test.sub_tests.iter().filter(|t| t.failure.is_some()).map(|t| t.name).collect();
            assert_eq!(failed, expected, "{}", test.failures());
        }
        gpu.check().expect("faulty kernels are no fault of the device");
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_a_failure_and_no_panic() {
        let gpu = crate::gpu::open::open(None, crate::gpu::SoftwarePolicy::IfNothingElse)
            .expect("an adapter passes; run scripts/setup-vulkan.sh");
        let test = run_source(&gpu, "this is no WGSL");
        assert_eq!(test.sub_tests.iter().filter(|t| t.failure.is_some()).count(), test.sub_tests.len());
        assert!(test.failures().contains("reported an error"), "{}", test.failures());
        assert!(gpu.check().is_err() && !gpu.faults().is_empty());
    }
}
