//! Finite fields, whose sums and products decide which routers of a slim fly are linked.
//!
//! Layer: topology. It has sums, negatives and products only, by tables: for fields of a few hundred elements.

/// The field of `q` elements, where `q` is a power of a prime. An element is a number below `q`: its digits to the base `p` are the coefficients of a
/// polynomial, the lowest first. If `q` is a prime, elements are numbers modulo `q`.
pub(super) struct GaloisField {
    p: u32,
    q: u32,
    /// Powers of a primitive element, the power 0 first: each element but 0 once.
    powers: Vec<u32>,
    /// Logarithm of each element to the base of that primitive element; that of 0 is not used.
    logarithms: Vec<u32>,
}

/// The prime of which `q` is a power, if there is one.
fn prime_of(q: u32) -> Option<u32> {
    let p = (2..=q).find(|d| q.is_multiple_of(*d))?;
    let mut rest = q;
    while rest.is_multiple_of(p) {
        rest /= p;
    }
    (rest == 1).then_some(p)
}

/// Whether there is a field of `q` elements.
pub(super) fn is_prime_power(q: u32) -> bool {
    prime_of(q).is_some()
}

/// `a + factor * b`, digit by digit to the base `p`.
fn add_multiple(p: u32, a: u32, factor: u32, b: u32) -> u32 {
    let (mut sum, mut place, mut a, mut b) = (0, 1, a, b);
    while a > 0 || b > 0 {
        sum += (a % p + factor * (b % p)) % p * place;
        (place, a, b) = (place * p, a / p, b / p);
    }
    sum
}

impl GaloisField {
    /// The field of `q` elements; `None` if `q` is no power of a prime.
    pub(super) fn new(q: u32) -> Option<GaloisField> {
        let p = prime_of(q)?;
        // A monic polynomial of degree k says what x^k is: `reduced`, of a lower degree. If the powers of x modulo this polynomial return to 1, and only after
        // q - 1 steps, they are all elements but 0. So each has an inverse, the polynomial is irreducible, and x is primitive. The first such polynomial is
        // taken; of degree 1 it gives the least primitive root.
        let powers_of_x = |reduced: u32| {
            let times_x = move |e: u32| add_multiple(p, e % (q / p) * p, e / (q / p), reduced);
            std::iter::successors(Some(1u32), move |&e| Some(times_x(e)))
        };
        let n_powers = q as usize - 1;
        let is_primitive =
            |&reduced: &u32| powers_of_x(reduced).skip(1).take(n_powers).position(|e| e == 1) == Some(n_powers - 1);
        let powers: Vec<u32> = powers_of_x((1..q).find(is_primitive)?).take(n_powers).collect();
        let mut logarithms = vec![0; q as usize];
        (0..).zip(&powers).for_each(|(log, &element)| logarithms[element as usize] = log);
        Some(GaloisField { p, q, powers, logarithms })
    }

    /// The primitive element to the power `exponent`.
    pub(super) fn power(&self, exponent: u32) -> u32 {
        self.powers[(exponent % (self.q - 1)) as usize]
    }

    /// The sum of two elements.
    pub(super) fn add(&self, a: u32, b: u32) -> u32 {
        add_multiple(self.p, a, 1, b)
    }

    /// The first element less the second.
    pub(super) fn subtract(&self, a: u32, b: u32) -> u32 {
        add_multiple(self.p, a, self.p - 1, b)
    }

    /// The product of two elements.
    pub(super) fn multiply(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.power(self.logarithms[a as usize] + self.logarithms[b as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::{GaloisField, is_prime_power};

    const PRIME_POWERS: [u32; 19] = [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 64];

    #[test]
    fn fields_have_their_axioms() {
        for q in PRIME_POWERS {
            let f = GaloisField::new(q).unwrap();
            let mut seen = vec![false; q as usize];
            (0..q - 1).for_each(|e| seen[f.power(e) as usize] = true);
            assert!(!seen[0] && seen[1..].iter().all(|&s| s), "powers of the primitive element are all but 0, q = {q}");
            for a in 0..q {
                assert_eq!((f.add(a, 0), f.multiply(a, 1), f.multiply(a, 0), f.subtract(a, a)), (a, a, 0, 0));
                for b in 0..q {
                    assert_eq!(f.add(a, b), f.add(b, a));
                    assert_eq!(f.subtract(f.add(a, b), b), a);
                    assert_eq!(f.multiply(a, b), f.multiply(b, a));
                    assert!(f.multiply(a, b) != 0 || a == 0 || b == 0, "no divisors of 0");
                    // All triples of 64 elements would be many; three of them stand for the rest.
                    for c in [1, q / 2, q - 1] {
                        assert_eq!(f.multiply(c, f.add(a, b)), f.add(f.multiply(c, a), f.multiply(c, b)), "q = {q}");
                        assert_eq!(f.multiply(f.multiply(a, b), c), f.multiply(a, f.multiply(b, c)), "q = {q}");
                        assert_eq!(f.add(f.add(a, b), c), f.add(a, f.add(b, c)), "q = {q}");
                    }
                }
            }
        }
    }

    #[test]
    fn fields_of_primes_are_numbers_modulo_the_prime() {
        for q in [2, 3, 5, 7, 13, 31, 251] {
            let f = GaloisField::new(q).unwrap();
            for (a, b) in [(0, 1), (1, q - 1), (q / 2, q / 3), (q - 1, q - 1)] {
                assert_eq!((f.add(a, b), f.multiply(a, b)), ((a + b) % q, a * b % q), "{a} and {b} modulo {q}");
            }
        }
    }

    #[test]
    fn there_are_fields_of_prime_powers_only() {
        let found: Vec<u32> =
            (0..=64).filter(|&q| is_prime_power(q)).filter(|&q| GaloisField::new(q).is_some()).collect();
        let primes = [37, 41, 43, 47, 49, 53, 59, 61];
        let mut expected: Vec<u32> = PRIME_POWERS.into_iter().chain(primes).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert!([0, 1, 6, 10, 12, 15, 36, 100, 255].iter().all(|&q| GaloisField::new(q).is_none()));
        assert!([243, 256].iter().all(|&q| GaloisField::new(q).is_some()), "the largest of slim flies");
    }
}
