// The table of units: sort, filter, search, keyboard. Its state is in the address, to be shared.
"use strict";
(function () {
  const data = window.optexpUnits;
  const input = (id) => document.getElementById(id);
  const state = new URLSearchParams(location.hash.slice(1));

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  const link = (unit) => `units/${unit}.html`;
  const known = (value) => value !== null && value !== undefined;

  function thumbnail(cell) {
    const row = cell.getRow().getData();
    if (!known(row.thumb)) return "";
    const { side, columns } = data.thumb;
    const anchor = element("a", "thumb");
    anchor.href = link(row.unit);
    anchor.tabIndex = -1;
    anchor.setAttribute("aria-label", `Unit ${row.unit}`);
    const x = (row.thumb % columns) * side;
    const y = Math.floor(row.thumb / columns) * side;
    anchor.style.backgroundImage = `url("thumbs.jpg")`;
    anchor.style.backgroundPosition = `-${x}px -${y}px`;
    return anchor;
  }

  function unitLink(cell) {
    const anchor = element("a", "", String(cell.getValue()));
    anchor.href = link(cell.getValue());
    return anchor;
  }

  function formula(cell) {
    const row = cell.getRow().getData();
    const holder = element("span", "cell-formula");
    holder.append(row.formula ?? row.error ?? "no concept overlaps the unit");
    if (known(row.iou) && row.iou < data.threshold) {
      holder.append(" ", element("span", "badge low", "low"));
    }
    return holder;
  }

  function bar(cell) {
    const value = cell.getValue();
    if (!known(value)) return "–";
    const holder = element("span", "bar-cell");
    const fill = element("span", "fill");
    fill.style.width = `${(100 * value) / highest}%`;
    holder.append(fill, element("span", "value", value.toFixed(4)));
    return holder;
  }

  const number = (digits) => (cell) =>
    known(cell.getValue()) ? cell.getValue().toFixed(digits) : "–";
  const percent = (cell) =>
    known(cell.getValue()) ? `${(100 * cell.getValue()).toFixed(1)} %` : "–";

  function one(cell) {
    const row = cell.getRow().getData();
    if (!known(row.one)) return "–";
    const holder = element("span", "one");
    holder.append(row.one.toFixed(4), element("small", "", row.concept ?? "none"));
    return holder;
  }

  const words = { optimal: "proved", feasible: "not proved", failed: "failed" };
  const colours = { optimal: "good", feasible: "open", failed: "bad" };
  const status = (cell) =>
    element("span", `badge ${colours[cell.getValue()]}`, words[cell.getValue()]);
  const yes = (cell) => (known(cell.getValue()) ? (cell.getValue() ? "yes" : "no") : "–");

  const highest = Math.max(1e-9, ...data.rows.map((row) => row.iou ?? 0));
  const has = (key) => data.rows.some((row) => known(row[key]));
  const right = { hozAlign: "right", headerHozAlign: "right", sorter: "number", headerSortStartingDir: "desc" };
  const empty = { sorterParams: { alignEmptyValues: "bottom" } };
  const columns = [
    data.thumb && { title: "top", field: "thumb", formatter: thumbnail, headerSort: false, width: 76, cssClass: "thumb-cell" },
    { title: "unit", field: "unit", formatter: unitLink, ...right, headerSortStartingDir: "asc", width: 66 },
    { title: "formula", field: "formula", formatter: formula, minWidth: 150, widthGrow: 4, sorter: "string" },
    { title: "IoU", field: "iou", formatter: bar, ...right, ...empty, width: 98 },
    has("one") && { title: "one concept", field: "one", formatter: one, ...right, ...empty, width: 134 },
    has("p") && { title: "p", field: "p", formatter: number(3), ...right, ...empty, width: 66, headerSortStartingDir: "asc" },
    has("family") && { title: "p of all", field: "family", formatter: number(3), ...right, ...empty, width: 84, headerSortStartingDir: "asc", headerTooltip: "corrected for the number of units" },
    has("held") && { title: "held out", field: "held", formatter: number(4), ...right, ...empty, width: 92, headerTooltip: "IoU on images that the formula was not found on" },
    has("recurs") && { title: "recurs", field: "recurs", formatter: percent, ...right, ...empty, width: 82, headerTooltip: "share of resamples with the same formula" },
    has("active") && { title: "active", field: "active", formatter: percent, ...right, ...empty, width: 82 },
    has("precision") && { title: "precision", field: "precision", formatter: percent, ...right, ...empty, width: 106 },
    has("recall") && { title: "recall", field: "recall", formatter: percent, ...right, ...empty, width: 82 },
    { title: "status", field: "status", formatter: status, width: 104, sorter: "string" },
    data.differs && { title: "differs", field: "differs", formatter: yes, width: 84, sorter: "boolean", headerTooltip: `from ${data.differs}` },
  ].filter(Boolean);

  const sortable = new Set(columns.map((column) => column.field));
  const sort = sortable.has(state.get("sort")) ? state.get("sort") : "iou";
  const table = new Tabulator("#units", {
    data: data.rows,
    columns,
    layout: "fitColumns",
    responsiveLayout: false,
    height: Math.min(640, 90 + 72 * Math.max(1, data.rows.length)),
    rowHeight: data.thumb ? 70 : undefined,
    index: "unit",
    initialSort: [{ column: sort, dir: state.get("dir") === "asc" ? "asc" : "desc" }],
    placeholder: "No unit is like that.",
    columnDefaults: { resizable: false },
  });

  function wanted(row) {
    const text = input("search").value.trim().toLowerCase();
    const least = parseFloat(input("least").value);
    const kind = input("status").value;
    const other = input("differs");
    if (text) {
      const where = `${row.unit} ${row.formula ?? ""} ${row.concept ?? ""}`.toLowerCase();
      if (/^\d+$/.test(text) ? String(row.unit) !== text : !where.includes(text)) return false;
    }
    if (!Number.isNaN(least) && !(known(row.iou) && row.iou >= least)) return false;
    if (kind && row.status !== kind) return false;
    return !(other && other.checked && !row.differs);
  }

  function remember() {
    const now = new URLSearchParams();
    const [sorter] = table.getSorters();
    if (sorter) {
      now.set("sort", sorter.field);
      now.set("dir", sorter.dir);
    }
    for (const id of ["search", "least", "status"]) {
      if (input(id).value) now.set(id, input(id).value);
    }
    if (input("differs") && input("differs").checked) now.set("differs", "1");
    history.replaceState(null, "", `#${now}`);
  }

  function filter() {
    table.setFilter(wanted);
    remember();
  }

  table.on("dataFiltered", function (filters, rows) {
    input("shown").textContent = `${rows.length} of ${data.rows.length} units`;
  });
  table.on("tableBuilt", function () {
    window.optexpMakeAccessible(table);
    for (const id of ["search", "least", "status"]) {
      if (state.get(id)) input(id).value = state.get(id);
    }
    if (input("differs")) input("differs").checked = state.get("differs") === "1";
    filter();
    table.on("dataSorted", remember);
  });
  for (const id of ["search", "least", "status", "differs"]) {
    if (input(id)) input(id).addEventListener("input", filter);
  }

  let chosen = null;
  table.on("rowClick", function (event, row) {
    if (!event.target.closest("a")) location.href = link(row.getData().unit);
  });

  function move(by) {
    const rows = table.getRows("active");
    if (!rows.length) return;
    const at = chosen !== null ? rows.findIndex((row) => row.getData().unit === chosen) : -1;
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
    for (const marked of document.querySelectorAll(".tabulator-row.chosen")) {
      marked.classList.remove("chosen");
    }
    chosen = next.getData().unit;
    next.scrollTo("nearest", false).then(function () {
      next.getElement().classList.add("chosen");
      next.getElement().querySelector("a:not(.thumb)").focus({ preventScroll: true });
    });
  }

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (event.key === "Escape" && event.target === input("search")) input("search").blur();
    if (typing) return;
    if (event.key === "/") {
      event.preventDefault();
      input("search").focus();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    }
  });
})();
