// Probabilities and attention of a given translation, step by step (nmt/inference/force_decoding.py).
// S source symbols, T target symbols, both with </s>.

import { END } from "../data/vocabulary.mjs";

const RUNNERS_UP = 5;

/** {ids, weights (T, S) or null, logNormaliser, logProbabilities, others: (T,) [id, log-probability] of the most probable
 * other symbols}; </s> is added to the ids where it is missing. A generator, as the search is. */
export function* forceDecode(model, source, target) {
  const ids = [...target.filter((id) => id !== END), END];
  const memory = model.encode(source);
  let state = model.decoder.initial(memory);
  const found = { ids, weights: model.attends ? [] : null, logNormaliser: [], logProbabilities: [], others: [], memory };
  for (let i = 0; i < ids.length; i++) {
    const { readout, attended } = model.decoder.step(state, memory);
    const scores = model.output.logProbabilities(readout);
    found.weights?.push(attended.weights);
    found.logNormaliser.push(attended.logNormaliser?.[0] ?? null);
    found.logProbabilities.push(scores[ids[i]]);
    found.others.push(largest(scores, RUNNERS_UP, ids[i]));
    if (i + 1 < ids.length) state = model.decoder.advance(state, attended, [ids[i]]);
    yield i;
  }
  return found;
}

/** The `count` most probable ids but one, with their log-probabilities. */
function largest(scores, count, written) {
  const best = [];
  scores.forEach((score, id) => {
    if (id === written || (best.length === count && score <= best[count - 1][1])) return;
    let place = best.length;
    while (place > 0 && score > best[place - 1][1]) place--;
    best.splice(place, 0, [id, score]);
    if (best.length > count) best.pop();
  });
  return best;
}
