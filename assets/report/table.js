// A table that sorts by any column and shows a page of its rows, so that its size on the page does not depend on theirs.

// columns: { title, text(row), number(row) or null, shown(row) where a cell shows less than the text, wide, optional }; options: rows, pageSize, filters (of axes), id, first(row), sort [column, direction].
function dataTable(options) {
  const collator = new Intl.Collator("en", { numeric: true });
  const view = { rows: options.rows, sort: options.sort || null, page: 0, all: false };
  const columns = () => options.columns.filter((c) => view.all || !c.optional);
  const chosen = new Map();
  let typed = "", wanted = [];
  const scroll = el("div", { class: "scroll" });
  const pager = el("div", { class: "bar" });
  const controls = el("div", { class: "bar" });
  const hints = el("span", { class: "soft", id: options.id + "-hint" });

  function keep(row) {
    for (const [axis, value] of chosen) if (axis.text(row) !== value) return false;
    return wanted.every((term) => matches(row, term));
  }
  // Terms as they are meant: no blanks around an operator, and one equals sign is as good as two.
  const terms = () => typed.replace(/\s*(<=|>=|!=|==|=|<|>)\s*/g, (_, operator) => (operator === "==" ? "=" : operator)).split(/\s+/).filter((term) => term !== "");
  const comparison = (term) => term.match(/^([^<>=!]+)(<=|>=|!=|=|<|>)(.+)$/);
  const named = (name) => options.columns.find((c) => c.title.toLowerCase() === name || c.title.toLowerCase().endsWith("." + name));
  // Why a filter finds nothing.
  function hint() {
    const unknown = terms().map(comparison).find((parts) => parts && !named(parts[1]));
    if (unknown) return "There is no column " + unknown[1] + "; write for example " + options.columns.filter((c) => c.number).slice(-1)[0].title + ">=1, or a part of any text.";
    return typed.trim() && !view.rows.length ? "No row matches all of: " + terms().join(", ") + "." : "";
  }
  // A term is a part of any text, or a comparison such as link_gbps>=200.
  function matches(row, term) {
    const parts = comparison(term);
    const c = parts && named(parts[1]);
    if (!c) return options.columns.some((c) => c.text(row).toLowerCase().includes(term));
    const [have, want] = [c.number ? c.number(row) : NaN, Number(parts[3])];
    switch (parts[2]) {
      case "=": return c.text(row).toLowerCase() === parts[3] || have === want;
      case "!=": return c.text(row).toLowerCase() !== parts[3] && have !== want;
      case "<": return have < want;
      case ">": return have > want;
      case "<=": return have <= want;
      default: return have >= want;
    }
  }
  function arrange() {
    wanted = terms();
    view.rows = options.rows.filter(keep);
    if (view.sort) {
      const [at, way] = view.sort;
      const c = options.columns[at];
      const numeric = c.number !== null;
      const keys = new Map(view.rows.map((row) => [row, numeric ? c.number(row) : c.text(row)]));
      // What has no value comes last, whichever way.
      const last = (k) => (numeric ? Number.isNaN(k) : k === "");
      view.rows.sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        if (last(x) || last(y)) return last(x) - last(y);
        return (numeric ? x - y : collator.compare(x, y)) * way;
      });
    }
    view.page = 0;
    draw();
  }
  function draw() {
    const size = options.pageSize || 25;
    const pages = Math.max(1, Math.ceil(view.rows.length / size));
    view.page = Math.min(view.page, pages - 1);
    const head = columns().map((c) => {
      const at = options.columns.indexOf(c);
      const sorted = view.sort && view.sort[0] === at ? (view.sort[1] > 0 ? "ascending" : "descending") : null;
      const turn = () => { view.sort = [at, sorted === "ascending" ? -1 : 1]; arrange(); };
      const heading = c.heading || c.title;
      return el("th", { class: c.number ? "n" : null, "aria-sort": sorted, scope: "col", "data-column": c.title, title: heading === c.title ? null : c.title }, el("button", { type: "button", onclick: turn }, heading));
    });
    const body = view.rows.slice(view.page * size, (view.page + 1) * size).map((row) =>
      el("tr", { class: options.first && options.first(row) ? "first" : null }, columns().map((c) => {
        const short = c.shown ? c.shown(row) : c.text(row);
        return el("td", { class: c.number ? "n" : c.wide ? "wide" : null, title: short === c.text(row) ? null : c.text(row) }, short);
      })));
    clear(scroll).append(el("table", { id: options.id }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
    clear(hints).append(hint());
    const go = (page) => () => { view.page = page; draw(); };
    const n = view.rows.length;
    append(clear(pager), [
      el("button", { type: "button", disabled: view.page === 0, onclick: go(view.page - 1) }, "Previous"),
      el("span", { class: "soft", id: options.id + "-count" }, n === 0 ? "no rows" : (view.page * size + 1) + " to " + Math.min(n, (view.page + 1) * size) + " of " + n.toLocaleString("en")),
      el("button", { type: "button", disabled: view.page >= pages - 1, onclick: go(view.page + 1) }, "Next"),
    ]);
  }

  for (const { axis, title, values } of options.filters || []) {
    const id = options.id + "-filter-" + title;
    const choose = (at) => { if (at < 0) chosen.delete(axis); else chosen.set(axis, values[at]); arrange(); };
    controls.append(...select(id, title, [[-1, "any"]].concat(values.map((v, at) => [at, shown(v)])), -1, choose));
  }
  if (options.search) {
    const input = el("input", { type: "search", id: options.id + "-search", placeholder: "text, or link_gbps>=200", "aria-label": "Filter rows", oninput: () => { typed = input.value.toLowerCase(); arrange(); } });
    controls.append(input, hints);
  }
  if (options.columns.some((c) => c.optional)) {
    const box = el("input", { type: "checkbox", id: options.id + "-all", onchange: () => { view.all = box.checked; draw(); } });
    controls.append(el("label", {}, box, " all columns"));
  }
  arrange();
  return [controls.childElementCount ? controls : null, scroll, options.rows.length > (options.pageSize || 25) ? pager : null];
}

// A list of pictures' rows by pages; draw(items) makes the picture of one page.
function paged(items, size, draw) {
  const holder = el("div", {});
  let page = 0;
  const show = () => {
    const pages = Math.ceil(items.length / size);
    const go = (to) => () => { page = to; show(); };
    clear(holder).append(draw(items.slice(page * size, (page + 1) * size)));
    if (pages > 1) {
      holder.append(el("div", { class: "bar" },
        el("button", { type: "button", disabled: page === 0, onclick: go(page - 1) }, "Better"),
        el("span", { class: "soft" }, (page * size + 1) + " to " + Math.min(items.length, (page + 1) * size) + " of " + items.length.toLocaleString("en") + ", best first"),
        el("button", { type: "button", disabled: page >= pages - 1, onclick: go(page + 1) }, "Worse")));
    }
  };
  show();
  return holder;
}
