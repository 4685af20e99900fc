// The page's sections, in order. Each says why it is empty and what would fill it.

const none = (...children) => el("p", { class: "none" }, children);
const key = (name) => el("code", {}, name);
const MANIFEST = DATA.manifest;
// What stands above cells that have units of their own, such as ms: the column's name without its unit. Pointing at it shows the full name.
const heading = (name) => name.replace(/_(ns|bytes|gbps)$/, "");
// Where a chart shows single experiments although configurations have replicas.
const oneOfReplicas = () => (DATA.means ? el("p", { class: "soft replica" }, "Of each configuration this shows one experiment, the first replica that completed; the ranking above is by means over replicas.") : null);
const okFirst = (c) => members(c).find((row) => text("status", row) === "ok");

function headline() {
  if (!DATA.rows) return [none("The run has no results yet.")];
  if (!DATA.metrics.length) return [none("No experiment has a result that could be ranked; see the failures below.")];
  return [...searched(), ...kneesOfAll(), ...(state.group >= 0 ? [winner(state.group)] : winnersOfAll())];
}

function rankingTable() {
  const places = new Map();
  if (DATA.metrics.length) for (const g of groupsInView()) for (const [c, p] of placeOf(g, state.metric)) places.set(c, p);
  const rows = ROWS.filter((row) => state.group < 0 || DATA.design.group[CONFIGURATION_OF[row]] === state.group);
  const place = (row) => places.get(CONFIGURATION_OF[row]);
  const bests = new Map(groupsInView().map((g) => [g, DATA.metrics.length && ranking(g).verdict ? ranking(g).verdict.best : undefined]));
  const distance = (row) => {
    if (!DATA.metrics.length) return NaN;
    const c = CONFIGURATION_OF[row], best = bests.get(DATA.design.group[c]);
    return best === undefined || !places.has(c) ? NaN : mean(state.metric, c) / mean(state.metric, best) - 1;
  };
  const main = new Set(["exp_id", "status", "validated_error", ...DATA.metrics.slice(0, 6).map((m) => m.name), DATA.metrics.length ? metric().name : ""].concat(AXES.map((a) => a.name)));
  if (DATA.means) main.add("replica");
  const columns = [
    { title: "rank", text: (row) => (place(row) ? place(row).place + (place(row).tied > 1 ? "=" : "") : ""), number: (row) => (place(row) ? place(row).place : NaN) },
    { title: "from best", text: (row) => { const d = distance(row); return Number.isFinite(d) ? (d === 0 ? "0 %" : percent(d)) : ""; }, number: distance },
    ...COLUMNS.filter((c) => !c.empty).map((c) => ({ title: c.name, heading: AXES.includes(c) ? c.name : heading(c.name), text: c.text, number: c.isNumber ? c.number : null, shown: AXES.includes(c) ? null : (row) => cell(c, row), optional: !main.has(c.name), wide: c.name === "error" || c.name.startsWith("validated_") })),
  ];
  const filters = DATA.design.axes.map((a, at) => ({ axis: AXES[at], title: SHORT[at], values: a.binned ? [] : a.levels })).filter((f) => f.values.length > 1 && f.values.length <= 64);
  return [
    el("p", { class: "soft" }, "One row an experiment, with columns of results.csv; point at a number for all its digits. " + (DATA.design.groups.length > 1 ? "Ranks count within a " + KIND + ". " : "") + "An equals sign marks configurations that are tied: they differ by no more than the standard deviation of their replicas, an audited error, or 0.01 %."),
    ...dataTable({ id: "ranking", rows, columns, filters, search: true, sort: [0, 1], pageSize: 15, first: (row) => place(row) && place(row).place === 1 }),
  ];
}

