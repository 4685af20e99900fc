// The headline in words: what is best, what decides it, how sure that is.

const value = (c) => format(mean(state.metric, c), metric().unit);
// How much worse than the best, of a regret: what is left of a rate, or what a time takes more.
const worseBy0 = (regret) => (metric().more ? 1 - 1 / (1 + regret) : regret);
const worseBy = (regret) => share(worseBy0(regret));
const worseWord = () => (metric().more ? "less" : "more");

function placeOf(g, m) {
  const r = DATA.rankings[g][m], places = new Map();
  r.starts.forEach((start, at) => {
    const end = at + 1 < r.starts.length ? r.starts[at + 1] : r.order.length;
    for (let i = start; i < end; i++) places.set(r.order[i], { place: start + 1, tied: end - start });
  });
  return places;
}

// In how many groups an axis was simulated, where that is not all.
const simulatedIn = (d) => (d.groups && d.groups < DATA.design.groups.length ? " Of the " + DATA.design.groups.length + " " + KINDS + ", " + d.groups + (d.groups === 1 ? " simulates" : " simulate") + " it." : "");

// Other values of axes around a configuration: [configuration, how much worse, whether tied], best first.
function aroundLines(best, decides, averaged) {
  const level = (axis, c) => shown(AXES[axis].text(firstRow(c)));
  const listed = (axis, others) => others.slice(0, 6).map((o) => level(axis, o[0])).join(", ") + (others.length > 6 ? " and " + (others.length - 6) + " more" : "");
  const line = (d) => {
    const key = DATA.design.axes[d.axis].key;
    const [first, last] = [d.others[0], d.others[d.others.length - 1]];
    const worse = (o) => (o[1] > 0 ? "is " + share(o[1]) + " worse" : "is as good on average");
    const costs = d.others.length === 1 ? level(d.axis, first[0]) + " " + worse(first) : "the next best, " + level(d.axis, first[0]) + ", " + worse(first) + ", and " + level(d.axis, last[0]) + " " + worse(last);
    const ties = d.others.filter((o) => o[2]);
    if (ties.length === 0) return el("li", {}, el("code", {}, key + " = " + level(d.axis, best)), (first[1] < 0.01 ? " is slightly ahead" : " decides") + ": " + costs + "." + simulatedIn(d));
    const same = listed(d.axis, ties), worst = d.others.filter((o) => !o[2]).pop();
    return el("li", {}, el("code", {}, key + " = " + level(d.axis, best)), " is one of several good values: " + same + (ties.length === 1 ? " does" : " do") + " as well; " + level(d.axis, worst[0]) + " " + worse(worst) + "." + simulatedIn(d));
  };
  const unsimulated = ANSWERS.filter(whyNotSimulated).map((a) => el("li", {}, "Not simulated, so nothing is said of it: ", el("code", {}, DATA.design.axes[a].key), " (" + whyNotSimulated(a) + ")."));
  const apart = DATA.design.axes.filter((axis) => axis.notCompared).map((axis) => el("li", {}, "Not compared: ", el("code", {}, axis.key), " (" + axis.notCompared + ")."));
  if (!decides.length && !unsimulated.length && !apart.length) {
    return [el("p", { class: "soft" }, ANSWERS.length ? "No experiment differs from the best in one axis alone, so what decides it cannot be read off directly; see the effect of each axis below." : "The sweep has no axis that tries different answers.")];
  }
  const idle = decides.filter((d) => d.others.every((o) => o[2]));
  const lines = decides.filter((d) => !idle.includes(d)).map(line);
  if (idle.length) lines.push(el("li", {}, "Does not matter here: ", el("code", {}, idle.map((d) => DATA.design.axes[d.axis].key).join(", ")), "."));
  const how = decides.length ? [el("p", { class: "soft" }, "Other values of each axis, with all else as in the best" + (averaged ? ", on average (geometric) over the " + KINDS : "") + ":")] : [];
  return [...how, el("ul", { id: "decides" }, lines.concat(unsimulated, apart))];
}
const decidingLines = (g) => aroundLines(ranking(g).verdict.best, ranking(g).verdict.decides, false);

