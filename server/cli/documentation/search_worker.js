/**
 * The search of the documentation site, in place of Zensical's worker and with its messages.
 *
 *     page ── {type: 0, data: {config, items}} ──▶ worker      the index, search.json
 *     page ◀── {type: 1} ──                        worker      ready
 *     page ── {type: 2, data: {input, page}} ──▶   worker      a question
 *     page ◀── {type: 3, data: {items, pagination}} ── worker  hits, the best first
 *
 * A section is ranked by BM25 over its stems, where a stem of the title counts as several of the text. A question need
 * not share all its words with a section. `config.synonyms` maps words of askers to words of the pages, and
 * `config.kinds` gives questions and recipes more weight than references (docs/search.toml).
 */
"use strict";

const TITLE = 5;
const PATH = 1.5;
const SATURATION = 1.2;
const LENGTH = 0.6;
const OF_SYNONYM = 0.75;
const OF_GUESS = 0.5;
const PAGE = 10;
const MOST_MARKS = 60;

/** Return the stem of a word: its lower-case form without the endings of plurals, verbs and some nouns. */
function stem(word) {
  let found = word.normalize("NFKD").toLowerCase();
  if (found.length < 4 || /\d/.test(found)) return found;
  found = found.replace(/ies$/, "y").replace(/(ss|x|z|ch|sh)es$/, "$1").replace(/([^su])s$/, "$1");
  const verb = found.replace(/(ing|ed)$/, "");
  if (verb !== found && verb.length > 2 && /[aeiouy]/.test(verb)) found = verb.replace(/([bdfgmnprt])\1$/, "$1");
  return found.replace(/tion$/, "t").replace(/(..)e$/, "$1");
}

/** Return the words of a text with their places; tags are passed over, and camelCase is several words. */
function words(text) {
  const plain = text.replace(/<[^>]*>|&\w+;/g, (tag) => " ".repeat(tag.length));
  return [...plain.matchAll(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})|[\p{L}\p{N}]+/gu)].map((found) => ({
    stem: stem(found[0]),
    start: found.index,
    end: found.index + found[0].length,
  }));
}

const stems = (text) => words(text).map((word) => word.stem);

/** Return whether one insertion, deletion or replacement makes one word of the other. */
function isTypo(one, other) {
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  const [rest, left] = [one.slice(same), other.slice(same)];
  return rest.slice(1) === left.slice(1) || rest.slice(1) === left || rest === left.slice(1);
}

class Index {
  constructor({ config, items }) {
    this.items = items;
    this.stopped = new Set(stems(config.stopwords ?? ""));
    this.synonyms = Object.entries(config.synonyms ?? {}).map(([asked, meant]) => ({ asked: stems(asked), meant: meant.map(stems) }));
    this.weights = items.map((item) => (config.kinds ?? []).find(([prefix]) => item.location.startsWith(prefix))?.[1] ?? 1);
    this.postings = new Map();
    this.lengths = items.map((item, id) => this.#add(item, id));
    this.mean = this.lengths.reduce((sum, length) => sum + length, 0) / Math.max(1, items.length);
  }

  /** Add a section's stems, and return its length in words. */
  #add(item, id) {
    const counts = new Map();
    const count = (text, weight) => {
      const found = stems(text);
      for (const each of found) counts.set(each, (counts.get(each) ?? 0) + weight);
      return found.length;
    };
    const length = count(item.text, 1);
    count(item.title, TITLE);
    count((item.path ?? []).join(" "), PATH);
    for (const [each, weight] of counts) {
      if (!this.postings.has(each)) this.postings.set(each, new Map());
      this.postings.get(each).set(id, weight);
    }
    return length;
  }

  /** Return the stems that a question's word may be, with weights: itself, or words that it begins or misspells. */
  #spelled(word) {
    if (this.postings.has(word)) return [[word, 1]];
    const known = [...this.postings.keys()];
    const begun = word.length > 1 ? known.filter((each) => each.startsWith(word)) : [];
    const near = begun.length || word.length < 4 ? begun : known.filter((each) => isTypo(word, each));
    return near.map((each) => [each, OF_GUESS]);
  }

  /** Return a question's parts; a part is a list of alternatives, each with the stems that it needs and a weight. */
  #parts(input) {
    const asked = stems(input);
    const parts = asked.filter((word) => !this.stopped.has(word)).map((word) => this.#spelled(word).map(([each, weight]) => ({ needs: [each], weight })));
    for (const { asked: phrase, meant } of this.synonyms) {
      const at = asked.findIndex((_, start) => phrase.every((word, i) => asked[start + i] === word));
      if (at >= 0) parts.push(meant.map((needs) => ({ needs, weight: OF_SYNONYM })));
    }
    return parts;
  }

  /** Return what a stem adds to the score of section `id`. */
  #gain(word, id) {
    const found = this.postings.get(word);
    const count = found?.get(id);
    if (!count) return 0;
    const rarity = Math.log(1 + (this.items.length - found.size + 0.5) / (found.size + 0.5));
    const norm = SATURATION * (1 - LENGTH + (LENGTH * this.lengths[id]) / this.mean);
    return (rarity * count * (1 + SATURATION)) / (count + norm);
  }

  /** Return the sections that answer a question, the best first, with the stems to mark in them. */
  find(input) {
    const parts = this.#parts(input);
    const marked = new Set(parts.flat().flatMap(({ needs }) => needs));
    const near = new Set([...marked].flatMap((word) => [...(this.postings.get(word)?.keys() ?? [])]));
    const score = (id) =>
      this.weights[id] *
      parts.reduce((sum, part) => sum + Math.max(0, ...part.map(({ needs, weight }) => (weight * needs.reduce((gain, word) => gain + this.#gain(word, id), 0)) / Math.sqrt(needs.length))), 0);
    const hits = [...near].map((id) => ({ id, score: score(id) })).filter((hit) => hit.score > 0);
    return { hits: hits.sort((a, b) => b.score - a.score || a.id - b.id), marked };
  }

  /** Return a page of hits in the form that Zensical shows. */
  answer({ input, page }) {
    const from = page?.from ?? 0;
    const { hits, marked } = this.find(typeof input === "string" ? input : "");
    const match = (field, text) => {
      const ranges = words(text).filter((word) => marked.has(word.stem)).slice(0, MOST_MARKS);
      return { field, value: { highlight: { ranges: ranges.map(({ start, end }) => ({ start, end, value: end - start })) } } };
    };
    const items = hits.slice(from, from + PAGE).map(({ id, score }) => ({
      id,
      score,
      matches: [match("title", this.items[id].title), match("text", this.items[id].text)],
    }));
    const at = (start) => ({ id: 0, size: PAGE, from: start });
    return {
      items,
      aggregations: [],
      pagination: { total: hits.length, prev: from > 0 ? at(from - PAGE) : undefined, next: from + PAGE < hits.length ? at(from + PAGE) : undefined },
    };
  }
}

let index = null;
self.onmessage = ({ data: { type, data } }) => {
  try {
    if (type === 0) index = new Index(data);
    self.postMessage(type === 0 ? { type: 1 } : { type: 3, data: index.answer(data) });
  } catch {
    self.postMessage({ type: 4 });
  }
};
