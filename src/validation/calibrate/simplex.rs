//! Nelder-Mead simplex search in a unit cube.
//!
//! Layer: calibrate. Our own code, because it is short: optimiser libraries (argmin) bring twenty crates and a trait around the same loop. It uses no
//! derivatives, because results jump where NCCL changes its choice.

/// A point and its cost.
#[derive(Clone, Debug)]
pub(super) struct Vertex {
    pub places: Vec<f64>,
    pub cost: f64,
}

/// Limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimplexLimits {
    /// Edge length of the first simplex.
    pub edge: f64,
    /// The search ends when no vertex is farther than this from the best one.
    pub tolerance: f64,
    pub max_evaluations: usize,
}

/// The point with the smallest cost that is found from `start`. Equal inputs give equal outputs.
pub(super) fn minimise(cost: impl Fn(&[f64]) -> f64, start: &[f64], limits: SimplexLimits) -> Vertex {
    let n = start.len();
    let mut evaluations = 0;
    let mut vertex = |places: Vec<f64>| {
        evaluations += 1;
        let places: Vec<f64> = places.into_iter().map(|x| x.clamp(0.0, 1.0)).collect();
        (Vertex { cost: cost(&places), places }, evaluations)
    };
    let mut simplex = vec![vertex(start.to_vec()).0];
    for i in 0..n {
        let mut places = start.to_vec();
        // The step is towards the middle, so that the simplex is inside the cube.
        places[i] += if places[i] > 0.5 { -limits.edge } else { limits.edge };
        simplex.push(vertex(places).0);
    }
    loop {
        simplex.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let size = simplex[1..].iter().map(|v| distance(v, &simplex[0])).fold(0.0, f64::max);
        let worst = simplex[n].clone();
        let centre: Vec<f64> =
            (0..n).map(|i| simplex[..n].iter().map(|v| v.places[i]).sum::<f64>() / n as f64).collect();
        let along = |t: f64| (0..n).map(|i| centre[i] + t * (centre[i] - worst.places[i])).collect::<Vec<f64>>();
        let (reflected, used) = vertex(along(1.0));
        if size < limits.tolerance || used >= limits.max_evaluations {
            if reflected.cost < simplex[0].cost {
                return reflected;
            }
            return simplex.swap_remove(0);
        }
        if reflected.cost < simplex[0].cost {
            let (expanded, _) = vertex(along(2.0));
            simplex[n] = if expanded.cost < reflected.cost { expanded } else { reflected };
        } else if reflected.cost < simplex[n - 1].cost {
            simplex[n] = reflected;
        } else {
            let outside = reflected.cost < worst.cost;
            let (contracted, _) = vertex(along(if outside { 0.5 } else { -0.5 }));
            if contracted.cost < worst.cost.min(reflected.cost) {
                simplex[n] = contracted;
            } else {
                let best = simplex[0].places.clone();
                for v in &mut simplex[1..] {
                    let halfway = v.places.iter().zip(&best).map(|(x, b)| (x + b) / 2.0).collect();
                    *v = vertex(halfway).0;
                }
            }
        }
    }
}

fn distance(a: &Vertex, b: &Vertex) -> f64 {
    a.places.iter().zip(&b.places).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SimplexLimits = SimplexLimits { edge: 0.1, tolerance: 1e-6, max_evaluations: 2000 };

    #[test]
    fn a_valley_is_followed_to_its_end() {
        let rosenbrock = |p: &[f64]| {
            let (x, y) = (p[0] * 4.0 - 2.0, p[1] * 4.0 - 2.0);
            (1.0 - x) * (1.0 - x) + 100.0 * (y - x * x) * (y - x * x)
        };
        let found = minimise(rosenbrock, &[0.2, 0.9], LIMITS);
        assert!(found.places.iter().all(|x| (x - 0.75).abs() < 1e-3), "{found:?}");
    }

    #[test]
    fn bounds_hold_and_what_cannot_be_is_not_taken() {
        let edge = minimise(|p| p[0] + (p[1] - 0.3).abs(), &[0.5, 0.5], LIMITS);
        assert!(edge.places[0] == 0.0 && (edge.places[1] - 0.3).abs() < 1e-3, "{edge:?}");
        let holes = |p: &[f64]| if p[0] > 0.6 { f64::INFINITY } else { (p[0] - 0.55) * (p[0] - 0.55) };
        let found = minimise(holes, &[0.2], LIMITS);
        assert!((found.places[0] - 0.55).abs() < 1e-3, "{found:?}");
        let nothing = minimise(|_| f64::INFINITY, &[0.2, 0.4], LIMITS);
        assert!(nothing.cost.is_infinite());
    }
}