// What a configuration costs, and what the cheapest design would.
function priceLine(c) {
  const r = (DATA.recommendations || [])[state.metric];
  const own = r && r.configuration === c ? r : null;
  const cost = own ? own.cost : number("cost_usd", firstRow(c));
  if (cost === null || !Number.isFinite(cost)) return null;
  const apart = own && own.costsApart ? ", and from " + usd(own.costsApart[0]) + " to " + usd(own.costsApart[1]) + " by what was not simulated" : "";
  const o = own && own.cheapest;
  const other = o ? "; the cheapest, " + describeDesign(o.configuration) + ", is " + (o.tied ? "as good" : worseBy(o.worse) + " worse") + " and costs " + usd(o.cost) : own ? "; no other is cheaper" : "";
  return el("div", { id: "price" }, "Price: " + usd(cost) + apart + other);
}

// What replicas and seeds can tell of this run, and what they cannot.
const PACKETS = ROWS.some((row) => number("packet_hops", row) > 0);
const SEEDS = PACKETS ? "sweep.replicas = 3 would tell, where traffic or marking is random; where it is not, an axis of routing.seed tells how much depends on the paths that flows happen to take." : "Nothing went over the network packet by packet, so replicas would tell nothing (but of workload.compute_jitter, where it is set).";
const PATHS = PACKETS ? " An axis of routing.seed varies the paths that flows take." : "";
const MODEL = "None of this covers the model's own error against hardware (the column validated_error has it): a lead below that is no certainty.";

// Of inference the latencies have an error of their own.
const latencies = (row) => {
  const error = text("validated_latency_error", row);
  return error === "" ? "" : "; of latencies: " + error;
};

// How far times of a row's class were off measured machines.
const worth = (row) => {
  const error = row === undefined ? "" : text("validated_error", row);
  if (row === undefined) return MODEL;
  if (error === "") return "No machine with its GPU was measured (validated_error is empty), so how far its times are off hardware is not known.";
  if (error === "not validated") return "Nothing like it was held against a measured machine (not validated), so how far its times are off hardware is not known.";
  return "None of this covers the model's own error against hardware. Times like these against measured machines: " + error + latencies(row) + ". A lead below that is no certainty. (Nearest class: " + text("validated_class", row) + ".)";
};

// What is estimated of all skips together, where that is enough to warn of.
const SKIPPED = DATA.steady > 0.005 ? " Phases skipped as steady may put times off by up to " + share(DATA.steady) + "." : "";

function surety(g) {
  const r = ranking(g), v = r.verdict, best = v.best, n = members(best).length;
  const out = [];
  const carried = STATS.some((c) => c.name === "carried_skips") ? " Some experiments carried measured rates on where flows collide, and may be off by percents (carried_skips in stats.csv)." : "";
  const audited = (DATA.audit === null ? "" : " An audit found approximate results to be off by up to " + share(DATA.audit) + "." + SKIPPED) + carried;
  if (v.tied > 1) {
    const others = v.leaders.filter((c) => c !== best).slice(0, 5).map(describe).join("; ");
    out.push(plural(v.tied - 1, "other configuration", "other configurations") + " cannot be told apart from it: " + others + (v.tied > 6 ? " and more" : "") + ".");
  }
  if (v.lead === null) out.push(v.tied === r.order.length && v.tied > 1 ? "All of them are tied." : r.order.length > 1 ? "" : "Nothing else completed, so there is nothing to compare it with.");
  else {
    const next = v.next;
    const by = v.lead === 0 ? "is as good by its mean" : "is " + share(v.lead) + " worse";
    out.push("The next, " + describe(next) + ", " + by + (v.paired ? "; in pairs of one seed, replicas tell the two apart." : v.threshold > 0 ? "; a difference of up to " + share(v.threshold) + " would be a tie (the standard deviation of either's replicas, or an audited error)." : "."));
  }
  if (n > 1 && DATA.constant) out.push("Every configuration ran several times with different seeds, and its replicas are all alike: nothing in this run depends on the seed, so replicas say nothing of how sure this is." + PATHS);
  else if (n > 1) out.push("The best ran " + n + " times with different seeds" + (half(state.metric, best) !== null ? ": " + value(best) + " ± " + format(half(state.metric, best), metric().unit) + " (95 % interval of the mean)." : ", each time with the same " + metric().label + ": no seed decides it, so its replicas do not say how sure it is." + PATHS));
  else if (!DATA.means) out.push("Every configuration ran once, so only results within 0.01 %" + (DATA.audit === null ? "" : " or the audited error") + " are ties" + (PACKETS ? "; how much results vary between seeds is not known. " : ". ") + SEEDS);
  else out.push("The best has one result only, so its spread between seeds is not known.");
  return el("p", { id: "sure" }, out.filter((t) => t).join(" ") + audited + " " + worth(okFirst(best)));
}

