//! Draws a network: tiers as rows, one tier as a circle, coordinates as a grid.
//!
//! Layer: plot. Places depend on the network alone, so the same network gives the same bytes.

use hyperfold_network::topology::{Network, NodeKind};

use super::error::PlotError;
use super::shape::{Anchor, Colour, FigureShape, Picture};
use super::{png, svg};

/// Most switches, and most links between them, that are drawn.
const MAX_SWITCHES: usize = 2_048;
const MAX_LINKS: usize = 40_000;
/// Most hosts that are drawn. Of larger networks only switches are.
const MAX_HOSTS: usize = 1_024;
/// Most switches of a row that get their names.
const MAX_NAMED: usize = 40;

const INK: Colour = [0x22, 0x22, 0x22];
const FAINT: Colour = [0x77, 0x77, 0x77];
const HOST: Colour = [0x99, 0x99, 0x99];
/// Colours of switches, by tier from the leaves up.
const TIERS: [Colour; 4] = [[0x1f, 0x77, 0xb4], [0xd6, 0x6b, 0x0b], [0x2c, 0x8a, 0x2c], [0x8a, 0x3f, 0xa8]];
/// Colours of links, by rate from the slowest up.
const RATES: [Colour; 5] =
    [[0xc4, 0xc9, 0xd0], [0x8f, 0xb4, 0xd9], [0xe0, 0xa9, 0x6d], [0x9c, 0xc7, 0x93], [0xbf, 0x9a, 0xd1]];

/// A drawn network.
#[derive(Clone, Debug)]
pub struct NetworkPicture(Picture);

impl NetworkPicture {
    /// The picture as an SVG file.
    pub fn to_svg(&self) -> Vec<u8> {
        svg::write(&self.0).into_bytes()
    }

    /// The picture as a PNG file, with two pixels per unit.
    ///
    /// # Errors
    /// There is not enough memory for the picture.
    pub fn to_png(&self) -> Result<Vec<u8>, PlotError> {
        png::write(&self.0)
    }
}

/// The place of a node: right and down from the upper left corner.
type Place = (f64, f64);

/// Where the nodes are, and how large the picture is. `None`: the node is not drawn.
struct NodePlaces {
    places: Vec<Option<Place>>,
    width: f64,
    height: f64,
    /// Whether links within a row bend upwards, so that they can be told apart.
    is_in_rows: bool,
    /// Centre of the circle that switches stand on.
    centre: Option<Place>,
}

/// Draws a network under this title.
///
/// # Errors
/// The network is too large to be drawn.
pub fn network_picture(net: &Network, title: &str) -> Result<NetworkPicture, PlotError> {
    let is = |kind: NodeKind| (0..net.nodes.len()).filter(move |&v| net.nodes[v].kind == kind);
    let (hosts, switches) = (is(NodeKind::Host).count(), is(NodeKind::Switch).count());
    let links = || net.links.iter().filter(|l| net.is_packet_link(l));
    let between =
        links().filter(|l| [l.a, l.b].iter().all(|&v| net.nodes[v as usize].kind == NodeKind::Switch)).count();
    if switches > MAX_SWITCHES || between > MAX_LINKS {
        return Err(PlotError::TooLarge(format!(
            "{switches} switches and {between} links between them; up to {MAX_SWITCHES} and {MAX_LINKS} are drawn. A smaller network of the same kind has the same picture"
        )));
    }
    let (names, tiers) = (net.names(), net.tiers());
    let places = places(net, &names, &tiers, hosts <= MAX_HOSTS);
    let mut rates: Vec<u64> = links().map(|l| l.rate_bps).collect();
    rates.sort_unstable();
    rates.dedup();
    let colour_of = |rate: u64| RATES[rates.iter().position(|&r| r == rate).unwrap_or(0).min(RATES.len() - 1)];
    let mut shapes = Vec::new();
    for link in links() {
        let ends = [link.a, link.b].map(|v| places.places[v as usize]);
        if let [Some(a), Some(b)] = ends {
            let same_row = places.is_in_rows && a.1 == b.1;
            let points = if same_row { arc(a, b) } else { vec![a, b] };
            shapes.push(FigureShape::Line { points, colour: colour_of(link.rate_bps), width: 0.8, dash: None });
        }
    }
    for (v, place) in places.places.iter().enumerate() {
        let Some((x, y)) = *place else { continue };
        if net.nodes[v].kind == NodeKind::Host {
            shapes.push(square((x, y), 2.2, HOST));
            continue;
        }
        let tier = (tiers[v].max(1) as usize - 1).min(TIERS.len() - 1);
        shapes.push(FigureShape::Circle { at: (x, y), radius: 4.5, fill: TIERS[tier] });
    }
    shapes.extend(labels(net, &names, &places));
    let hidden = if hosts > MAX_HOSTS { ", which are not drawn" } else { "" };
    let text = format!("{title}: {hosts} NICs{hidden}, {switches} switches, {} links", links().count());
    shapes.push(words((16.0, 24.0), text.clone(), 14.0, INK));
    legend(&rates, &colour_of, places.height, &mut shapes);
    Ok(NetworkPicture(Picture { width: places.width, height: places.height + 28.0, title: text, shapes }))
}

