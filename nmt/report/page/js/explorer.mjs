// The alignment explorer: pick a sentence, step through what was written, see what was read for each word.

import { copyField } from "./clipboard.mjs";
import { byId, h, setOptions } from "./dom.mjs";
import { attended, energies, energyDigits, entropy, expectationText, inWords, leastEnergy, meanEntropy, difference, ordered, presets, sum, unpackDecoding } from "./alignment.mjs";
import { fixed, percent, plural } from "./format.mjs";
import { heatmap } from "./heatmap.mjs";
import { saveButtons } from "./save.mjs";

const PAUSE = 900;

/** Parts of a link to a sentence: #sentence=<set>/<id>&run=<label>&word=<number from 1>. */
export function writeLink({ set, id, run, step }) {
  return `#${new URLSearchParams({ sentence: `${set}/${id}`, run, word: String(step + 1) })}`;
}

export function readLink(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const place = parts.get("sentence")?.match(/^(.*)\/([^/]+)$/);
  if (!place) return null;
  return { set: place[1], id: place[2], run: parts.get("run"), step: Math.max(0, (Number(parts.get("word")) || 1) - 1) };
}

/** Starts the explorer over {set: sentences}; returns {has, open}. */
export function startExplorer(alignments) {
  const ui = Object.fromEntries(["set", "sort", "find", "sentence", "run", "kind", "map", "play", "previous", "next", "slider", "said", "log", "energies", "runners", "hover", "link", "copied", "title", "context", "totals", "reference", "written"].map((name) => [name, byId(`explorer-${name}`)]));
  const sets = Object.keys(alignments).filter((name) => alignments[name].length);
  byId("explorer-section").classList.toggle("empty", sets.length === 0);
  byId("explorer-none").hidden = sets.length > 0;
  if (!sets.length) return { has: () => false, open: () => {} };

  const state = { set: sets[0], sentence: null, run: null, decoding: null, step: 0, timer: null, log: [] };
  let picture = null;
  let bars = [];

  // Sentences ---------------------------------------------------------------------------------------------------------
  function list() {
    const wanted = ui.find.value.trim().toLowerCase();
    const found = ordered(alignments[state.set], ui.sort.value).filter((sentence) => !wanted || sentence.source.join(" ").toLowerCase().includes(wanted));
    setOptions(ui.sentence, found.map((sentence) => [sentence.id, describe(sentence)]), state.sentence?.id);
    byId("explorer-count").textContent = plural(found.length, "sentence");
  }
  function describe(sentence) {
    const words = sentence.source.slice(0, -1).join(" ");
    const start = words.length > 60 ? `${words.slice(0, 59)}…` : words;
    if (ui.sort.value === "difference") return `${fixed(difference(sentence), 1)} · ${start}`;
    if (ui.sort.value === "entropy") {
      const decoding = attended(sentence);
      return `${decoding ? fixed(meanEntropy(decoding)) : "–"} nats · ${start}`;
    }
    return `${sentence.length} · ${start}`;
  }
  function find(set, id) {
    return alignments[set]?.find((sentence) => String(sentence.id) === String(id));
  }

  // Choosing ----------------------------------------------------------------------------------------------------------
  function show(sentence, { run = state.run, step = 0 } = {}) {
    pause();
    state.sentence = sentence;
    const labels = Object.keys(sentence.by);
    state.run = labels.includes(run) ? run : labels.find((label) => sentence.by[label].w) ?? labels[0];
    setOptions(ui.run, labels.map((label) => [label, label]), state.run);
    ui.sentence.value = sentence.id;
    read(step);
  }
  function read(step) {
    state.decoding = unpackDecoding(state.sentence.by[state.run], state.sentence.source);
    const { decoding } = state;
    const attention = decoding.weights !== null;
    for (const box of ui.kind.querySelectorAll("input")) {
      const wants = box.value === "attention";
      box.checked = wants === attention;
      box.disabled = !Object.values(state.sentence.by).some((packed) => Boolean(packed.w) === wants);
    }
    ui.reference.textContent = state.sentence.reference.join(" ") || "–";
    ui.written.textContent = decoding.target.slice(0, -1).join(" ") + (decoding.bleu === null || decoding.bleu === undefined ? "" : ` (BLEU ${fixed(decoding.bleu, 1)})`);
    ui.slider.max = decoding.target.length - 1;
    state.log = [];
    ui.log.replaceChildren();
    draw();
    rows();
    go(Math.min(step, decoding.target.length - 1));
  }
  function draw() {
    const { decoding } = state;
    const label = decoding.weights
      ? `Alignment of ${plural(decoding.target.length, "written word")} with ${plural(decoding.source.length, "source word")} by ${state.run}; the table beside it has the weights of the current word`
      : `${state.run}: one fixed vector of the whole source sentence feeds each of ${plural(decoding.target.length, "written word")}`;
    picture = heatmap(ui.map, decoding, { choose: (i) => { pause(); go(i); }, hover: point, label });
  }
  function rows() {
    bars = state.decoding.source.map((word) => {
      const cells = { bar: h("span", { class: "bar" }), weight: h("td"), energy: h("td") };
      const row = h("tr", {}, h("th", { scope: "row", text: word }), h("td", { class: "track" }, cells.bar), cells.weight, cells.energy);
      return { row, ...cells };
    });
    ui.energies.tBodies[0].replaceChildren(...bars.map((bar) => bar.row));
    byId("explorer-attention").hidden = state.decoding.weights === null;
    byId("explorer-fixed").hidden = state.decoding.weights !== null;
  }

  // A step ------------------------------------------------------------------------------------------------------------
  function go(step) {
    const { decoding } = state;
    state.step = Math.max(0, Math.min(step, decoding.target.length - 1));
    const i = state.step;
    picture.step(i);
    ui.slider.value = i;
    ui.slider.setAttribute("aria-valuetext", `word ${i + 1}, ${decoding.target[i]}`);
    ui.previous.disabled = i === 0;
    ui.next.disabled = i === decoding.target.length - 1;
    const chance = decoding.p?.[i];
    ui.title.textContent = decoding.target[i];
    byId("explorer-place").textContent = `word ${i + 1} of ${decoding.target.length}${chance === null || chance === undefined ? "" : `, probability ${percent(Math.exp(chance))}`}`;
    const said = inWords(decoding, i);
    ui.said.textContent = said;
    ui.context.textContent = expectationText(decoding, i);
    if (decoding.weights) weigh(decoding, i);
    else ui.totals.textContent = "";
    runners(decoding, i);
    note(i, said);
    address();
  }
  function weigh(decoding, i) {
    const weights = decoding.weights[i];
    const scores = decoding.z ? energies(weights, decoding.z[i]) : null;
    const most = Math.max(...weights);
    weights.forEach((weight, j) => {
      const { row, bar, weight: cell, energy } = bars[j];
      bar.style.width = `${(100 * weight).toFixed(1)}%`;
      cell.textContent = fixed(weight, 3);
      energy.textContent = scores ? (scores[j] === null ? `<\u202f${fixed(leastEnergy(decoding, i), 1)}` : fixed(scores[j], energyDigits(weight))) : "–";
      row.classList.toggle("most", weight === most);
    });
    follow(bars[weights.indexOf(most)].row);
    const nats = decoding.entropy?.[i] ?? entropy(weights);
    ui.totals.textContent = `Sum of the weights ${fixed(sum(weights))}; entropy ${fixed(nats)} nats (all alike would be ${fixed(Math.log(weights.length))}).`;
  }
  /** Brings the row of the largest weight into view within its own table, never moving the page. */
  function follow(row) {
    const box = ui.energies.parentElement;
    const top = row.offsetTop - box.scrollTop;
    if (top < 40 || top + row.offsetHeight > box.clientHeight) box.scrollTop = row.offsetTop - box.clientHeight / 2;
  }
  function runners(decoding, i) {
    const flat = decoding.runners?.[i] ?? [];
    const written = decoding.p?.[i];
    const entries = [[decoding.target[i], written, true]];
    for (let k = 0; k < flat.length; k += 2) entries.push([flat[k], flat[k + 1], false]);
    ui.runners.tBodies[0].replaceChildren(...entries.map(([word, value, own]) => {
      const chance = value === null || value === undefined ? null : Math.exp(value);
      return h("tr", { class: own ? "own" : null }, h("th", { scope: "row", text: word }), h("td", { class: "track" }, h("span", { class: "bar", style: `width: ${(100 * (chance ?? 0)).toFixed(1)}%` })), h("td", { text: chance === null ? "–" : percent(chance) }), h("td", { text: own ? "written" : "" }));
    }));
  }
  function note(i, said) {
    const last = state.log.at(-1);
    if (last === i) return;
    state.log.push(i);
    const item = h("li", { value: i + 1 }, h("button", { type: "button", onclick: () => { pause(); go(i); }, text: said }));
    ui.log.append(item);
    if (ui.log.children.length > 200) ui.log.firstChild.remove();
    ui.log.scrollTop = ui.log.scrollHeight;
  }
  function point(place) {
    const { decoding } = state;
    if (!place) ui.hover.textContent = "";
    else if (!decoding.weights) ui.hover.textContent = `${decoding.target[place[0]]} ← the fixed vector`;
    else {
      const [i, j] = place;
      const energy = decoding.z ? energies(decoding.weights[i], decoding.z[i])[j] : null;
      ui.hover.textContent = `${decoding.target[i]} ← ${decoding.source[j]}: weight ${fixed(decoding.weights[i][j], 3)}${energy === null ? "" : `, energy ${fixed(energy, energyDigits(decoding.weights[i][j]))}`}`;
    }
  }
  function address() {
    const place = writeLink({ set: state.set, id: state.sentence.id, run: state.run, step: state.step });
    ui.link.value = location.href.split("#")[0] + place;
    ui.copied.textContent = "";
  }

  // Playing -----------------------------------------------------------------------------------------------------------
  function pause() {
    clearInterval(state.timer);
    state.timer = null;
    ui.play.textContent = "Play";
    ui.play.setAttribute("aria-pressed", "false");
    ui.said.setAttribute("aria-live", "polite");
  }
  function play() {
    if (state.timer) return pause();
    if (state.step === state.decoding.target.length - 1) go(0);
    ui.play.textContent = "Pause";
    ui.play.setAttribute("aria-pressed", "true");
    state.timer = setInterval(() => {
      if (state.step === state.decoding.target.length - 1) pause();
      else go(state.step + 1);
    }, PAUSE);
  }
  function nextRun() {
    const labels = Object.keys(state.sentence.by);
    choose(labels[(labels.indexOf(state.run) + 1) % labels.length]);
  }
  function choose(run) {
    pause();
    state.run = run;
    ui.run.value = run;
    read(state.step);
  }
  function kind(attention) {
    const fits = Object.keys(state.sentence.by).filter((label) => Boolean(state.sentence.by[label].w) === attention);
    if (fits.length) choose(fits[0]);
  }
  ui.map.after(saveButtons(() => ui.map.querySelector("svg"), () => `${state.run} sentence ${state.sentence.id}`));
  const copy = () => copyField(ui.link, ui.copied);
  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in moves) { pause(); go(state.step + moves[event.key]); }
    else if (event.key === "Home") { pause(); go(0); }
    else if (event.key === "End") { pause(); go(state.decoding.target.length - 1); }
    else if (event.key === " " && !event.target.matches("button, summary")) play();
    else if (event.key === "r") nextRun();
    else return;
    event.preventDefault();
  }

  // Presets -----------------------------------------------------------------------------------------------------------
  function preset(name) {
    const found = presets(alignments[state.set]);
    if (name === "words" && found.words) show(found.words, { run: attending(found.words) });
    if (name === "reordered" && found.reordered) show(found.reordered.sentence, { run: attending(found.reordered.sentence), step: found.reordered.step });
    if (name === "long" && found.long) show(found.long);
  }
  const attending = (sentence) => (sentence.by[state.run]?.w ? state.run : null);
  function offer() {
    const found = presets(alignments[state.set]);
    for (const button of document.querySelectorAll("[data-preset]")) button.disabled = !found[button.dataset.preset];
  }

  function openSet(set) {
    state.set = set;
    ui.set.value = set;
    offer();
    list();
  }
  function open(set, id, options = {}) {
    const sentence = find(set, id);
    if (!sentence) return false;
    if (set !== state.set) openSet(set);
    if (ui.find.value) { ui.find.value = ""; list(); }
    show(sentence, options);
    return true;
  }
  function followLink() {
    const link = readLink(location.hash);
    return Boolean(link) && open(link.set, link.id, { run: link.run, step: link.step });
  }

  const kinds = sets.flatMap((set) => alignments[set].flatMap(({ by }) => Object.values(by).map(({ w }) => Boolean(w))));
  ui.kind.hidden = new Set(kinds).size < 2;
  setOptions(ui.set, sets.map((name) => [name, name]));
  byId("explorer-set-field").hidden = sets.length < 2;
  ui.set.addEventListener("change", () => { openSet(ui.set.value); show(alignments[state.set][0]); });
  ui.sort.addEventListener("change", list);
  ui.find.addEventListener("input", list);
  ui.sentence.addEventListener("change", () => show(find(state.set, ui.sentence.value)));
  ui.run.addEventListener("change", () => choose(ui.run.value));
  for (const box of ui.kind.querySelectorAll("input")) box.addEventListener("change", () => kind(box.value === "attention"));
  ui.play.addEventListener("click", play);
  ui.previous.addEventListener("click", () => { pause(); go(state.step - 1); });
  ui.next.addEventListener("click", () => { pause(); go(state.step + 1); });
  ui.slider.addEventListener("input", () => { pause(); go(Number(ui.slider.value)); });
  byId("explorer-copy").addEventListener("click", copy);
  byId("explorer-clear").addEventListener("click", () => { state.log = []; ui.log.replaceChildren(); });
  for (const button of document.querySelectorAll("[data-preset]")) button.addEventListener("click", () => preset(button.dataset.preset));
  byId("explorer-stage").addEventListener("keydown", keyed);
  window.addEventListener("hashchange", () => { if (followLink()) reveal(); });
  let width = ui.map.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(ui.map.clientWidth - width) < 8) return;
    width = ui.map.clientWidth;
    draw();
    picture.step(state.step);
  }).observe(ui.map);

  const reveal = () => byId("explorer-section").scrollIntoView({ block: "start" });
  openSet(state.set);
  if (followLink()) reveal();
  else {
    const found = presets(alignments[state.set]);
    show(found.reordered?.sentence ?? alignments[state.set][0], { step: found.reordered?.step ?? 0 });
  }
  return {
    has: (set, id) => Boolean(find(set, id)),
    open: (set, id) => { if (open(set, id)) { reveal(); byId("explorer-stage").focus({ preventScroll: true }); } },
  };
}
