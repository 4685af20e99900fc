//! The kernels' 64-bit helpers against Rust's, on edges and thousands of drawn values.

use crate::support::gpu;
use hyperfold_engine::cpu::math;
use hyperfold_engine::gpu::faults::Faults;
use hyperfold_engine::gpu::source;

/// Words of input and of output a case: a, b, c, shift; the four results.
const KERNEL: &str = "
@group(0) @binding(0) var<storage, read> input: array<u64>;
@group(0) @binding(1) var<storage, read_write> output: array<u64>;

@compute @workgroup_size(64)
fn helpers(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    if i >= arrayLength(&input) / 4u { return; }
    let a = input[4u * i];
    let b = input[4u * i + 1u];
    let c = input[4u * i + 2u];
    let s = u32(input[4u * i + 3u]);
    output[4u * i] = mul_div(a, b, c);
    output[4u * i + 1u] = mul_shr(a, b, s);
    output[4u * i + 2u] = tx_time(u32(a & 0xfffflu), 1lu + (b & 0x7fffffffffflu), select(1000lu, 1lu, (c & 1lu) == 0lu));
    output[4u * i + 3u] = u64(hash32(u32(a & LOW_32), u32(b & LOW_32), u32(c & LOW_32), s)) | (u64(sat(a) ^ u32(isqrt(b))) << 32u);
}
";

fn expected(case: &[u64; 4]) -> [u64; 4] {
    let [a, b, c, s] = *case;
    let clock = if c & 1 == 0 { 1 } else { 1000 };
    let hash = math::hash32(a as u32, b as u32, c as u32, s as u32);
    [
        math::mul_div(a, b, c),
        math::mul_shr(a, b, s as u32),
        math::tx_time((a & 0xffff) as u32, 1 + (b & 0x7ff_ffff_ffff), clock),
        u64::from(hash) | u64::from(math::sat(a) ^ math::isqrt(b) as u32) << 32,
    ]
}

/// Edges against each other, and drawn values of every width.
fn cases() -> Vec<[u64; 4]> {
    let edges = [
        0,
        1,
        2,
        3,
        0xffff_ffff,
        1 << 32,
        (1 << 32) + 1,
        0xffff_ffff_0000_0000,
        1 << 63,
        (1 << 63) - 1,
        u64::MAX - 1,
        u64::MAX,
    ];
    let mut cases = Vec::new();
    for &a in &edges {
        for &b in &edges {
            for (k, &c) in edges.iter().enumerate() {
                cases.push([a, b, c, [0, 1, 31, 32, 33, 63, 64, 65, 96, 127, 48, 40][k]]);
            }
        }
    }
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let mut narrow = || {
            let width = draw() % 64;
            draw() >> width
        };
        cases.push([narrow(), narrow(), narrow(), 0]);
        let last = cases.len() - 1;
        cases[last][3] = draw() % 128;
    }
    cases
}

#[test]
fn wide_helpers_agree_with_rust() {
    let (device, queue, _) = gpu::open();
    let faults = Faults::watch(&device);
    let text = format!("{}{KERNEL}", source::MATH);
    source::validate(&text).unwrap_or_else(|e| panic!("{e}"));
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: Some("helpers"),
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("helpers"),
        layout: None,
        module: &module,
        entry_point: Some("helpers"),
        compilation_options: Default::default(),
        cache: None,
    });
    let cases = cases();
    let bytes = size_of_val(&cases[..]) as u64;
    let buffer = |usage| {
        device.create_buffer(&wgpu::BufferDescriptor { label: None, size: bytes, usage, mapped_at_creation: false })
    };
    let input = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let output = buffer(wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    queue.write_buffer(&input, 0, bytemuck::cast_slice(&cases));
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[
            wgpu::BindGroupEntry { binding: 0, resource: input.as_entire_binding() },
            wgpu::BindGroupEntry { binding: 1, resource: output.as_entire_binding() },
        ],
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups((cases.len() as u32).div_ceil(64), 1, 1);
    }
    encoder.copy_buffer_to_buffer(&output, 0, &staging, 0, bytes);
    queue.submit([encoder.finish()]);
    let mut got: Vec<[u64; 4]> = Vec::new();
    faults.read(&device, &staging, bytes, |b| got = bytemuck::pod_collect_to_vec(b)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got.len(), cases.len());
    for (case, got) in cases.iter().zip(&got) {
        assert_eq!(*got, expected(case), "mul_div, mul_shr, tx_time, hash32, sat and isqrt of {case:?}");
    }
}
