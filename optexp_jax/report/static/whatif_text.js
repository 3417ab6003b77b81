// Reading formulas as optexp_jax/formulas/text.py does: the same texts, the same words on errors.
//
// Texts and names are arrays of code points: a string of JavaScript cannot tell two halves of a
// character from the character, and Python's names can hold either.
(function (root) {
  "use strict";

  const RESERVED = points("()[]{},\"'`\\");
  const SPACE = 32;
  const QUOTE = 34;
  const APOSTROPHE = 39;
  const OPEN = 40;
  const CLOSE = 41;
  const COMMA = 44;
  const SEMICOLON = 59;
  const BACKSLASH = 92;
  const SHORT = new Map([[92, 92], [34, 34], [110, 10], [114, 13], [116, 9]]);
  const SHORT_ESCAPES = new Map([[92, "\\\\"], [34, '\\"'], [10, "\\n"], [13, "\\r"], [9, "\\t"]]);
  const LARGEST = 0x10ffff;
  const DEFAULT_WORDS = ["OR", "AND", "NOT"];

  function points(text) {
    return Array.from(text, (character) => character.codePointAt(0));
  }

  function show(name) {
    let text = "";
    for (const point of name) text += String.fromCodePoint(point);
    return text;
  }

  // What str.isspace says; this set has not changed since Unicode 6.3.
  function isSpace(point) {
    return (
      (point >= 9 && point <= 13) || (point >= 28 && point <= 32) || point === 0x85 ||
      point === 0xa0 || point === 0x1680 || (point >= 0x2000 && point <= 0x200a) ||
      point === 0x2028 || point === 0x2029 || point === 0x202f || point === 0x205f ||
      point === 0x3000
    );
  }

  // What stands in front of the first comma or semicolon, without the space around it.
  function firstSynonym(name) {
    const cut = name.findIndex((point) => point === COMMA || point === SEMICOLON);
    let end = cut < 0 ? name.length : cut;
    let start = 0;
    while (start < end && isSpace(name[start])) start++;
    while (start < end && isSpace(name[end - 1])) end--;
    return name.slice(start, end);
  }

  class FormulaError extends Error {
    constructor(problem, position, message) {
      super(message);
      this.problem = problem;
      this.position = position;
    }
  }

  class Language {
    // `edges` are where characters begin and cease to be printable, as the writer's Python has it.
    constructor(names, operators, edges) {
      this.names = names;
      this.operators = operators;
      this.edges = edges;
      this.ids = new Map(names.map((name, id) => [name.join(), id]));
      this.synonyms = new Map();
      names.forEach((name, id) => {
        const first = firstSynonym(name).join();
        if (!this.synonyms.has(first)) this.synonyms.set(first, []);
        this.synonyms.get(first).push(id);
      });
      this.spellings = operators
        .map((operator, index) => ({ index, words: operator.name.split(" ") }))
        .sort((a, b) => b.words.length - a.words.length);
      this.operatorWords = new Set(DEFAULT_WORDS);
      for (const { words } of this.spellings) words.forEach((word) => this.operatorWords.add(word));
      this.known = operators.map((operator) => operator.name).join(", ");
    }

    isPrintable(point) {
      let low = 0;
      let high = this.edges.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.edges[middle] <= point) low = middle + 1;
        else high = middle;
      }
      return low % 2 === 1;
    }

    isBare(point) {
      return point !== SPACE && !RESERVED.includes(point) && this.isPrintable(point);
    }

    escapeUnprintable(point) {
      if (this.isPrintable(point)) return String.fromCodePoint(point);
      const hex = point.toString(16);
      return point <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
    }

    quoteName(name) {
      if (name.length && name.every((point) => this.isBare(point)) && !isOperatorWord(name)) {
        return show(name);
      }
      const escaped = name.map((point) => SHORT_ESCAPES.get(point) || this.escapeUnprintable(point));
      return `"${escaped.join("")}"`;
    }

    // Python's repr of a string.
    repr(name) {
      const quote = name.includes(APOSTROPHE) && !name.includes(QUOTE) ? '"' : "'";
      let text = quote;
      for (const point of name) {
        if (point === quote.charCodeAt(0) || point === BACKSLASH) {
          text += "\\" + String.fromCodePoint(point);
        } else if (point === 10 || point === 13 || point === 9) {
          text += SHORT_ESCAPES.get(point);
        } else if (this.isPrintable(point)) {
          text += String.fromCodePoint(point);
        } else if (point <= 0xff) {
          text += `\\x${point.toString(16).padStart(2, "0")}`;
        } else {
          text += this.escapeUnprintable(point);
        }
      }
      return text + quote;
    }

    formatChain(chain) {
      const names = chain.concepts.map((id) => this.quoteName(this.names[id]));
      let text = names[0];
      chain.operators.forEach((operator, step) => {
        text = `(${text} ${this.operators[operator].name} ${names[step + 1]})`;
      });
      return text;
    }

    // The ids of a formula's concepts and operators; a FormulaError says what is wrong with a text.
    parse(text) {
      const chain = new Parser(text, this).chain();
      const concepts = chain.concepts.map((token) => this.findConcept(token));
      const place = concepts.findIndex((id, k) => concepts.lastIndexOf(id) !== k);
      if (place >= 0) {
        const again = chain.concepts[concepts.lastIndexOf(concepts[place])];
        const message =
          "concepts of a formula must be distinct, " +
          `${this.repr(this.names[concepts[place]])} stands there twice`;
        throw new FormulaError(message, again.position, message);
      }
      return { concepts, operators: chain.operators };
    }

    // The concept of this name, or the one whose first synonym it is.
    findConcept(token) {
      const name = token.value;
      const id = this.ids.get(name.join());
      if (id !== undefined) return id;
      const found = this.synonyms.get(name.join()) || [];
      if (found.length === 1) return found[0];
      const all = found.map((each) => this.quoteName(this.names[each])).join(", ");
      const message = found.length
        ? `several concepts are called ${this.quoteName(name)}: ${all}; write one of these names`
        : this.unknownConcept(name);
      throw new FormulaError(message, token.position, message);
    }

    // A name is near if its first synonym is.
    unknownConcept(name) {
      const spelt = new Map();
      for (const known of this.names) {
        const both = new Map([known, firstSynonym(known)].map((each) => [each.join(), each]));
        for (const [key, spelling] of both) {
          if (!spelt.has(key)) spelt.set(key, { spelling, names: [] });
          spelt.get(key).names.push(this.quoteName(known));
        }
      }
      const spellings = [...spelt.values()].map((each) => each.spelling);
      const found = root.OptexpWhatIf.nearest(name, spellings);
      const near = [...new Set(found.flatMap((each) => spelt.get(each.join()).names))].slice(0, 3);
      const hint = near.length ? `; did you mean ${near.join(" or ")}?` : "";
      return `unknown concept ${this.quoteName(name)}${hint}`;
    }
  }

  function isOperatorWord(name) {
    return name.length >= 2 && name.every((point) => point >= 65 && point <= 90);
  }

  class Parser {
    constructor(text, language) {
      this.text = points(text);
      this.language = language;
      this.tokens = this.tokenize();
      this.next = 0;
    }

    chain() {
      const open = this.skip("(");
      const concepts = [this.concept()];
      const operators = [];
      for (;;) {
        for (const bracket of this.skip(")")) {
          if (!open.length) this.fail("this bracket closes nothing", bracket);
          open.pop();
        }
        if (this.peek().kind === "end") break;
        operators.push(this.operator());
        concepts.push(this.rightSide(operators[operators.length - 1]));
      }
      if (open.length) this.fail("this bracket is never closed", open[open.length - 1]);
      return { concepts, operators };
    }

    rightSide(operator) {
      const brackets = this.skip("(");
      const concept = this.concept();
      for (const bracket of brackets.reverse()) {
        const token = this.take();
        if (token.kind === "end") this.fail("this bracket is never closed", bracket);
        if (token.kind !== ")") {
          this.fail(
            `the right side of ${this.language.operators[operator].name} must be a single ` +
              "concept: formulas nest to the left only, as in ((a OR b) AND c)",
            bracket,
          );
        }
      }
      return concept;
    }

    concept() {
      const token = this.take();
      if (token.kind === "quoted") return token;
      if (token.kind !== "word") {
        this.fail(`expected a concept, found ${this.describe(token)}`, token);
      }
      const word = show(token.value);
      if (this.language.operatorWords.has(word)) {
        this.fail(
          `expected a concept, found the operator word ${word}; known operators are ` +
            `${this.language.known}; a concept of this name is written "${word}"`,
          token,
        );
      }
      return token;
    }

    operator() {
      for (const { index, words } of this.language.spellings) {
        const found = this.tokens.slice(this.next, this.next + words.length);
        const fits = (word, k) => found[k].kind === "word" && show(found[k].value) === word;
        if (found.length === words.length && words.every(fits)) {
          this.next += words.length;
          return index;
        }
      }
      const token = this.peek();
      const known = this.language.known;
      if (token.kind === "word" && isOperatorWord(token.value)) {
        this.fail(`unknown operator ${show(token.value)}; known operators are ${known}`, token);
      }
      return this.fail(
        `expected an operator (${known}), found ${this.describe(token)}; ` +
          'a concept name with spaces is written in double quotes, as in "traffic light"',
        token,
      );
    }

    describe(token) {
      return token.kind === "end" ? "the end of the text" : this.language.repr(token.value);
    }

    peek() {
      return this.tokens[this.next];
    }

    take() {
      const token = this.tokens[this.next];
      if (token.kind !== "end") this.next++;
      return token;
    }

    skip(kind) {
      const taken = [];
      while (this.peek().kind === kind) taken.push(this.take());
      return taken;
    }

    tokenize() {
      const tokens = [];
      let position = 0;
      while (position < this.text.length) {
        const point = this.text[position];
        if (isSpace(point)) {
          position++;
          continue;
        }
        const last = tokens[tokens.length - 1];
        const touching = last && last.end === position ? last.kind : null;
        const bracket = point === OPEN || point === CLOSE;
        if ((touching === "word" && point === QUOTE) || (touching === "quoted" && !bracket)) {
          this.fail("put the whole name in quotes", last);
        }
        let token;
        if (bracket) {
          const kind = point === OPEN ? "(" : ")";
          token = { kind, value: [point], position, end: position + 1 };
        } else {
          token = point === QUOTE ? this.quoted(position) : this.word(position);
        }
        tokens.push(token);
        position = token.end;
      }
      tokens.push({ kind: "end", value: [], position, end: position });
      return tokens;
    }

    word(start) {
      let end = start;
      while (end < this.text.length && this.language.isBare(this.text[end])) end++;
      if (end === start) {
        this.failAt(
          `unexpected character ${this.language.repr([this.text[start]])}; a concept name that ` +
            "contains it is written in double quotes",
          start,
        );
      }
      return { kind: "word", value: this.text.slice(start, end), position: start, end };
    }

    quoted(start) {
      const value = [];
      let position = start + 1;
      while (position < this.text.length && this.text[position] !== QUOTE) {
        if (this.text[position] !== BACKSLASH) {
          value.push(this.text[position++]);
          continue;
        }
        const letter = this.text[position + 1];
        const digits = letter === 117 ? 4 : letter === 85 ? 8 : 0; // \u and \U
        const hex = show(this.text.slice(position + 2, position + 2 + digits));
        if (SHORT.has(letter)) {
          value.push(SHORT.get(letter));
          position += 2;
        } else if (digits && hex.length === digits && /^[0-9a-fA-F]+$/.test(hex)) {
          const code = parseInt(hex, 16);
          if (code > LARGEST) this.failAt("no such character", position);
          value.push(code);
          position += 2 + digits;
        } else {
          this.failAt('unknown escape; use \\\\, \\", \\n, \\r, \\t, \\uXXXX or \\UXXXXXXXX', position);
        }
      }
      if (position === this.text.length) this.failAt("this quote is never closed", start);
      return { kind: "quoted", value, position: start, end: position + 1 };
    }

    fail(problem, token) {
      return this.failAt(problem, token.position);
    }

    failAt(problem, position) {
      const where = `(at position ${position} of ${this.language.repr(this.text)})`;
      throw new FormulaError(problem, position, `${problem} ${where}`);
    }
  }

  root.OptexpWhatIf = Object.assign(root.OptexpWhatIf || {}, {
    FormulaError,
    Language,
    points,
    show,
  });
})(typeof window === "undefined" ? globalThis : window);
