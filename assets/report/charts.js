// Pictures, as SVG of a fixed coordinate width that scales with the page.

const WIDTH = 1180, LEFT = 330, RIGHT = 110;
const COLOURS = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => "var(--c" + i + ")");
const picture = (width, height, label) => svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
// Text that would leave its place is shortened in its middle; the whole is in the tooltip. A label is a name and then its value: the value, which tells
// labels apart, stays.
function fitted(t, x, y, width, attributes) {
  const most = Math.max(4, Math.floor(width / 6.3));
  const head = Math.floor(most / 3), tail = most - 1 - head;
  const node = svg("text", Object.assign({ x, y }, attributes), t.length > most ? t.slice(0, head) + "…" + t.slice(t.length - tail) : t);
  if (t.length > most) node.append(svg("title", {}, t));
  return node;
}
// Round numbers between two ends, about n of them.
function ticks(low, high, n, unit) {
  if (!(high > low)) return [low];
  // Of bytes, powers of two apart: 64 KiB, 128 KiB.
  if (unit === "bytes") {
    const step = Math.max(1, 2 ** Math.ceil(Math.log2((high - low) / n))), out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(k * step);
    return out;
  }
  const rough = (high - low) / n, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((s) => s * size >= rough) * size;
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(k * step);
  return out;
}
// On a logarithmic axis: 1, 2 and 5 of each power of ten; of bytes powers of two.
function decades(low, high, unit) {
  if (unit === "bytes") {
    const powers = [];
    for (let e = Math.ceil(Math.log2(low) - 1e-9); 2 ** e <= high * 1.001; e++) powers.push(2 ** e);
    const every = Math.ceil(powers.length / 8);
    return powers.filter((_, at) => at % every === 0);
  }
  const out = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) for (const s of [1, 2, 5]) out.push(s * 10 ** e);
  const inside = out.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  return inside.length > 8 ? inside.filter((v) => /^1(e|0*$)/.test(String(v)) || /^0\.0*1$/.test(String(v))) : inside;
}
const linear = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);
const logarithmic = (low, high, from, to) => (v) => from + (Math.log(v / low) / (Math.log(high / low) || 1)) * (to - from);
const legend = (names) => el("div", { class: "legend" }, names.map(([name, colour]) => el("span", {}, el("i", { style: "background:" + colour }), name)));

// Rows of stacked bars: items { label, parts: [value], titles: [text], note }; a name and a colour for each part.
function stackedBars(items, names, colours, unit, label) {
  const rowHeight = 22, height = items.length * rowHeight + 26;
  const most = items.reduce((m, it) => Math.max(m, it.parts.reduce((a, b) => a + b, 0)), 0) || 1;
  const x = linear(0, most, LEFT, WIDTH - RIGHT);
  const pic = picture(WIDTH, height, label);
  for (const t of ticks(0, most, 6, unit)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 22 }), svg("text", { class: "t", x: x(t), y: height - 8, "text-anchor": "middle" }, format(t, unit)));
  items.forEach((it, at) => {
    const y = at * rowHeight;
    pic.append(fitted(it.label, LEFT - 10, y + 15, LEFT - 12, { "text-anchor": "end", class: "label" }));
    let sum = 0;
    it.parts.forEach((value, part) => {
      if (!(value > 0)) return;
      pic.append(svg("rect", { x: x(sum), y: y + 3, width: Math.max(0.5, x(sum + value) - x(sum)), height: rowHeight - 7, fill: colours[part] }, svg("title", {}, it.label + ": " + names[part] + " " + it.titles[part])));
      sum += value;
    });
    pic.append(svg("text", { class: "t", x: x(sum) + 6, y: y + 15 }, it.note));
  });
  return pic;
}

