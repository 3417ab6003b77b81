// The names nearest to one that was mistyped, as Python's difflib.get_close_matches finds them.
(function (root) {
  "use strict";

  const CUTOFF = 0.6;
  const MOST = 3;

  // Names of the highest ratio, of equal ones the later in order; all as arrays of code points.
  function nearest(word, names) {
    const matcher = new Matcher(word);
    const found = [];
    for (const name of names) {
      const length = name.length + word.length;
      if (length && (2 * Math.min(name.length, word.length)) / length < CUTOFF) continue;
      const ratio = matcher.ratio(name);
      if (ratio >= CUTOFF) found.push({ ratio, name });
    }
    found.sort((a, b) => b.ratio - a.ratio || compare(b.name, a.name));
    return found.slice(0, MOST).map((each) => each.name);
  }

  function compare(a, b) {
    const n = Math.min(a.length, b.length);
    for (let i = 0; i < n; i++) if (a[i] !== b[i]) return a[i] - b[i];
    return a.length - b.length;
  }

  // The ratio of difflib.SequenceMatcher(None, other, word), characters in `word` looked up once.
  class Matcher {
    constructor(word) {
      this.word = word;
      this.places = new Map();
      word.forEach((point, place) => {
        if (!this.places.has(point)) this.places.set(point, []);
        this.places.get(point).push(place);
      });
      if (word.length >= 200) {
        const most = Math.floor(word.length / 100) + 1;
        for (const [point, places] of this.places) {
          if (places.length > most) this.places.delete(point);
        }
      }
    }

    ratio(other) {
      const total = other.length + this.word.length;
      if (!total) return 1;
      let matches = 0;
      const queue = [[0, other.length, 0, this.word.length]];
      while (queue.length) {
        const [aLow, aHigh, bLow, bHigh] = queue.pop();
        const [a, b, size] = this.longest(other, aLow, aHigh, bLow, bHigh);
        if (!size) continue;
        matches += size;
        if (aLow < a && bLow < b) queue.push([aLow, a, bLow, b]);
        if (a + size < aHigh && b + size < bHigh) queue.push([a + size, aHigh, b + size, bHigh]);
      }
      return (2 * matches) / total;
    }

    longest(other, aLow, aHigh, bLow, bHigh) {
      let [a, b, size] = [aLow, bLow, 0];
      let lengths = new Map();
      for (let i = aLow; i < aHigh; i++) {
        const longer = new Map();
        for (const j of this.places.get(other[i]) || []) {
          if (j < bLow) continue;
          if (j >= bHigh) break;
          const k = (lengths.get(j - 1) || 0) + 1;
          longer.set(j, k);
          if (k > size) [a, b, size] = [i - k + 1, j - k + 1, k];
        }
        lengths = longer;
      }
      // Characters that are too frequent to begin a match may still lengthen one.
      while (a > aLow && b > bLow && other[a - 1] === this.word[b - 1]) {
        [a, b, size] = [a - 1, b - 1, size + 1];
      }
      while (a + size < aHigh && b + size < bHigh && other[a + size] === this.word[b + size]) size++;
      return [a, b, size];
    }
  }

  root.OptexpWhatIf = Object.assign(root.OptexpWhatIf || {}, { nearest });
})(typeof window === "undefined" ? globalThis : window);
