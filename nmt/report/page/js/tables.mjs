// Tables that sort by a column when its heading is clicked; empty cells stay last.

import { h } from "./dom.mjs";

/** Turns the headings of a table into buttons that sort by their column. */
export function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const sort = () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const value = (row) => cellValue(row.cells[column]);
      table.tBodies[0].append(
        ...[...table.tBodies[0].rows].sort((a, b) => compare(value(a), value(b), falling)),
      );
    };
    heading.append(h("button", { type: "button", onclick: sort }, [...heading.childNodes]));
  });
}

function cellValue({ dataset, textContent }) {
  if (dataset.value === "nan") return Infinity; // shown as `> 60`: a length beyond the curve
  if (dataset.value !== undefined) return dataset.value === "" ? null : Number(dataset.value);
  return textContent === "–" ? null : textContent;
}

/** Compares two cells: numbers by size, text by the alphabet; empty cells are last in both directions. */
export function compare(a, b, falling) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order =
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  return falling ? -order : order;
}