// Of a search: what it was for, and the front of all it was for.
function searched() {
  const s = DATA.search;
  if (!s) return [];
  const labels = s.metrics.map((m) => DATA.metrics[m].label).join(", ");
  const out = [el("p", { id: "searched" }, "This run is a search" + (labels ? " by " + labels : "") + ": " + DATA.rows.toLocaleString("en") + " of " + plural(s.of, "experiment", "experiments") + " were run in full; optimize.csv says how the others fared. What follows is of those that were run.")];
  if (!s.fronts) return out;
  const rows = groupsInView().filter((g) => s.fronts[g]).flatMap((g) => s.fronts[g]);
  out.push(el("h3", {}, "The front: what no other configuration beats in all of " + labels), ...dataTable({
    id: "searched-front", rows, pageSize: 10,
    columns: [{ title: "configuration", text: labelInView, number: null }, { title: "exp_id", text: (c) => text("exp_id", firstRow(c)), number: (c) => number("exp_id", firstRow(c)) },
      ...s.metrics.map((m) => ({ title: DATA.metrics[m].label, text: (c) => format(mean(m, c), DATA.metrics[m].unit), number: (c) => mean(m, c) }))],
  }));
  return out;
}

// The first picture: the best configurations beside each other, and the network of the best.
function firstPicture(items, tickText, unit, what, best) {
  const row = members(best).find((r) => text("status", r) === "ok");
  const links = row !== undefined && DATA.links ? DATA.links.of[text("exp_id", row)] : null;
  const errors = items.some((it) => it.error > 0);
  const bars = el("figure", {}, rankingBars(items, tickText, unit, what), el("figcaption", { class: "soft" }, what[0].toUpperCase() + what.slice(1) + "." + (errors ? " Whiskers: standard deviation of replicas, or audited error." : "")));
  if (!links || !links.sketch) return el("div", { id: "first-picture", class: "alone" }, bars);
  return el("div", { id: "first-picture", class: "first-picture" }, bars, el("figure", {}, topologySketch(links.sketch), el("figcaption", { class: "soft" }, "The network of the best; links are darker the more of their rate was used.")));
}

function pictureOfGroup(g) {
  const r = ranking(g), m = metric(), n = Math.min(12, r.order.length);
  const labels = briefs(r.order.slice(0, n));
  const items = r.order.slice(0, n).map((c, at) => ({ label: labels[at], value: Math.abs(mean(state.metric, c)), error: r.error[at] || 0, note: value(c), best: r.verdict.leaders.includes(c) }));
  const shown = r.order.length > n ? "The best " + n + " of " + plural(r.order.length, "configuration", "configurations") : plural(n, "configuration", "configurations");
  return firstPicture(items, (t) => format(t, m.unit), m.unit, shown + " by " + m.label + (m.more ? ", more is better" : ", less is better"), r.verdict.best);
}