// Levels of one axis with the interval from replicas, and how far it went in any combination with the other axes.
function effectPicture(effect, levels, unit, better) {
  const width = 570, left = 190, rowHeight = 24, height = effect.levels.length * rowHeight + 28;
  const ends = effect.levels.flatMap((l) => [l.effect, ...(l.interval || []), ...l.range]).concat([0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const x = linear(low, high === low ? low + 1 : high, left, width - 78);
  const value = (v) => (effect.ratio ? percent(v) : (v > 0 ? "+" : "") + format(v, unit));
  const pic = picture(width, height, "Effect of each level");
  for (const t of ticks(low, high, 4, effect.ratio ? "" : unit)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 22 }), svg("text", { class: "t", x: x(t), y: height - 8, "text-anchor": "middle" }, value(t)));
  pic.append(svg("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: height - 22 }));
  effect.levels.forEach((l, at) => {
    const y = at * rowHeight + 12;
    const good = better === "more" ? l.effect > 0 : l.effect < 0;
    const colour = l.effect === 0 ? "var(--soft)" : good ? "var(--good)" : "var(--bad)";
    const told = shown(levels[l.level]) + ": " + value(l.effect) + " against the average of all levels" + (l.interval ? ", 95 % interval " + value(l.interval[0]) + " to " + value(l.interval[1]) : "") + "; between " + value(l.range[0]) + " and " + value(l.range[1]) + " in combination with other axes; " + plural(l.n, "configuration", "configurations");
    pic.append(
      fitted(shown(levels[l.level]), left - 12, y + 4, left - 14, { "text-anchor": "end" }),
      svg("line", { x1: x(l.range[0]), x2: Math.max(x(l.range[1]), x(l.range[0]) + 1), y1: y, y2: y, stroke: colour, "stroke-width": 9, "stroke-opacity": 0.2 }),
      l.interval ? svg("path", { d: "M" + x(l.interval[0]) + " " + (y - 5) + "v10M" + x(l.interval[1]) + " " + (y - 5) + "v10M" + x(l.interval[0]) + " " + y + "H" + x(l.interval[1]), stroke: colour, "stroke-width": 1.6, fill: "none", class: "errorbar" }) : "",
      svg("circle", { cx: x(l.effect), cy: y, r: 4.5, fill: colour }, svg("title", {}, told)),
      svg("text", { class: "t", x: width - 4, y: y + 4, "text-anchor": "end" }, value(l.effect)));
  });
  return pic;
}

// One bar an axis, from its best level to its worst, the longest on top.
function tornado(effects, unit, more) {
  const rowHeight = 34, height = effects.length * rowHeight + 26, left = 210;
  const all = effects.flatMap((e) => e.levels.flatMap((l) => [l.effect, ...(l.interval || [])]));
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const x = linear(low, high === low ? low + 1 : high, left + 150, WIDTH - 190);
  const ratio = effects.every((e) => e.ratio);
  const value = (v) => (ratio ? percent(v) : (v > 0 ? "+" : "") + format(v, unit));
  const pic = picture(WIDTH, height, "Axes by how much they change the metric");
  for (const t of ticks(low, high, 6, ratio ? "" : unit)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 22 }), svg("text", { class: "t", x: x(t), y: height - 8, "text-anchor": "middle" }, value(t)));
  effects.forEach((e, at) => {
    const y = at * rowHeight, levels = DATA.design.axes[e.axis].levels;
    const least = e.levels.reduce((a, b) => (b.effect < a.effect ? b : a)), most = e.levels.reduce((a, b) => (b.effect > a.effect ? b : a));
    const side = (l, colour) => svg("rect", { x: Math.min(x(0), x(l.effect)), y: y + 6, width: Math.max(1, Math.abs(x(l.effect) - x(0))), height: rowHeight - 14, fill: colour, class: "tornado" }, svg("title", {}, DATA.design.axes[e.axis].key + " = " + shown(levels[l.level]) + ": " + value(l.effect)));
    const whisker = (l) => (l.interval ? svg("path", { d: "M" + x(l.interval[0]) + " " + (y + 16) + "H" + x(l.interval[1]) + "M" + x(l.interval[0]) + " " + (y + 11) + "v10M" + x(l.interval[1]) + " " + (y + 11) + "v10", stroke: "var(--ink)", "stroke-width": 1.3, fill: "none" }) : "");
    pic.append(fitted(DATA.design.axes[e.axis].key, left, y + 20, left, { "text-anchor": "end" }),
      side(least, more ? "var(--bad)" : "var(--good)"), side(most, more ? "var(--good)" : "var(--bad)"), whisker(least), whisker(most),
      fitted(shown(levels[least.level]), Math.min(x(least.effect), x((least.interval || [0])[0])) - 8, y + 20, 140, { class: "t", "text-anchor": "end" }),
      fitted(shown(levels[most.level]), Math.max(x(most.effect), x((most.interval || [0, 0])[1])) + 8, y + 20, 180, { class: "t" }));
  });
  pic.append(svg("line", { class: "axis", x1: x(0), x2: x(0), y1: 0, y2: height - 22 }));
  return pic;
}

