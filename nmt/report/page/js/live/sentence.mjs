// Appends a clause to the user's sentence.

/** Words that join a clause to a sentence, by language. */
const JOINTS = { en: ["and", "but", "so"], fr: ["et", "mais", "donc"] };

/**
 * Appends the sentence `more` to a text as a clause, since models that were trained on single sentences stop
 * at an inner full stop. Without a joining word, the sentence just follows the text.
 * @param {number} turn selects the joining word
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
