// Draws specifications with Vega as SVG, in the page's colours, with a tooltip that only ever sets text.

import { chartLibrary } from "./data.mjs";
import { byId, h } from "./dom.mjs";
import { fixed } from "./format.mjs";

export const COLOURS = 7;

/** Colours and font of the page as they are now (light or dark). */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    text: value("--text"),
    grid: value("--grid"),
    axis: value("--line"),
    bar: value("--bar"),
    font: value("--font"),
    colours: Array.from({ length: COLOURS }, (_, index) => value(`--series-${index}`)),
  };
}

function tooltip(_, event, __, value) {
  const box = byId("tooltip");
  if (!value) {
    box.hidden = true;
    return;
  }
  const rows = Object.entries(value).filter(([, text]) => text !== "" && text !== "NaN" && text !== "null");
  box.replaceChildren(...rows.map(([name, text]) => h("div", {}, h("span", { text: name }), h("b", { text }))));
  box.hidden = false;
  const left = Math.min(event.clientX + 14, window.innerWidth - box.offsetWidth - 8);
  const top = event.clientY + 14 + box.offsetHeight > window.innerHeight ? event.clientY - box.offsetHeight - 10 : event.clientY + 14;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${top}px`;
}

const nothing = () => Promise.reject(new Error("this page loads nothing"));
const REFUSING = { load: nothing, sanitize: nothing, http: nothing, file: nothing };
const drawings = new Map();

/** Draws a specification in an element, in place of what it held; of calls that overlap the last one stays. */
export async function draw(element, spec) {
  const embed = await chartLibrary();
  const turn = (drawings.get(element)?.turn ?? 0) + 1;
  drawings.get(element)?.result?.finalize();
  drawings.set(element, { turn });
  const frame = h("div");
  const options = { actions: false, renderer: "svg", mode: "vega-lite", tooltip, loader: REFUSING, defaultStyle: false };
  const result = await embed(frame, spec, options);
  if (drawings.get(element).turn !== turn) {
    result.finalize();
    return;
  }
  drawings.set(element, { turn, result });
  element.replaceChildren(frame);
  element.dataset.drawn = String(turn);
}

/** The numbers behind a chart as a table: a row a series, a column a place on the x axis. */
export function dataTable(element, rows, column, names, digits) {
  const places = [...new Map(rows.map((row) => [row[column], row])).keys()];
  const cell = new Map(rows.map((row) => [`${row.series}\n${row[column]}`, row]));
  const head = h("tr", {}, h("th", { scope: "col", text: "Run" }), places.map((text) => h("th", { scope: "col", text })));
  const body = names.map((name) =>
    h("tr", {}, h("th", { scope: "row", text: name }), places.map((place) => {
      const row = cell.get(`${name}\n${place}`);
      const text = !row ? "–" : row.low === null || row.low === undefined ? fixed(row.value, digits) : `${fixed(row.value, digits)} [${fixed(row.low, digits)}, ${fixed(row.high, digits)}]`;
      return h("td", { text });
    })),
  );
  element.replaceChildren(h("thead", {}, head), h("tbody", {}, body));
}
