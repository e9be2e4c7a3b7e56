// Draws one decoding: source words along the top, target words down the side. With attention, the
// opacity of a cell is its weight; without attention, lines lead from the last source word to every target
// word. A step moves a frame and changes a few classes, but draws nothing again.

import { h, svg } from "./dom.mjs";

const LEAST = 0.004;
const SLANT = 55; // degrees: slant of the column labels; where columns are narrow, labels are upright
const FONT = 12;
const SMALLEST = 12; // pixels: smallest cell beside a readable label; a picture that needs more room scrolls

const textWidth = (words, font) =>
  Math.min(14.6 * font, 14 + 0.62 * font * Math.max(...words.map((word) => word.length)));

const short = (word) => (word.length > 22 ? `${word.slice(0, 21)}…` : word);

/** Sizes of the cells and margins of a picture of these words, for a space `room` pixels wide and, if cells
 * stay readable, `tall` pixels high. */
export function layout(source, target, room, foot = 6, tall = Infinity) {
  const sized = (slant) => {
    const left = textWidth(target.map(short), FONT);
    const label = textWidth(source.map(short), FONT);
    const top = Math.round(label * Math.sin((slant * Math.PI) / 180)) + 14;
    const flat = Math.cos((slant * Math.PI) / 180);
    // how far each slanted label reaches beyond the last column, in pixels
    const beyond = source.map(
      (word, j) => textWidth([short(word)], FONT) * flat - (source.length - 1 - j) * 11,
    );
    const right = 6 + Math.round(Math.max(...beyond));
    const across = Math.floor((room - left - right) / source.length);
    const cell = Math.min(28, across, Math.floor((tall - top - foot) / target.length));
    return { cell: Math.max(SMALLEST, cell), slant, left, top, right };
  };
  let size = sized(SLANT);
  if (size.cell < 16) size = sized(90);
  const { cell, left, top, right } = size;
  const [width, height] = [left + cell * source.length + right, top + cell * target.length + foot];
  return { ...size, width, height };
}

/** Draws a decoding in `element`; returns {step}, where step(i) moves the picture to target word i. */
export function heatmap(element, decoding, { choose, label, tall }) {
  const { source, target, weights } = decoding;
  const size = layout(source, target, element.clientWidth - 4, weights ? 6 : 22, tall);
  const { cell, left, top, slant } = size;
  const shift = slant === 90 ? 0.5 * cell + 0.35 * FONT : 0.62 * cell;
  const columns = source.map((word, j) =>
    svg(
      "text",
      {
        class: "source",
        transform: `translate(${left + j * cell + shift} ${top - 8}) rotate(-${slant})`,
        text: short(word),
      },
      svg("title", { text: word }),
    ),
  );
  const rows = target.map((word, i) =>
    svg(
      "text",
      {
        class: "target",
        x: left - 7,
        y: top + (i + 0.5) * cell,
        "text-anchor": "end",
        "dominant-baseline": "central",
        text: short(word),
      },
      svg("title", { text: word }),
    ),
  );
  const frame = svg("rect", {
    class: "frame",
    x: left - 1,
    width: cell * source.length + 2,
    height: cell,
    rx: 2,
  });
  // labels stay in view when cells scroll: column labels are a separate drawing, row labels are moved
  const edge = top - 7;
  const { width } = size;
  const style = `font-size: ${FONT}px`;
  const drawing = (from, height, attributes) =>
    svg("svg", { width, height, viewBox: `0 ${from} ${width} ${height}`, style, ...attributes });
  const head = drawing(0, edge, { class: "columns", "aria-hidden": "true" });
  const picture = drawing(edge, size.height - edge, { role: "img", "aria-label": label });
  const corner = svg("rect", { class: "margin", width: left - 2, height: edge });
  head.append(...columns, corner);
  const labels = svg(
    "g",
    {},
    svg("rect", { class: "margin", y: top, width: left - 2, height: cell * target.length }),
    rows,
  );
  picture.append(
    svg("rect", {
      class: "field",
      x: left,
      y: top,
      width: cell * source.length,
      height: cell * target.length,
    }),
    weights ? cells(weights, size) : vector(source, target, size),
    frame,
    labels,
  );
  element.onscroll = () => {
    for (const part of [labels, corner]) part.setAttribute("transform", `translate(${element.scrollLeft} 0)`);
  };
  picture.addEventListener("click", ({ clientY }) => {
    const i = Math.floor((clientY - picture.getBoundingClientRect().top + edge - top) / cell);
    if (i >= 0 && i < target.length) choose(i);
  });
  element.replaceChildren(head, picture);

  /** Scrolls (`side`: scrollTop or scrollLeft) until the cell at `at` is visible, beside the labels. */
  function bring(side, at, margin, visible, whole) {
    const from = element[side];
    if (at + 2 * cell <= visible)
      element[side] = 0; // the cell is visible without scrolling
    else if (whole > visible && (at < from + Math.min(margin, visible / 2) || at + 2 * cell > from + visible))
      element[side] = at - visible * 0.6;
  }
  let current = null;
  const lit = new Set();
  return {
    step(i) {
      frame.setAttribute("y", top + i * cell);
      if (current !== null) rows[current].classList.remove("now");
      rows[i].classList.add("now");
      for (const j of lit) columns[j].classList.remove("now");
      lit.clear();
      (weights ? weights[i] : source.map((_, j) => (j === source.length - 1 ? 1 : 0))).forEach(
        (weight, j) => {
          if (weight >= 0.1) {
            lit.add(j);
            columns[j].classList.add("now");
          }
        },
      );
      if (!weights) {
        if (current !== null) picture.querySelector(`[data-step="${current}"]`).classList.remove("now");
        picture.querySelector(`[data-step="${i}"]`).classList.add("now");
      }
      current = i;
      const most = weights ? weights[i].indexOf(Math.max(...weights[i])) : 0;
      bring("scrollTop", top + i * cell, top, element.clientHeight, element.scrollHeight);
      bring("scrollLeft", left + most * cell, left, element.clientWidth, element.scrollWidth);
    },
  };
}

