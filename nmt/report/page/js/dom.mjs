// Creates and finds elements. Text enters the page only as text nodes and attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (`on...` are listeners, `text` is its text) and children (nodes or strings;
 * null is skipped). */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, with the same arguments as `h`. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (identity) => document.getElementById(identity);

/** Sets the options of a select from entries [value, text]; keeps the chosen value if it is among them. */
export function setOptions(select, entries, chosen = select.value) {
  select.replaceChildren(...entries.map(([value, text]) => h("option", { value, text })));
  if (entries.some(([value]) => String(value) === String(chosen))) select.value = chosen;
}
