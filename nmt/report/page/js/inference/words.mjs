// From subwords to words: attention between words, and the words in place of <unk> (nmt/evaluation/alignment.py,
// nmt/inference/unknown_words.py). I target words, J source words, both with </s> as the last.

/** Weights (T, S) of symbols as weights (I, J) of words: sums over the source symbols of a word, means over the target's.
 *
 * @param sourceSizes (J) symbols of each source word
 * @param targetSizes (I) symbols of each target word
 */
export function wordWeights(weights, sourceSizes, targetSizes) {
  let row = 0;
  return targetSizes.map((count) => {
    const mean = new Array(sourceSizes.length).fill(0);
    for (const step of weights.slice(row, row + count)) {
      let at = 0;
      sourceSizes.forEach((size, j) => {
        for (let n = 0; n < size; n++) mean[j] += step[at++] / count;
      });
    }
    row += count;
    return mean;
  });
}

/** The source word of largest weight for each row, `</s>` left out; -1 where there is no other. */
export function attendedWords(weights) {
  return weights.map((row) => {
    const words = Array.from(row).slice(0, -1);
    return words.indexOf(Math.max(...words));
  });
}

/** The words of a translation with others in place of <unk>: the attended source word, or its translation. */
export function replaceUnknown(words, unknown, attended, source, mode, dictionary) {
  if (mode === "none" || attended === null) return words;
  const translation = (word) => (mode === "dictionary" && dictionary && Object.hasOwn(dictionary, word) ? dictionary[word] : word);
  return words.map((word, i) => (unknown[i] && attended[i] >= 0 ? translation(source[attended[i]]) : word));
}

/** p / max p of each word, at most 1: how nearly it is what the model would have written. */
export function expectedWords(starts, sizes, { logProbabilities, others }) {
  const behind = logProbabilities.map((p, at) => Math.min(0, p - others[at][0][1]));
  return starts.map((at, i) => Math.exp(behind.slice(at, at + sizes[i]).reduce((total, value) => total + value, 0)));
}

/** Source words (without </s>) whose weights over the written words, as far as these are expected, stay low. */
export function unreadWords(weights, expected, least = 0.2) {
  const sums = weights[0].map((_, j) => weights.slice(0, -1).reduce((total, row, i) => total + expected[i] * row[j], 0));
  return sums.slice(0, -1).flatMap((sum, j) => (sum < least ? [j] : []));
}
