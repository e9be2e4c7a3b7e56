import assert from "node:assert/strict";
import { deflateSync } from "node:zlib";
import { test } from "node:test";
import { lengthSpec, trainingSpec } from "../../../../nmt/report/page/js/charts.mjs";
import { inflateBytes } from "../../../../nmt/report/page/js/data.mjs";
import { fixed, interval, percent, pValue, signed } from "../../../../nmt/report/page/js/format.mjs";
import { layout } from "../../../../nmt/report/page/js/heatmap.mjs";
import { joinClause } from "../../../../nmt/report/page/js/live/sentence.mjs";
import * as series from "../../../../nmt/report/page/js/series.mjs";
import { pairs, stars, verdict } from "../../../../nmt/report/page/js/significance.mjs";
import { readLink, writeLink } from "../../../../nmt/report/page/js/share.mjs";
import { compare } from "../../../../nmt/report/page/js/tables.mjs";
import { chosen, unmatched } from "../../../../nmt/report/page/js/translations.mjs";

test("numbers have true minus signs, percentages have thin spaces", () => {
  assert.equal(fixed(-1.005, 1), "−1.0");
  assert.equal(fixed(-0.0001, 2), "0.00");
  assert.equal(signed(2.5, 1), "+2.5");
  assert.equal(fixed(null), "–");
  assert.equal(percent(0.714), "71\u202f%");
  assert.equal(percent(0.004), "<1\u202f%");
  assert.equal(percent(0), "0\u202f%");
  assert.equal(pValue(0.0004), "<0.001");
  assert.equal(pValue(null), "–");
  assert.equal(interval({ value: 2, low: 1.5, high: 2.5 }, 1), "2.0 [1.5, 2.5]");
  assert.equal(interval({ value: -2 }, 1), "−2.0");
});

test("deflated base64 is unpacked, with characters beyond ASCII", async () => {
  const text = "zone économique 世界 </script>".repeat(30);
  const bytes = await inflateBytes(` ${deflateSync(text).toString("base64")}\n`);
  assert.equal(new TextDecoder().decode(bytes), text);
});

test("words outside a longest common subsequence are marked", () => {
  const flags = unmatched("a b c d e".split(" "), "a x c e y".split(" "));
  assert.deepEqual(flags, [false, true, false, true, false]);
  assert.deepEqual(unmatched(["a"], []), [true]);
});

test("links keep names with any characters", () => {
  const place = { set: "a/b&c", sentence: "17", run: "x=1 & <y>", live: "future & people, 100 % <b>" };
  assert.deepEqual(readLink(writeLink(place)), place);
  assert.deepEqual(Object.keys(readLink("#length-section")), ["length-section"]);
});

/** Returns the rows of a BLEU curve. */
const curve = (kind, name, other, values, lows, highs) =>
  [10, 20].map((words, n) => ({
    set: "t",
    key: "bleu",
    kind,
    name,
    other,
    words,
    value: values[n],
    low: lows[n],
    high: highs[n],
  }));
const bucket = (run, first, to, key, value, low, high, sentences, interval = "sentences") => ({
  set: "t",
  run,
  key,
  bucket: to ? `${first}-${to}` : `${first}+`,
  from: first,
  to,
  value,
  low,
  high,
  sentences,
  interval: low === null ? "" : interval,
});

const overview = {
  runs: [
    { label: "e1", group: 0, history: [{ update: 10, train_nll_per_word: 3 }] },
    {
      label: "s1",
      group: 1,
      history: [
        { update: 10, train_nll_per_word: 2 },
        { update: 20, train_nll_per_word: 1 },
      ],
    },
    {
      label: "s2",
      group: 1,
      history: [
        { update: 10, train_nll_per_word: 1 },
        { update: 20, train_nll_per_word: null },
      ],
    },
  ],
  groups: ["e", "s"],
  level: "95 %",
  curves: [
    ...curve("score", "e", null, [10, 5], [8, 4], [12, 6]),
    ...curve("score", "s", null, [20, 20], [18, 17], [22, 23]),
    ...curve("constant", "s", null, [19, 19], [18, 18], [20, 20]),
    ...curve("seed", "s1", null, [19, 20], [null, null], [null, null]),
    ...curve("difference", "e", "s", [-10, -15], [-12, -18], [-8, -12]),
    ...curve("difference", "e", "u", [-1, -2], [null, null], [null, null]),
  ],
  buckets: [
    bucket("e1", 1, 10, "bleu", 10, 8, 12, 4, "documents"),
    bucket("e1", 1, 10, "bleu_no_unk", 12, 9, 13, 2),
    bucket("s1", 1, 10, "bleu", 20, 18, 22, 4),
    bucket("s2", 1, 10, "bleu", 24, 22, 26, 4),
    bucket("s2", 11, null, "bleu", 9, null, null, 3),
  ],
};
const on = new Set(["e1", "s1", "s2"]);

