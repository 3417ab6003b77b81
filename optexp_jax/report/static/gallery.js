// Pictures of a unit: photographs with masks that are drawn here, so that concepts can be shown
// one by one.
"use strict";
(function () {
  const holder = document.getElementById("picture-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const [rows, columns] = data.shape;
  const CAPTURED = [31, 99, 255, 140];
  const MISSED = [255, 208, 0, 140];
  const EXTRAS = [255, 64, 129, 255];
  const SIZE = 8;

  // The inverse of pack_mask: runs that begin outside the mask, or bits.
  function unpack(text) {
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

  // Bits of an operator: of the left side alone, the right alone, and both.
  function evaluate(masks) {
    const held = masks.length ? masks[0].slice() : new Uint8Array(rows * columns);
    data.operators.forEach(function ([p, q, r], step) {
      const right = masks[step + 1];
      for (let place = 0; place < held.length; place++) {
        held[place] = held[place] ? (right[place] ? r : p) : right[place] ? q : 0;
      }
    });
    return held;
  }

  function paint(canvas, sample, alone) {
    const [active, ...masks] = sample.masks.map(unpack);
    const held = evaluate(masks);
    const [width, height] = [canvas.width, canvas.height];
    const context = canvas.getContext("2d");
    const layer = context.createImageData(width, height);
    const column = Array.from({ length: width }, (_, x) => Math.floor((x * columns) / width));
    const cell = (x, y) => Math.floor((y * rows) / height) * columns + column[x];
    const isExtra = (x, y) => {
      if (x < 0 || y < 0 || x >= width || y >= height) return true;
      const place = cell(x, y);
      return held[place] && !active[place];
    };
    const line = Math.max(1, Math.round(width / 120));
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const place = cell(x, y);
        let colour = null;
        if (alone !== null) {
          if (!masks[alone][place]) colour = [0, 0, 0, 165];
          else if (active[place]) colour = CAPTURED;
        } else if (active[place]) {
          colour = held[place] ? CAPTURED : MISSED;
        } else if (held[place]) {
          const core =
            isExtra(x - line, y) && isExtra(x + line, y) && isExtra(x, y - line) && isExtra(x, y + line);
          if (!core) colour = EXTRAS;
        }
        if (colour) layer.data.set(colour, 4 * (y * width + x));
      }
    }
    context.putImageData(layer, 0, 0);
  }

  function figure(id) {
    const sample = data.samples[id];
    const made = document.createElement("figure");
    made.className = "photo";
    const frame = document.createElement("div");
    frame.className = "frame";
    const image = document.createElement("img");
    image.loading = "lazy";
    image.width = sample.width;
    image.height = sample.height;
    image.src = sample.photo;
    const [captured, missed, extras] = sample.areas;
    image.alt = `${sample.name}: ${captured} locations captured, ${missed} missed, ${extras} extra`;
    const canvas = document.createElement("canvas");
    canvas.width = sample.width;
    canvas.height = sample.height;
    canvas.setAttribute("aria-hidden", "true");
    frame.append(image, canvas);
    const caption = document.createElement("figcaption");
    const name = document.createElement("span");
    name.className = "name";
    name.textContent = sample.name;
    name.title = sample.name;
    const counts = document.createElement("span");
    counts.className = "areas";
    counts.textContent = `${captured} · ${missed} · ${extras}`;
    counts.title = "captured, missed and extra locations";
    caption.append(name, counts);
    made.append(frame, caption);
    paint(canvas, sample, null);
    return { element: made, canvas, sample, frame };
  }

  const place = { gallery: 0, page: 0 };
  let shown = [];
  let pinned = null;
  const gallery = document.getElementById("gallery");
  const tabs = document.getElementById("gallery-tabs");

  function repaint(alone) {
    for (const each of shown) paint(each.canvas, each.sample, alone);
  }

  function show() {
    const chosen = data.galleries[place.gallery];
    const pages = Math.max(1, Math.ceil(chosen.samples.length / SIZE));
    place.page = Math.max(0, Math.min(pages - 1, place.page));
    const ids = chosen.samples.slice(place.page * SIZE, (place.page + 1) * SIZE);
    shown = ids.map(figure);
    gallery.replaceChildren(...shown.map((each) => each.element));
    if (!ids.length) gallery.textContent = "There are no such samples.";
    if (pinned !== null) repaint(pinned);
    document.getElementById("page-place").textContent = `${place.page + 1} of ${pages}`;
    document.getElementById("page-back").disabled = place.page === 0;
    document.getElementById("page-on").disabled = place.page === pages - 1;
    gallery.setAttribute("aria-labelledby", `tab-${place.gallery}`);
    Array.from(tabs.children).forEach(function (tab, k) {
      tab.setAttribute("aria-selected", String(k === place.gallery));
      tab.tabIndex = k === place.gallery ? 0 : -1;
    });
  }

  data.galleries.forEach(function (each, k) {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.id = `tab-${k}`;
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", "gallery");
    tab.textContent = each.title;
    tab.title = each.text;
    tab.addEventListener("click", function () {
      Object.assign(place, { gallery: k, page: 0 });
      show();
    });
    tabs.append(tab);
  });
  tabs.addEventListener("keydown", function (event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const n = data.galleries.length;
    Object.assign(place, { gallery: (place.gallery + by + n) % n, page: 0 });
    show();
    tabs.children[place.gallery].focus();
  });
  const turn = (by) => () => {
    place.page += by;
    show();
  };
  document.getElementById("page-back").addEventListener("click", turn(-1));
  document.getElementById("page-on").addEventListener("click", turn(1));

  // Hover over a concept, or press its button, to see it alone.
  const keys = document.getElementById("concept-keys");
  if (data.concepts.length) {
    keys.append("Show only ");
    data.concepts.forEach(function (name, k) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("mouseenter", () => repaint(k));
      button.addEventListener("mouseleave", () => repaint(pinned));
      button.addEventListener("click", function () {
        pinned = pinned === k ? null : k;
        Array.from(keys.querySelectorAll("button")).forEach(function (each, other) {
          each.setAttribute("aria-pressed", String(pinned === other));
        });
        repaint(pinned);
      });
      keys.append(button);
    });
  }
  show();
})();