// Points of two metrics and their front. The nearest point to the pointer is told below.
function scatter(points, front, mx, my, tell) {
  const width = 900, height = 420, box = { l: 96, r: 20, t: 12, b: 46 };
  const range = (of, from, to, unit) => {
    const [low, high] = of.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    const log = low > 0 && high / low > 50;
    const pad = (high - low || Math.abs(high) || 1) * 0.04;
    return log ? { at: logarithmic(low, high, from, to), ticks: decades(low, high, unit) } : { at: linear(low - pad, high + pad, from, to), ticks: ticks(low - pad, high + pad, 6, unit) };
  };
  const x = range(points.map((p) => p.x), box.l, width - box.r, mx.unit), y = range(points.map((p) => p.y), height - box.b, box.t, my.unit);
  const pic = picture(width, height, mx.label + " against " + my.label);
  for (const t of x.ticks) pic.append(svg("line", { class: "grid", x1: x.at(t), x2: x.at(t), y1: box.t, y2: height - box.b }), svg("text", { class: "t", x: x.at(t), y: height - box.b + 16, "text-anchor": "middle" }, format(t, mx.unit)));
  for (const t of y.ticks) pic.append(svg("line", { class: "grid", x1: box.l, x2: width - box.r, y1: y.at(t), y2: y.at(t) }), svg("text", { class: "t", x: box.l - 8, y: y.at(t) + 4, "text-anchor": "end" }, format(t, my.unit)));
  pic.append(svg("text", { x: (box.l + width) / 2, y: height - 6, "text-anchor": "middle" }, mx.label + (mx.more ? " (more is better)" : " (less is better)")));
  pic.append(svg("text", { transform: "translate(14 " + height / 2 + ") rotate(-90)", "text-anchor": "middle" }, my.label + (my.more ? " (more is better)" : " (less is better)")));
  // All points are one path: ten thousand of them cost no more than one element.
  const dots = points.map((p) => "M" + x.at(p.x).toFixed(1) + " " + y.at(p.y).toFixed(1) + "h0").join("");
  pic.append(svg("path", { d: dots, stroke: "var(--c7)", "stroke-width": 5, "stroke-linecap": "round", "stroke-opacity": 0.55, fill: "none", class: "points" }));
  const on = points.filter((p) => front.has(p.c)).sort((a, b) => a.x - b.x);
  pic.append(svg("path", { d: on.map((p, at) => (at ? "L" : "M") + x.at(p.x).toFixed(1) + " " + y.at(p.y).toFixed(1)).join(""), stroke: "var(--accent)", "stroke-width": 1.5, fill: "none", class: "front" }));
  pic.append(svg("path", { d: on.map((p) => "M" + x.at(p.x).toFixed(1) + " " + y.at(p.y).toFixed(1) + "h0").join(""), stroke: "var(--accent)", "stroke-width": 10, "stroke-linecap": "round", fill: "none" }));
  pic.addEventListener("pointermove", (event) => {
    const frame = pic.getBoundingClientRect();
    const [px, py] = [((event.clientX - frame.left) / frame.width) * width, ((event.clientY - frame.top) / frame.height) * height];
    let best = null, nearest = Infinity;
    for (const p of points) {
      const d = (x.at(p.x) - px) ** 2 + (y.at(p.y) - py) ** 2;
      if (d < nearest) [best, nearest] = [p, d];
    }
    tell(nearest < 900 ? best : null);
  });
  return pic;
}

