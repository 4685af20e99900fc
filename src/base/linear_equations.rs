//! Small systems of linear equations, as least squares give them.
//!
//! Layer: the lowest. It knows nothing of what is fitted.

/// Solves the equations `matrix` x = `right` of a symmetric positive definite matrix by elimination, which needs no exchange of rows for such a matrix. `None`:
/// they have no unique solution.
pub fn solve(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    for k in 0..n {
        let pivot = matrix[k].clone();
        if pivot[k].abs() < 1e-300 {
            return None;
        }
        for r in k + 1..n {
            let factor = matrix[r][k] / pivot[k];
            for c in k..n {
                matrix[r][c] -= factor * pivot[c];
            }
            right[r] -= factor * right[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|c| matrix[k][c] * right[c]).sum();
        right[k] = (right[k] - known) / matrix[k][k];
    }
    Some(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solution_meets_the_equations() {
        // A Hilbert matrix with a ridge: symmetric, positive definite, and far from diagonal.
        let n = 6;
        let row = |r: usize| (0..n).map(|c| 1.0 / (r + c + 1) as f64 + f64::from(u8::from(r == c)) * 1e-3).collect();
        let matrix: Vec<Vec<f64>> = (0..n).map(row).collect();
        let wanted: Vec<f64> = (0..n).map(|k| k as f64 - 2.0).collect();
        let right = matrix.iter().map(|row| row.iter().zip(&wanted).map(|(a, x)| a * x).sum()).collect();
        let found = solve(matrix, right).unwrap();
        assert!(found.iter().zip(&wanted).all(|(x, y)| (x - y).abs() < 1e-9), "{found:?}");
        assert_eq!(solve(vec![vec![1.0, 1.0], vec![1.0, 1.0]], vec![1.0, 2.0]), None);
    }
}
