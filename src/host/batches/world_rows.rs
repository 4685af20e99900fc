//! The rows of all experiments of a batch in the world: whose they are, where they are, and how they get there.
//!
//! Layer: host. Rows lie sorted by (ExpId, row) in each column, so those of an experiment are one slice, which [`WorldIndex`] knows. A system of the host that
//! looks at a column of all experiments takes the column as a query and the index as a resource; `world` has one.

use std::ops::Range;

use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;

use hyperfold_columns::{ColumnRow, Exp, FlowRx, FlowTx, Spans};

/// The experiment that a row belongs to: its index in the sweep.
#[derive(Component, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ExpId(pub u64);

/// Where the rows of each experiment of the batch are in the world's columns. It is made when experiments are admitted, and valid until they are cleared.
#[derive(Resource, Debug, Default)]
pub(crate) struct WorldIndex {
    /// The experiments, ascending.
    pub(crate) ids: Vec<ExpId>,
    /// Valid for the columns of the world. Tables that grow while an experiment runs may have more rows than this says.
    pub(crate) spans: Spans,
}

impl WorldIndex {
    /// The index of the experiments in `world`.
    pub(crate) fn of(world: &mut World) -> WorldIndex {
        let mut headers: Vec<(ExpId, Exp)> =
            world.query::<(&ExpId, &Exp)>().iter(world).map(|(id, exp)| (*id, *exp)).collect();
        headers.sort_by_key(|(id, _)| *id);
        let spans = Spans::of(headers.iter().map(|(_, exp)| exp));
        WorldIndex { ids: headers.into_iter().map(|(id, _)| id).collect(), spans }
    }

    /// Rows of experiment `id` in the column of `R`; none if it is not in the batch.
    pub(crate) fn rows<R: ColumnRow>(&self, id: ExpId) -> Range<usize> {
        self.ids.binary_search(&id).map_or(0..0, |k| self.spans.rows::<R>(k))
    }
}

/// Row types are table components, so queries over them are dense. One archetype is one table, so there is one slice.
pub(crate) const DENSE: &str = "row types are stored in tables";

/// The rows of one table of each experiment, or of tables whose rows are one entity.
type RowsById<R> = Vec<(ExpId, R)>;

/// Moves the rows of one table of all experiments into the world. They overwrite those of the last batch, which are mostly as many; missing rows are spawned,
/// surplus rows removed.
pub(crate) fn fill<T: Component<Mutability = Mutable> + Copy>(world: &mut World, tables: RowsById<Vec<T>>) {
    let (mut n_old, mut n_written) = (0, 0);
    for (mut ids, mut places) in world.query::<(&mut ExpId, &mut T)>().contiguous_iter_mut(world).expect(DENSE) {
        let (ids, places) = (ids.bypass_change_detection(), places.bypass_change_detection());
        n_old += places.len();
        for (id, rows) in &tables {
            let n = rows.len().min(places.len() - n_written);
            ids[n_written..n_written + n].fill(*id);
            places[n_written..n_written + n].copy_from_slice(&rows[..n]);
            n_written += n;
        }
    }
    shorten::<T>(world, n_old, n_written);
    let mut n_overwritten = n_written;
    for (id, rows) in tables {
        let first = n_overwritten.min(rows.len());
        n_overwritten -= first;
        world.spawn_batch(rows.into_iter().skip(first).map(move |row| (id, row)));
    }
}

/// Moves queue pairs into the world like [`fill`]; the two ends of a queue pair are one row.
pub(crate) fn fill_flows(world: &mut World, tables: RowsById<(Vec<FlowTx>, Vec<FlowRx>)>) {
    let (mut n_old, mut n_written) = (0, 0);
    let mut query = world.query::<(&mut ExpId, &mut FlowTx, &mut FlowRx)>();
    for (mut ids, mut tx, mut rx) in query.contiguous_iter_mut(world).expect(DENSE) {
        let (ids, tx, rx) = (ids.bypass_change_detection(), tx.bypass_change_detection(), rx.bypass_change_detection());
        n_old += tx.len();
        for (id, (new_tx, new_rx)) in &tables {
            let n = new_tx.len().min(tx.len() - n_written);
            ids[n_written..n_written + n].fill(*id);
            tx[n_written..n_written + n].copy_from_slice(&new_tx[..n]);
            rx[n_written..n_written + n].copy_from_slice(&new_rx[..n]);
            n_written += n;
        }
    }
    shorten::<FlowTx>(world, n_old, n_written);
    let mut n_overwritten = n_written;
    for (id, (tx, rx)) in tables {
        let first = n_overwritten.min(tx.len());
        n_overwritten -= first;
        world.spawn_batch(tx.into_iter().zip(rx).skip(first).map(move |(tx, rx)| (id, tx, rx)));
    }
}

