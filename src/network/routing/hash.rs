//! The hash of equal-cost multipath: murmur3 over the addresses and ports of a packet.
//!
//! Layer: routing. It reproduces the reference's choice (`hash32` of docs/explanation/model-semantics.md) and has no other dependencies.

/// The properties of a flow that routing uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Number of the flow.
    pub id: u32,
    /// Rank that sends.
    pub src_rank: u32,
    /// Rank that receives.
    pub dst_rank: u32,
    /// Source port of its packets.
    pub sport: u16,
    /// Destination port of its packets.
    pub dport: u16,
}

/// The three words of a packet's key, mixed once. Each switch then only adds its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EcmpKey([u32; 3]);

/// The reference's address of the host with this node id: 11.x.y.1.
pub fn host_ip(node_id: u32) -> u32 {
    0x0b00_0001_u32.wrapping_add((node_id / 256).wrapping_mul(0x1_0000)).wrapping_add((node_id % 256) * 0x100)
}

impl EcmpKey {
    /// Key of packets from host `src_id` to host `dst_id` (node ids).
    pub fn new(src_id: u32, dst_id: u32, sport: u16, dport: u16) -> Self {
        let words = [host_ip(src_id), host_ip(dst_id), u32::from(sport) | (u32::from(dport) << 16)];
        EcmpKey(words.map(|w| w.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)))
    }

    /// murmur3_32 of the twelve key bytes with this seed.
    pub fn hash(self, seed: u32) -> u32 {
        let mut h = seed;
        for k in self.0 {
            h = (h ^ k).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
        }
        h ^= 12;
        h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
        h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
        h ^ (h >> 16)
    }
}

/// Seed of a node's choices. With routing seed 1 it is the node's id, as in the reference; other seeds shift all of them.
pub fn node_seed(node_id: u32, routing_seed: u32) -> u32 {
    node_id.wrapping_add(routing_seed.wrapping_sub(1).wrapping_mul(0x9e37_79b9))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_the_node_id() {
        assert_eq!(host_ip(0), 0x0b00_0001);
        assert_eq!(host_ip(300), 0x0b01_2c01);
    }

    #[test]
    fn hash_is_murmur3_32_of_the_little_endian_words() {
        // The hash is computed byte by byte from the published algorithm, without premixing.
        fn murmur3(bytes: &[u8; 12], seed: u32) -> u32 {
            let mut h = seed;
            for c in bytes.chunks(4) {
                let k = u32::from_le_bytes([c[0], c[1], c[2], c[3]]);
                let k = k.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
                h ^= k;
                h = h.rotate_left(13);
                h = h.wrapping_mul(5).wrapping_add(0xe654_6b64);
            }
            h ^= 12;
            h ^= h >> 16;
            h = h.wrapping_mul(0x85eb_ca6b);
            h ^= h >> 13;
            h = h.wrapping_mul(0xc2b2_ae35);
            h ^ (h >> 16)
        }
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&host_ip(3).to_le_bytes());
        bytes[4..8].copy_from_slice(&host_ip(77).to_le_bytes());
        bytes[8..].copy_from_slice(&(10_000u32 | (100 << 16)).to_le_bytes());
        assert_eq!(EcmpKey::new(3, 77, 10_000, 100).hash(42), murmur3(&bytes, 42));
    }

    #[test]
    fn routing_seed_one_is_the_reference() {
        assert_eq!(node_seed(17, 1), 17);
        assert_ne!(node_seed(17, 2), 17);
    }
}
