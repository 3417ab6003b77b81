// The what-if editor: a formula that can be changed, with its exact score and its pictures.
(function () {
  "use strict";
  const kit = window.OptexpWhatIf;
  const MOST_SUGGESTIONS = 8;
  const MOST_PICTURES = 12;

  function add(parent, tag, settings, attributes) {
    const made = Object.assign(document.createElement(tag), settings);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    parent.append(made);
    return made;
  }

  function load(source) {
    return new Promise(function (resolve, reject) {
      const script = document.createElement("script");
      script.src = source;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${source} cannot be loaded`));
      document.head.append(script);
    });
  }

  function grouped(count) {
    return count.toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
  }

  function small(value) {
    return value >= 0.00005 ? value.toFixed(4) : value.toExponential(1);
  }

  // A layer's language and signatures, and a unit's counts, from what the scripts assigned.
  function open(layer, unit) {
    if (layer.format !== 1 || unit.format !== 1 || layer.table !== unit.table) {
      throw new Error("The data of this page do not belong together. Make the report again.");
    }
    const edges = [];
    let at = 0;
    for (const step of kit.varints(kit.bytes(layer.printable))) edges.push((at += step));
    const names = layer.names.map((name) => (Array.isArray(name) ? name : kit.points(name)));
    const signatures = new kit.Signatures(layer);
    return {
      language: new kit.Language(names, layer.operators, edges),
      signatures,
      unit: new kit.Unit(unit, signatures),
      best: {
        formula: unit.best.formula,
        optimal: unit.best.optimal,
        intersection: BigInt(unit.best.intersection),
        union: BigInt(unit.best.union),
      },
      length: unit.length,
    };
  }

  // All that is known of a text: its chain, where it holds, and its score; or what is wrong.
  function evaluate(data, text) {
    const chain = data.language.parse(text);
    const bits = chain.operators.map((index) => data.language.operators[index].bits);
    const held = data.signatures.holds(chain.concepts, bits);
    const score = data.unit.score(held);
    return { chain, held, score, iou: kit.ratio(score.intersection, score.union) };
  }

  // How a score stands to the best one that the search knows.
  function compared(data, found) {
    const best = data.best;
    const name = best.optimal ? "the proved optimum" : "the best formula found";
    const top = kit.ratio(best.intersection, best.union);
    const sign = kit.compareScores(found.score, best);
    if (sign === 0) return `exactly that of ${name}`;
    const by = small(Math.abs(found.iou - top));
    if (sign < 0) return `${by} below ${name} (${top.toFixed(4)})`;
    const long = data.length !== null && found.chain.concepts.length > data.length;
    const why = long
      ? `: the search used at most ${data.length} concept${data.length === 1 ? "" : "s"}`
      : best.optimal ? "" : ": the search was stopped before its proof";
    return `${by} above ${name} (${top.toFixed(4)})${why}`;
  }

  class Editor {
    constructor(element, data, pictures, samples) {
      this.data = data;
      this.pictures = pictures;
      this.samples = samples;
      this.maps = new Map();
      this.found = null;
      this.suggestions = [];
      this.chosen = -1;
      this.build(element);
      this.write(data.best.formula || "");
    }

    build(element) {
      const box = add(element, "div", { className: "whatif" });
      this.box = box;
      const field = add(box, "div", { className: "whatif-field" });
      add(field, "label", { textContent: "Formula", htmlFor: "whatif-text" });
      this.input = add(
        field,
        "input",
        { id: "whatif-text", type: "text", spellcheck: false, autocomplete: "off" },
        {
          role: "combobox",
          "aria-autocomplete": "list",
          "aria-controls": "whatif-list",
          "aria-expanded": "false",
          "aria-describedby": "whatif-help whatif-result",
        },
      );
      this.list = add(
        field,
        "ul",
        { id: "whatif-list", hidden: true },
        { role: "listbox", "aria-label": "Concepts and operators" },
      );
      const operators = this.data.language.operators.map((operator) => operator.name).join(", ");
      add(box, "p", {
        id: "whatif-help",
        className: "whatif-help",
        textContent:
          `Concepts joined by ${operators}, read from left to right. Names with spaces stand in ` +
          "double quotes. Arrow keys choose from the list, Enter takes it.",
      });
      this.result = add(box, "div", { id: "whatif-result" }, { role: "status", "aria-live": "polite" });
      this.steps = add(box, "ol", { className: "whatif-steps" }, { "aria-label": "Steps" });
      this.buildAdder(box);
      this.gallery = add(box, "div", { className: "whatif-pictures" });
      this.input.addEventListener("input", () => {
        this.update();
        this.suggest();
      });
      this.input.addEventListener("keydown", (event) => this.key(event));
      this.input.addEventListener("blur", () => this.closeList());
      this.buildPictures();
    }

    buildAdder(box) {
      const row = add(box, "form", { className: "whatif-add" });
      this.operator = this.operatorSelect(row, "Operator of the new step", 0);
      this.concept = add(
        row,
        "input",
        { type: "text", autocomplete: "off", placeholder: "concept" },
        { list: "whatif-names", "aria-label": "Concept of the new step" },
      );
      const names = add(row, "datalist", { id: "whatif-names" });
      const language = this.data.language;
      for (const name of language.names) add(names, "option", { value: language.quoteName(name) });
      add(row, "button", { type: "submit", textContent: "Add step" });
      const reset = add(row, "button", { type: "button", textContent: "Back to the explanation" });
      reset.addEventListener("click", () => this.write(this.data.best.formula || ""));
      row.addEventListener("submit", (event) => {
        event.preventDefault();
        const typed = this.concept.value.trim();
        if (!typed) return;
        const known = language.ids.has(kit.points(typed).join());
        const name = known ? language.quoteName(kit.points(typed)) : typed;
        const before = this.input.value.trim();
        const operator = language.operators[Number(this.operator.value)].name;
        this.concept.value = "";
        this.write(before ? `${before} ${operator} ${name}` : name);
      });
    }

    operatorSelect(parent, label, chosen) {
      const select = add(parent, "select", {}, { "aria-label": label });
      this.data.language.operators.forEach((operator, index) => {
        add(select, "option", { value: String(index), textContent: operator.name });
      });
      select.value = String(chosen);
      return select;
    }

    write(text) {
      this.input.value = text;
      this.update();
    }

    writeChain(chain) {
      this.write(chain.concepts.length ? this.data.language.formatChain(chain) : "");
    }

    update() {
      const text = this.input.value;
      this.result.replaceChildren();
      this.input.removeAttribute("aria-invalid");
      this.box.classList.remove("whatif-stale");
      if (!text.trim()) {
        this.found = null;
        add(this.result, "p", { textContent: "Type a concept, or choose one below." });
      } else {
        try {
          this.found = evaluate(this.data, text);
          this.tell(this.found);
        } catch (error) {
          if (!(error instanceof kit.FormulaError)) throw error;
          this.input.setAttribute("aria-invalid", "true");
          add(this.result, "p", { className: "whatif-error", textContent: error.message });
          this.box.classList.add("whatif-stale"); // Steps and pictures stay those before.
          return;
        }
      }
      this.showSteps();
      this.paint();
    }

    tell(found) {
      const facts = add(this.result, "dl", { className: "whatif-facts" });
      const fact = function (name, value) {
        const pair = add(facts, "div", {});
        add(pair, "dt", { textContent: name });
        add(pair, "dd", { textContent: value });
      };
      fact("IoU", found.iou.toFixed(4));
      fact("intersection", grouped(found.score.intersection));
      fact("union", grouped(found.score.union));
      add(this.result, "p", { className: "whatif-compared", textContent: `IoU ${compared(this.data, found)}.` });
    }

    showSteps() {
      const chain = this.found ? this.found.chain : { concepts: [], operators: [] };
      const language = this.data.language;
      this.steps.replaceChildren();
      chain.concepts.forEach((concept, place) => {
        const name = language.quoteName(language.names[concept]);
        const item = add(this.steps, "li", {});
        if (place) {
          const select = this.operatorSelect(item, `Operator before ${name}`, chain.operators[place - 1]);
          select.addEventListener("change", () => {
            const operators = chain.operators.slice();
            operators[place - 1] = Number(select.value);
            this.writeChain({ concepts: chain.concepts, operators });
          });
        }
        add(item, "span", { className: "whatif-name", textContent: name });
        const remove = add(item, "button", { type: "button", textContent: "×" }, { "aria-label": `Remove ${name}` });
        remove.addEventListener("click", () => {
          const operator = Math.max(0, place - 1);
          this.writeChain({
            concepts: chain.concepts.filter((_, k) => k !== place),
            operators: chain.operators.filter((_, k) => k !== operator),
          });
          this.input.focus();
        });
      });
    }

    // Where the word at the caret begins, and what stands there so far.
    word() {
      const before = this.input.value.slice(0, this.input.selectionStart);
      const quoted = /^(?:[^"]|"(?:[^"\\]|\\.)*")*"((?:[^"\\]|\\.)*)$/s.exec(before);
      if (quoted) return { start: before.length - quoted[1].length - 1, text: quoted[1], quoted: true };
      const text = /[^\s()"]*$/.exec(before)[0];
      return { start: before.length - text.length, text, quoted: false };
    }

    suggest() {
      const { text, quoted } = this.word();
      const wanted = text.toLowerCase();
      const language = this.data.language;
      this.suggestions = [];
      if (wanted) {
        const ranked = [];
        for (const name of language.names) {
          const place = kit.show(name).toLowerCase().indexOf(wanted);
          if (place >= 0) ranked.push({ place: place ? 1 : 0, text: language.quoteName(name) });
        }
        ranked.sort((a, b) => a.place - b.place || a.text.length - b.text.length);
        const operators = quoted ? [] : language.operators.filter((each) => each.name.startsWith(text));
        this.suggestions = [...operators.map((each) => each.name), ...ranked.map((each) => each.text)];
        this.suggestions = this.suggestions.slice(0, MOST_SUGGESTIONS);
      }
      this.chosen = -1;
      this.showList();
    }

    showList() {
      this.list.replaceChildren();
      this.suggestions.forEach((text, place) => {
        const chosen = String(place === this.chosen);
        const settings = { id: `whatif-option-${place}`, textContent: text };
        const item = add(this.list, "li", settings, { role: "option", "aria-selected": chosen });
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          this.take(place);
        });
      });
      this.list.hidden = !this.suggestions.length;
      this.input.setAttribute("aria-expanded", String(!this.list.hidden));
      if (this.chosen >= 0) this.input.setAttribute("aria-activedescendant", `whatif-option-${this.chosen}`);
      else this.input.removeAttribute("aria-activedescendant");
    }

    closeList() {
      this.suggestions = [];
      this.showList();
    }

    key(event) {
      const n = this.suggestions.length;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by && n) {
        this.chosen = this.chosen < 0 && by < 0 ? n - 1 : (this.chosen + by + n) % n;
        this.showList();
      } else if (event.key === "Enter" && this.chosen >= 0) this.take(this.chosen);
      else if (event.key === "Escape" && n) this.closeList();
      else return;
      event.preventDefault();
    }

    take(place) {
      const { start, quoted } = this.word();
      let end = this.input.selectionStart;
      if (quoted && this.input.value[end] === '"') end++;
      const text = this.suggestions[place] + " ";
      this.input.value = this.input.value.slice(0, start) + text + this.input.value.slice(end);
      this.input.setSelectionRange(start + text.length, start + text.length);
      this.closeList();
      this.update();
    }

    buildPictures() {
      if (!this.pictures || !window.optexpOverlay) return;
      const ids = this.pictures.galleries[0].samples.slice(0, MOST_PICTURES);
      for (const id of ids) {
        const sample = this.pictures.samples[id];
        const made = window.optexpOverlay.figure(sample);
        made.element.querySelector("img").alt = sample.name;
        made.areas = made.element.querySelector(".areas");
        made.active = window.optexpOverlay.unpack(sample.masks[0], this.pictures.shape);
        this.gallery.append(made.element);
        load(`${this.samples}${id}.js`).then(
          () => {
            made.map = kit.signatureMap(window.optexpWhatIfSamples[id]);
            this.maps.set(id, made);
            this.paintOne(made);
          },
          () => made.element.remove(),
        );
      }
    }

    paint() {
      for (const made of this.maps.values()) this.paintOne(made);
    }

    paintOne(made) {
      const held = new Uint8Array(made.map.length);
      const words = this.found && this.found.held;
      const areas = [0, 0, 0];
      for (let place = 0; place < held.length; place++) {
        held[place] = words ? kit.contains(words, made.map[place]) : 0;
        if (made.active[place]) areas[held[place] ? 0 : 1]++;
        else if (held[place]) areas[2]++;
      }
      made.areas.textContent = areas.join(" · ");
      window.optexpOverlay.paint(made.canvas, this.pictures.shape, made.active, held);
    }
  }

  function start(element) {
    const holder = document.getElementById("picture-data");
    const pictures = holder ? JSON.parse(holder.textContent) : null;
    const { layer, unit, samples } = element.dataset;
    return Promise.all([load(layer), load(unit)])
      .then(function () {
        const data = open(window.optexpWhatIfLayer, window.optexpWhatIfUnit);
        element.whatIf = new Editor(element, data, pictures, samples);
      })
      .catch(function (error) {
        add(element, "p", { className: "notice bad", textContent: error.message });
      });
  }

  Object.assign(kit, { Editor, compared, evaluate, open });

  // The signatures can be megabytes: they are read when the editor comes into view.
  const element = document.getElementById("what-if");
  if (element && element.dataset.layer) {
    const observer = new IntersectionObserver(function (entries) {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      start(element);
    }, { rootMargin: "200px" });
    observer.observe(element);
  }
})();
