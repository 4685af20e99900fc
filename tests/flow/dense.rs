//! Max-min fair rates by the definition, in floating point, over full matrices: slow, and shares no code with the program.

/// Flows over links. `share[f][l]`: what flow `f` puts on link `l`, of its rate; `acks[f][l]` the same of its acknowledgements.
pub struct DenseNetwork {
    pub capacity: Vec<f64>,
    pub share: Vec<Vec<f64>>,
    pub acks: Vec<Vec<f64>>,
}

impl DenseNetwork {
    /// Rates of those flows that are `on`; the others have 0. Acknowledgements come first, so links are refilled until what is kept for them is what they take.
    pub fn rates(&self, on: &[bool]) -> Vec<f64> {
        let mut kept = vec![0.0; self.capacity.len()];
        for _ in 0..200 {
            let room: Vec<f64> = self.capacity.iter().zip(&kept).map(|(c, k)| c - k).collect();
            let rates = self.filled(on, room);
            let taken = |l: usize| (0..rates.len()).map(|f| rates[f] * self.acks[f][l]).sum();
            let now: Vec<f64> = (0..kept.len()).map(taken).collect();
            if now.iter().zip(&kept).zip(&self.capacity).all(|((a, b), c)| (a - b).abs() < 1e-9 * c) {
                return rates;
            }
            kept = now;
        }
        panic!("acknowledgements do not settle");
    }

    /// All rise together; whoever crosses a link that is full stops.
    fn filled(&self, on: &[bool], room: Vec<f64>) -> Vec<f64> {
        let n = self.share.len();
        let mut rates = vec![0.0; n];
        let mut rising = on.to_vec();
        while rising.iter().any(|r| *r) {
            let mut levels = vec![f64::INFINITY; room.len()];
            for (l, level) in levels.iter_mut().enumerate() {
                let (mut stopped, mut weight) = (0.0, 0.0);
                for f in 0..n {
                    *if rising[f] { &mut weight } else { &mut stopped } +=
                        self.share[f][l] * if rising[f] { 1.0 } else { rates[f] };
                }
                if weight > 0.0 {
                    *level = (room[l] - stopped) / weight;
                }
            }
            let least = levels.iter().copied().fold(f64::INFINITY, f64::min);
            let full = |l: usize| levels[l] <= least * (1.0 + 1e-12);
            for f in 0..n {
                if rising[f] && (0..room.len()).any(|l| self.share[f][l] > 0.0 && full(l)) {
                    rising[f] = false;
                    rates[f] = least;
                }
            }
        }
        rates
    }
}
