// What every page does: theme, copying, arrow keys.
"use strict";
(function () {
  const root = document.documentElement;

  document.getElementById("theme").addEventListener("click", function () {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("optexp-theme", root.dataset.theme);
    } catch (error) {
      // Not kept then, but changed.
    }
  });

  function copy(text) {
    if (navigator.clipboard && window.isSecureContext) {
      return navigator.clipboard.writeText(text).catch(() => copyByHand(text));
    }
    return Promise.resolve(copyByHand(text));
  }

  function copyByHand(text) {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "off-screen";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", function () {
      copy(button.dataset.copy).then(function () {
        const said = button.parentElement.querySelector(".copied");
        said.textContent = "copied as " + button.textContent;
      });
    });
  }

  const typed = new Set(["INPUT", "TEXTAREA", "SELECT"]);
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typed.has(event.target.tagName) || event.target.closest("[role=tablist]")) return;
    const ways = { ArrowLeft: "prev", ArrowRight: "next" };
    const link = ways[event.key] && document.querySelector(`a[rel=${ways[event.key]}]`);
    if (link) link.click();
  });
})();
