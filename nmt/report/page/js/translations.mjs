// Translations side by side: source, reference and what every system wrote, with the differences marked.

import { byId, h, setOptions } from "./dom.mjs";
import { pieces, unmatched } from "./diff.mjs";
import { fixed } from "./format.mjs";

const PAGE = 10;

/** Rows that a filter lets through, in the order asked for: `file`, `length` or `difference` between systems. */
export function chosen(rows, { least, most, text, sort, columns }) {
  const wanted = text.toLowerCase();
  const has = (row) => !wanted || [row.s, row.r, ...columns.map((c) => row.h[c])].some((line) => line?.toLowerCase().includes(wanted));
  const found = rows.filter((row) => row.length >= least && row.length <= most && has(row));
  const gap = (row) => {
    const scores = columns.map((c) => row.b[c]).filter((value) => value !== null);
    return scores.length > 1 ? Math.max(...scores) - Math.min(...scores) : 0;
  };
  if (sort === "length") found.sort((a, b) => a.length - b.length || a.id - b.id);
  if (sort === "difference") found.sort((a, b) => gap(b) - gap(a) || a.id - b.id);
  return found;
}

export function startTranslations(translations, overview, explore) {
  const controls = Object.fromEntries(["least", "most", "find", "order", "against"].map((name) => [name, byId(`translations-${name}`)]));
  let page = 0;

  function columns(set) {
    return set.systems.map((label, index) => [label, index]).filter(([label]) => overview.on.has(label));
  }
  function against() {
    const set = translations[overview.set.value];
    setOptions(controls.against, [["reference", "the reference"], ...(set?.systems ?? []).map((label) => [label, label])]);
  }
  function marked(text, other) {
    if (text === null || other === null) return [text ?? "–"];
    const words = text.split(" ");
    return pieces(words, unmatched(words, other.split(" "))).flatMap(({ text: piece, marked: mark }, index) => [
      index ? " " : "",
      mark ? h("mark", { text: piece }) : piece,
    ]);
  }
  function entry(row, shown, set) {
    const base = controls.against.value === "reference" ? row.r : row.h[set.systems.indexOf(controls.against.value)];
    const lines = shown.map(([label, index]) =>
      h("div", { class: "line" }, h("dt", {}, label, row.b[index] === null ? null : h("small", { text: ` BLEU ${fixed(row.b[index], 1)}` })), h("dd", {}, marked(row.h[index], base))),
    );
    const open = explore.has(overview.set.value, row.id)
      ? h("button", { type: "button", class: "small", onclick: () => explore.open(overview.set.value, row.id), text: "Show alignment" })
      : null;
    return h("article", { class: "translation" },
      h("header", {}, h("b", { text: `Sentence ${row.id}` }), h("span", { text: `${row.length} words` }), open),
      h("dl", {},
        h("div", { class: "line" }, h("dt", { text: "Source" }), h("dd", { text: row.s })),
        h("div", { class: "line" }, h("dt", { text: "Reference" }), h("dd", {}, controls.against.value === "reference" ? row.r : marked(row.r, base))),
        lines,
      ),
    );
  }
  function show() {
    const set = translations[overview.set.value];
    byId("translations-section").hidden = !set;
    if (!set) return;
    const shown = columns(set);
    const found = chosen(set.rows, {
      least: Number(controls.least.value) || 0,
      most: Number(controls.most.value) || Infinity,
      text: controls.find.value.trim(),
      sort: controls.order.value,
      columns: shown.map(([, index]) => index),
    });
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(page, pages - 1);
    const kept = set.rows.length < set.total ? ` (this page holds ${set.rows.length} of ${set.total}, spread over the lengths)` : "";
    byId("translations-count").textContent = `${found.length} of ${set.total} sentences${kept}; page ${page + 1} of ${pages}`;
    byId("translations-previous").disabled = page === 0;
    byId("translations-next").disabled = page >= pages - 1;
    byId("translations-list").replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map((row) => entry(row, shown, set)));
  }
  const first = () => { page = 0; show(); };
  for (const name of ["least", "most", "find"]) controls[name].addEventListener("input", first);
  for (const name of ["order", "against"]) controls[name].addEventListener("change", first);
  byId("translations-previous").addEventListener("click", () => { page -= 1; show(); });
  byId("translations-next").addEventListener("click", () => { page += 1; show(); });
  overview.listen(show);
  overview.set.addEventListener("change", () => { against(); first(); });
  against();
  show();
}
