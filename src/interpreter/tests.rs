//! Small kernels, against what WGSL says that they do.

use crate::{CompileError, ComputeKernel, Fault, KernelDispatch, Order};

/// Runs `body`, whose statements write to `out`, in one invocation. Returns `out`.
fn run(declarations: &str, body: &str) -> Vec<u32> {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@group(0) @binding(1) var<storage, read_write> wide: array<u64>;\n\
         {declarations}\n@compute @workgroup_size(1) fn main() {{\n{body}\n}}"
    );
    let program = ComputeKernel::new(&text, "main").unwrap_or_else(|e| panic!("{e}"));
    let (mut out, mut wide) = ([0; 8], [0; 16]);
    program.dispatch(&mut [&mut out, &mut wide], &KernelDispatch::of([1; 3])).unwrap_or_else(|e| panic!("{e}"));
    out.to_vec()
}

#[test]
fn integers_are_those_of_wgsl() {
    let given = "wide[0] = 5lu; wide[1] = 0lu; out[7] = 0u; let big = wide[0] - 6lu; let none = out[7]; let minus = i32(none) - 7;\n";
    for (value, want) in [
        ("u32(big >> 32u)", u32::MAX),
        ("u32((big / wide[0]) & 0xfffffffflu)", (u64::MAX / 5) as u32),
        // A division by 0 gives the dividend, a rest by 0 gives 0.
        ("7u / none", 7),
        ("u32(wide[0] % wide[1])", 0),
        ("u32(minus / 2)", (-3i32) as u32),
        ("u32(minus % 2)", (-1i32) as u32),
        ("u32(minus >> 1u)", (-4i32) as u32),
        ("u32(u64(i64(minus)) >> 60u)", 15),
        ("select(1u, 2u, minus < 0)", 2),
        ("select(1u, 2u, big < wide[0])", 1),
        ("1u << (33u + none)", 2),
        ("u32(1lu << (65u + none))", 2),
        ("min(minus, 3) == minus", 1),
        ("clamp(9u + none, 2u, 4u)", 4),
        ("countLeadingZeros(1u + none)", 31),
        ("countOneBits(0xf0fu + none)", 8),
        ("abs(minus)", 7),
        ("all(vec2<bool>(none == 0u, minus < 0))", 1),
        ("any(vec2<bool>(none == 1u, minus > 0))", 0),
        ("dot_of(vec3<u32>(1u, 2u, none + 3u).zyx)", 321),
    ] {
        let helper = "fn dot_of(v: vec3<u32>) -> u32 { return v.x * 100u + v.y * 10u + v[2]; }";
        let out = run(helper, &format!("{given}out[0] = u32({value});"));
        assert_eq!(out[0], want, "{value}");
    }
}

#[test]
fn control_flow_goes_where_it_says() {
    let body = "var sum = 0u;
        for (var k = 0u; k < 10u; k++) {
            if k == 3u { continue; }
            if k == 6u { break; }
            var fresh: u32;
            fresh += k;
            sum += fresh;
        }
        out[0] = sum;
        var n = 0u;
        loop { n += 2u; continuing { break if n > 6u; } }
        out[1] = n;
        for (var k = 0u; k < 4u; k++) {
            switch k { case 0u { out[2] = 1u; } case 1u, 2u { out[3] += 1u; } default { out[4] = k; } }
        }
        out[5] = twice(twice(3u)) + early(1u) + early(5u);";
    let functions = "fn twice(x: u32) -> u32 { return 2u * x; } fn early(x: u32) -> u32 { if x > 3u { return 100u; } return twice(x); }";
    assert_eq!(run(functions, body), [1 + 2 + 4 + 5, 8, 1, 2, 3, 12 + 2 + 100, 0, 0]);
}