test("groups have a curve with a band, seeds a curve without a band", () => {
  const values = (rows) => rows.map(({ series: name, words, value, low }) => [name, words, value, low]);
  const grouped = series.scoreRows(overview, "t", "bleu", on, true);
  assert.deepEqual(values(grouped.curves), [
    ["e", 10, 10, 8],
    ["e", 20, 5, 4],
    ["s", 10, 20, 18],
    ["s", 20, 20, 17],
  ]);
  assert.deepEqual(values(grouped.constant), [
    ["s", 10, 19, 18],
    ["s", 20, 19, 18],
  ]);
  assert.deepEqual(values(grouped.buckets), [
    ["e", 5.5, 10, 8],
    ["s", 5.5, 22, null],
    ["s", 12.1, 9, null],
  ]);
  const apart = series.scoreRows(overview, "t", "bleu", new Set(["e1", "s1"]), false);
  assert.deepEqual(
    apart.buckets.map(({ note }) => note),
    ["95 % interval over documents", "95 % interval over sentences"],
  );
  assert.deepEqual(values(apart.curves), [
    ["e1", 10, 10, 8],
    ["e1", 20, 5, 4],
    ["s1", 10, 19, null],
    ["s1", 20, 20, null],
  ]);
  assert.deepEqual(apart.constant, []);
  assert.deepEqual(values(apart.buckets), [
    ["e1", 5.5, 10, 8],
    ["s1", 5.5, 20, 18],
  ]);
  assert.deepEqual(series.scoreRows(overview, "t", "ter", on, false), {
    curves: [],
    constant: [],
    buckets: [],
  });
});

test("the difference of a pair is inverted if its first system is the control", () => {
  const ends = (kind, control, shown = on) =>
    series
      .comparedRows(overview, "t", "bleu", shown, kind, control)
      .map((row) => [row.series, row.value, row.low, row.high]);
  assert.deepEqual(ends("difference", "s"), [
    ["e", -10, -12, -8],
    ["e", -15, -18, -12],
  ]);
  assert.deepEqual(ends("difference", "e"), [
    ["s", 10, 8, 12],
    ["s", 15, 12, 18],
  ]);
  // An unknown band stays unknown.
  assert.deepEqual(ends("difference", "u"), [
    ["e", -1, null, null],
    ["e", -2, null, null],
  ]);
  assert.deepEqual(ends("difference", "s", new Set(["s1"])), []);
});

test("each bucket is listed once, shortest first, with its number of sentences for the score", () => {
  const counts = (metric) =>
    series.bucketCounts(overview, "t", metric).map((row) => [row.bucket, row.sentences]);
  assert.deepEqual(counts("bleu"), [
    ["1-10", 4],
    ["11+", 3],
  ]);
  assert.deepEqual(counts("bleu_no_unk"), [["1-10", 2]]);
});

test("training curves leave out missing values", () => {
  const rows = series.trainingRows(overview, "train_nll_per_word", on, true);
  assert.deepEqual(
    rows.map(({ series: name, update, value }) => [name, update, value]),
    [
      ["e", 10, 3],
      ["s", 10, 1.5],
      ["s", 20, 1],
    ],
  );
});

test("seeds of a group have the same colour and different dashes", () => {
  const looks = series.looks(overview, 7);
  assert.equal(looks.runs.get("s1").colour, looks.runs.get("s2").colour);
  assert.notEqual(looks.runs.get("s1").variant, looks.runs.get("s2").variant);
  const many = { runs: [], groups: [..."abcdefghi"] };
  assert.deepEqual(series.looks(many, 7).groups.get("i"), { colour: 1, variant: 1 });
});

test("in a specification, the text of users is only in data values and in domains of scales", () => {
  const theme = {
    text: "#000",
    grid: "#eee",
    axis: "#999",
    bar: "#888",
    font: "x",
    colours: ["#111", "#222"],
  };
  const look = () => ({ colour: 1, variant: 0 });
  const hostile = "datum['x'] <b>";
  const rows = [
    {
      series: hostile,
      bucket: "1-10",
      from: 1,
      end: 10,
      words: 5.5,
      value: 3,
      low: 2,
      high: 4,
      sentences: 5,
      note: "",
    },
  ];
  const main = { curves: rows, constant: rows, buckets: rows, title: "BLEU", digits: 2, zero: true };
  const spec = lengthSpec({
    ...main,
    parts: [main, main],
    counts: rows,
    caps: [30],
    names: [hostile],
    look,
    bands: true,
    width: 300,
    theme,
    unit: "words",
    axis: "length of the source sentence, in words",
  });
  // training cap, bands, dashed curves, curves, points, the name above the curve
  assert.equal(spec.vconcat[0].layer.length, 6);
  assert.deepEqual(
    spec.vconcat[0].layer.slice(5).map(({ data }) => data.values.map(({ series }) => series)),
    [[hostile]],
  );
  assert.deepEqual(spec.vconcat[0].layer[3].encoding.color.scale.range, ["#222"]);
  assert.deepEqual(spec.vconcat[1].data.values, rows);
  assert.equal(spec.vconcat.length, 4); // on a phone the charts are below each other
  const places = new Set();
  (function walk(node, place) {
    if (node === hostile) places.add(place.replace(/\d+/g, "*").split(".").slice(-3).join("."));
    else if (node && typeof node === "object")
      for (const [key, child] of Object.entries(node)) walk(child, `${place}.${key}`);
  })(spec, "");
  assert.deepEqual([...places].sort(), ["scale.domain.*", "values.*.series"]);
  const training = trainingSpec({ rows, names: [hostile], look, title: "NLL", width: 300, theme });
  assert.equal(training.layer.length, 2);
});

