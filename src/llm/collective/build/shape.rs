//! Places of the members of a communicator.
//!
//! Layer: collective. Knows servers and places in them, no links.

/// Places of a communicator's members: (server, place in the server), in any numbering. Members with the same place in different servers are on one rail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Server and place of each member, in the order of members.
    pub members: Vec<(u32, u32)>,
}

impl Shape {
    /// `n` members, each in a server of its own.
    pub fn flat(n: u32) -> Shape {
        Shape { members: (0..n).map(|i| (i, 0)).collect() }
    }

    /// `servers` servers of `per_server` members, numbered server by server.
    pub fn servers(servers: u32, per_server: u32) -> Shape {
        Shape { members: (0..servers * per_server).map(|i| (i / per_server, i % per_server)).collect() }
    }

    /// Number of members.
    pub fn n(&self) -> u32 {
        self.members.len() as u32
    }

    /// Members of each server. Servers are in order of their first member, members in order of their places.
    pub fn by_server(&self) -> Vec<Vec<u32>> {
        let mut order = std::collections::BTreeMap::new();
        let mut servers: Vec<Vec<u32>> = Vec::new();
        for (i, (server, _)) in self.members.iter().enumerate() {
            let server_idx = *order.entry(*server).or_insert_with(|| {
                servers.push(Vec::new());
                servers.len() - 1
            });
            servers[server_idx].push(i as u32);
        }
        for members in &mut servers {
            members.sort_by_key(|&m| self.members[m as usize].1);
        }
        servers
    }
}