fn places(net: &Network, names: &[String], tiers: &[u32], with_hosts: bool) -> NodePlaces {
    let top = tiers.iter().copied().max().unwrap_or(0);
    match coordinates(net, names) {
        Some(grid) => in_grid(net, &grid, with_hosts),
        None if top <= 1 || has_leaf_links(net, tiers) => on_circle(net, with_hosts),
        None => in_rows(net, tiers, top, with_hosts),
    }
}

/// Whether switches with hosts are linked to each other, as in a dragonfly.
fn has_leaf_links(net: &Network, tiers: &[u32]) -> bool {
    net.links.iter().filter(|l| net.is_packet_link(l)).any(|l| [l.a, l.b].iter().all(|&v| tiers[v as usize] == 1))
}

/// The switch that a host is linked to first.
fn leaf_of(net: &Network) -> Vec<Option<usize>> {
    let mut leaf = vec![None; net.nodes.len()];
    for link in net.links.iter().filter(|l| net.is_packet_link(l)) {
        for (host, far) in [(link.a as usize, link.b as usize), (link.b as usize, link.a as usize)] {
            if net.nodes[host].kind == NodeKind::Host && net.nodes[far].kind == NodeKind::Switch {
                leaf[host].get_or_insert(far);
            }
        }
    }
    leaf
}

/// Rows of switches by tier, the hosts below.
fn in_rows(net: &Network, tiers: &[u32], top: u32, with_hosts: bool) -> NodePlaces {
    let row_of = |v: usize| match net.nodes[v].kind {
        NodeKind::Host => with_hosts.then_some(0),
        NodeKind::Switch => (tiers[v] > 0).then_some(tiers[v]),
        NodeKind::NvSwitch | NodeKind::Reducer => None,
    };
    let mut counts = vec![0usize; top as usize + 1];
    (0..net.nodes.len()).filter_map(row_of).for_each(|row| counts[row as usize] += 1);
    let widest = counts.iter().copied().max().unwrap_or(1);
    let width = (widest as f64 * 11.0).clamp(560.0, 8_000.0);
    let (first_y, step) = (96.0, 120.0);
    let mut next = vec![0usize; counts.len()];
    let places = (0..net.nodes.len()).map(|v| {
        let row = row_of(v)? as usize;
        next[row] += 1;
        let x = width * (next[row] as f64 - 0.5) / counts[row] as f64;
        Some((x, first_y + step * (top as usize - row) as f64))
    });
    // Names at the right end stick out.
    let (width, height) = (width + 80.0, first_y + step * f64::from(top) + 24.0);
    NodePlaces { places: places.collect(), width, height, is_in_rows: true, centre: None }
}

/// All switches on a circle in their order, hosts outside beside their switch.
fn on_circle(net: &Network, with_hosts: bool) -> NodePlaces {
    let switches: Vec<usize> = (0..net.nodes.len()).filter(|&v| net.nodes[v].kind == NodeKind::Switch).collect();
    let n = switches.len().max(1) as f64;
    let radius = (n * 12.0 / std::f64::consts::TAU).clamp(160.0, 3_000.0);
    let (margin, centre) = (120.0, radius + 120.0);
    let mut places = vec![None; net.nodes.len()];
    let turn = |i: f64| std::f64::consts::TAU * i / n - std::f64::consts::FRAC_PI_2;
    let place_at = |angle: f64, r: f64| (centre + r * libm::cos(angle), 40.0 + centre + r * libm::sin(angle));
    for (i, &v) in switches.iter().enumerate() {
        places[v] = Some(place_at(turn(i as f64), radius));
    }
    if with_hosts {
        let leaf = leaf_of(net);
        for (i, &v) in switches.iter().enumerate() {
            let own: Vec<usize> = (0..net.nodes.len()).filter(|&h| leaf[h] == Some(v)).collect();
            for (k, &h) in own.iter().enumerate() {
                let aside = (k as f64 + 0.5) / own.len() as f64 - 0.5;
                places[h] = Some(place_at(turn(i as f64 + 0.8 * aside), radius + 24.0));
            }
        }
    }
    NodePlaces {
        places,
        width: 2.0 * (radius + margin),
        height: 40.0 + 2.0 * (radius + margin),
        is_in_rows: false,
        centre: Some((centre, 40.0 + centre)),
    }
}

/// The coordinates of each switch, if all are named by two to four coordinates: `switch1.2.0`.
fn coordinates(net: &Network, names: &[String]) -> Option<Vec<Vec<f64>>> {
    let switches = names.iter().zip(&net.nodes).filter(|(_, n)| n.kind == NodeKind::Switch);
    let numbers = |name: &String| {
        let parts: Option<Vec<f64>> = name.strip_prefix("switch")?.split('.').map(|p| p.parse().ok()).collect();
        parts.filter(|p| (2..=4).contains(&p.len()))
    };
    switches.map(|(name, _)| numbers(name)).collect()
}

