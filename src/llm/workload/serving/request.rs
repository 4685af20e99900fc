//! Requests, and the distributions that they are drawn from.

use crate::workload::random::RandomStream;
use hyperfold_base::units::PS_PER_S;

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServingRequest {
    /// Time of its arrival, ps.
    pub arrival_ps: u64,
    /// Tokens of the prompt, at least 1.
    pub prompt: u32,
    /// Tokens of the answer, at least 1.
    pub output: u32,
    /// The text that it begins with and has in common with others.
    pub prefix: Option<Prefix>,
}

/// A text at the beginning of several requests: a system prompt, or a conversation so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Number of the text.
    pub id: u32,
    /// Tokens at the beginning of the request's prompt and answer that belong to it.
    pub tokens: u32,
}

/// Distributions of random requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestDistribution {
    /// Number of requests.
    pub count: u32,
    /// Mean arrivals per second; 0 if all requests arrive at once.
    pub rate: f64,
    /// Shape of the gamma distribution of the times between arrivals; 1 gives Poisson arrivals.
    pub burstiness: f64,
    /// Mean length of prompts.
    pub prompt_tokens: u32,
    /// Mean length of answers.
    pub output_tokens: u32,
    /// Standard deviation of lengths of prompts divided by their mean, of a lognormal distribution; 0 if all lengths equal the mean.
    pub spread: f64,
    /// Standard deviation of lengths of answers divided by their mean.
    pub output_spread: f64,
    /// Tokens in front of every prompt that it has in common with others; 0 if there are none.
    pub prefix_tokens: u32,
    /// How many different texts stand there.
    pub prefixes: u32,
}

/// Longest prompt or answer that is drawn, as a multiple of the mean. A lognormal distribution has no maximum, but memory has.
const LONGEST: f64 = 8.0;

/// Draws requests in the order of their arrival. Every draw has a random stream of its own for its request and purpose, so lengths do not depend on the rate.
pub fn draw(distribution: &RequestDistribution, seed: u64) -> Vec<ServingRequest> {
    let mut arrival_s = 0.0f64;
    let request = |n: u64| {
        let stream = |purpose: u64| RandomStream::new(seed, n * 4 + purpose);
        if distribution.rate > 0.0 {
            // The gamma distribution's mean is its shape times its scale.
            arrival_s += gamma(&mut stream(0), distribution.burstiness) / distribution.burstiness / distribution.rate;
        }
        ServingRequest {
            arrival_ps: (arrival_s * PS_PER_S as f64 + 0.5) as u64,
            prompt: distribution.prefix_tokens
                + length(&mut stream(1), distribution.prompt_tokens, distribution.spread),
            output: length(&mut stream(2), distribution.output_tokens, distribution.output_spread),
            prefix: (distribution.prefix_tokens > 0)
                .then(|| Prefix { id: stream(3).below(distribution.prefixes), tokens: distribution.prefix_tokens }),
        }
    };
    (0..u64::from(distribution.count)).map(request).collect()
}

/// Draws a lognormal length with this mean and relative standard deviation.
fn length(random: &mut RandomStream, mean: u32, spread: f64) -> u32 {
    if spread <= 0.0 {
        return mean;
    }
    let variance = libm::log(1.0 + spread * spread);
    let x = f64::from(mean) * libm::exp(libm::sqrt(variance) * normal(random) - variance / 2.0);
    (x.min(f64::from(mean) * LONGEST) + 0.5).max(1.0) as u32
}

/// Draws from a normal distribution with two uniform draws (Box and Muller).
fn normal(random: &mut RandomStream) -> f64 {
    let (a, b) = (random.unit(), random.unit());
    libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b)
}

/// Draws from a gamma distribution with this shape and scale 1, using normal draws (Marsaglia and Tsang 2000).
fn gamma(random: &mut RandomStream, shape: f64) -> f64 {
    if shape == 1.0 {
        return -libm::log(random.unit());
    }
    if shape < 1.0 {
        let boost = libm::pow(random.unit(), 1.0 / shape);
        return gamma_above_one(random, shape + 1.0) * boost;
    }
    gamma_above_one(random, shape)
}

fn gamma_above_one(random: &mut RandomStream, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(random);
        let v = (1.0 + c * x) * (1.0 + c * x) * (1.0 + c * x);
        if v > 0.0 && libm::log(random.unit()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: RequestDistribution = RequestDistribution {
        count: 20_000,
        rate: 4.0,
        burstiness: 1.0,
        prompt_tokens: 1000,
        output_tokens: 200,
        spread: 0.5,
        output_spread: 0.5,
        prefix_tokens: 0,
        prefixes: 1,
    };

    /// Mean, and variance divided by the square of the mean.
    fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let n = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / n;
        (mean, values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n / mean / mean)
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        for burstiness in [0.25, 1.0, 4.0] {
            let requests = draw(&RequestDistribution { burstiness, ..FROM }, 7);
            let arrivals: Vec<f64> = requests.iter().map(|r| r.arrival_ps as f64 * 1e-12).collect();
            let gaps: Vec<f64> = arrivals.windows(2).map(|w| w[1] - w[0]).collect();
            let (mean, variance) = moments(gaps.iter().copied());
            assert!((mean * 4.0 - 1.0).abs() < 0.05, "{burstiness}: {mean}");
            assert!((variance * burstiness - 1.0).abs() < 0.1, "{burstiness}: {variance}");
        }
        let requests = draw(&FROM, 7);
        let lengths_of =
            |length: fn(&ServingRequest) -> u32| requests.iter().map(|r| f64::from(length(r))).collect::<Vec<f64>>();
        for (lengths, wanted) in [(lengths_of(|r| r.prompt), 1000.0), (lengths_of(|r| r.output), 200.0)] {
            let (mean, variance) = moments(lengths.iter().copied());
            assert!((mean / wanted - 1.0).abs() < 0.02, "{mean}");
            assert!((variance / 0.25 - 1.0).abs() < 0.1, "{variance}");
        }
    }

    #[test]
    fn the_rate_changes_no_length_and_fixed_lengths_are_their_mean() {
        let (a, b) = (draw(&FROM, 3), draw(&RequestDistribution { rate: 0.0, ..FROM }, 3));
        assert!(a.iter().zip(&b).all(|(a, b)| (a.prompt, a.output) == (b.prompt, b.output) && b.arrival_ps == 0));
        let fixed = draw(&RequestDistribution { spread: 0.0, output_spread: 0.0, ..FROM }, 3);
        assert!(fixed.iter().all(|r| (r.prompt, r.output) == (1000, 200)));
        assert_ne!(a[..8], draw(&FROM, 4)[..8]);
        // Prefixes come in front, and each of them as often.
        let shared = draw(&RequestDistribution { prefix_tokens: 100, prefixes: 4, ..FROM }, 3);
        assert!(a.iter().zip(&shared).all(|(a, b)| (a.prompt + 100, a.output) == (b.prompt, b.output)));
        let of_first = shared.iter().filter(|r| r.prefix == Some(Prefix { id: 0, tokens: 100 })).count();
        assert!((of_first as f64 / 5_000.0 - 1.0).abs() < 0.05, "{of_first}");
    }
}
