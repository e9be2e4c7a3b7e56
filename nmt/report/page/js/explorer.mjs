// The alignment explorer: choose a sentence, step through its translation, see the attention of each word.

import { difference, expectationText, inWords, largest, ordered, totals } from "./alignment.mjs";
import { LEAST, SHOWN, runnerRows, weightRow } from "./bars.mjs";
import { byId, h, setOptions } from "./dom.mjs";
import { fixed, percent, plural } from "./format.mjs";
import { heatmap } from "./heatmap.mjs";
import { readLink, shareField } from "./share.mjs";
import { onResize, stepper } from "./stepper.mjs";

/** Starts the explorer of {set: sentences}. Returns {has, open}: `has(set, id)` tells whether it has the
 * sentence, and `open(set, id)` shows it. */
export function startExplorer(alignments) {
  const nothing = { has: () => false, open: () => {} };
  if (!byId("explorer-section")) return nothing;
  const ui = Object.fromEntries(
    ["set", "sort", "find", "sentence", "run", "map", "said", "energies", "runners"].map((name) => [
      name,
      byId(`explorer-${name}`),
    ]),
  );
  const write = (name, text) => {
    byId(`explorer-${name}`).textContent = text;
  };
  const sets = Object.keys(alignments).filter((name) => alignments[name].length);
  byId("explorer-section").classList.toggle("empty", sets.length === 0);
  byId("explorer-none").hidden = sets.length > 0;
  if (!sets.length) return nothing;

  const state = { set: sets[0], sentence: null, run: null, decoding: null };
  const share = shareField("explorer");
  const steps = stepper("explorer", show, { r: nextRun });
  let picture = null;

  // Sentences
  function list() {
    const wanted = ui.find.value.trim().toLowerCase();
    const found = ordered(alignments[state.set], ui.sort.value).filter(({ source }) =>
      source.join(" ").toLowerCase().includes(wanted),
    );
    setOptions(
      ui.sentence,
      found.map((sentence) => [sentence.id, describe(sentence)]),
      state.sentence?.id,
    );
    write("count", plural(found.length, "sentence"));
  }
  function describe(sentence) {
    const words = sentence.source.slice(0, -1).join(" ");
    return `${ui.sort.value === "length" ? sentence.length : fixed(difference(sentence), 1)} · ${words}`;
  }
  const find = (set, id) => alignments[set]?.find((sentence) => String(sentence.id) === String(id));

  // Choosing a sentence and a run
  function openSet(set) {
    state.set = set;
    ui.set.value = set;
    list();
  }
  function openSentence(sentence, { run = state.run, step = 0 } = {}) {
    state.sentence = sentence;
    ui.sentence.value = sentence.id;
    const labels = Object.keys(sentence.by);
    setOptions(
      ui.run,
      labels.map((label) => [label, label]),
    );
    openRun(
      labels.includes(run) ? run : (labels.find((label) => sentence.by[label].weights) ?? labels[0]),
      step,
    );
  }
  function openRun(run, step = steps.step) {
    const decoding = state.sentence.by[run];
    Object.assign(state, { run, decoding });
    ui.run.value = run;
    write("reference", state.sentence.reference.join(" ") || "–");
    const bleu = decoding.bleu ?? null;
    write(
      "written",
      decoding.target.slice(0, -1).join(" ") + (bleu === null ? "" : ` (BLEU ${fixed(bleu, 1)})`),
    );
    for (const part of [ui.energies, byId("explorer-totals")]) part.hidden = decoding.weights === null;
    draw();
    steps.go(step, decoding.target.length - 1);
  }
  function nextRun() {
    const labels = Object.keys(state.sentence.by);
    openRun(labels[(labels.indexOf(state.run) + 1) % labels.length]);
  }
  function open(set, id, options = {}) {
    const sentence = find(set, id);
    if (!sentence) return false;
    if (set !== state.set) openSet(set);
    if (ui.find.value) {
      ui.find.value = "";
      list();
    }
    openSentence(sentence, options);
    return true;
  }
  function followLink() {
    const { set, sentence, run, word } = readLink(location.hash);
    return open(set, sentence, { run, step: (Number(word) || 1) - 1 });
  }

  // A step
  function draw() {
    const { decoding } = state;
    const written = plural(decoding.target.length, "written word");
    const label = decoding.weights
      ? `Alignment of ${written} with ${plural(decoding.source.length, "source word")} by ${state.run}; ` +
        "the table beside it has the weights of the current word"
      : `${state.run}: one fixed vector of the whole source sentence feeds each of ${written}`;
    picture = heatmap(ui.map, decoding, { choose: (i) => steps.go(i), label });
  }
  function show(i) {
    const { decoding } = state;
    picture.step(i);
    const chance = decoding.word_log_probabilities?.[i] ?? null;
    const probability = chance === null ? "" : `, probability ${percent(Math.exp(chance))}`;
    write("place", `word ${i + 1} of ${decoding.target.length}${probability}`);
    write("said", inWords(decoding, i));
    write("context", expectationText(decoding, i));
    if (decoding.weights) weigh(decoding, i);
    ui.runners.tBodies[0].replaceChildren(...runnerRows(decoding, i));
    share({ set: state.set, sentence: state.sentence.id, run: state.run, word: i + 1 });
    return `word ${i + 1}, ${decoding.target[i]}`;
  }
  function weigh(decoding, i) {
    const weights = decoding.weights[i];
    const most = largest(weights, SHOWN, LEAST);
    ui.energies.tBodies[0].replaceChildren(...most.map((j) => weightRow(decoding, i, j)));
    write("totals", totals(weights, decoding.attention_entropy?.[i]));
  }

  setOptions(
    ui.set,
    sets.map((name) => [name, name]),
  );
  byId("explorer-set-field").hidden = sets.length < 2;
  ui.set.addEventListener("change", () => {
    openSet(ui.set.value);
    openSentence(alignments[state.set][0]);
  });
  ui.sort.addEventListener("change", list);
  ui.find.addEventListener("input", list);
  ui.sentence.addEventListener("change", () => openSentence(find(state.set, ui.sentence.value)));
  ui.run.addEventListener("change", () => openRun(ui.run.value));
  window.addEventListener("hashchange", followLink);
  onResize(ui.map, () => {
    draw();
    picture.step(steps.step);
  });

  const reveal = () => byId("explorer-section").scrollIntoView({ block: "start" });
  openSet(state.set);
  if (followLink()) reveal();
  else openSentence(alignments[state.set][Math.floor(alignments[state.set].length / 2)]); // of middle length
  return {
    has: (set, id) => Boolean(find(set, id)),
    open: (set, id) => {
      if (open(set, id)) {
        reveal();
        byId("explorer-stage").focus({ preventScroll: true });
      }
    },
  };
}
