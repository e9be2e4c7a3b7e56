// Vega-Lite specifications of how scores fall with length.

import { DASHES, config, encodings } from "./charts.mjs";

/** Points of buckets and the lines fitted to them, over a numeric length; a rule stands at each cap. */
export function fallsSpec({ points, lines, caps, names, look, title, digits, zero, width, theme, words }) {
  const { color, strokeDash, shape } = encodings(names, look, theme);
  const x = { field: "words", type: "quantitative", title: `${words} a sentence`, scale: { zero: true, nice: false } };
  const y = { field: "value", type: "quantitative", title, scale: { zero, nice: true } };
  const tooltip = [
    { field: "series", title: "Runs" },
    { field: "words", title: "Mean length", format: ".1f" },
    { field: "value", title, format: `.${digits}f` },
    { field: "sentences", title: "Sentences" },
  ];
  return {
    description: `${title} by number of ${words} with fitted lines, ${names.length} groups`,
    config: config(theme),
    width,
    height: 280,
    layer: [
      { data: { values: caps }, mark: { type: "rule", color: theme.axis, strokeDash: DASHES[2] }, encoding: { x } },
      { data: { values: lines }, mark: { type: "line", strokeWidth: 2.2 }, encoding: { x, y, color, strokeDash, detail: { field: "piece" } } },
      { data: { values: points }, mark: { type: "point", filled: true, size: 40, opacity: 0.75 }, encoding: { x, y, color, shape, tooltip } },
    ],
  };
}

/** A figure of each group against the value of a key. */
export function sweepSpec({ rows, places, names, look, title, key, digits, width, theme }) {
  const { color, shape } = encodings(names, look, theme);
  const x = { field: "place", type: "ordinal", title: key, scale: { domain: places, padding: 0.5 }, axis: { labelAngle: 0 } };
  const y = { field: "value", type: "quantitative", title, scale: { zero: false, nice: true } };
  const tooltip = [
    { field: "series", title: "Runs" },
    { field: "place", title: key },
    ...["value", "low", "high"].map((field) => ({ field, title: field === "value" ? title : field, format: `.${digits}f` })),
  ];
  return {
    description: `${title} by ${key}, ${names.length} groups`,
    config: config(theme),
    width,
    height: 220,
    data: { values: rows },
    layer: [
      { transform: [{ filter: "isValid(datum.low) && isValid(datum.high)" }], mark: { type: "rule", strokeWidth: 1.6 }, encoding: { x, y: { ...y, field: "low" }, y2: { field: "high" }, color } },
      { mark: { type: "point", filled: true, size: 70, opacity: 1 }, encoding: { x, y, color, shape, tooltip } },
    ],
  };
}
