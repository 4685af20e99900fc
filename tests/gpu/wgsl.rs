//! The kernels as text: layouts, and barriers only where all invocations meet.

use std::collections::BTreeMap;
use std::fmt::Write;

use hyperfold_columns::TABLES;
use hyperfold_columns::wgsl::column;
use hyperfold_engine::gpu::KernelParts;
use hyperfold_engine::gpu::{rates, source};
use hyperfold_engine::systems::SYSTEMS;

fn module() -> naga::Module {
    let text = source::compose(128, KernelParts::ALL).unwrap();
    source::validate(&text).unwrap_or_else(|e| panic!("{e}")).0
}

#[test]
fn rows_have_one_layout_in_rust_and_wgsl() {
    let module = module();
    for table in TABLES.iter().filter(|t| t.is_struct()) {
        let name = table.row;
        let ty = module
            .types
            .iter()
            .find(|(_, t)| t.name.as_deref() == Some(name))
            .unwrap_or_else(|| panic!("no struct {name}"))
            .1;
        let naga::TypeInner::Struct { members, span } = &ty.inner else { panic!("{name} is no struct") };
        assert_eq!(*span as usize, table.row_bytes, "size of {name}");
        let in_wgsl: Vec<(String, usize)> =
            members.iter().map(|m| (m.name.clone().unwrap(), m.offset as usize)).collect();
        let in_rust: Vec<(String, usize)> = table.columns.iter().map(|f| (column(f.name), f.offset)).collect();
        assert_eq!(in_wgsl, in_rust, "columns of {name}");
    }
    // The tables are arrays of these, without gaps.
    let mut bindings = Vec::new();
    for (_, global) in module.global_variables.iter() {
        let naga::TypeInner::Array { stride, .. } = module.types[global.ty].inner else { continue };
        if global.space == naga::AddressSpace::WorkGroup {
            continue;
        }
        let binding = global.binding.expect("a storage array is bound").binding as usize;
        let (name, bytes) = TABLES.get(binding).map_or(("control", 4), |t| (t.wgsl, t.row_bytes));
        assert_eq!(global.name.as_deref(), Some(name), "binding {binding}");
        assert_eq!(stride as usize, bytes, "stride of {name}");
        bindings.push(binding);
    }
    bindings.sort_unstable();
    assert_eq!(bindings, (0..source::N_BINDINGS).collect::<Vec<_>>());
}

/// In Metal's language two names of one array are two types, which cannot be assigned to each other.
#[test]
fn an_array_has_one_name() {
    let module = module();
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (_, ty) in module.types.iter() {
        if let naga::TypeInner::Array { base, size: naga::ArraySize::Constant(n), .. } = ty.inner {
            let kind = format!("{n} x {:?}", module.types[base].inner);
            names.entry(kind).or_default().push(ty.name.clone().unwrap_or_default());
        }
    }
    names.retain(|_, names| names.len() > 1);
    assert!(names.is_empty(), "{names:?}");
}

#[test]
fn tables_are_written_by_the_systems_that_may() {
    let text = source::compose(128, KernelParts::ALL).unwrap();
    let (module, info) = source::validate(&text).unwrap_or_else(|e| panic!("{e}"));
    let mut writers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (i, entry) in module.entry_points.iter().enumerate() {
        let Some(system) = entry.name.strip_suffix("_all") else { continue };
        for (handle, global) in module.global_variables.iter() {
            if info.get_entry_point(i)[handle].contains(naga::valid::GlobalUse::WRITE) && global.binding.is_some() {
                writers.entry(global.name.as_deref().expect("buffers have names")).or_default().push(system);
            }
        }
    }
    for table in &TABLES {
        let found = writers.remove(table.wgsl).unwrap_or_default();
        assert_eq!(found, table.written_by, "systems that write {}", table.name);
    }
    assert!(writers.is_empty(), "written, but no table: {writers:?}");
}

/// Every statement that all invocations of a workgroup must reach together, with what is around it.
fn meetings(block: &naga::Block, around: &str, found: &mut Vec<String>) {
    use naga::Statement as S;
    for statement in block {
        match statement {
            S::ControlBarrier(barrier) => found.push(format!("{around}{barrier:?}")),
            S::MemoryBarrier(barrier) => found.push(format!("{around}memory {barrier:?}")),
            S::WorkGroupUniformLoad { .. } => found.push(format!("{around}uniform load")),
            S::Block(inner) => meetings(inner, around, found),
            S::If { accept, reject, .. } => {
                meetings(accept, &format!("{around}if > "), found);
                meetings(reject, &format!("{around}else > "), found);
            }
            S::Switch { cases, .. } => {
                for case in cases {
                    meetings(&case.body, &format!("{around}switch > "), found);
                }
            }
            S::Loop { body, continuing, .. } => {
                meetings(body, &format!("{around}loop > "), found);
                meetings(continuing, &format!("{around}continuing > "), found);
            }
            _ => {}
        }
    }
}