test("the difference of a pair is found in both directions", () => {
  const found = pairs([{ a: "a", b: "b", delta: 2.5, low: 1, high: 4, p_corrected: 0.02, sentences: 30 }]);
  assert.equal(found.size, 2);
  assert.deepEqual(found.get("b\na"), {
    a: "b",
    b: "a",
    delta: -2.5,
    low: -4,
    high: -1,
    p_corrected: 0.02,
    sentences: 30,
  });
  assert.equal(pairs([{ a: "a", b: "b", delta: 2, low: null, high: null }]).get("b\na").low, null);
  assert.deepEqual(
    [
      [2, true],
      [2, false],
      [-2, false],
      [2, null],
    ].map(([delta, up]) => verdict(delta, up)),
    ["better", "worse", "better", "level"],
  );
  assert.deepEqual([0.2, 0.04, 0.004, 0.0004, null].map(stars), ["", "*", "**", "***", ""]);
});

test("a sentence is appended as a clause if all models know the joining word", async () => {
  const knows = async (word) => ["and", "so", "the", "et"].includes(word);
  const join = (text, more, language, turn) => joinClause(text, more, language, turn, knows);
  assert.equal(
    await join("A dog sleeps .", "The cat sees it.", "en", 0),
    "A dog sleeps, and the cat sees it.",
  );
  assert.equal(await join(" A dog sleeps. ", "Mary smiles.", "en", 5), "A dog sleeps, so Mary smiles.");
  assert.equal(await join("Un chien dort.", "Marie rit.", "fr", 3), "Un chien dort, et Marie rit.");
  // The models do not know "but".
  assert.equal(await join("A dog sleeps.", "The cat.", "en", 1), "A dog sleeps. The cat.");
  assert.equal(await join("Ein Hund.", "Eine Katze.", "de", 0), "Ein Hund. Eine Katze.");
  assert.equal(await join(" ", "The cat.", "en", 0), "The cat.");
});

test("empty cells are last in both orders", () => {
  const values = [3, null, 10, -1];
  assert.deepEqual(
    [...values].sort((x, y) => compare(x, y, false)),
    [-1, 3, 10, null],
  );
  assert.deepEqual(
    [...values].sort((x, y) => compare(x, y, true)),
    [10, 3, -1, null],
  );
  assert.ok(compare("run 9", "run 10", false) < 0);
});

test("translations are filtered by length and text, and sorted", () => {
  const rows = [
    { id: 0, length: 40, s: "the Man", r: "l'homme", h: ["un", "homme"], b: [10, 20] },
    { id: 1, length: 31, s: "a cat", r: "un chat", h: ["chat", null], b: [90, null] },
    { id: 2, length: 35, s: "dogs", r: "chiens", h: ["chiens", "un"], b: [100, 5] },
    { id: 3, length: 12, s: "short", r: "court", h: ["court", "court"], b: [0, 0] },
  ];
  const all = { least: 30, most: Infinity, text: "", sort: "file", columns: [0, 1] };
  const ids = (options) => chosen(rows, { ...all, ...options }).map((row) => row.id);
  assert.deepEqual(ids({}), [0, 1, 2]);
  assert.deepEqual(ids({ sort: "length" }), [1, 2, 0]);
  assert.deepEqual(ids({ sort: "difference" }), [2, 0, 1]);
  assert.deepEqual(ids({ text: "MAN" }), [0]);
  assert.deepEqual(ids({ text: "homme", columns: [0] }), [0]);
  assert.deepEqual(ids({ most: 35, least: 0 }), [1, 2, 3]);
});

test("cells of 12 to 28 pixels fill the width and the height, and scroll beyond", () => {
  const words = (count) => Array(count).fill("word");
  assert.equal(layout(words(5), words(7), 1000).cell, 28);
  assert.ok(layout(words(37), words(37), 557).width <= 557);
  assert.equal(layout(words(61), words(60), 300).cell, 12);
  const low = layout(words(9), words(20), 700, 6, 420);
  assert.ok(low.height <= 420 && low.cell >= 14);
  const { cell, left, right } = layout(words(30), words(30), 700);
  assert.ok(left + 30 * cell + right <= 700);
  assert.ok(cell > 14);
});
