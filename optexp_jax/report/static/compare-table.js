// The table of a comparison.
"use strict";
(function () {
  const rows = window.optexpCompared;
  const input = (id) => document.getElementById(id);

  function unitLink(cell) {
    const anchor = document.createElement("a");
    anchor.textContent = String(cell.getValue());
    anchor.href = `units/${cell.getValue()}.html`;
    return anchor;
  }

  function text(cell) {
    const holder = document.createElement("span");
    holder.className = "cell-formula";
    holder.textContent = cell.getValue() ?? "none";
    return holder;
  }

  const right = { hozAlign: "right", headerHozAlign: "right", sorter: "number", headerSortStartingDir: "desc" };
  const number = (cell) => cell.getValue().toFixed(4);
  const table = new Tabulator("#compared", {
    data: rows,
    columns: [
      { title: "unit", field: "unit", formatter: unitLink, ...right, headerSortStartingDir: "asc", width: 76 },
      { title: "category", field: "meaning", formatter: text, sorter: "string", minWidth: 150, widthGrow: 1 },
      { title: "IoU of A", field: "iou_a", formatter: number, ...right, width: 104 },
      { title: "IoU of B", field: "iou_b", formatter: number, ...right, width: 104 },
      { title: "gain", field: "gain", formatter: number, ...right, width: 92 },
      { title: "formula of A", field: "formula_a", formatter: text, sorter: "string", minWidth: 180, widthGrow: 2 },
      { title: "formula of B", field: "formula_b", formatter: text, sorter: "string", minWidth: 180, widthGrow: 2 },
    ],
    layout: "fitColumns",
    height: Math.min(560, 90 + 48 * Math.max(1, rows.length)),
    index: "unit",
    initialSort: [{ column: "gain", dir: "desc" }],
    placeholder: "No unit is like that.",
    columnDefaults: { resizable: false },
  });

  function filter() {
    const wanted = input("search").value.trim().toLowerCase();
    const category = input("category").value;
    table.setFilter(function (row) {
      const where = `${row.unit} ${row.formula_a ?? ""} ${row.formula_b ?? ""}`.toLowerCase();
      if (wanted && !where.includes(wanted)) return false;
      return !category || row.category === category;
    });
  }

  table.on("dataFiltered", function (filters, found) {
    input("shown").textContent = `${found.length} of ${rows.length} units`;
  });
  table.on("tableBuilt", function () {
    window.optexpMakeAccessible(table);
    for (const id of ["search", "category"]) input(id).addEventListener("input", filter);
    filter();
  });
})();