function effectsSection() {
  if (!DATA.metrics.length) return [none("There is nothing to compare.")];
  const of = DATA.effects[state.metric];
  const effects = state.group < 0 ? of.all : of.groups[state.group];
  if (effects === undefined) return [none("Effects are computed for the first " + of.groups.length + " " + KINDS + " and for all together.")];
  if (!effects || !effects.length) return [none("No axis has two values with results", ". An axis with several values, for example ", key("topology.kind = [\"fat-tree\", \"clos\"]"), ", has an effect.")];
  const m = metric();
  const asks = (e) => DATA.design.axes[e.axis].question;
  const answers = effects.filter((e) => !asks(e) && !whyNotSimulated(e.axis));
  const unsimulated = ANSWERS.filter(whyNotSimulated).map((a) => DATA.design.axes[a].key);
  const partial = state.group < 0 ? answers.filter((e) => DATA.design.axes[e.axis].notSimulatedIn).map((e) => DATA.design.axes[e.axis].key) : [];
  const unmatched = effects.filter((e) => !e.matched).map((e) => DATA.design.axes[e.axis].key);
  const undrawn = DATA.design.axes.filter((a) => a.levels.length > 64).map((a) => a.key);
  const bars = effects.some((e) => e.levels.some((l) => l.interval));
  return [
    el("p", { class: "soft" }, "How far each value of an axis is from the average of the axis's values, with all other axes the same, averaged over all their values: " + (m.more ? "more" : "less") + " is better. " + (effects[0].ratio ? "In per cent of " : "In the unit of ") + m.label + "."),
    el("h3", {}, "All axes (tornado)"), answers.length ? tornado(answers, m.unit, m.more) : none(unsimulated.length ? "No axis that tries answers was simulated." : "The sweep varies only what is asked, no answer to it."),
    el("h3", {}, "Each axis"),
    el("p", { class: "soft" }, (bars ? "Brackets: 95 % interval from replicas. " : DATA.means ? "There are no error bars because all replicas gave the same. " : "There are no error bars because nothing was repeated (sweep.replicas = 3 would give them where anything depends on the seed). ") + "Pale bars: from the least to the most in any combination with the other axes."),
    unmatched.length ? el("p", { class: "soft" }, "Of " + unmatched.join(", ") + " no two experiments differ in nothing else, so averages are compared, whatever else varied.") : null,
    unsimulated.length ? el("p", { class: "soft" }, "Not drawn, not being simulated: " + unsimulated.join(", ") + ".") : null,
    partial.length ? el("p", { class: "soft" }, "Taken only over ways of simulating that simulate it: " + partial.join(", ") + ".") : null,
    undrawn.length ? el("p", { class: "soft" }, "Not drawn, having more than 64 values: " + undrawn.join(", ") + ".") : null,
    el("div", { class: "pair" }, answers.concat(effects.filter(asks)).map((e) => el("div", { class: "effect" }, el("h3", {}, DATA.design.axes[e.axis].key + (DATA.design.axes[e.axis].question ? " (what is asked)" : "")), effectPicture(e, DATA.design.axes[e.axis].levels, m.unit, m.more ? "more" : "less")))),
  ];
}

