// Runs before the page is drawn: the theme that was chosen, or else the system's.
"use strict";
(function () {
  let chosen = null;
  try {
    chosen = localStorage.getItem("optexp-theme");
  } catch (error) {
    // Some browsers keep nothing for files: the system's theme it is.
  }
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme =
    chosen === "dark" || chosen === "light" ? chosen : dark ? "dark" : "light";
})();
