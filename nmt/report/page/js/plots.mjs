// Draws specifications with Vega as SVG, in the page's colours, with a tooltip that sets only text.

import { DASHES, SHAPES } from "./charts.mjs";
import { chartLibrary } from "./data.mjs";
import { byId, h, svg } from "./dom.mjs";
import { interval } from "./format.mjs";

export const COLOURS = 7;

/** The current colours and font of the page (light or dark). */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  const names = { text: "--text", grid: "--grid", axis: "--line", bar: "--bar", font: "--font" };
  return {
    ...Object.fromEntries(Object.entries(names).map(([key, name]) => [key, value(name)])),
    colours: [
      ...Array.from({ length: COLOURS }, (_, index) => value(`--series-${index}`)),
      value("--muted-line"),
    ],
  };
}

/** Width of a chart in an element, in pixels. */
export const chartWidth = (element) => Math.max(220, Math.min(1300, element.clientWidth - 80));

function tooltip(_, event, __, value) {
  const box = byId("tooltip");
  box.hidden = !value;
  if (!value) return;
  const rows = Object.entries(value).filter(([, text]) => !["", "NaN", "null"].includes(text));
  box.replaceChildren(
    ...rows.map(([name, text]) => h("div", {}, h("span", { text: name }), h("b", { text }))),
  );
  const left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
  const below = event.clientY + 14 + box.offsetHeight <= window.innerHeight;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${below ? event.clientY + 14 : event.clientY - box.offsetHeight - 10}px`;
}

const nothing = () => Promise.reject(new Error("this page loads no files"));
const REFUSING = { load: nothing, sanitize: nothing, http: nothing, file: nothing };
const drawings = new Map(); // by element: {turn, view}

/** Draws a specification in an element and replaces its content; null clears the element. If calls
 * overlap, the last one wins. */
export async function draw(element, spec) {
  const turn = (drawings.get(element)?.turn ?? 0) + 1;
  drawings.set(element, { ...drawings.get(element), turn });
  const frame = h("div");
  const options = {
    actions: false,
    renderer: "svg",
    mode: "vega-lite",
    tooltip,
    loader: REFUSING,
    defaultStyle: false,
    ast: true,
  };
  const view = spec && (await (await chartLibrary())(frame, spec, options));
  if (drawings.get(element).turn !== turn) {
    view?.finalize();
    return;
  }
  drawings.get(element).view?.finalize();
  drawings.set(element, { turn, view });
  element.replaceChildren(frame);
  element.dataset.drawn = String(turn);
}

/** Makes the line of a series stand out in the chart of an element; "" resets all lines. */
export const hover = (element, series) =>
  drawings.get(element)?.view?.view.signal("hovered", series).runAsync();

const OUTLINES = {
  circle: "M 17 6 a 4 4 0 1 0 8 0 a 4 4 0 1 0 -8 0",
  square: "M 17.5 2.5 h 7 v 7 h -7 Z",
  "triangle-up": "M 21 1.5 l 4.5 8 h -9 Z",
  diamond: "M 21 1 l 4 5 l -4 5 l -4 -5 Z",
  cross: "M 19.5 2 h 3 v 2.5 h 2.5 v 3 h -2.5 V 10 h -3 V 7.5 H 17 v -3 h 2.5 Z",
  "triangle-down": "M 21 10.5 l 4.5 -8 h -9 Z",
};

/** A sample of a series' line: its colour, dash and shape. */
export function sample({ colour, variant }) {
  const ink = colour === COLOURS ? "var(--muted-line)" : `var(--series-${colour % COLOURS})`;
  return svg(
    "svg",
    { class: "sample", width: 42, height: 12, viewBox: "0 0 42 12", "aria-hidden": "true" },
    svg("line", {
      x1: 0,
      x2: 42,
      y1: 6,
      y2: 6,
      stroke: ink,
      "stroke-width": 2.2,
      "stroke-dasharray": DASHES[variant % DASHES.length].join(" "),
    }),
    svg("path", { d: OUTLINES[SHAPES[colour % SHAPES.length]], fill: ink }),
  );
}

/** The legend of a chart. */
export function legend(element, names, look) {
  element.replaceChildren(...names.map((name) => h("li", {}, sample(look(name)), h("span", { text: name }))));
}

/** The numbers of a chart as a table: one row per series, one column per value on the x axis. */
export function dataTable(element, rows, column, names, digits) {
  const places = [...new Set(rows.map((row) => row[column]))];
  const cell = new Map(rows.map((row) => [`${row.series}\n${row[column]}`, row]));
  const text = (row) => (row ? interval(row, digits) : "–");
  element.replaceChildren(
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["Run", ...places].map((title) => h("th", { scope: "col", text: title })),
      ),
    ),
    h(
      "tbody",
      {},
      names.map((name) =>
        h(
          "tr",
          {},
          h("th", { scope: "row", text: name }),
          places.map((place) => h("td", { text: text(cell.get(`${name}\n${place}`)) })),
        ),
      ),
    ),
  );
}