// Time against what it takes: a second metric that does not simply follow the first.
const costly = ["peak_memory_bytes", "max_queue_bytes"].map((name) => DATA.metrics.findIndex((m) => m.name === name)).find((at) => at > 0);
// A search has said which two.
const chosenPair = { a: 0, b: (DATA.search && DATA.search.fronts ? 1 : costly) || 1 };
function paretoSection(holder) {
  if (DATA.metrics.length < 2) return [none("A front needs two metrics that vary; this sweep has " + DATA.metrics.length + ".")];
  const again = () => { const drawn = paretoSection(holder); append(clear(holder), drawn); };
  const options = DATA.metrics.map((m, at) => [at, m.label]);
  const group = Math.max(state.group, 0);
  const controls = el("div", { class: "bar" }, select("pareto-a", "first metric", options, chosenPair.a, (v) => { chosenPair.a = v; again(); }), select("pareto-b", "second metric", options, chosenPair.b, (v) => { chosenPair.b = v; again(); }));
  if (chosenPair.a === chosenPair.b) return [controls, none("Choose two different metrics.")];
  const [low, high] = [Math.min(chosenPair.a, chosenPair.b), Math.max(chosenPair.a, chosenPair.b)];
  const fronts = DATA.pareto[group];
  if (!fronts) return [controls, none("Fronts are computed for the first " + DATA.pareto.length + " " + KINDS + ".")];
  const front = fronts[low][high - low - 1], on = new Set(front);
  const points = [];
  for (let c = 0; c < N_CONFIGURATIONS; c++) {
    if (DATA.design.group[c] !== group) continue;
    const [x, y] = [mean(chosenPair.a, c), mean(chosenPair.b, c)];
    if (Number.isFinite(x) && Number.isFinite(y)) points.push({ c, x, y });
  }
  const [ma, mb] = [DATA.metrics[chosenPair.a], DATA.metrics[chosenPair.b]];
  if (!points.length) return [controls, none("No experiment of " + groupName(group) + " has both " + ma.label + " and " + mb.label + ".")];
  const told = el("p", { class: "soft", id: "pareto-told" }, "Point at a configuration to read it.");
  const tell = (p) => { told.textContent = p ? describe(p.c) + ": " + format(p.x, ma.unit) + ", " + format(p.y, mb.unit) + (on.has(p.c) ? " (on the front)" : "") : "Point at a configuration to read it."; };
  // A mean is no number of results.csv: seven digits are enough of it.
  const exact = (m, c) => (members(c).length > 1 ? String(Number(mean(m, c).toPrecision(7))) : text(DATA.metrics[m].name, firstRow(c)));
  return [
    state.group < 0 && DATA.design.groups.length > 1 ? el("p", { class: "soft" }, "Of " + groupName(group) + "; choose another " + KIND + " above.") : null, controls,
    scatter(points, on, ma, mb, tell), told,
    el("h3", {}, "The front: what no other configuration beats in both"),
    ...dataTable({ id: "front", rows: front.slice(), pageSize: 10, columns: [
      { title: "configuration", text: brief, number: null },
      { title: ma.name, heading: heading(ma.name), text: (c) => exact(chosenPair.a, c), number: (c) => mean(chosenPair.a, c), shown: (c) => format(mean(chosenPair.a, c), ma.unit) },
      { title: mb.name, heading: heading(mb.name), text: (c) => exact(chosenPair.b, c), number: (c) => mean(chosenPair.b, c), shown: (c) => format(mean(chosenPair.b, c), mb.unit) },
    ] }),
  ];
}

// What of a companion file is on the page, where that is not all.
function excerptNote(what, file) {
  const d = DATA.detailed;
  if (d.shown >= d.of) return null;
  const best = d.groups < DATA.design.groups.length ? "the best of each of the first " + plural(d.groups, KIND, KINDS) : "the best" + (DATA.design.groups.length > 1 ? " " + d.each.toLocaleString("en") + " of each " + KIND : "");
  return el("p", { class: "soft excerpt" }, "So that this page opens fast, it has the " + what + " of " + d.shown.toLocaleString("en") + " of " + plural(d.of, "configuration", "configurations") + ": " + best + " by " + DATA.metrics[0].label + (DATA.means ? ", of each the first replica that completed" : "") + ". Those of all are in ", key(file), " by exp_id; ", key("hyperfold compare DIR --explain A B"), " sets any two experiments against each other.");
}

// Why there is nothing to draw: what did not complete has no numbers at all.
function noneOf(what, why) {
  const completed = inView().some((c) => okFirst(c) !== undefined);
  return none(completed ? "No experiment in view has " + what + " (" + why + ")." : "No experiment in view has completed.");
}

function fctSection() {
  const withFct = inView().filter((c) => okFirst(c) !== undefined && Number.isFinite(number("fct_max_ns", okFirst(c))));
  if (!withFct.length) return [noneOf("flows with completion times", "analytic communication sends none")];
  const out = [oneOfReplicas()];
  if (DATA.flows) {
    const series = withFct.map((c) => [c, DATA.flows.of[text("exp_id", okFirst(c))]]).filter(([, f]) => f && f.points.length).slice(0, 8)
      .map(([c, f], at) => ({ label: labelInView(c), colour: COLOURS[at], values: f.points.map(Number), flows: f }));
    if (series.length) {
      out.push(el("h3", {}, "Whole distributions of the best " + series.length), legend(series.map((s) => [s.label + " (" + plural(s.flows.flows, "flow", "flows") + (s.flows.unfinished ? ", " + s.flows.unfinished + " unfinished" : "") + ")", s.colour])), distributions(series, DATA.flows.percent, "ns"));
    }
    out.push(excerptNote("flows", "flows.csv"));
    if (DATA.flows.cut) out.push(el("p", { class: "soft" }, "flows.csv is very large; only its first part was read."));
  } else out.push(none("Whole distributions need flows.csv, which this run did not write: set ", key("output.flows = true"), " under [base] and run again."));
  out.push(el("h3", {}, "Median, 99th percentile and longest"), legend([["median", COLOURS[0]], ["99th percentile", COLOURS[1]], ["longest", COLOURS[4]]]),
    paged(withFct, 20, (page) => ranges(page.map((c) => {
      return { label: labelInView(c), values: ["fct_p50_ns", "fct_p99_ns", "fct_max_ns"].map((name) => number(name, okFirst(c))) };
    }), "ns")));
  return out;
}