/// The first two dimensions across and down, the third one slanted, the fourth one as blocks side by side.
fn in_grid(net: &Network, grid: &[Vec<f64>], with_hosts: bool) -> NodePlaces {
    let size = |dim: usize| grid.iter().filter_map(|c| c.get(dim)).fold(0.0, |largest: f64, &x| largest.max(x)) + 1.0;
    let step = 46.0;
    let slant = step * 0.34;
    let block = step * size(0) + slant * (size(2) - 1.0) + step;
    let (left, top) = (48.0, 72.0 + slant * (size(2) - 1.0));
    let place = |c: &Vec<f64>| {
        let deep = c.get(2).copied().unwrap_or(0.0);
        let x = left + c.get(3).copied().unwrap_or(0.0) * block + c[0] * step + deep * slant;
        (x, top + c[1] * step - deep * slant * 0.8)
    };
    let mut places: Vec<Option<Place>> = vec![None; net.nodes.len()];
    let switches = (0..net.nodes.len()).filter(|&v| net.nodes[v].kind == NodeKind::Switch);
    for (v, c) in switches.zip(grid) {
        places[v] = Some(place(c));
    }
    if with_hosts {
        let mut hosts_of = vec![0u32; net.nodes.len()];
        for (h, leaf) in leaf_of(net).into_iter().enumerate() {
            let Some(leaf) = leaf else { continue };
            let (x, y) = places[leaf].unwrap_or_default();
            places[h] = Some((x - 4.0 + 5.0 * f64::from(hosts_of[leaf] % 6), y + 10.0));
            hosts_of[leaf] += 1;
        }
    }
    let width = left + block * size(3) + 16.0;
    NodePlaces { places, width: width.max(420.0), height: top + step * size(1) + 8.0, is_in_rows: false, centre: None }
}

/// A bow above two places of one row, the higher the farther they are apart.
fn arc(a: Place, b: Place) -> Vec<Place> {
    let height = ((b.0 - a.0).abs() * 0.12).min(60.0);
    (0..=12)
        .map(|i| {
            let t = f64::from(i) / 12.0;
            (a.0 + t * (b.0 - a.0), a.1 - 4.0 * height * t * (1.0 - t))
        })
        .collect()
}

fn square((x, y): Place, half: f64, fill: Colour) -> FigureShape {
    let points = vec![(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)];
    FigureShape::Polygon { points, fill }
}

fn words(place: Place, text: String, size: f64, colour: Colour) -> FigureShape {
    FigureShape::Text { at: place, text, size, colour, anchor: Anchor::Start, degrees: 0.0 }
}

/// Names of switches in rows with few of them.
fn labels(net: &Network, names: &[String], places: &NodePlaces) -> Vec<FigureShape> {
    let is_switch = |v: &usize| net.nodes[*v].kind == NodeKind::Switch;
    let in_row = |y: f64| {
        let is_beside = |v: &usize| places.places[*v].is_some_and(|(_, other)| !places.is_in_rows || other == y);
        (0..net.nodes.len()).filter(is_switch).filter(is_beside).count()
    };
    let mut rows: Vec<(f64, usize)> = Vec::new();
    let mut shapes = Vec::new();
    for v in (0..net.nodes.len()).filter(is_switch) {
        let Some((x, y)) = places.places[v] else { continue };
        let n = match rows.iter().find(|(row, _)| *row == y) {
            Some((_, n)) => *n,
            None => {
                rows.push((y, in_row(y)));
                rows[rows.len() - 1].1
            }
        };
        if n <= MAX_NAMED {
            let (place, anchor, degrees) = match places.centre {
                None if places.is_in_rows => ((x + 5.0, y - 7.0), Anchor::Start, -35.0),
                None => ((x + 5.0, y - 7.0), Anchor::Start, 0.0),
                // Outside the hosts of a circle.
                Some((cx, cy)) => {
                    let outward = 1.0 + 34.0 / ((x - cx) * (x - cx) + (y - cy) * (y - cy)).sqrt().max(1.0);
                    let anchor = if x >= cx { Anchor::Start } else { Anchor::End };
                    ((cx + (x - cx) * outward, cy + (y - cy) * outward + 3.0), anchor, 0.0)
                }
            };
            let text = names[v].clone();
            shapes.push(FigureShape::Text { at: place, text, size: 8.5, colour: FAINT, anchor, degrees });
        }
    }
    shapes
}

/// Rates with their colours, below the network.
fn legend(rates: &[u64], colour_of: &dyn Fn(u64) -> Colour, top: f64, shapes: &mut Vec<FigureShape>) {
    let mut x = 16.0;
    for &rate in rates.iter().take(RATES.len()) {
        let y = top + 12.0;
        let points = vec![(x, y), (x + 22.0, y)];
        shapes.push(FigureShape::Line { points, colour: colour_of(rate), width: 2.5, dash: None });
        shapes.push(words((x + 28.0, y + 4.0), format!("{} Gb/s", rate as f64 / 1e9), 11.0, INK));
        x += 110.0;
    }
}