function pictureOfAll(overall) {
  const m = metric();
  // Of a rate, a design that is worse has less of it.
  const value = (o) => (m.more ? 1 / (1 + o.regret) : 1 + o.regret);
  const labels = briefs(overall.map((o) => o.configuration));
  const items = overall.map((o, at) => ({ label: labels[at], value: value(o), error: o.error * value(o), note: o.regret < 5e-5 ? "best" : percent(value(o) - 1), best: o.tied }));
  return firstPicture(items, (t) => digits(t, 3) + "×", "", m.label + " over each one's own best, on average" + (m.more ? "; more is better" : "; less is better"), overall[0].configuration);
}

function winner(g) {
  const r = ranking(g);
  if (!r.order.length) return el("p", { class: "none" }, groupName(g) + ": no experiment completed with a value of " + metric().label + ". See the failures below.");
  const best = r.verdict.best;
  const title = DATA.design.groups.length > 1 ? "Best for " + groupName(g) : "Best configuration";
  return el("div", {}, el("div", { class: "winner" }, el("span", { class: "soft" }, title + " by " + metric().label), el("div", { class: "what", id: "best" }, describeDesign(best)), priceLine(best),
    el("div", {}, metric().label + " " + value(best) + " (" + (members(best).length === 1 ? "experiment " : "experiments ") + members(best).slice(0, 5).map((row) => text("exp_id", row)).join(", ") + (members(best).length > 5 ? ", ..." : "") + ")")),
    pictureOfGroup(g), el("h3", {}, "What decides it"), ...decidingLines(g), el("h3", {}, "How sure that is"), surety(g));
}

// How far times of the best of each group may be off hardware, each text once.
function worthOfBest() {
  const rankings = groupsInView().map((g) => ranking(g)).filter((r) => r.order.length);
  return [...new Set(rankings.map((r) => worth(okFirst(r.verdict.best))))].join(" ") || MODEL;
}

// Over all groups: what other values of each axis cost around what is recommended, as the command line has it.
function decidingOnAverage() {
  const r = DATA.recommendations[state.metric];
  const of = (o) => [o.configuration, o.tied ? Math.max(worseBy0(o.worse), 0) : worseBy0(o.worse), o.tied];
  const decides = r ? r.axes.map((a) => ({ axis: a.axis, groups: a.others[0].groups, others: a.others.map(of) })) : [];
  const best = r ? r.configuration : undefined;
  if (!r && !ANSWERS.length) return [];
  const sure = DATA.means ? "" : "Every configuration ran once" + (PACKETS ? ", so how much results vary between seeds is not known. " : ". ") + SEEDS;
  return [el("h3", {}, "What decides it"), ...aroundLines(best, decides, true), el("h3", {}, "How sure that is"), el("p", { id: "sure" }, sure + (DATA.constant ? " Replicas are all alike: nothing in this run depends on the seed." : "") + (DATA.audit === null ? "" : " An audit found approximate results to be off by up to " + share(DATA.audit) + "." + SKIPPED) + " " + worthOfBest())];
}

