// Clusters over days: where GPU time went, and what the GPUs did when.

const GPU_TIME = [["goodput", "work that counts", COLOURS[2]], ["slowdown_share", "slower by placement", COLOURS[4]], ["checkpoint_share", "checkpoints", COLOURS[1]], ["restart_share", "restarts", COLOURS[3]], ["rollback_share", "lost work", COLOURS[5]], ["down_share", "down", COLOURS[6]], ["drained_share", "drained", COLOURS[7]], ["spare_share", "spares", COLOURS[0]], ["idle_share", "idle", "var(--line, #bbb)"]];
const GPU_USE = [["busy", COLOURS[2]], ["down or drained", COLOURS[6]], ["spare", COLOURS[0]]];

// Areas of GPUs in use over time, stacked, and the GPUs that waiting jobs ask for as a line. points: [hours, busy, out, spare, all, waiting].
function clusterTimeline(points, label) {
  const height = 190, bottom = height - 24, top = 8;
  const pic = picture(WIDTH, height, "GPUs over time: " + label);
  const all = points.reduce((m, p) => Math.max(m, p[4]), 1);
  const x = linear(points[0][0], points[points.length - 1][0], LEFT, WIDTH - RIGHT), y = linear(0, all, bottom, top);
  pic.append(fitted(label, LEFT - 10, top + 14, LEFT - 12, { "text-anchor": "end", class: "label" }));
  for (const t of ticks(0, all, 3, "")) pic.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(t), y2: y(t) }), svg("text", { class: "t", x: WIDTH - RIGHT + 6, y: y(t) + 4 }, format(t, "")));
  for (const t of ticks(points[0][0], points[points.length - 1][0], 8, "")) pic.append(svg("text", { class: "t", x: x(t), y: height - 6, "text-anchor": "middle" }, digits(t, 4) + " h"));
  const floor = points.map(() => 0);
  GPU_USE.forEach(([name, colour], at) => {
    const roof = points.map((p, i) => floor[i] + p[at + 1]);
    const up = points.map((p, i) => x(p[0]) + "," + y(roof[i])), down = points.map((p, i) => x(p[0]) + "," + y(floor[i])).reverse();
    pic.append(svg("polygon", { points: up.concat(down).join(" "), fill: colour }, svg("title", {}, name)));
    roof.forEach((v, i) => (floor[i] = v));
  });
  const line = points.map((p) => x(p[0]) + "," + y(Math.min(p[5], all)));
  pic.append(svg("polyline", { points: line.join(" "), fill: "none", stroke: "currentColor", "stroke-width": 1 }, svg("title", {}, "GPUs that waiting jobs ask for, at most all")));
  return pic;
}

const MAP_USE = [["used", "--c2"], ["down", "--c6"], ["drained", "--c7"], ["standing by", "--c0"]];

// Servers over time: a cell for each group of servers and bin of time, coloured by what its GPUs do. map: { hours, servers, shares }.
function serverMap(map, label) {
  const groups = map.servers.length - 1, bins = map.hours.length - 1, cell = 6;
  const canvas = el("canvas", { width: bins * cell, height: groups * cell, class: "map", role: "img", "aria-label": "Servers over time: " + label });
  const pen = canvas.getContext("2d"), colours = getComputedStyle(document.documentElement);
  const share = (state, bin, group) => parseInt(map.shares[state][bin * groups + group], 36) / 35;
  pen.fillStyle = colours.getPropertyValue("--panel");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  MAP_USE.forEach(([, name], state) => {
    pen.fillStyle = colours.getPropertyValue(name);
    for (let bin = 0; bin < bins; bin += 1) for (let group = 0; group < groups; group += 1) {
      pen.globalAlpha = share(state, bin, group);
      if (pen.globalAlpha) pen.fillRect(bin * cell, group * cell, cell, cell);
    }
  });
  const percent = (x) => Math.round(100 * x) + " %";
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const bin = Math.min(bins - 1, Math.floor(((event.clientX - box.left) / box.width) * bins)), group = Math.min(groups - 1, Math.floor(((event.clientY - box.top) / box.height) * groups));
    if (bin < 0 || group < 0) return;
    const uses = MAP_USE.map(([name], state) => [name, share(state, bin, group)]).filter(([, part]) => part > 0).map(([name, part]) => percent(part) + " " + name);
    canvas.title = "servers " + map.servers[group] + " to " + (map.servers[group + 1] - 1) + ", hours " + digits(map.hours[bin], 4) + " to " + digits(map.hours[bin + 1], 4) + ": " + (uses.join(", ") || "idle");
  });
  return el("figure", {}, el("figcaption", {}, label + ": servers 0 to " + (map.servers[groups] - 1) + " from top to bottom, " + digits(map.hours[bins], 4) + " hours from left to right"), canvas);
}

