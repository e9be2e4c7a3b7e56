// Draws the encoder's state after each source word: one column per word, one row per unit. The last column
// is the fixed vector c.

import { h } from "../dom.mjs";

const MOST_ROWS = 128;
const HEIGHT = 96;

/** Draws states (S, H) on a canvas as wide as its container. If there are more units than rows, each row
 * shows one of several units. */
export function drawStates(states, source) {
  const S = source.length;
  const H = states.length / S;
  const rows = Math.min(H, MOST_ROWS);
  const canvas = h("canvas", {
    width: S,
    height: rows,
    class: "states",
    role: "img",
    "aria-label": `The state of the encoder after each of ${S} source words; the last is the fixed vector`,
  });
  canvas.style.height = `${HEIGHT}px`;
  const picture = canvas.getContext("2d");
  const image = picture.createImageData(S, rows);
  const style = getComputedStyle(document.documentElement);
  const [low, high] = [rgb(style.getPropertyValue("--frame")), rgb(style.getPropertyValue("--heat"))];
  for (let j = 0; j < S; j++) {
    for (let row = 0; row < rows; row++) {
      const value = states[j * H + Math.floor((row * H) / rows)];
      const [r, g, b] = value < 0 ? low : high;
      image.data.set([r, g, b, Math.round(255 * Math.min(1, Math.abs(value)))], 4 * (row * S + j));
    }
  }
  picture.putImageData(image, 0, 0);
  return canvas;
}

function rgb(colour) {
  const digits = colour.trim().replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16));
}
