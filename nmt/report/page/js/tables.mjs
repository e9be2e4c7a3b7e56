// Tables whose columns sort at a click on their heading; empty cells stay last.

/** Makes the headings of a table buttons that sort by their column. */
export function sortable(table) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const falling = heading.getAttribute("aria-sort") === "ascending";
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      table.tBodies[0].append(...rows.sort((a, b) => compare(cellValue(a, column), cellValue(b, column), falling)));
    });
  });
}

function cellValue(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  return cell.textContent === "–" ? null : cell.textContent;
}

/** Order of two cells: numbers by size, text by the alphabet, nothing last whichever way is asked for. */
export function compare(a, b, falling) {
  if (a === null || b === null) return (a === null) - (b === null);
  const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true });
  return falling ? -order : order;
}
