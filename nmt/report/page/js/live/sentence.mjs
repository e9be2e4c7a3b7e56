// The field a sentence is typed in, with the words underlined that a model does not know.

import { h } from "../dom.mjs";

/** Where each word of a tokenised text stands in the text: [from, to], or null where Moses wrote it otherwise. */
export function places(text, words) {
  let from = 0;
  return words.map((word) => {
    const at = text.indexOf(word, from);
    if (at < 0 || at > from + 40) return null;
    from = at + word.length;
    return [at, from];
  });
}

/** Draws the text again beneath the field, unknown words marked. */
export function mark(element, text, words, known) {
  const parts = [];
  let done = 0;
  places(text, words).forEach((place, i) => {
    if (!place || known[i]) return;
    parts.push(text.slice(done, place[0]), h("mark", { text: text.slice(place[0], place[1]) }));
    done = place[1];
  });
  element.replaceChildren(...parts, text.slice(done), "\n"); // a last line of its own keeps the field's height
}

/** Words that join a clause to a sentence, by language. */
const JOINTS = { en: ["and", "but", "so"], fr: ["et", "mais", "donc"] };

/**
 * A text with another sentence as a further clause: models that were trained on single sentences end at an inner full stop.
 * Without a word that joins them, the other sentence stands behind the text.
 * @param {number} turn which of the words joins them
 * @param {(word: string) => Promise<boolean>} knows whether all models know a word
 */
export async function joinClause(text, more, language, turn, knows) {
  const joints = JOINTS[language] ?? [];
  const joint = joints[turn % joints.length];
  const bare = text.trim().replace(/\s*\.$/, "");
  if (!bare || !joint || !(await knows(joint))) return `${text.trim()} ${more}`.trim();
  const [first] = more.match(/^\S*/);
  const small = first.toLowerCase();
  return `${bare}, ${joint} ${(await knows(small)) ? small : first}${more.slice(first.length)}`;
}
