// Pictures of a unit: photographs with masks that are drawn here, so that concepts can be shown
// one by one.
"use strict";
(function () {
  const holder = document.getElementById("picture-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const overlay = window.optexpOverlay;
  const SIZE = 8;

  function masksOf(sample) {
    return sample.masks.map((text) => overlay.unpack(text, data.shape));
  }

  // Bits of an operator: of the left side alone, the right alone, and both.
  function evaluate(masks) {
    const held = masks.length ? masks[0].slice() : new Uint8Array(data.shape[0] * data.shape[1]);
    data.operators.forEach(function ([p, q, r], step) {
      const right = masks[step + 1];
      for (let place = 0; place < held.length; place++) {
        held[place] = held[place] ? (right[place] ? r : p) : right[place] ? q : 0;
      }
    });
    return held;
  }

  function paint(each, alone) {
    const [active, ...masks] = masksOf(each.sample);
    if (alone === null) overlay.paint(each.canvas, data.shape, active, evaluate(masks));
    else overlay.paintAlone(each.canvas, data.shape, active, masks[alone]);
  }

  function figure(id) {
    const made = { ...overlay.figure(data.samples[id]), sample: data.samples[id] };
    paint(made, null);
    return made;
  }

  const place = { gallery: 0, page: 0 };
  let shown = [];
  let pinned = null;
  const gallery = document.getElementById("gallery");
  const tabs = document.getElementById("gallery-tabs");

  function repaint(alone) {
    for (const each of shown) paint(each, alone);
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