/// Shortens the archetype of `T` from `n_old` rows to its first `n`.
fn shorten<T: Component>(world: &mut World, n_old: usize, n: usize) {
    if n < n_old {
        let surplus: Vec<Entity> = world.query_filtered::<Entity, With<T>>().iter(world).skip(n).collect();
        // The last row first, so that no row has to move.
        for row in surplus.into_iter().rev() {
            world.despawn(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use hyperfold_columns::{Nic, Port};

    /// A world with experiments of so many NICs, and three times as many ports.
    fn admit(world: &mut World, experiments: &[(u64, u32)]) -> WorldIndex {
        let headers: Vec<Entity> = world.query_filtered::<Entity, With<Exp>>().iter(world).collect();
        headers.into_iter().for_each(|header| assert!(world.despawn(header)));
        let nic = |id: u64| Nic { exp: id as u32, ..Nic::zeroed() };
        let port = |id: u64| Port { exp: id as u32, ..Port::zeroed() };
        fill(world, experiments.iter().map(|&(id, n)| (ExpId(id), vec![nic(id); n as usize])).collect());
        fill(world, experiments.iter().map(|&(id, n)| (ExpId(id), vec![port(id); 3 * n as usize])).collect());
        for &(id, n) in experiments {
            world.spawn((ExpId(id), Exp { nic_len: n, port_len: 3 * n, ..Exp::zeroed() }));
        }
        WorldIndex::of(world)
    }

    /// A number of each experiment that a system of the host counts.
    #[derive(Component, Default)]
    struct Pauses(u64);

    /// Stage `Observe`: counts how often NICs of each experiment were paused.
    fn count_pauses(nics: Query<&Nic>, index: Res<WorldIndex>, mut experiments: Query<(&ExpId, &mut Pauses)>) {
        let nics = nics.contiguous_iter().expect(DENSE).last().unwrap_or_default();
        for (&id, mut pauses) in &mut experiments {
            pauses.0 = nics[index.rows::<Nic>(id)].iter().map(|nic| u64::from(nic.pauses)).sum();
        }
    }

    #[test]
    fn a_system_counts_over_a_column_of_all_experiments() {
        let mut world = World::new();
        let index = admit(&mut world, &[(2, 3), (5, 0), (9, 4)]);
        world.insert_resource(index);
        for (mut nic, pauses) in world.query::<&mut Nic>().iter_mut(&mut world).zip(1..) {
            nic.pauses = pauses;
        }
        let experiments: Vec<Entity> = world.query_filtered::<Entity, With<Exp>>().iter(&world).collect();
        experiments.into_iter().for_each(|experiment| {
            world.entity_mut(experiment).insert(Pauses::default());
        });
        let mut schedule = Schedule::default();
        schedule.add_systems(count_pauses);
        schedule.run(&mut world);
        let counted: Vec<u64> = world.query::<&Pauses>().iter(&world).map(|pauses| pauses.0).collect();
        assert_eq!(counted, [1 + 2 + 3, 0, 4 + 5 + 6 + 7]);
    }

    #[test]
    fn the_page_shows_that_system() {
        let (page, here) = (include_str!("../../../docs/internals/add.md"), include_str!("world_rows.rs"));
        let from = here.find("    fn count_pauses(").expect("it is above");
        let code = &here[from..from + here[from..].find("\n    }\n").expect("it ends") + 7];
        let code: String =
            code.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
        assert!(page.contains(&code), "docs/internals/add.md has another text than\n{code}");
    }

    #[test]
    fn the_index_finds_the_rows_that_the_column_says() {
        let mut world = World::new();
        // Each batch overwrites the last one: fewer rows, more rows, none at all.
        for experiments in [&[(2u64, 3u32), (5, 1), (9, 4)][..], &[(10, 2)], &[(11, 0), (12, 9), (13, 1)], &[]] {
            let index = admit(&mut world, experiments);
            let rows: Vec<(ExpId, u32)> =
                world.query::<(&ExpId, &Nic)>().iter(&world).map(|(id, nic)| (*id, nic.exp)).collect();
            assert_eq!(rows.len(), experiments.iter().map(|e| e.1 as usize).sum::<usize>());
            let ports: Vec<ExpId> = world.query_filtered::<&ExpId, With<Port>>().iter(&world).copied().collect();
            for &(id, n) in experiments {
                let own = &rows[index.rows::<Nic>(ExpId(id))];
                assert_eq!(own, vec![(ExpId(id), id as u32); n as usize]);
                assert_eq!(ports[index.rows::<Port>(ExpId(id))], vec![ExpId(id); 3 * n as usize]);
            }
            assert_eq!(index.rows::<Nic>(ExpId(7)), 0..0, "it is not in the batch");
        }
    }
}
