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

function clusterSection() {
  const items = inView().filter((c) => okFirst(c) !== undefined && text("goodput", okFirst(c)) !== "");
  if (!items.length) return null;
  const present = GPU_TIME.filter(([name]) => items.some((c) => number(name, okFirst(c)) > 0));
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
  ];
}
