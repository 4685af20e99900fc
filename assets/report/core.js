"use strict";
// The page's data, and small tools for showing it. Whatever a user may have named reaches the page as text, never as markup.

const DATA = JSON.parse(document.getElementById("data").textContent);

// A column: the exact text of a row, and its number (NaN where there is none).
function column(c) {
  const text = c.text ? (row) => c.text[row] : c.of ? (row) => c.texts[c.of[row]] : (row) => c.texts[0];
  const number = (row) => { const t = text(row); return c.number && t !== "" ? Number(t) : NaN; };
  return { name: c.name, isNumber: c.number, text, number, empty: c.texts ? c.texts.every((t) => t === "") : false };
}
const COLUMNS = DATA.columns.map(column);
const STATS = DATA.stats.map(column);
const BY_NAME = new Map(COLUMNS.concat(STATS).map((c) => [c.name, c]));
const AXES = COLUMNS.slice(DATA.axes[0], DATA.axes[1]);
const ROWS = Array.from({ length: DATA.rows }, (_, row) => row);
const text = (name, row) => { const c = BY_NAME.get(name); return c ? c.text(row) : ""; };
const number = (name, row) => { const c = BY_NAME.get(name); return c ? c.number(row) : NaN; };

// Configurations: the replicas of one are its members.
const N_CONFIGURATIONS = DATA.design.group.length;
const members = (c) => (DATA.design.members ? DATA.design.members[c] : [c]);
const firstRow = (c) => members(c)[0];
const CONFIGURATION_OF = new Array(DATA.rows);
for (let c = 0; c < N_CONFIGURATIONS; c++) for (const row of members(c)) CONFIGURATION_OF[row] = c;

// The mean of a metric over a configuration's replicas; without replicas the result itself.
const mean = (m, c) => {
  if (!DATA.means) return text("status", c) === "ok" ? number(DATA.metrics[m].name, c) : NaN;
  const value = DATA.means[m].mean[c];
  return value === null ? NaN : value;
};
const half = (m, c) => (DATA.means ? DATA.means[m].half[c] : null);

// Names of axes without what they have in common: the last part where that is unique.
const SHORT = (() => {
  const last = (key) => key.startsWith("job.") ? key.slice(4) : key.split(".").pop();
  const count = new Map();
  for (const a of DATA.design.axes) count.set(last(a.key), (count.get(last(a.key)) || 0) + 1);
  return DATA.design.axes.map((a) => (count.get(last(a.key)) === 1 ? last(a.key) : a.key));
})();
const ANSWERS = DATA.design.axes.map((a, at) => at).filter((at) => !DATA.design.axes[at].question);
// Why no experiment in view simulated an axis; null where one did.
const whyNotSimulated = (at) => {
  const axis = DATA.design.axes[at];
  return axis.notSimulated || (state.group >= 0 && axis.notSimulatedIn ? axis.notSimulatedIn[state.group] : null);
};
// What groups are, as words for one and for several: workloads, or ways of simulating.
const [KIND, KINDS] = DATA.design.kinds;
const shown = (value) => (value === "" ? "(empty)" : value);
// What a configuration answers, in words.
const describe = (c) => ANSWERS.map((a) => SHORT[a] + " " + shown(AXES[a].text(firstRow(c)))).join(", ") || "experiment " + text("exp_id", firstRow(c));
// What is recommended, in words: of axes that were simulated alone.
const describeDesign = (c) => ANSWERS.filter((a) => !whyNotSimulated(a)).map((a) => SHORT[a] + " " + shown(AXES[a].text(firstRow(c)))).join(", ") || describe(c);
// US dollars, four digits.
const usd = (x) => (x >= 999950 ? "$" + digits(x / 1e6, 4) + " million" : "$" + digits(x, 4));
// The same, shorter: words speak for themselves, numbers and flags need their axis's name.
const speaks = (value) => !/^(|true|false|[-+.\d].*)$/.test(value);
const brief = (c) => ANSWERS.map((a) => { const v = AXES[a].text(firstRow(c)); return speaks(v) ? v : SHORT[a] + " " + shown(v); }).join(" · ") || "experiment " + text("exp_id", firstRow(c));
// The same of several, without the axes in which they are alike.
function briefs(configurations) {
  const differ = ANSWERS.filter((a) => new Set(configurations.map((c) => AXES[a].text(firstRow(c)))).size > 1);
  const of = (c) => differ.map((a) => { const v = AXES[a].text(firstRow(c)); return speaks(v) ? v : SHORT[a] + " " + shown(v); }).join(" · ");
  return configurations.map((c) => (configurations.length > 1 && differ.length ? of(c) : brief(c)));
}
const groupName = (g) => DATA.design.groups[g] || "all experiments";

