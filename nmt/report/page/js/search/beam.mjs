// Beam search for one sentence (nmt/search/beam.py); a beam of 1 is greedy search. K hypotheses, V vocabulary.

import { END } from "../data/vocabulary.mjs";

const ROOT = -1;

/** The most probable translations found with a beam, best first: [{tokens, score, finished}].
 *
 * Each step keeps, of all continuations, the best `beam_size` less the finished ones. The search ends when the beam is
 * empty, after max_ratio · T_x steps, or as soon as no open hypothesis can overtake the best finished one. Equal totals:
 * the lower word index first, then the hypothesis that was better before. `prefix` are words that must come first.
 *
 * A generator, which yields the number of the step, so that whoever runs it may do other things between.
 */
export function* beamSearch(model, source, settings, prefix = []) {
  const limit = Math.max(1, floor(settings.max_ratio * source.length), prefix.length + 1);
  const minimum = Math.min(floor(settings.min_ratio * source.length), limit - 1);
  const p = settings.length_penalty;
  const tree = { parents: [], words: [] };
  const finished = [];
  let open = [];
  let nodes = [ROOT];
  let totals = [0];
  const memory = model.encode(source);
  let state = model.decoder.initial(memory);
  for (let step = 1; step <= limit; step++) {
    const { readout, attended } = model.decoder.step(state, memory);
    const scores = model.output.logProbabilities(readout);
    const allowed = prefix.length >= step ? prefix[step - 1] : null;
    const banned = allowed === null && step <= minimum ? END : null;
    let kept = bestContinuations(scores, totals, settings.beam_size - finished.length, allowed, banned);
    for (const one of kept) {
      one.node = tree.words.length;
      tree.parents.push(nodes[one.parent]);
      tree.words.push(one.word);
      if (one.word === END) finished.push({ score: normalised(one.total, step, p), node: one.node });
    }
    kept = kept.filter((one) => one.word !== END);
    if (!goesOn(kept, finished, step, limit, p)) {
      open = kept.map((one) => ({ score: normalised(one.total, step, p), node: one.node }));
      break;
    }
    nodes = kept.map((one) => one.node);
    totals = kept.map((one) => one.total);
    const [hidden, contexts] = model.decoder.reorder(state, attended, kept.map((one) => one.parent));
    state = model.decoder.advance(hidden, contexts, kept.map((one) => one.word));
    yield step;
  }
  return ranked(finished, open, tree);
}

/** Rounds down, but not a product such as 0.29 · 100 that falls short of a whole number. */
const floor = (steps) => Math.floor(steps + 1e-9);

const normalised = (total, length, p) => total / length ** p;

/** Whether another step can change which hypothesis is the best: an open one only loses probability. */
function goesOn(kept, finished, step, limit, p) {
  if (step >= limit || kept.length === 0) return false;
  if (finished.length === 0) return true;
  return normalised(kept[0].total, limit, p) >= Math.max(...finished.map((one) => one.score));
}

/** The best continuations, best first: {parent, word, total}.
 *
 * @param scores (K, V) log-probabilities of the next word
 * @param totals (K) summed log-probabilities so far
 * @param width how many are kept
 * @param allowed the only word that may follow, or null for any
 * @param banned a word that may not follow, or null
 */
export function bestContinuations(scores, totals, width, allowed = null, banned = null) {
  const V = scores.length / totals.length;
  const best = [];
  const better = (a, b) => a.total - b.total || b.word - a.word || b.parent - a.parent;
  for (let parent = 0; parent < totals.length; parent++) {
    const first = allowed ?? 0;
    const last = allowed === null ? V - 1 : allowed;
    for (let word = first; word <= last; word++) {
      if (word === banned) continue;
      const total = totals[parent] + scores[parent * V + word];
      if (best.length === width && total < best[width - 1].total) continue;
      const one = { parent, word, total };
      let place = best.length;
      while (place > 0 && better(one, best[place - 1]) > 0) place--;
      best.splice(place, 0, one);
      if (best.length > width) best.pop();
    }
  }
  return best;
}

/** Finished before open, by score, then by word index. */
function ranked(finished, open, tree) {
  const hypotheses = [
    ...finished.map((one) => ({ ...backtrace(one, tree), finished: true })),
    ...open.map((one) => ({ ...backtrace(one, tree), finished: false })),
  ];
  return hypotheses.sort((a, b) => b.finished - a.finished || b.score - a.score || inOrder(a.tokens, b.tokens));
}

function backtrace({ score, node }, tree) {
  const tokens = [];
  for (let at = node; at !== ROOT; at = tree.parents[at]) tokens.unshift(tree.words[at]);
  return { tokens, score };
}

function inOrder(a, b) {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
