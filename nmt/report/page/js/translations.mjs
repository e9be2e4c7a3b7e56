// Translations side by side: source, reference and the output of every system, with differences marked.

import { byId, h, setOptions } from "./dom.mjs";
import { fixed } from "./format.mjs";

const PAGE = 10;

/** Filters rows and sorts them by `file`, `length` or `difference` between systems. */
export function chosen(rows, { least, most, text, sort, columns }) {
  const wanted = text.toLowerCase();
  const has = (row) =>
    [row.s, row.r, ...columns.map((c) => row.h[c])].some((line) => line?.toLowerCase().includes(wanted));
  const gap = (row) => {
    const scores = columns.map((c) => row.b[c]).filter((value) => value !== null);
    return scores.length > 1 ? Math.max(...scores) - Math.min(...scores) : 0;
  };
  const order = { file: () => 0, length: (row) => row.length, difference: (row) => -gap(row) }[sort];
  return rows
    .filter((row) => row.length >= least && row.length <= most && has(row))
    .sort((a, b) => order(a) - order(b) || a.id - b.id);
}

/** One flag per word of `words`: true if it is not in the longest common subsequence with `other`. */
export function unmatched(words, other) {
  const width = other.length + 1;
  const table = new Uint16Array((words.length + 1) * width);
  for (let i = words.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      const skipped = Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
      table[i * width + j] = words[i] === other[j] ? table[(i + 1) * width + j + 1] + 1 : skipped;
    }
  }
  const flags = words.map(() => true);
  for (let i = 0, j = 0; i < words.length && j < other.length;) {
    if (words[i] === other[j]) {
      flags[i++] = false;
      j++;
    } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++;
    else j++;
  }
  return flags;
}

/** A text in which the words that are missing from the text `other` are marked. */
function marked(text, other) {
  if (text === null || other === null) return [text ?? "–"];
  const words = text.split(" ");
  const flags = unmatched(words, other.split(" "));
  const parts = [];
  words.forEach((word, i) => {
    if (i > 0 && flags[i] === flags[i - 1]) parts.at(-1).append(` ${word}`);
    else parts.push(i > 0 ? " " : "", h(flags[i] ? "mark" : "span", { text: word }));
  });
  return parts;
}

/** The words of the text `other` that are missing from a text. */
function lost(text, other) {
  const words = text === null || other === null ? [] : other.split(" ");
  const missing = words.filter((_, i) => unmatched(words, text.split(" "))[i]).join(" ");
  return missing ? h("small", { class: "lost" }, " lost: ", h("del", { text: missing })) : null;
}

const line = (name, text) => h("div", { class: "line" }, h("dt", {}, name), h("dd", { dir: "auto" }, text));

export function startTranslations(translations, overview, explore) {
  if (!byId("translations-section")) return;
  const controls = Object.fromEntries(
    ["least", "most", "find", "order", "against"].map((name) => [name, byId(`translations-${name}`)]),
  );
  const [previous, next] = ["previous", "next"].map((name) => byId(`translations-${name}`));
  let page = 0;

  function against() {
    const systems = translations[overview.set.value]?.systems ?? [];
    setOptions(controls.against, [["reference", "the reference"], ...systems.map((label) => [label, label])]);
  }
  function entry(row, shown, set) {
    const system = set.systems.indexOf(controls.against.value);
    const base = system < 0 ? row.r : row.h[system];
    const bleu = (value) => (value === null ? null : h("small", { text: ` BLEU ${fixed(value, 1)}` }));
    const open = () => explore.open(overview.set.value, row.id);
    return h(
      "article",
      { class: "translation" },
      h(
        "header",
        {},
        h("b", { text: `Sentence ${row.id}` }),
        h("span", { text: set.place.replace("0", row.length) }),
        explore.has(overview.set.value, row.id)
          ? h("button", { type: "button", class: "small", onclick: open, text: "Show alignment" })
          : null,
      ),
      h(
        "dl",
        {},
        line("Source", row.s),
        line("Reference", system < 0 ? row.r : marked(row.r, base)),
        shown.map((n) =>
          line([set.systems[n], bleu(row.b[n])], [...marked(row.h[n], base), lost(row.h[n], base)]),
        ),
      ),
    );
  }
  function show() {
    const set = translations[overview.set.value];
    byId("translations-section").hidden = !set;
    if (!set) return;
    for (const unit of document.querySelectorAll("#translations-section .unit")) unit.textContent = set.unit;
    const columns = [...set.systems.keys()].filter((n) => overview.on.has(set.systems[n]));
    const [least, most] = [Number(controls.least.value) || 0, Number(controls.most.value) || Infinity];
    const found = chosen(set.rows, {
      least,
      most,
      text: controls.find.value.trim(),
      sort: controls.order.value,
      columns,
    });
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(page, pages - 1);
    const kept =
      set.rows.length < set.total
        ? ` (this page has ${set.rows.length} of ${set.total}, spread over the lengths)`
        : "";
    byId("translations-count").textContent =
      `${found.length} of ${set.total} sentences${kept}; page ${page + 1} of ${pages}`;
    previous.disabled = page === 0;
    next.disabled = page >= pages - 1;
    byId("translations-list").replaceChildren(
      ...found.slice(page * PAGE, (page + 1) * PAGE).map((row) => entry(row, columns, set)),
    );
  }
  const first = () => {
    page = 0;
    show();
  };
  for (const control of Object.values(controls)) control.addEventListener("input", first);
  previous.addEventListener("click", () => {
    page -= 1;
    show();
  });
  next.addEventListener("click", () => {
    page += 1;
    show();
  });
  overview.listen(show);
  overview.set.addEventListener("change", () => {
    against();
    first();
  });
  against();
  show();
}