// Jobs that could not fill their NICs, where iterations are simulated. of: { times, jobs, lost, worst, links }.
function crowdedTables(of, label) {
  const rows = (heads, body) => el("table", {}, el("thead", {}, el("tr", {}, heads.map((h) => el("th", {}, h)))), el("tbody", {}, body.map((cells) => el("tr", {}, cells.map((c) => el("td", {}, c))))));
  const worst = of.worst.map(([job, from, to, link, by, mean, most, nic, others]) => [job, from + " to " + to, link, by || "nobody that came", digits(Number(mean), 4), digits(Number(most), 4), share(nic), others]);
  return el("div", {},
    el("h4", {}, label),
    el("p", { class: "soft" }, of.jobs + " jobs could not fill their NICs at " + of.times.toLocaleString("en") + " times, and lost " + digits(of.lost, 4) + " hours together. Those that lost most:"),
    el("div", { class: "scroll" }, rows(["job", "hours", "on the link", "set off by", "slowdown", "at the worst", "of the NIC's rate then", "who sent there, too"], worst)),
    el("div", { class: "scroll" }, rows(["links where most was lost", "hours", "times"], of.links.map(([link, hours, times]) => [link || "of several", digits(hours, 4), times.toLocaleString("en")]))));
}

function crowdedSection() {
  const items = inView().filter((c) => okFirst(c) !== undefined && DATA.crowded && DATA.crowded.of[text("exp_id", okFirst(c))]);
  if (!items.length) return null;
  return [oneOfReplicas(), paged(items, 4, (page) => el("div", {}, page.map((c) => crowdedTables(DATA.crowded.of[text("exp_id", okFirst(c))], labelInView(c)))))];
}

function clusterSection() {
  const items = inView().filter((c) => okFirst(c) !== undefined && text("goodput", okFirst(c)) !== "");
  if (!items.length) return null;
  const present = GPU_TIME.filter(([name]) => items.some((c) => number(name, okFirst(c)) > 0));
  const mapped = items.filter((c) => DATA.map && DATA.map.of[text("exp_id", okFirst(c))]);
  const drawn = items.filter((c) => DATA.cluster && DATA.cluster.of[text("exp_id", okFirst(c))]);
  return [
    oneOfReplicas(),
    el("p", { class: "soft" }, "All GPU time of the cluster, from the first moment to the last."),
    legend(present.map(([, label, colour]) => [label, colour])),
    paged(items, 20, (page) => stackedBars(page.map((c) => {
      const row = okFirst(c);
      return { label: labelInView(c), parts: present.map(([name]) => number(name, row) || 0), titles: present.map(([name]) => share(number(name, row))), note: share(number("goodput", row)) };
    }), present.map(([, label]) => label), present.map(([, , colour]) => colour), "share", "Where GPU time went")),
    drawn.length ? el("h3", {}, "GPUs over time") : null,
    drawn.length ? legend(GPU_USE.concat([["asked for by waiting jobs (line)", "currentColor"]])) : null,
    drawn.length ? paged(drawn, 6, (page) => el("div", {}, page.map((c) => clusterTimeline(DATA.cluster.of[text("exp_id", okFirst(c))], labelInView(c))))) : null,
    mapped.length ? el("h3", {}, "Servers over time") : null,
    mapped.length ? legend(MAP_USE.map(([name, colour]) => [name, "var(" + colour + ")"]).concat([["idle", "var(--panel)"]])) : null,
    mapped.length ? paged(mapped, 4, (page) => el("div", {}, page.map((c) => serverMap(DATA.map.of[text("exp_id", okFirst(c))], labelInView(c))))) : el("p", { class: "soft" }, "What each server does over time is drawn here with ", key("output.cluster_map = true"), "."),
  ];
}
