// Builds Vega-Lite specifications from the rows of series.mjs. The field names are constants; the text of a
// user, such as a run's name, is only data.

export const MANY = 8; // largest number of lines that are all in colour; of more lines, some are grey

export const DASHES = [
  [1, 0],
  [7, 3],
  [2, 3],
  [9, 3, 2, 3],
  [12, 4],
  [4, 2],
];
export const SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"];

/** The scales that give a series its colour, dash and shape; the legend is drawn by the page itself. */
function encodings(names, look, theme) {
  const of = (table, pick) => names.map((name) => table[pick(look(name)) % table.length]);
  const fixed = { field: "series", type: "nominal", legend: null };
  return {
    color: { ...fixed, scale: { domain: names, range: of(theme.colours, (l) => l.colour) } },
    strokeDash: { ...fixed, scale: { domain: names, range: of(DASHES, (l) => l.variant) } },
    shape: { ...fixed, scale: { domain: names, range: of(SHAPES, (l) => l.colour) } },
  };
}

function config(theme) {
  const text = {
    labelColor: theme.text,
    titleColor: theme.text,
    labelFont: theme.font,
    titleFont: theme.font,
  };
  return {
    background: null,
    font: theme.font,
    view: { stroke: null },
    axis: {
      ...text,
      labelFontSize: 12,
      titleFontSize: 13,
      titleFontWeight: "normal",
      gridColor: theme.grid,
      domainColor: theme.axis,
      tickColor: theme.axis,
    },
  };
}

const TICKS = [1, 2, 5, 10, 20, 30, 50, 80, 120, 200, 400, 800];

// Vega's own logarithmic axis leaves out most labels
const lengthAxis = ([first, last]) => ({
  values: TICKS.filter((tick) => first <= tick && tick <= last),
  labelExpr: "datum.value",
  grid: false,
  labelOverlap: "greedy",
});

/** A row of each coloured curve, where its name stands: in the upper half of the curves `above` the line. */
function namedRows(curves, above) {
  const coloured = curves.filter(({ grey }) => !grey);
  const own = [...new Set(coloured.map(({ series }) => series))].map((name) =>
    coloured.filter(({ series }) => series === name),
  );
  const rows = own.map((points) => points[Math.floor(0.5 * points.length)]);
  rows.sort((a, b) => b.value - a.value);
  return rows.filter((_, n) => n < Math.ceil(rows.length / 2) === above);
}

/** Scores over length: curves with bands, dashed curves for a constant error rate, points for buckets,
 * vertical lines at the longest training sentences (`caps`), and a horizontal line at the value `level`. */
function lengthPanel({
  curves,
  constant = [],
  buckets = [],
  caps,
  names,
  look,
  title,
  digits,
  bands,
  zero,
  level,
  unit,
  domain,
  width,
  height,
  theme,
}) {
  const { color, strokeDash, shape } = encodings(names, look, theme);
  const axis = { ...lengthAxis(domain), title: null };
  const x = {
    field: "words",
    type: "quantitative",
    scale: { type: "log", domain, nice: false, clamp: true },
    axis,
  };
  const y = { field: "value", type: "quantitative", title, scale: { zero, nice: true } };
  const number = (field, name) => ({ field, title: name, format: `.${digits}f` });
  const ends = [number("value", title), number("low", "Low"), number("high", "High")];
  const tooltip = [
    { field: "series", title: "Run" },
    { field: "bucket", title: unit },
    ...ends,
    { field: "note", title: "Interval" },
    { field: "sentences", title: "Sentences" },
  ];
  const along = [tooltip[0], { field: "words", title: unit, format: ".0f" }, ...ends];
  const layer = [];
  if (caps.length)
    layer.push({
      data: { values: caps.map((words) => ({ words })) },
      mark: { type: "rule", color: theme.text, strokeDash: DASHES[2], opacity: 0.6 },
      encoding: { x, tooltip: { field: "words", title: "Longest training sentence" } },
    });
  if (level !== undefined)
    layer.push({
      data: { values: [{ level }] },
      mark: { type: "rule", color: theme.text, opacity: 0.6 },
      encoding: { y: { field: "level", type: "quantitative" } },
    });
  const banded = bands ? curves.filter((row) => row.low !== null && row.high !== null) : [];
  if (banded.length)
    layer.push({
      data: { values: banded },
      mark: { type: "area", opacity: 0.16 },
      encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color },
    });
  if (constant.length)
    layer.push({
      data: { values: constant },
      mark: { type: "line", strokeWidth: 1.2, strokeDash: [5, 3] },
      encoding: { x, y, color },
    });
  const pointed = "datum.series === hovered";
  const ink = { ...color, condition: { test: `datum.grey && ${pointed}`, value: theme.text } };
  const strokeWidth = { value: 2.2, condition: { test: pointed, value: 4 } };
  if (curves.length)
    layer.push({
      data: { values: curves },
      mark: { type: "line" },
      encoding: { x, y, color: ink, strokeDash, strokeWidth, tooltip: along },
    });
  if (buckets.length)
    layer.push({
      data: { values: buckets },
      mark: { type: "point", filled: true, size: 55, opacity: 1 },
      encoding: { x, y, color, shape, tooltip },
    });
  for (const above of names.length <= MANY && height > 200 ? [true, false] : []) {
    const values = namedRows(curves, above);
    const style = { fontSize: 14, fontWeight: 600, clip: true, limit: 0.8 * width };
    const mark = { type: "text", dy: above ? -16 : 18, ...style };
    const encoding = { x, y, color, text: { field: "series" } };
    if (values.length) layer.push({ data: { values }, mark, encoding });
  }
  return { width, height, layer };
}