#[test]
fn barriers_stand_in_entry_points_only() {
    for (_, function) in module().functions.iter() {
        let mut found = Vec::new();
        meetings(&function.body, "", &mut found);
        assert!(found.is_empty(), "{} meets: {found:?}", function.name.as_deref().unwrap_or("?"));
    }
}

#[test]
fn barriers_are_where_they_were() {
    let mut text = String::new();
    for entry in &module().entry_points {
        let mut found = Vec::new();
        meetings(&entry.function.body, "", &mut found);
        let _ = writeln!(text, "{}: {}", entry.name, found.len());
        for line in found {
            let _ = writeln!(text, "  {line}");
        }
    }
    insta::assert_snapshot!(text);
}

/// Names of the systems that are called, in order; `NAME_row` counts as `NAME`.
fn systems_called(module: &naga::Module, block: &naga::Block, found: &mut Vec<String>) {
    use naga::Statement as S;
    for statement in block {
        match statement {
            S::Call { function, .. } => {
                let name = module.functions[*function].name.as_deref().unwrap_or_default();
                let name = name.strip_suffix("_row").unwrap_or(name);
                found.extend(SYSTEMS.iter().any(|system| system.name == name).then(|| name.to_string()));
            }
            S::Block(inner) => systems_called(module, inner, found),
            S::If { accept, reject, .. } => {
                systems_called(module, accept, found);
                systems_called(module, reject, found);
            }
            S::Switch { cases, .. } => cases.iter().for_each(|case| systems_called(module, &case.body, found)),
            S::Loop { body, continuing, .. } => {
                systems_called(module, body, found);
                systems_called(module, continuing, found);
            }
            _ => {}
        }
    }
}

#[test]
fn kernels_run_the_systems_of_the_list_in_its_order() {
    let module = module();
    let names: Vec<&str> = SYSTEMS.iter().map(|system| system.name).collect();
    let mut entries: Vec<&str> = SYSTEMS.iter().map(|system| system.entry).collect();
    entries.push("fused");
    assert_eq!(module.entry_points.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), entries);
    for (k, entry) in module.entry_points.iter().enumerate() {
        let mut called = Vec::new();
        systems_called(&module, &entry.function.body, &mut called);
        let wanted = if entry.name == "fused" { &names[..] } else { &names[k..=k] };
        assert_eq!(called, wanted, "systems of `{}`", entry.name);
    }
}

/// The kernel of fair rates chooses its phase at one place, where all lanes have met.
#[test]
fn lanes_that_solve_rates_meet_between_phases_only() {
    let text = rates::source::compose(256).unwrap();
    let (module, info) = rates::source::validate(&text).unwrap_or_else(|e| panic!("{e}"));
    for (_, function) in module.functions.iter() {
        let mut found = Vec::new();
        meetings(&function.body, "", &mut found);
        assert!(found.is_empty(), "{} meets: {found:?}", function.name.as_deref().unwrap_or("?"));
    }
    let [entry] = &module.entry_points[..] else { panic!("one entry point") };
    assert_eq!(entry.name, rates::source::ENTRY);
    let mut found = Vec::new();
    meetings(&entry.function.body, "", &mut found);
    let depths: Vec<usize> = found.iter().map(|line| line.matches(" > ").count()).collect();
    assert_eq!(depths, [1; 4], "a uniform load and three barriers in the loop, in no branch: {found:?}");
    assert!(found.iter().all(|line| line.starts_with("loop > ")), "{found:?}");
    let (mut bound, mut written) = (0, Vec::new());
    for (handle, global) in module.global_variables.iter() {
        let Some(binding) = &global.binding else { continue };
        bound += 1;
        if info.get_entry_point(0)[handle].contains(naga::valid::GlobalUse::WRITE) {
            written.push(binding.binding);
        }
    }
    written.sort_unstable();
    assert_eq!((bound, written), (rates::source::N_BINDINGS, vec![1, 2, 3, 5, 8]));
}
