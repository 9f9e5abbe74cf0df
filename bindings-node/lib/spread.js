'use strict';
// Calls whose key is a list, or which have options.
//
// Their texts are arguments of their own: the parts of the key, then the values of the attributes
// that the rule reads. To read a text from a list costs the native part more than the text itself.
// Other attributes are checked here, and not handed over.
//
// A policy or a change at run time may have the rule read other attributes. The native part notices
// before it judges, and answers `true`.

const { native } = require('./native.js');
const {
  PRICED,
  UNPRICED,
  addAttributes,
  checkAttributes,
  checkIsMap,
  takeApart,
} = require('./call.js');
const { decisionFields, flagBits } = require('./scratch.js');

/** What the texts are, as `CallShape` in src/key.rs has it. The lowest bits count listed parts. */
const ATTRIBUTES = 16;
const MAX = 32;
const MOST_TEXTS = 6;
/** The answer of a call that did not judge: the rule reads other attributes than were known. */
const OUTDATED = true;
const NONE = [];

class Spread {
  /** The calls that take attributes as a list. */
  #listed;
  #functions = null;
  /** The names of the attributes that the rule reads. */
  #read = [];

  constructor(made) {
    this.#listed = made;
  }

  get #spread() {
    return (this.#functions ??= native.spread(this.#listed.handle));
  }

  /** `undefined` for a yes. */
  allow(key, options) {
    const [plain, listed, { allow }] = [this.#listed.allow, this.#allowListed, this.#spread];
    return options === undefined
      ? this.#keyed(listed, allow, key, 1)
      : this.#withOptions(plain, listed, allow, key, options, UNPRICED);
  }

  #allowListed = (key, cost, max, attributes) => {
    this.#listed.hit(key, cost, max, attributes);
    return (decisionFields.flags & flagBits.allowed) === 0 ? false : undefined;
  };

  hit(key, cost) {
    this.#judge(this.#listed.hit, this.#spread.hit, key, cost);
  }

  check(key, cost) {
    this.#judge(this.#listed.check, this.#spread.check, key, cost);
  }

  peek(key, cost) {
    this.#judge(this.#listed.peek, this.#spread.peek, key, cost);
  }

  record(key, cost) {
    this.#judge(this.#listed.record, this.#spread.record, key, cost);
  }

  /** `cost` may be options. */
  #judge(listed, spread, key, cost) {
    if (typeof cost === 'number') this.#keyed(listed, spread, key, cost);
    else this.#withOptions(listed, listed, spread, key, cost, PRICED);
  }

  /** The answer of `spread`, or of `listed` where there are too many texts. */
  #keyed(listed, spread, key, cost) {
    if (!Array.isArray(key)) return spread(0, cost, 0, key);
    if (key.length === 2) return spread(2, cost, 0, key[0], key[1]);
    const fits = key.length > 0 && key.length <= MOST_TEXTS;
    return fits ? spreadOut(spread, key.length, cost, 0, key) : listed(key, cost);
  }

  /** The same, of a call that has options. `plain` is for a call of which nothing else is read. */
  #withOptions(plain, listed, spread, key, options, own) {
    checkIsMap(options, own, ', ...attributes');
    let answer = OUTDATED;
    while (answer === OUTDATED) {
      const read = this.#read;
      const isPlain = read.length === 0 && !Array.isArray(key) && options.max === undefined;
      const texts = isPlain ? NONE : textsOf(key, options, own, read);
      if (texts === null || (isPlain && !checkAttributes(options, own))) {
        const { cost, max, attributes } = takeApart(options, own);
        return listed(key, cost, max, attributes);
      }
      const { max } = options;
      // A call without a cost ignores what stands for none, such as null.
      const cost = own === UNPRICED || options.cost === undefined ? 1 : options.cost;
      // An option may be a getter, and that may have made a call of its own.
      if (read !== this.#read) continue;
      answer = isPlain
        ? plain(key, cost, 0, 0)
        : spreadOut(spread, shapeOf(key, max), cost, max, texts);
      if (answer === OUTDATED) this.#read = native.readAttributes(this.#listed.handle);
    }
    return answer;
  }
}

const shapeOf = (key, max) =>
  ATTRIBUTES | (max === undefined ? 0 : MAX) | (Array.isArray(key) ? key.length : 0);

/** All texts of a call. None if they are too many, or one is to be refused by the native part. */
function textsOf(key, options, own, read) {
  const texts = Array.isArray(key) ? key.slice() : [key];
  const fits = texts.length > 0 && texts.length + read.length <= MOST_TEXTS;
  return fits && addAttributes(texts, options, own, read) ? texts : null;
}

/** Calls with so many arguments. `...texts` would take longer than the call. */
function spreadOut(spread, shape, cost, max, texts) {
  switch (texts.length) {
    case 1:
      return spread(shape, cost, max, texts[0]);
    case 2:
      return spread(shape, cost, max, texts[0], texts[1]);
    case 3:
      return spread(shape, cost, max, texts[0], texts[1], texts[2]);
    default: {
      const [a, b, c, d, e, f] = texts;
      return spread(shape, cost, max, a, b, c, d, e, f);
    }
  }
}

module.exports = { Spread };
