// Vega-Lite specifications, from rows of series.mjs. Field names are fixed here; text of users is only ever data.

export const DASHES = [[1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 2]];
export const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"];

/** The scales that give a series its colour, dash and shape; the legend is drawn by the page itself. */
export function encodings(names, look, theme) {
  const of = (table, pick) => names.map((name) => table[pick(look(name)) % table.length]);
  const fixed = { field: "series", type: "nominal", legend: null };
  return {
    color: { ...fixed, scale: { domain: names, range: of(theme.colours, (l) => l.colour) } },
    strokeDash: { ...fixed, scale: { domain: names, range: of(DASHES, (l) => l.variant) } },
    shape: { ...fixed, scale: { domain: names, range: of(SHAPES, (l) => l.colour) } },
  };
}

export function config(theme) {
  const text = { labelColor: theme.text, titleColor: theme.text, labelFont: theme.font, titleFont: theme.font };
  return {
    background: null,
    font: theme.font,
    view: { stroke: null },
    axis: { ...text, labelFontSize: 12, titleFontSize: 13, titleFontWeight: "normal", gridColor: theme.grid, domainColor: theme.axis, tickColor: theme.axis },
  };
}

/** One line a series over length buckets, its band, rules at the training caps, and the sentences of each bucket underneath. */
export function lengthSpec({ rows, counts, caps, names, look, title, digits, bands, zero, width, theme, words }) {
  const { color, strokeDash, shape } = encodings(names, look, theme);
  const places = counts.map((_, place) => place);
  const at = new Map(counts.map(({ bucket }, place) => [bucket, place]));
  const axis = { values: places, labelExpr: `${JSON.stringify(counts.map(({ bucket }) => bucket))}[datum.value]`, labelAngle: 0, title: null, labelOverlap: true, grid: false };
  const x = { field: "place", type: "quantitative", scale: { domain: [-0.5, counts.length - 0.5], nice: false }, axis };
  const y = { field: "value", type: "quantitative", title, scale: { zero, nice: true } };
  const tooltip = [
    { field: "series", title: "Run" },
    { field: "bucket", title: "Words" },
    { field: "value", title, format: `.${digits}f` },
    { field: "low", title: "Low", format: `.${digits}f` },
    { field: "high", title: "High", format: `.${digits}f` },
    { field: "note", title: "Band" },
    { field: "sentences", title: "Sentences" },
  ];
  const band = {
    transform: [{ filter: "isValid(datum.low) && isValid(datum.high)" }],
    mark: { type: "area", opacity: 0.16, interpolate: "linear" },
    encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color },
  };
  const line = { mark: { type: "line", strokeWidth: 2.2 }, encoding: { x, y, color, strokeDash } };
  const points = { mark: { type: "point", filled: true, size: 55, opacity: 1 }, encoding: { x, y, color, shape, tooltip } };
  const cap = { data: { values: caps }, mark: { type: "rule", color: theme.text, strokeDash: DASHES[2], opacity: 0.6 }, encoding: { x, tooltip: { field: "cap", title: "Longest training sentence" } } };
  const placed = (values) => values.map((row) => ({ ...row, place: at.get(row.bucket) }));
  const bar = Math.max(4, Math.round((0.5 * width) / counts.length));
  return {
    description: `${title} by number of ${words}, ${names.length} lines`,
    config: config(theme),
    spacing: 6,
    resolve: { scale: { x: "shared" } },
    vconcat: [
      { width, height: 300, data: { values: placed(rows) }, layer: [...(caps.length ? [cap] : []), ...(bands ? [band] : []), line, points] },
      {
        width,
        height: 46,
        data: { values: placed(counts) },
        encoding: { x: { ...x, axis: { ...axis, title: `${words} a sentence` } } },
        layer: [
          { mark: { type: "bar", color: theme.bar, width: bar }, encoding: { y: { field: "sentences", type: "quantitative", axis: { title: "Sentences", tickCount: 2, grid: false } } } },
          { mark: { type: "text", dy: -6, color: theme.text, fontSize: 11 }, encoding: { y: { field: "sentences", type: "quantitative" }, text: { field: "sentences", type: "quantitative" } } },
        ],
      },
    ],
  };
}

/** One line a series over updates. */
export function trainingSpec({ rows, names, look, title, width, theme }) {
  const { color, strokeDash } = encodings(names, look, theme);
  const tooltip = [
    { field: "series", title: "Run" },
    { field: "update", title: "Update", format: "," },
    { field: "value", title, format: ".3f" },
  ];
  const x = { field: "update", type: "quantitative", title: "Updates", axis: { format: "~s", tickCount: Math.max(3, Math.round(width / 110)), grid: false } };
  const y = { field: "value", type: "quantitative", title, scale: { zero: false } };
  return {
    description: `${title} over updates, ${names.length} lines`,
    config: config(theme),
    width,
    height: 260,
    data: { values: rows },
    encoding: { x, y },
    layer: [
      { mark: { type: "line", strokeWidth: 2 }, encoding: { color, strokeDash } },
      { mark: { type: "point", filled: true, size: 30, opacity: 1 }, encoding: { color, tooltip } },
    ],
  };
}
