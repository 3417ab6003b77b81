// The formulas of two runs on the same samples, side by side.
"use strict";
(function () {
  const holder = document.getElementById("compare-data");
  const data = JSON.parse(holder.textContent);
  const overlay = window.optexpOverlay;
  for (const strip of document.querySelectorAll(".strip")) {
    for (const sample of data.units[strip.dataset.unit] ?? []) {
      const side = sample[strip.dataset.side];
      const made = overlay.figure({ ...sample, areas: side.areas });
      const masks = [sample.active, side.held].map((text) => overlay.unpack(text, data.shape));
      overlay.paint(made.canvas, data.shape, ...masks);
      strip.append(made.element);
    }
  }
})();