// Distributions as lines: series { label, colour, values: [number at each percent] }.
function distributions(series, percents, unit) {
  const width = 900, height = 360, box = { l: 60, r: 20, t: 10, b: 44 };
  const all = series.flatMap((s) => s.values).filter((v) => v > 0);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const log = high / low > 20;
  const x = log ? logarithmic(low, high, box.l, width - box.r) : linear(low, high === low ? low + 1 : high, box.l, width - box.r);
  const y = linear(0, 100, height - box.b, box.t);
  const pic = picture(width, height, "Cumulative distributions of flow completion times");
  for (const t of log ? decades(low, high) : ticks(low, high, 7)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: box.t, y2: height - box.b }), svg("text", { class: "t", x: x(t), y: height - box.b + 16, "text-anchor": "middle" }, format(t, unit)));
  for (const t of [0, 25, 50, 75, 99]) pic.append(svg("line", { class: "grid", x1: box.l, x2: width - box.r, y1: y(t), y2: y(t) }), svg("text", { class: "t", x: box.l - 8, y: y(t) + 4, "text-anchor": "end" }, t + " %"));
  pic.append(svg("text", { x: (box.l + width) / 2, y: height - 6, "text-anchor": "middle" }, "flow completion time" + (log ? " (logarithmic)" : "") + "; share of flows that took no longer"));
  for (const s of series) {
    const d = s.values.map((v, at) => (at ? "L" : "M") + x(v > 0 ? v : low).toFixed(1) + " " + y(percents[at]).toFixed(1)).join("");
    pic.append(svg("path", { d, stroke: s.colour, "stroke-width": 1.8, fill: "none", class: "cdf" }, svg("title", {}, s.label)));
  }
  return pic;
}

// Median, 99th percentile and maximum, a line each: items { label, values: [p50, p99, max] }.
function ranges(items, unit) {
  const rowHeight = 22, height = items.length * rowHeight + 26;
  const all = items.flatMap((it) => it.values).filter((v) => v > 0);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const log = high / low > 20;
  const x = log ? logarithmic(low, high, LEFT + 6, WIDTH - RIGHT) : linear(0, high, LEFT, WIDTH - RIGHT);
  const pic = picture(WIDTH, height, "Median, 99th percentile and longest flow completion time");
  for (const t of log ? decades(low, high) : ticks(0, high, 6)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 22 }), svg("text", { class: "t", x: x(t), y: height - 8, "text-anchor": "middle" }, format(t, unit)));
  items.forEach((it, at) => {
    const y = at * rowHeight + 11;
    const [p50, p99, max] = it.values.map((v) => (v > 0 ? x(v) : x(low)));
    pic.append(fitted(it.label, LEFT - 10, y + 4, LEFT - 12, { "text-anchor": "end", class: "label" }),
      svg("line", { x1: p50, x2: max, y1: y, y2: y, stroke: "var(--c7)", "stroke-width": 2 }),
      svg("circle", { cx: p50, cy: y, r: 4.5, fill: COLOURS[0] }, svg("title", {}, "median " + format(it.values[0], unit))),
      svg("circle", { cx: p99, cy: y, r: 4.5, fill: COLOURS[1] }, svg("title", {}, "99th percentile " + format(it.values[1], unit))),
      svg("line", { x1: max, x2: max, y1: y - 6, y2: y + 6, stroke: COLOURS[4], "stroke-width": 3 }, svg("title", {}, "longest " + format(it.values[2], unit))),
      svg("text", { class: "t", x: WIDTH - RIGHT + 12, y: y + 4 }, format(it.values[2], unit)));
  });
  return pic;
}

// Rows of cells, darker for more: items { label, values, note, title(cell) }.
function heatMap(items, most, label) {
  const rowHeight = 18, height = items.length * rowHeight + 4;
  const pic = picture(WIDTH, height, label);
  items.forEach((it, at) => {
    const y = at * rowHeight, cell = (WIDTH - RIGHT - LEFT) / it.values.length;
    pic.append(fitted(it.label, LEFT - 10, y + 13, LEFT - 12, { "text-anchor": "end", class: "label" }), svg("rect", { x: LEFT, y: y + 1, width: WIDTH - RIGHT - LEFT, height: rowHeight - 2, fill: "var(--panel)" }));
    it.values.forEach((v, k) => {
      const strength = most > 0 ? Math.min(1, v / most) : 0;
      pic.append(svg("rect", { x: (LEFT + k * cell).toFixed(2), y: y + 1, width: (cell + 0.3).toFixed(2), height: rowHeight - 2, fill: "var(--heat)", "fill-opacity": strength.toFixed(3) }, svg("title", {}, it.title(k))));
    });
    pic.append(svg("text", { class: "t", x: WIDTH - RIGHT + 8, y: y + 13 }, it.note));
  });
  return pic;
}