#[test]
fn structs_and_arrays_lie_as_wgsl_says() {
    let declarations = "struct Row { a: u32, b: u64, c: array<u32, 3>, d: vec3<u32> }
        @group(0) @binding(2) var<storage, read_write> rows: array<Row>;
        var<private> kept: array<u32, 4>;
        fn put(i: u32, x: u32) { kept[i] = x; }";
    let body = "var row = rows[1];
        row.c[out[0] + 2u] = 7u;
        rows[0] = row;
        rows[0].d.y = rows[1].d[2];
        put(1u, 5u); put(9u, 6u);
        out[0] = kept[1] + kept[3]; out[1] = arrayLength(&rows); out[2] = u32(rows[1].b >> 32u);";
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n{declarations}\n@compute @workgroup_size(1) fn main() {{\n{body}\n}}"
    );
    let program = ComputeKernel::new(&text, "main").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(program.bindings().collect::<Vec<_>>(), ["out", "rows"]);
    // A row has 48 bytes: a at 0, b at 8, c at 16, d at 32.
    let mut rows: Vec<u32> = (0..32).collect();
    rows[16..].iter_mut().for_each(|word| *word += 100);
    let mut out = [0; 3];
    let done = program.dispatch(&mut [&mut out, &mut rows], &KernelDispatch::of([1; 3])).unwrap();
    // An index behind the end is taken for the last element.
    assert_eq!((out, done.counts.beyond), ([11, 2, 15], 1));
    assert_eq!(rows[..11], [12, 1, 14, 15, 116, 117, 7, 7, 120, 122, 122][..]);
    // A row, an element of its vector, and b are read; a row and an element are written. Pieces of a row: a, b, three of c, d.
    let counts = done.counts.buffers[1];
    assert_eq!((counts.loads, counts.stores, counts.pieces), (3, 2, 6 + 1 + 1 + 6 + 1));
    assert_eq!((counts.load_bytes, counts.store_bytes), (36 + 4 + 8, 36 + 4));
}

/// Lanes leave numbers in the workgroup's memory, meet, and read those of their neighbours.
const NEIGHBOURS: &str = "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
    @group(0) @binding(1) var<storage, read_write> count: atomic<u32>;
    var<workgroup> met: array<u32, 4>;
    var<workgroup> first: u32;
    @compute @workgroup_size(4)
    fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
        met[lane] = lane + 10u * group.x;
        workgroupBarrier();
        words[4u * group.x + lane] = met[(lane + 1u) % 4u];
        if lane == 3u { first = met[3]; }
        let all = workgroupUniformLoad(&first);
        words[4u * group.x + lane] += 100u * all;
        atomicAdd(&count, 1u);
    }";

#[test]
fn lanes_meet_at_barriers_in_any_order() {
    let program = ComputeKernel::new(NEIGHBOURS, "main").unwrap_or_else(|e| panic!("{e}"));
    for order in [Order::Forward, Order::Backward] {
        let (mut words, mut count) = ([0; 8], [0]);
        let dispatch =
            KernelDispatch { order, finds_races: true, by_invocation: true, ..KernelDispatch::of([2, 1, 1]) };
        let done = program.dispatch(&mut [&mut words, &mut count], &dispatch).unwrap();
        assert_eq!(words, [301, 302, 303, 300, 1311, 1312, 1313, 1310]);
        assert_eq!((count[0], done.races.len(), done.by_invocation.len()), (8, 0, 8));
        assert!(done.by_invocation.iter().all(|work| work[0] == 2 && work[1] > 5), "{:?}", done.by_invocation);
    }
}

