// Which words of a sentence are not in another: all but a longest common subsequence.

/** One flag a word of `words`: true where it is not part of the longest common subsequence with `other`. */
export function unmatched(words, other) {
  const width = other.length + 1;
  const table = new Uint16Array((words.length + 1) * width);
  for (let i = words.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      table[i * width + j] =
        words[i] === other[j]
          ? table[(i + 1) * width + j + 1] + 1
          : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  const flags = words.map(() => true);
  for (let i = 0, j = 0; i < words.length && j < other.length; ) {
    if (words[i] === other[j]) {
      flags[i++] = false;
      j++;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return flags;
}

/** Neighbouring words with the same flag put together: [{text, marked}]. */
export function pieces(words, flags) {
  const joined = [];
  words.forEach((word, i) => {
    const last = joined.at(-1);
    if (last && last.marked === flags[i]) last.text += ` ${word}`;
    else joined.push({ text: word, marked: flags[i] });
  });
  return joined;
}
