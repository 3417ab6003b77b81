// Tables for keyboards and screen readers: headers that can be pressed, and roles that fit.
"use strict";
window.optexpMakeAccessible = function (table) {
  const grid = table.element;
  grid.removeAttribute("aria-owns");
  grid.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
  grid.querySelector(".tabulator-table").setAttribute("role", "presentation");
  for (const header of grid.querySelectorAll(".tabulator-col.tabulator-sortable")) {
    header.tabIndex = 0;
    header.addEventListener("keydown", function (event) {
      if (event.target !== header || (event.key !== "Enter" && event.key !== " ")) return;
      event.preventDefault();
      header.click();
    });
  }
};
