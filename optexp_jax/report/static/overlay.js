// Masks over photographs: captured activation blue, activation that is not captured yellow, and
// what the formula covers beyond the activation outlined.
"use strict";
window.optexpOverlay = (function () {
  const CAPTURED = [31, 99, 255, 140];
  const MISSED = [255, 208, 0, 140];
  const EXTRAS = [255, 64, 129, 255];
  const DIMMED = [0, 0, 0, 165];

  // The inverse of pack_mask: runs that begin outside the mask, or bits.
  function unpack(text, [rows, columns]) {
    const mask = new Uint8Array(rows * columns);
    if (text[0] === "r") {
      let at = 0;
      let inside = 0;
      for (const length of text.slice(1).split(",").map(Number)) {
        if (inside) mask.fill(1, at, at + length);
        at += length;
        inside ^= 1;
      }
    } else {
      const bytes = atob(text.slice(1));
      for (let place = 0; place < mask.length; place++) {
        mask[place] = (bytes.charCodeAt(place >> 3) >> (7 - (place & 7))) & 1;
      }
    }
    return mask;
  }

  // Colours each pixel by the cell that lies there; no colour leaves the photograph.
  function fill(canvas, [rows, columns], colourOf) {
    const { width, height } = canvas;
    const context = canvas.getContext("2d");
    const layer = context.createImageData(width, height);
    const cell = (x, y) =>
      Math.floor((y * rows) / height) * columns + Math.floor((x * columns) / width);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const colour = colourOf(cell(x, y), x, y, cell);
        if (colour) layer.data.set(colour, 4 * (y * width + x));
      }
    }
    context.putImageData(layer, 0, 0);
  }

  function paint(canvas, shape, active, held) {
    const { width, height } = canvas;
    const line = Math.max(1, Math.round(width / 120));
    fill(canvas, shape, function (place, x, y, cell) {
      if (active[place]) return held[place] ? CAPTURED : MISSED;
      if (!held[place]) return null;
      const isExtra = function (u, v) {
        if (u < 0 || v < 0 || u >= width || v >= height) return true;
        const near = cell(u, v);
        return held[near] && !active[near];
      };
      const core =
        isExtra(x - line, y) && isExtra(x + line, y) && isExtra(x, y - line) && isExtra(x, y + line);
      return core ? null : EXTRAS;
    });
  }

  // One concept: the rest is dimmed, and activation inside it is blue.
  function paintAlone(canvas, shape, active, mask) {
    fill(canvas, shape, (place) => (!mask[place] ? DIMMED : active[place] ? CAPTURED : null));
  }

  function add(parent, tag, settings) {
    const made = Object.assign(document.createElement(tag), settings);
    parent.append(made);
    return made;
  }

  function figure(sample) {
    const element = document.createElement("figure");
    element.className = "photo";
    const frame = add(element, "div", { className: "frame" });
    const size = { width: sample.width, height: sample.height };
    const [captured, missed, extras] = sample.areas;
    const told = `${captured} locations captured, ${missed} missed, ${extras} extra`;
    add(frame, "img", { loading: "lazy", ...size, src: sample.photo, alt: `${sample.name}: ${told}` });
    const canvas = add(frame, "canvas", size);
    canvas.setAttribute("aria-hidden", "true");
    const caption = add(element, "figcaption", {});
    add(caption, "span", { className: "name", textContent: sample.name, title: sample.name });
    add(caption, "span", {
      className: "areas",
      textContent: `${captured} · ${missed} · ${extras}`,
      title: "captured, missed and extra locations",
    });
    return { element, canvas };
  }

  return { unpack, paint, paintAlone, figure };
})();
