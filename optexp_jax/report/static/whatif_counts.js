// Exact counts of formulas from signatures and a unit's counts of them.
//
// A signature is a set of concepts; where a formula holds is a set of signatures, 32 to a word.
// Sums run in floating point as long as every one of them is a whole number below 2**53; past that
// each count is two parts whose sums are, and the parts are put together as BigInt.
(function (root) {
  "use strict";

  const PART = 2 ** 28;
  const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

  function bytes(base64) {
    const text = atob(base64);
    const found = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
    return found;
  }

  // Numbers of 7 bits a byte, the lowest first, each below 2**53.
  function* varints(data) {
    let value = 0;
    let scale = 1;
    for (const byte of data) {
      value += (byte & 127) * scale;
      if (byte & 128) scale *= 128;
      else {
        yield value;
        value = 0;
        scale = 1;
      }
    }
  }

  // Counts of any size: `low` below 2**28 and `high` above; `high` is null where one part is enough.
  class Counts {
    constructor(low, high) {
      this.low = low;
      this.high = high;
    }

    static read(data, length, total, places) {
      const low = new Float64Array(length);
      const high = total > SAFE ? new Float64Array(length) : null;
      let at = 0;
      let position = 0;
      while (position < data.length) {
        let lower = 0;
        let upper = 0;
        let scale = 1;
        let byte;
        do {
          byte = data[position++];
          if (scale < PART) lower += (byte & 127) * scale;
          else upper += (byte & 127) * (scale / PART);
          scale *= 128;
        } while (byte & 128);
        const place = places === undefined ? at : places[at];
        if (high === null) low[place] = upper * PART + lower;
        else {
          low[place] = lower;
          high[place] = upper;
        }
        at++;
      }
      return new Counts(low, high);
    }

    // The sum over a set of signatures, as a BigInt.
    sum(words) {
      const { low, high } = this;
      let lower = 0;
      let upper = 0;
      for (let w = 0; w < words.length; w++) {
        let word = words[w];
        const first = w << 5;
        while (word) {
          const place = first + 31 - Math.clz32(word & -word);
          lower += low[place];
          if (high !== null) upper += high[place];
          word &= word - 1;
        }
      }
      return BigInt(upper) * BigInt(PART) + BigInt(lower);
    }
  }

  // The signatures of a layer's table, from what `layer_data` wrote.
  class Signatures {
    constructor(data) {
      this.length = data.signatures;
      this.total = BigInt(data.total);
      this.sizes = Counts.read(bytes(data.sizes), this.length, this.total);
      this.postings = bytes(data.postings);
      this.ends = data.ends;
      this.members = new Map();
    }

    // Which signatures hold a concept; decoded when it is first asked for.
    membership(concept) {
      if (!this.members.has(concept)) {
        const start = concept ? this.ends[concept - 1] : 0;
        const asBits = this.postings[start] === 1;
        const data = this.postings.subarray(start + 1, this.ends[concept]);
        const words = new Int32Array((this.length + 31) >> 5);
        if (asBits) {
          for (let i = 0; i < data.length; i++) words[i >> 2] |= data[i] << ((i & 3) << 3);
        } else {
          let at = 0;
          for (const step of varints(data)) {
            at += step;
            words[at >> 5] |= 1 << (at & 31);
          }
        }
        this.members.set(concept, words);
      }
      return this.members.get(concept);
    }

    // Where a chain holds: concepts by id, operators as their bits p, q and r.
    holds(concepts, operators) {
      const held = this.membership(concepts[0]).slice();
      operators.forEach(([p, q, r], step) => {
        const right = this.membership(concepts[step + 1]);
        const [onlyLeft, onlyRight, both] = [-p, -q, -r];
        for (let w = 0; w < held.length; w++) {
          const [x, y] = [held[w], right[w]];
          held[w] = (onlyLeft & x & ~y) | (onlyRight & ~x & y) | (both & x & y);
        }
      });
      return held;
    }
  }

  // A unit's active locations by signature, from what `unit_data` wrote.
  class Unit {
    constructor(data, signatures) {
      this.signatures = signatures;
      this.size = BigInt(data.size);
      const places = [];
      let at = 0;
      for (const step of varints(bytes(data.at))) places.push((at += step));
      this.inside = Counts.read(bytes(data.inside), signatures.length, signatures.total, places);
    }

    // The exact score of a set of signatures.
    score(held) {
      const intersection = this.inside.sum(held);
      const covered = this.signatures.sizes.sum(held);
      return { intersection, union: this.size + covered - intersection, covered };
    }
  }

  // The quotient of two integers, rounded correctly, as Python divides them.
  function ratio(above, below) {
    if (below === 0n) return 0;
    if (above <= SAFE && below <= SAFE) return Number(above) / Number(below);
    const shift = BigInt(Math.max(0, 66 + bits(below) - bits(above)));
    const scaled = above << shift;
    let quotient = scaled / below;
    if (quotient * below !== scaled) quotient |= 1n; // so that a half is not taken for exact
    return Number(quotient) / 2 ** Number(shift);
  }

  function bits(value) {
    return value.toString(2).length;
  }

  // The sign of the difference of two ratios, in integers.
  function compareScores(one, other) {
    const difference = one.intersection * other.union - other.intersection * one.union;
    return difference > 0n ? 1 : difference < 0n ? -1 : 0;
  }

  // A sample's signature at each location, from what `sample_data` wrote.
  function signatureMap(data) {
    const found = new Int32Array(data.rows * data.columns);
    const runs = varints(bytes(data.runs));
    let at = 0;
    for (let next = runs.next(); !next.done; next = runs.next()) {
      const length = runs.next().value;
      found.fill(data.ids[next.value], at, at + length);
      at += length;
    }
    return found;
  }

  function contains(words, signature) {
    return (words[signature >> 5] >>> (signature & 31)) & 1;
  }

  root.OptexpWhatIf = Object.assign(root.OptexpWhatIf || {}, {
    Signatures,
    Unit,
    bytes,
    compareScores,
    contains,
    ratio,
    signatureMap,
    varints,
  });
})(typeof window === "undefined" ? globalThis : window);