function linksSection() {
  if (!DATA.links) return [none("Utilisation and queues of each link need links.csv, which this run did not write: set ", key("output.links = true"), " under [base] and run again. The busiest link of each experiment is in the table above (max_link_utilisation, bottleneck_link).")];
  const items = inView().map((c) => [c, okFirst(c)]).filter(([, row]) => row !== undefined).map(([c, row]) => [c, DATA.links.of[text("exp_id", row)]]).filter(([, l]) => l);
  if (!items.length) return [none("There is nothing on the links of the experiments in view."), excerptNote("links", "links.csv")];
  const maxQueue = items.reduce((m, [, l]) => Math.max(m, Number(l.queue[0])), 0);
  const cellTitle = (l, name, unit) => (k) => "link " + (Math.floor((k * l.links) / l[name].length) + 1) + " of " + l.links + " by " + name + ": " + format(Number(l[name][k]), unit);
  const rows = (page, name, unit, note) => page.map(([c, l]) => ({ label: labelInView(c), values: l[name].map(Number), note: note(l), title: cellTitle(l, name, unit) }));
  const busiest = items.slice(0, 40).flatMap(([c, l]) => l.busiest.slice(0, 8).map((b) => ({ c, b })));
  const names = ["link", "bytes", "utilisation", "max_queue_bytes", "mean_queue_bytes", "ecn_marks", "pfc_pauses", "drops", "capacity_gbps", "pfc_paused_ns"];
  return [
    oneOfReplicas(),
    el("p", { class: "soft" }, "One row an experiment, its links from the busiest (left) to the idlest: a row that is dark to its end uses its network evenly."),
    el("h3", {}, "Utilisation from 0 to the makespan"), paged(items, 20, (page) => heatMap(rows(page, "utilisation", "share", (l) => share(Number(l.utilisation[0])) + " most"), 1, "Link utilisation")),
    el("h3", {}, "Largest queue of each link"), paged(items, 20, (page) => heatMap(rows(page, "queue", "bytes", (l) => format(Number(l.queue[0]), "bytes")), maxQueue, "Link queues")),
    el("h3", {}, "The busiest links of the best experiments"),
    ...dataTable({ id: "links", rows: busiest, pageSize: 8, columns: [{ title: "experiment", text: (r) => labelInView(r.c), number: null }, ...names.map((name, at) => ({ title: name, text: (r) => (name === "utilisation" ? share(Number(r.b[at])) : r.b[at]), number: at ? (r) => Number(r.b[at]) : null }))] }),
    excerptNote("links", "links.csv"),
    DATA.links.cut ? el("p", { class: "soft" }, "links.csv is very large; only its first part was read.") : null,
  ];
}