const INKS = ["fill", "fill-opacity", "stroke", "stroke-width", "opacity", "font", "paint-order"];

/** Saves the picture in an element as an SVG file, with the colours and fonts of the page written into it. */
export function saveSvg(element, name) {
  const parts = [...element.querySelectorAll("svg")];
  const file = svg("svg", { width: parts[0].getAttribute("width") });
  let y = 0;
  for (const part of parts) {
    const copy = part.cloneNode(true);
    const shown = [part, ...part.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((node, n) => {
      const style = getComputedStyle(shown[n]);
      node.setAttribute("style", INKS.map((ink) => `${ink}: ${style.getPropertyValue(ink)}`).join("; "));
    });
    copy.setAttribute("y", y);
    y += Number(part.getAttribute("height"));
    file.append(copy);
  }
  file.setAttribute("height", y);
  const text = new XMLSerializer().serializeToString(file);
  const href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  h("a", { href, download: name }).click();
}

function cells(weights, { cell, left, top }) {
  const group = svg("g", { class: "cells" });
  weights.forEach((row, i) =>
    row.forEach((weight, j) => {
      if (weight >= LEAST)
        group.append(
          svg("rect", {
            x: left + j * cell,
            y: top + i * cell,
            width: cell - 1,
            height: cell - 1,
            "fill-opacity": weight.toFixed(3),
          }),
        );
    }),
  );
  return group;
}

/** Draws the encoder's states along the top, the last one being c, and a line from c to each target word. */
function vector(source, target, { cell, left, top }) {
  const group = svg("g", { class: "vector" });
  const y = top - 2;
  const end = left + (source.length - 0.5) * cell;
  group.append(svg("line", { class: "chain", x1: left + 0.5 * cell, x2: end, y1: y, y2: y }));
  source.forEach((_, j) =>
    group.append(
      svg("circle", {
        class: j === source.length - 1 ? "summary" : "state",
        cx: left + (j + 0.5) * cell,
        cy: y,
        r: j === source.length - 1 ? 5 : 2,
      }),
    ),
  );
  group.append(
    svg("line", { class: "chain", x1: end, x2: end, y1: y, y2: top + (target.length - 0.5) * cell }),
  );
  target.forEach((_, i) => {
    const at = top + (i + 0.5) * cell;
    group.append(
      svg("path", { class: "feed", "data-step": i, d: `M ${end} ${at} H ${left + 8} m 5 -4 l -6 4 l 6 4` }),
    );
  });
  group.append(
    svg("text", {
      x: end + 4,
      y: top + target.length * cell + 14,
      "text-anchor": "end",
      class: "name",
      text: "c, the one fixed vector",
    }),
  );
  return group;
}
