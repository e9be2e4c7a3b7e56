// Beam search (nmt/search/beam.py) and force-decoding (nmt/inference/model.py) of one sentence.
// Both are generators that yield at each step, so that the caller can do other work in between.
// K hypotheses, S source symbols, T target symbols, V vocabulary; sentences end with </s>.

import { END } from "./vocabulary.mjs";

const RUNNERS_UP = 5;

/** The most probable translation found with a beam: {tokens, logProbability, finished}.
 *
 * Each step keeps, of all continuations, the best `beam_size` less the finished ones. The search ends
 * when the beam is empty, after max_ratio · T_x steps, or as soon as no open hypothesis can overtake the
 * best finished one. `prefix` are words that must come first.
 */
export function* beamSearch(network, source, settings, prefix = []) {
  const limit = Math.max(1, floor(settings.max_ratio * source.length), prefix.length + 1);
  const minimum = Math.min(floor(settings.min_ratio * source.length), limit - 1);
  const memory = network.encode(source);
  const finished = [];
  let state = network.initial(memory);
  let open = [{ tokens: [], total: 0 }];
  for (let step = 1; ; step++) {
    const { scores, attended } = network.step(state, memory);
    const only = prefix[step - 1] ?? null;
    const banned = only === null && step <= minimum ? END : null;
    const kept = continuations(
      scores,
      open.map(({ total }) => total),
      settings.beam_size - finished.length,
      only,
      banned,
    );
    const normalised = (total, length) => total / length ** settings.length_penalty;
    const extended = kept.map(({ parent, word, total }) => ({
      tokens: [...open[parent].tokens, word],
      total,
      score: normalised(total, step),
      parent,
    }));
    finished.push(...extended.filter(({ tokens }) => tokens.at(-1) === END));
    open = extended.filter(({ tokens }) => tokens.at(-1) !== END);
    const done = best(finished);
    // an open hypothesis only loses probability
    if (step === limit || open.length === 0 || (done && normalised(open[0].total, limit) < done.score)) {
      const { tokens, total } = done ?? best(open);
      return { tokens, logProbability: total, finished: done !== null };
    }
    state = network.advance(
      state,
      attended,
      open.map(({ tokens }) => tokens.at(-1)),
      open.map(({ parent }) => parent),
    );
    yield step;
  }
}

/** Rounds down, but keeps a product such as 0.29 · 100 that is a whole number up to rounding errors. */
const floor = (steps) => Math.floor(steps + 1e-9);

const best = (hypotheses) => hypotheses.reduce((a, b) => (a === null || b.score > a.score ? b : a), null);

/** The best continuations, best first: [{parent, word, total}]. Equal totals: the lower word index first,
 * then the hypothesis that was better before.
 *
 * @param scores (K, V) log-probabilities of the next word
 * @param totals (K) summed log-probabilities so far
 * @param width how many are kept
 * @param only the only word that may follow, or null for any
 * @param banned a word that may not follow, or null
 */
export function continuations(scores, totals, width, only = null, banned = null) {
  const V = scores.length / totals.length;
  const found = [];
  const better = (a, b) => (a.total - b.total || b.word - a.word || b.parent - a.parent) > 0;
  for (let parent = 0; parent < totals.length; parent++) {
    for (let word = only ?? 0; word <= (only ?? V - 1); word++) {
      const total = totals[parent] + scores[parent * V + word];
      if (word === banned || (found.length === width && total < found[width - 1].total)) continue;
      const one = { parent, word, total };
      let place = found.length;
      while (place > 0 && better(one, found[place - 1])) place--;
      found.splice(place, 0, one);
      if (found.length > width) found.pop();
    }
  }
  return found;
}

/** Probabilities and attention of a given translation: {ids, weights (T, S) or null, logNormaliser (T),
 * logProbabilities (T), others: (T,) [{word, total}] the most probable other symbols, memory}; </s> is
 * added to the ids where it is missing. */
export function* forceDecode(network, source, target) {
  const ids = [...target.filter((id) => id !== END), END];
  const memory = network.encode(source);
  let state = network.initial(memory);
  const found = {
    ids,
    weights: network.attends ? [] : null,
    logNormaliser: [],
    logProbabilities: [],
    others: [],
    memory,
  };
  for (const [i, id] of ids.entries()) {
    const { scores, attended } = network.step(state, memory);
    found.weights?.push(attended.weights);
    found.logNormaliser.push(attended.logNormaliser?.[0] ?? null);
    found.logProbabilities.push(scores[id]);
    found.others.push(continuations(scores, [0], RUNNERS_UP, null, id));
    state = network.advance(state, attended, [id], [0]);
    yield i;
  }
  return found;
}