/// What is wrong with a kernel of two lanes, if something is.
fn fault(body: &str) -> (Vec<[u32; 2]>, Option<Fault>) {
    let text = format!(
        "@group(0) @binding(0) var<storage, read_write> words: array<u32>;\n@group(0) @binding(1) var<storage, read_write> sum: array<atomic<u32>>;\n\
         @compute @workgroup_size(2) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ let me = id.x; {body} }}"
    );
    let module = naga::front::wgsl::parse_str(&text).unwrap_or_else(|e| panic!("{}", e.emit_to_string(&text)));
    // Barriers that not all lanes reach are not valid, but a check by naga must not be the only one.
    let flags = naga::valid::ValidationFlags::all() - naga::valid::ValidationFlags::CONTROL_FLOW_UNIFORMITY;
    let info = naga::valid::Validator::new(flags, naga::valid::Capabilities::all()).validate(&module).unwrap();
    let program = ComputeKernel::from_module(&module, &info, "main").unwrap();
    let dispatch = KernelDispatch { finds_races: true, max_operations: 10_000, ..KernelDispatch::of([2, 1, 1]) };
    match program.dispatch(&mut [&mut [0; 8], &mut [0; 8]], &dispatch) {
        Ok(done) => (done.races.iter().map(|race| race.invocations).collect(), None),
        Err(fault) => (Vec::new(), Some(fault)),
    }
}

#[test]
fn races_and_faults_are_found() {
    assert_eq!(fault("words[me] = 1u;"), (vec![], None));
    assert_eq!(fault("words[0] = 1u;").0[0], [0, 1], "all write one word");
    assert_eq!(fault("words[me] = words[me + 1u];").0, [[0, 1], [1, 2], [2, 3]], "a word is read, then written");
    assert_eq!(fault("if me == 3u { words[0] = 1u; } else { words[me + 1u] = words[0]; }").0, [[3, 3]], "many read it");
    assert_eq!(fault("atomicAdd(&sum[0], 1u);"), (vec![], None));
    // A barrier parts the lanes of a workgroup, and nothing parts workgroups.
    assert_eq!(fault("words[me] = 1u; storageBarrier(); words[me ^ 1u] = 2u;"), (vec![], None));
    assert_eq!(fault("words[me] = 1u; storageBarrier(); words[(me + 1u) % 4u] = 2u;").0, [[1, 2], [0, 3]]);
    let barrier = fault("if me == 2u { storageBarrier(); }").1;
    assert_eq!(barrier, Some(Fault::Barrier { group: [1, 0, 0], ended: 1, waiting: 1 }));
    assert_eq!(fault("loop { if words[7] == 1u { break; } }").1, Some(Fault::TooLong { invocation: 0, limit: 10_000 }));
}

#[test]
fn what_is_unknown_is_refused() {
    let floats = "@group(0) @binding(0) var<storage, read_write> x: array<f32>; @compute @workgroup_size(1) fn main() { x[0] = x[1] * 2.0; }";
    assert!(matches!(ComputeKernel::new(floats, "main"), Err(CompileError::Unknown(_))));
    assert!(matches!(ComputeKernel::new("fn main(", "main"), Err(CompileError::Invalid(_))));
    assert!(matches!(ComputeKernel::new(NEIGHBOURS, "other"), Err(CompileError::NoEntry(_))));
    let program = ComputeKernel::new(NEIGHBOURS, "main").unwrap();
    assert_eq!(
        program.dispatch(&mut [], &KernelDispatch::of([1; 3])).unwrap_err(),
        Fault::Buffers { given: 0, bindings: 2 }
    );
}

#[test]
fn inlined_code_counts_a_function_for_each_call() {
    let kernel = |calls: &str| {
        let text = format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n\
             fn inner(x: u32) -> u32 {{ return (x * 3u) ^ out[1]; }}\nfn outer(x: u32) -> u32 {{ return inner(x) + inner(x + 1u); }}\n\
             @compute @workgroup_size(1) fn main() {{ {calls} }}"
        );
        let kernel = ComputeKernel::new(&text, "main").unwrap_or_else(|e| panic!("{e}"));
        (kernel.n_instructions(), kernel.n_inlined_instructions())
    };
    let (empty, inlined_empty) = kernel("");
    assert_eq!(empty, inlined_empty);
    let (_, once) = kernel("out[0] = outer(1u);");
    let (code, twice) = kernel("out[0] = outer(1u); out[0] = outer(1u);");
    // The second call adds the code of `outer`, and that of `inner` twice, once more.
    assert_eq!(twice - empty, 2 * (once - empty));
    assert!(code < twice, "{code} {twice}");
}
