// Characters as Python and Moses class them, so that a text falls into the same words in a page.

/** White space of Python's `re` and `str.split`, inside a class of a regular expression. */
export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";

const SPACES = new RegExp(`[${SPACE}]+`, "u");
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "gu");

/** As Python's `str.split()`. */
export const splitWords = (text) => text.split(SPACES).filter((word) => word !== "");

/** As Python's `str.strip()`. */
export const strip = (text) => text.replace(EDGES, "");

/** The inside of a class of a regular expression: from [first, last, first, last, ...] code points. */
export function classOf(ranges) {
  let inside = "";
  for (let i = 0; i < ranges.length; i += 2) inside += `\\u{${ranges[i].toString(16)}}-\\u{${ranges[i + 1].toString(16)}}`;
  return inside;
}