// Links that data of several jobs cross: link by link where the run wrote shared_links.csv, else what jobs.csv says in short.
function sharedSection() {
  const of = (data) => inView().filter((c) => okFirst(c) !== undefined && data && data.of[text("exp_id", okFirst(c))]).map((c) => [c, data.of[text("exp_id", okFirst(c))]]);
  const listed = of(DATA.shared), told = of(DATA.sharing);
  const table = (id, rows, names) => dataTable({ id, rows, pageSize: 12, columns: [{ title: "experiment", text: (r) => labelInView(r.c), number: null }, ...names.map(([name, isNumber], at) => ({ title: name, text: (r) => r.cells[at], number: isNumber ? (r) => Number(r.cells[at]) : null }))] });
  if (listed.length) return [
    el("h3", {}, "Links that jobs share"),
    el("p", { class: "soft" }, "Those that carry most payload of all jobs, in the experiments in view: a row a link and job. ", key("shared_links.csv"), " lists every one."),
    ...table("shared", listed.flatMap(([c, s]) => s.busiest.map((cells) => ({ c, cells }))), [["link"], ["job"], ["job_bytes", true], ["other_bytes", true], ["shared_with"]]),
  ];
  if (told.length) return [
    el("h3", {}, "Links that jobs share"),
    el("p", { class: "soft" }, "How many links each job shares, and which of them carries most. With ", key("output.shared_links = true"), ", shared_links.csv lists every link, and who sends how much over it."),
    ...table("sharing", told.flatMap(([c, jobs]) => jobs.map((cells) => ({ c, cells }))), [["job"], ["shared_links", true], ["busiest_shared_link"], ["shares_with"]]),
  ];
  return [];
}

const networkSection = () => [...linksSection(), ...sharedSection()];

function congestionSection() {
  const crowded = crowdedSection();
  if (crowded) return crowded;
  // Counts, and times with their unit.
  const parts = [["ecn_marks", "ECN marks"], ["pfc_pauses", "PFC pauses"], ["pfc_paused_ns", "paused", "ns"], ["drops", "drops"]];
  const items = inView().filter((c) => okFirst(c) !== undefined && parts.some(([name]) => text(name, okFirst(c)) !== ""));
  if (!items.length) return [noneOf("packets, so there are no marks, pauses or drops", "analytic communication has none")];
  const total = (name) => ROWS.reduce((sum, row) => sum + (number(name, row) || 0), 0);
  const out = [el("p", {}, "In all experiments together: " + parts.map(([name, label, unit]) => (unit ? format(total(name), unit) : total(name).toLocaleString("en")) + " " + label).join(", ") + ". Marks count data packets, pauses the pause frames received. Paused is the time of all directions of links together.")];
  out.push(oneOfReplicas());
  for (const [name, label, unit] of parts) {
    const some = items.filter((c) => number(name, okFirst(c)) > 0);
    const written = (row) => (unit ? format(number(name, row), unit) : text(name, row));
    out.push(el("h3", {}, unit ? "Time " + label : label));
    if (!some.length) { out.push(el("p", { class: "soft" }, "None in any experiment in view.")); continue; }
    out.push(paged(items, 15, (page) => stackedBars(page.map((c) => ({ label: labelInView(c), parts: [number(name, okFirst(c)) || 0], titles: [written(okFirst(c))], note: written(okFirst(c)) })), [label], [COLOURS[0]], unit || "", label)));
  }
  return out;
}

const TIMES = [
  ["compute_ns", "compute", COLOURS[0]], ["comm_exposed_tp_ns", "exposed tensor-parallel communication", COLOURS[1]], ["comm_exposed_pp_ns", "exposed pipeline communication", COLOURS[2]],
  ["comm_exposed_dp_ns", "exposed data-parallel communication", COLOURS[3]], ["comm_exposed_ep_ns", "exposed expert communication", COLOURS[4]], ["comm_exposed_cp_ns", "exposed context communication", COLOURS[6]],
  ["bubble_ns", "bubble", COLOURS[7]], ["optimizer_ns", "optimizer", COLOURS[5]], ["other_ns", "other", "var(--soft)"],
];
function timeSection() {
  const items = inView().filter((c) => okFirst(c) !== undefined && text("iteration_time_ns", okFirst(c)) !== "");
  const clusters = clusterSection();
  if (clusters) return clusters;
  if (!items.length) return [none("No experiment in view has iterations. Where their time goes is told of workloads that compute, such as ", key("workload.kind = \"model\""), "; plain traffic has flow completion times only.")];
  const present = TIMES.filter(([name]) => items.some((c) => number(name, okFirst(c)) > 0));
  return [
    oneOfReplicas(),
    el("p", { class: "soft" }, "On the rank that ends last. Exposed communication is what compute does not hide, by the dimension it belongs to."),
    legend(present.map(([, label, colour]) => [label, colour])),
    paged(items, 20, (page) => stackedBars(page.map((c) => {
      const row = okFirst(c);
      return { label: labelInView(c), parts: present.map(([name]) => number(name, row) || 0), titles: present.map(([name]) => format(number(name, row), "ns")), note: format(number("iteration_time_ns", row), "ns") };
    }), present.map(([, label]) => label), present.map(([, , colour]) => colour), "ns", "Where the time of an iteration goes")),
  ];
}

