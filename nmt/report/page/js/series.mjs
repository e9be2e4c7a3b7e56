// Selects the lines of a chart for the runs that are switched on.

import { mean } from "./alignment.mjs";

/** The look of each run and group, by name: one colour per group. The dash (`variant`) distinguishes
 * seeds, and groups that have the same colour. */
export function looks(overview, colours) {
  const look = (group, seed) => ({ colour: group % colours, variant: Math.floor(group / colours) + seed });
  const members = overview.groups.map(() => 0);
  return {
    groups: new Map(overview.groups.map((name, group) => [name, look(group, 0)])),
    runs: new Map(overview.runs.map(({ label, group }) => [label, look(group, members[group]++)])),
  };
}

/** The lengths of the longest training sentences of the runs that are on, each length once. */
export const caps = (overview, on) => [
  ...new Set(overview.runs.filter((run) => on.has(run.label) && run.cap).map((run) => run.cap)),
];

/** Adds a bucket's `end` (if open, 1.2 times its start) and its middle `words`, the position on the axis.
 * A bucket of a single length gets a width. */
function placed(bucket) {
  const end = bucket.to ?? 1.2 * bucket.from;
  const margin = bucket.from === end ? 0.1 * end : 0;
  return { ...bucket, from: bucket.from - margin, end: end + margin, words: (bucket.from + end) / 2 };
}

const groupOf = (overview) =>
  new Map(overview.runs.map(({ label, group }) => [label, overview.groups[group]]));

/** Groups items by a key: [[items with the first key], ...]. */
function grouped(items, key) {
  const found = new Map();
  for (const item of items) {
    if (!found.has(key(item))) found.set(key(item), []);
    found.get(key(item)).push(item);
  }
  return [...found.values()];
}

/** The content of a chart of a score on a test set: `curves`, curves at a `constant` error rate, and
 * points for `buckets`. With `together` there is one line per group of seeds, otherwise one per run. */
export function scoreRows(overview, set, score, on, together) {
  const group = groupOf(overview);
  const of = (rows) => rows.filter((row) => row.set === set && row.key === score);
  const members = (row) =>
    row.kind === "seed" ? [row.name] : [...group.keys()].filter((label) => group.get(label) === row.name);
  const lines = (kind) =>
    of(overview.curves)
      .filter((row) => row.kind === kind)
      .flatMap((row) => {
        const labels = members(row);
        const alone = labels.length === 1 && !together;
        const drawn = kind === "seed" ? !together : together || alone;
        return drawn && labels.some((label) => on.has(label))
          ? [{ ...row, series: alone ? labels[0] : row.name }]
          : [];
      });
  const named = of(overview.buckets)
    .filter(({ run }) => on.has(run))
    .map((row) => ({ ...row, series: together ? group.get(row.run) : row.run }));
  const buckets = grouped(named, (row) => `${row.series}\n${row.bucket}`).map((rows) => {
    const row = placed(rows[0]);
    if (rows.length > 1)
      return {
        ...row,
        value: mean(rows.map(({ value }) => value)),
        low: null,
        high: null,
        note: `mean of ${rows.length} runs`,
      };
    return { ...row, note: row.low === null ? "" : `${overview.level} interval over ${row.interval}` };
  });
  return { curves: [...lines("score"), ...lines("seed")], constant: lines("constant"), buckets };
}

/** Curves of the difference of every group from a control, or of a domain. */
export function comparedRows(overview, set, score, on, kind, control) {
  const group = groupOf(overview);
  const shown = new Set([...on].map((label) => group.get(label)));
  const turn = (value) => (value === null ? null : -value);
  return overview.curves
    .filter((row) => row.set === set && row.key === score && row.kind === kind)
    .flatMap((row) => {
      if (row.other === control && shown.has(row.name)) return [{ ...row, series: row.name }];
      if (row.name !== control || !shown.has(row.other)) return [];
      return [
        { ...row, series: row.other, value: turn(row.value), low: turn(row.high), high: turn(row.low) },
      ];
    });
}

/** The buckets of a set, shortest first; `sentences` is the largest number of sentences that a run has. */
export function bucketCounts(overview, set, score) {
  const rows = overview.buckets.filter((row) => row.set === set && row.key === score);
  return grouped(rows, ({ bucket }) => bucket)
    .map((same) => placed({ ...same[0], sentences: Math.max(...same.map(({ sentences }) => sentences)) }))
    .sort((a, b) => a.from - b.from);
}

/** Rows {series, update, value} of a training chart; if `together`, means over the runs of each group. */
export function trainingRows(overview, metric, on, together) {
  const points = overview.runs
    .filter(({ label }) => on.has(label))
    .flatMap(({ label, group, history }) =>
      history
        .filter((point) => (point[metric] ?? null) !== null)
        .map((point) => ({
          series: together ? overview.groups[group] : label,
          update: point.update,
          value: point[metric],
        })),
    );
  return grouped(points, ({ series, update }) => `${update}\n${series}`)
    .map((same) => ({ ...same[0], value: mean(same.map(({ value }) => value)) }))
    .sort((a, b) => a.update - b.update);
}