/** The chart over length: a score, below it the sentences per bucket, and below them `parts`, two scores side
 * by side. The line of the series `hovered` (a Vega signal) is thick; a grey line gets the text's colour. */
export function lengthSpec({ counts, parts = [], unit, axis, width, theme, ...main }) {
  const starts = [...main.curves, ...counts].map((row) => row.words);
  const domain = [0.8 * Math.min(...starts), 1.05 * Math.max(...starts, ...counts.map((row) => row.end))];
  const { caps, names, look, bands } = main;
  const shared = { caps, names, look, bands, unit, domain, theme };
  const end = { type: "quantitative", scale: { type: "log", domain, nice: false, clamp: true } };
  const bars = {
    width,
    height: 46,
    data: { values: counts },
    encoding: {
      x: { ...end, field: "from", axis: { ...lengthAxis(domain), title: axis } },
    },
    layer: [
      {
        mark: { type: "bar", color: theme.bar },
        encoding: {
          x2: { field: "end" },
          y: {
            field: "sentences",
            type: "quantitative",
            axis: { title: "Sentences", tickCount: 2, grid: false },
          },
          y2: { datum: 0 },
        },
      },
      {
        mark: { type: "text", dy: -6, color: theme.text, fontSize: 11 },
        encoding: {
          x: { ...end, field: "words" },
          y: { field: "sentences", type: "quantitative" },
          text: { field: "sentences", type: "quantitative" },
        },
      },
    ],
  };
  const narrow = width < 500;
  // many lines: charts are lower, so that the table below them, which is their legend, stays visible
  const many = main.names.length > MANY;
  const beside = parts.map((part) =>
    lengthPanel({ ...shared, ...part, width: narrow ? width : width / 2 - 50, height: many ? 110 : 160 }),
  );
  return {
    description: `${main.title} by ${axis}, ${main.names.length} lines`,
    config: config(theme),
    params: [{ name: "hovered", value: "" }],
    spacing: 10,
    vconcat: [
      lengthPanel({ ...main, ...shared, width, height: many ? 240 : 300 }),
      bars,
      ...(narrow ? beside : beside.length ? [{ hconcat: beside, spacing: 20 }] : []),
    ],
  };
}

/** The chart of training: one line per series over the updates. */
export function trainingSpec({ rows, names, look, title, width, theme }) {
  const { color, strokeDash } = encodings(names, look, theme);
  const tooltip = [
    { field: "series", title: "Run" },
    { field: "update", title: "Update", format: "," },
    { field: "value", title, format: ".3f" },
  ];
  const x = {
    field: "update",
    type: "quantitative",
    title: "Updates",
    axis: { format: "~s", tickCount: Math.max(3, Math.round(width / 110)), grid: false },
  };
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