// What the reader has chosen; sections that depend on it are drawn anew.
const state = { metric: 0, group: DATA.design.groups.length > 1 ? -1 : 0 };
const redraw = [];
const metric = () => DATA.metrics[state.metric];
const ranking = (g) => DATA.rankings[g][state.metric];
// Groups in view: the chosen one, or all.
const groupsInView = () => (state.group >= 0 ? [state.group] : DATA.design.groups.map((_, g) => g));
// Configurations in view, best first: by turns where several groups are in view.
function inView() {
  const orders = groupsInView().map((g) => (DATA.metrics.length ? ranking(g).order : []));
  if (orders.length === 1) return orders[0];
  const out = [];
  const longest = orders.reduce((n, o) => Math.max(n, o.length), 0);
  for (let i = 0; i < longest; i++) for (const o of orders) if (i < o.length) out.push(o[i]);
  return out;
}
const labelInView = (c) => (state.group < 0 && DATA.design.groups.length > 1 ? groupName(DATA.design.group[c]) + " | " : "") + brief(c);

// Elements. Children are elements or texts.
function append(node, children) {
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child.nodeType ? child : document.createTextNode(String(child)));
  return node;
}
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  return append(node, children);
}
function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) if (value !== null && value !== undefined) node.setAttribute(name, value);
  return append(node, children);
}
const clear = (node) => { node.replaceChildren(); return node; };
function select(id, labelled, options, value, change) {
  const node = el("select", { id, onchange: () => change(Number(node.value)) }, options.map(([v, t]) => el("option", { value: v, selected: v === value }, t)));
  return [el("label", { for: id }, labelled), node];
}

// Numbers for people: four digits. Cells of tables have the exact text as their title.
function digits(x, n) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e7 || size < 1e-4) return x.toExponential(n - 1);
  return Number(x.toPrecision(n)).toLocaleString("en", { maximumSignificantDigits: n });
}
function format(x, unit) {
  if (x === null || !Number.isFinite(x)) return "–";
  const scaled = (steps) => {
    const step = steps.find(([size]) => Math.abs(x) >= size) || steps[steps.length - 1];
    return digits(x / step[0], 4) + " " + step[1];
  };
  if (unit === "ns") return scaled([[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  if (unit === "bytes") return scaled([[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]]);
  if (unit === "share") return digits(x * 100, 4) + " %";
  if (unit === "gbps") return digits(x, 4) + " Gb/s";
  return digits(x, 4);
}
const percent = (x) => (x > 0 ? "+" : x < 0 ? "−" : "") + digits(Math.abs(x) * 100, 3) + " %";
const share = (x) => digits(x * 100, 3) + " %";
const plural = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);
// A cell of a column of results: four digits where the number has a unit or a fraction; counts, identifiers and texts as they are.
const cell = (c, row) => {
  const text = c.text(row), x = c.number ? c.number(row) : NaN;
  return Number.isFinite(x) && (unitOf(c.name) !== "" || text.includes(".")) ? format(x, unitOf(c.name)) : text;
};
// The unit of a column, from its name.
const unitOf = (name) => (name.endsWith("_ns") ? "ns" : name.endsWith("_bytes") ? "bytes" : name.endsWith("_gbps") ? "gbps" : /(^|_)(share|utilisation|goodput|mfu)$|^within_bounds$/.test(name) ? "share" : "");
