// Beam search (nmt/search/beam.py) of one sentence. It is a generator that yields the best words so far at
// each step, so that the caller can show them and do other work in between.
// K hypotheses, S source symbols, T target symbols, V vocabulary; sentences end with </s>.

import { END } from "./vocabulary.mjs";

const RUNNERS_UP = 5;

/** The most probable translation found with a beam: {steps, logProbability, finished, memory}. `steps` has
 * the result of `stepOf` for each word and for </s>, which is added if the search ended without it.
 *
 * Each step keeps the best continuations; their number is `beam_size` minus that of finished hypotheses. The
 * search ends when the beam is empty, after max_ratio · T_x steps, or as soon as no open hypothesis can
 * overtake the best finished one. `prefix` are words that must come first.
 */
export function* beamSearch(network, source, settings, prefix = []) {
  const limit = Math.max(1, floor(settings.max_ratio * source.length), prefix.length + 1);
  const minimum = Math.min(floor(settings.min_ratio * source.length), limit - 1);
  const memory = network.encode(source);
  const finished = [];
  let state = network.initial(memory);
  let open = [{ steps: [], total: 0 }];
  for (let step = 1; ; step++) {
    const result = network.step(state, memory);
    const { scores, attended } = result;
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
      steps: [...open[parent].steps, stepOf(result, open.length, parent, word)],
      total,
      score: normalised(total, step),
      parent,
      word,
    }));
    finished.push(...extended.filter(({ word }) => word === END));
    open = extended.filter(({ word }) => word !== END);
    const done = best(finished);
    // the probability of an open hypothesis can only fall
    if (step === limit || open.length === 0 || (done && normalised(open[0].total, limit) < done.score)) {
      const { steps, total, word, parent } = done ?? best(open);
      if (!done) {
        const last = network.step(network.advance(state, attended, [word], [parent]), memory);
        steps.push(stepOf(last, 1, 0, END));
      }
      return { steps, logProbability: total, finished: done !== null, memory };
    }
    state = network.advance(
      state,
      attended,
      open.map(({ word }) => word),
      open.map(({ parent }) => parent),
    );
    yield open[0].steps.map(({ id }) => id);
  }
}

/** Describes the symbol `id` that a step with K hypotheses adds to hypothesis k: {id, logProbability, weights
 * (S) or null, logNormaliser, others: the most probable other symbols, [{word, total}]}. */
function stepOf({ scores, attended: { weights, logNormaliser } }, K, k, id) {
  const row = (values) => values.subarray((k * values.length) / K, ((k + 1) * values.length) / K);
  const own = row(scores);
  return {
    id,
    logProbability: own[id],
    others: continuations(own, [0], RUNNERS_UP, null, id),
    weights: weights && row(weights),
    logNormaliser: logNormaliser?.[k] ?? null,
  };
}

/** Rounds down, but keeps a product such as 0.29 · 100 that is a whole number up to rounding errors. */
const floor = (steps) => Math.floor(steps + 1e-9);

const best = (hypotheses) => hypotheses.reduce((a, b) => (a === null || b.score > a.score ? b : a), null);

/** The best continuations, best first: [{parent, word, total}]. With equal totals, the lower word index comes
 * first, then the hypothesis that was better before.
 *
 * @param scores (K, V) log-probabilities of the next word
 * @param totals (K) summed log-probabilities so far
 * @param width maximum number of continuations
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