const card = (big, small) => el("div", { class: "card" }, el("b", {}, big), el("span", {}, small));
function foldingSection() {
  if (!STATS.length) return [none("The folder has no stats.csv.")];
  const of = (name) => STATS.find((c) => c.name === name);
  const numbers = (name) => (of(name) ? ROWS.map((row) => of(name).number(row)).filter((v) => !Number.isNaN(v)) : []);
  const sum = (name) => numbers(name).reduce((a, b) => a + b, 0);
  const [simulated, skipped] = [sum("packet_hops_simulated"), sum("packet_hops_skipped")];
  const audits = numbers("audit_fct_error").map(Math.abs);
  const again = numbers("batches").filter((n) => n > 1).length;
  const carried = numbers("carried_skips").filter((n) => n > 0).length;
  return [
    el("p", { class: "soft" }, "How results came about. Packet-hops that were looked up or skipped count as if they had been simulated."),
    el("div", { class: "cards" },
      card((simulated + skipped).toLocaleString("en"), "packet-hops represented"), card(simulated + skipped > 0 ? share(skipped / (simulated + skipped)) : "–", "of them not simulated"),
      card(sum("memo_hits").toLocaleString("en"), "episodes found in the memo"), card(sum("memo_misses").toLocaleString("en"), "episodes that were new"), card(sum("steady_skips").toLocaleString("en"), "steady phases skipped"),
      card(format(sum("wall_s") * 1e9, "ns"), "of one thread's time"), card(String(again), "experiments that started over without folding"),
      card(audits.length ? share(Math.max(...audits)) : "–", audits.length ? "largest error in " + plural(audits.length, "audit", "audits") : "no audit of approximate results"),
      ...(carried > 0 ? [card(String(carried), "experiments that carried measured rates on where flows collide: approximate")] : [])),
    ...dataTable({ id: "folding", rows: ROWS, pageSize: 10, sort: [STATS.filter((c) => !c.empty).findIndex((c) => c.name === "wall_s") + 2, -1], columns: [{ title: "exp_id", text: (row) => text("exp_id", row), number: (row) => number("exp_id", row) }, { title: "configuration", text: (row) => brief(CONFIGURATION_OF[row]), number: null },
      ...STATS.filter((c) => !c.empty).map((c) => ({ title: c.name, text: c.text, number: c.isNumber ? c.number : null }))] }),
  ];
}

function failuresSection() {
  if (!DATA.reasons.length) return [el("p", { class: "good" }, DATA.rows ? "Every experiment completed." : "No experiment has ended.")];
  const rows = ROWS.filter((row) => text("status", row) !== "ok");
  return [
    el("ul", { id: "reasons" }, DATA.reasons.slice(0, 20).map((r) => el("li", {}, el("b", { class: r.status === "failed" ? "bad" : null }, plural(r.count, "experiment", "experiments") + (r.status === "oom" ? " out of memory" : " failed")), " (" + r.named.join(", ") + (r.count > r.named.length ? ", ..." : "") + "): ", r.message || "no reason given", r.same_message ? null : " (these are the numbers of experiment " + r.named[0] + "; the others' are in the table)"))),
    ...dataTable({ id: "failures", rows, pageSize: 10, search: rows.length > 10, columns: ["exp_id", ...AXES.map((a) => a.name), "status", "peak_memory_bytes", "error"].map((name) => BY_NAME.get(name)).filter((c) => c && !c.empty).map((c) => ({ title: c.name, text: c.text, number: c.isNumber ? c.number : null, wide: c.name === "error" })) }),
  ];
}