// The best configurations as bars from 0, with what each may be off by: items { label, value, error, note, best }.
function rankingBars(items, tickText, unit, label) {
  const width = 660, left = 270, right = 92, rowHeight = items.length > 8 ? 24 : 30, height = items.length * rowHeight + 26;
  const most = items.reduce((m, it) => Math.max(m, it.value + it.error), 0) || 1;
  const x = linear(0, most, left, width - right);
  const pic = picture(width, height, label);
  for (const t of ticks(0, most, 4, unit)) pic.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height - 22 }), svg("text", { class: "t", x: x(t), y: height - 7, "text-anchor": "middle" }, tickText(t)));
  items.forEach((it, at) => {
    const y = at * rowHeight, middle = y + rowHeight / 2 - 1;
    pic.append(
      fitted(it.label, left - 10, middle + 4, left - 12, { "text-anchor": "end", class: "label" }),
      svg("rect", { x: left, y: y + 4, width: Math.max(1, x(it.value) - left), height: rowHeight - 10, rx: 2, fill: it.best ? "var(--good)" : "var(--c0)", class: "ranked" }, svg("title", {}, it.label + ": " + it.note)));
    if (it.error > 0) {
      const [low, high] = [x(Math.max(0, it.value - it.error)), x(it.value + it.error)];
      pic.append(svg("path", { d: "M" + low + " " + middle + "H" + high + "M" + low + " " + (middle - 5) + "v10M" + high + " " + (middle - 5) + "v10", stroke: "var(--ink)", "stroke-width": 1.4, fill: "none", class: "ranked-error" }));
    }
    pic.append(svg("text", { class: "t", x: x(it.value + it.error) + 6, y: middle + 4 }, it.note));
  });
  return pic;
}

// A network's tiers, hosts at the bottom, its links darker the busier they are.
const TIER_NAMES = { host: ["host", "hosts"], leaf: ["leaf", "leaves"], switch: ["switch", "switches"], agg: ["aggregation switch", "aggregation switches"], spine: ["spine", "spines"], core: ["core", "cores"] };
function topologySketch(sketch) {
  const width = 500, left = 12, right = 12, gap = sketch.tiers.length > 3 ? 66 : 84, height = (sketch.tiers.length - 1) * gap + 62;
  const y = (tier) => height - 34 - tier * gap;
  const x = (tier, at) => { const n = sketch.tiers[tier][2].length; return left + ((at + 0.5) / n) * (width - left - right); };
  const pic = picture(width, height, "Topology of the best configuration");
  // Links of about the same use are one path each.
  const shades = new Map();
  for (const [a, i, b, k, busy] of sketch.links) {
    const shade = Math.min(10, Math.ceil(busy * 10));
    // Between switches of one tier, an arc.
    const line = a === b ? "M" + x(a, i).toFixed(1) + " " + y(a) + "Q" + ((x(a, i) + x(b, k)) / 2).toFixed(1) + " " + (y(a) - 26) + " " + x(b, k).toFixed(1) + " " + y(b) : "M" + x(a, i).toFixed(1) + " " + y(a) + "L" + x(b, k).toFixed(1) + " " + y(b);
    shades.set(shade, (shades.get(shade) || "") + line);
  }
  for (const [shade, d] of [...shades].sort((a, b) => a[0] - b[0])) pic.append(svg("path", { d, fill: "none", stroke: shade ? "var(--heat)" : "var(--line)", "stroke-opacity": shade ? (0.12 + 0.085 * shade).toFixed(2) : 1, "stroke-width": 1.1, class: "sketched" }, svg("title", {}, shade ? "links used to " + (shade - 1) * 10 + " to " + shade * 10 + " %" : "idle links")));
  sketch.tiers.forEach(([kind, n, numbers], tier) => {
    const size = kind === "host" ? 5 : Math.max(7, Math.min(16, 220 / numbers.length));
    numbers.forEach((number, at) => pic.append(svg("rect", { x: (x(tier, at) - size / 2).toFixed(1), y: y(tier) - size / 2, width: size, height: size, rx: kind === "host" ? 1 : 2, fill: kind === "host" ? "var(--soft)" : "var(--c0)", stroke: "var(--paper)" }, svg("title", {}, kind + number))));
    const told = plural(n, ...TIER_NAMES[kind]) + (numbers.length < n ? ", the first " + numbers.length + " drawn" : "");
    pic.append(svg("text", { class: "t", x: tier === 0 ? width / 2 : left, y: tier === 0 ? height - 10 : y(tier) - 12, "text-anchor": tier === 0 ? "middle" : "start" }, told));
  });
  return pic;
}