// Of a sweep over rates of requests: up to which rate each design keeps the bounds.
function kneesOfAll() {
  if (!DATA.knees || state.group >= 0) return [];
  const atLeast = share(DATA.knees.share);
  // Toward zero, so that what does not hold is never shown as if it did.
  const within = (t) => digits(Math.floor(t.within * 1000) / 10, 4) + " %";
  const told = (d) => {
    if (!d.holds) return "below " + digits(d.fails.rate, 4) + " requests/s, the lowest rate that was tried: there " + within(d.fails) + " of requests keep both bounds";
    const rate = digits(d.holds.rate, 4) + " requests/s";
    return d.fails ? rate + "; at " + digits(d.fails.rate, 4) + ", " + within(d.fails) + " of requests keep both bounds" : rate + ", the highest rate that was tried: the knee may lie beyond";
  };
  const name = (d) => (ANSWERS.length ? describe(CONFIGURATION_OF[d.row]) : "");
  const group = (g) => {
    const best = g.designs[0], others = g.designs.slice(1, 8);
    const ties = g.best > 1 && best.holds ? plural(g.best, "design has", "designs have") + " this knee; rates between those that were tried would tell them apart." : null;
    return el("div", {}, el("div", { class: "winner knee" }, el("span", { class: "soft" }, "Knee" + (g.question ? " for " + g.question : "") + ": the highest rate at which " + atLeast + " of requests keep both bounds, workload.ttft_bound_ms and workload.tpot_bound_ms"), el("div", { class: "what" }, name(best) || told(best)), name(best) ? el("div", {}, told(best)) : null),
      ties ? el("p", {}, ties) : null, others.length ? el("ul", {}, others.map((d) => el("li", {}, name(d) + ": " + told(d)))) : null, g.designs.length > 8 ? el("p", { class: "soft" }, "and " + plural(g.designs.length - 8, "more design", "more designs")) : null);
  };
  return [el("div", { id: "knee" }, DATA.knees.groups.map(group))];
}

function winnersOfAll() {
  const overall = (!DATA.knees && DATA.overall[state.metric]) || [];
  const out = [];
  if (DATA.knees) out.push(el("p", { class: "soft" }, "The table below has the best of each rate by " + metric().label + "."));
  else if (overall.length) {
    const o = overall[0];
    out.push(el("div", { class: "winner" }, el("span", { class: "soft" }, "Best on average over " + DATA.design.groups.length + " " + KINDS + ", by " + metric().label), el("div", { class: "what", id: "best" }, describeDesign(o.configuration)), priceLine(o.configuration),
      el("div", {}, o.worst === 0 ? "it is the best for each of them" : worseBy(o.regret) + " worse than each one's own best on average, " + worseBy(o.worst) + " where it does worst")));
    out.push(pictureOfAll(overall));
    const ties = overall.slice(1).filter((x) => x.tied);
    if (ties.length) out.push(el("p", {}, "Not to be told apart from it for any " + KIND + ": " + ties.map((x) => describe(x.configuration)).join("; ") + "."));
    const runnersUp = overall.slice(1).filter((x) => !x.tied).slice(0, 3).map((x) => el("li", {}, describe(x.configuration) + ": " + worseBy(x.regret) + " worse on average, " + worseBy(x.worst) + " at worst"));
    if (runnersUp.length) out.push(el("p", { class: "soft" }, "Next on average:"), el("ul", {}, runnersUp));
  } else out.push(el("p", { class: "none" }, "No configuration completed for every " + KIND + ", so none is best on average."));
  if (!DATA.knees) out.push(...decidingOnAverage());
  const groups = DATA.design.groups.map((_, g) => g);
  out.push(el("h3", {}, "Best for each " + KIND), ...dataTable({
    id: "winners", rows: groups, pageSize: 12,
    columns: [
      { title: KIND, text: groupName, number: null },
      { title: "best", text: (g) => (ranking(g).order.length ? brief(ranking(g).verdict.best) : "none completed"), number: null },
      { title: metric().label, text: (g) => (ranking(g).order.length ? value(ranking(g).verdict.best) : ""), number: (g) => (ranking(g).order.length ? mean(state.metric, ranking(g).verdict.best) : NaN) },
      { title: "tied with it", text: (g) => (ranking(g).verdict ? String(ranking(g).verdict.tied - 1) : ""), number: (g) => (ranking(g).verdict ? ranking(g).verdict.tied - 1 : NaN) },
      { title: "next is worse by", text: (g) => (ranking(g).verdict && ranking(g).verdict.lead !== null ? share(ranking(g).verdict.lead) : ""), number: (g) => (ranking(g).verdict && ranking(g).verdict.lead !== null ? ranking(g).verdict.lead : NaN) },
    ],
  }), el("p", { class: "soft" }, "Choose a " + KIND + " above to see the same of it alone."));
  return out;
}