function manifestSection() {
  const m = MANIFEST;
  const line = (name, ...content) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "wide" }, content));
  const adapters = (m.adapters || []).map((a) => a.name + " (" + a.backend + ", " + a.driver + " " + a.driver_info + ")").join("; ");
  const seconds = Object.entries(m.seconds || {}).map(([name, s]) => name + " " + digits(s, 3) + " s").join(", ");
  const fold = (title, content) => el("details", {}, el("summary", {}, title), el("pre", {}, content));
  return [
    el("div", { class: "scroll" }, el("table", { id: "manifest" }, el("tbody", {},
      line("version", "hyperfold " + m.version), line("command", key((m.command_line || []).join(" "))), line("outcome", m.outcome), line("experiments", m.selected + " of the sweep's " + m.experiments + ": " + m.ok + " ok, " + m.oom + " out of memory, " + m.failed + " failed"),
      line("engine", m.engine + " (" + m.engine_reason + "), " + plural(m.jobs, "thread", "threads") + (adapters ? ", " + adapters : "")), line("time", seconds),
      (m.inputs || []).map((f) => line("input", f.path, " ", el("span", { class: "soft" }, "SHA-256 " + f.sha256))), (m.warnings || []).map((w) => line("warning", w))))),
    fold("The sweep with every key resolved", m.sweep || ""), fold("manifest.json", JSON.stringify(m, null, 2)),
  ];
}

const SECTIONS = [
  ["best", "Best configuration", headline, true], ["experiments", "Ranking of all experiments", rankingTable, true], ["effects", "Effect of each axis", effectsSection, true], ["pareto", "Two metrics at once", paretoSection, true],
  ["time", "Where the time goes", timeSection, true], ["fct", "Flow completion times", fctSection, true], ["network", "Links and queues", networkSection, true], ["congestion", DATA.crowded ? "Jobs that cannot fill their NICs" : "PFC and ECN", congestionSection, true],
  ["fold", "Folding", foldingSection, false], ["failed", "Failures and out of memory", failuresSection, false], ["run", "The run", manifestSection, false],
];

function start() {
  const counts = ["ok", "oom", "failed"].map((s) => ROWS.filter((row) => text("status", row) === s).length);
  append(document.getElementById("top"), [
    el("h1", {}, MANIFEST.name), el("p", { class: "soft", id: "counts" }, plural(DATA.rows, "experiment", "experiments") + ": " + counts[0].toLocaleString("en") + " ok, " + counts[1].toLocaleString("en") + " out of memory, " + counts[2].toLocaleString("en") + " failed. " + DATA.state),
    DATA.reasons.length ? el("p", { class: "bad", id: "lost" }, (DATA.reasons.length === 1 ? "" : "The most frequent reason: ") + plural(DATA.reasons[0].count, "experiment", "experiments") + (DATA.reasons[0].status === "oom" ? " out of memory" : " failed") + ": " + (DATA.reasons[0].message || "no reason given") + " ", el("a", { href: "#failed" }, "All that failed")) : null,
    el("nav", { "aria-label": "Sections" }, SECTIONS.map(([id, title]) => el("a", { href: "#" + id }, title))),
  ]);
  const again = () => redraw.forEach((draw) => draw());
  const controls = el("div", { class: "controls" });
  if (DATA.metrics.length) {
    controls.append(...select("metric", "ranked by", DATA.metrics.map((m, at) => [at, m.label + (m.more ? " (more is better)" : "")]), 0, (v) => { state.metric = v; again(); }));
    if (DATA.design.groups.length > 1) controls.append(...select("group", KIND, [[-1, "all " + DATA.design.groups.length]].concat(DATA.design.groups.map((_, g) => [g, groupName(g)])), -1, (v) => { state.group = v; again(); }));
  }
  const main = clear(document.getElementById("main"));
  main.append(controls);
  for (const [id, title, draw, depends] of SECTIONS) {
    const holder = el("div", {});
    const fill = () => append(clear(holder), draw(holder));
    main.append(el("section", { id }, el("h2", {}, title), holder));
    fill();
    if (depends) redraw.push(fill);
  }
  document.documentElement.setAttribute("data-drawn", String(Math.round(performance.now())));
}
start();
