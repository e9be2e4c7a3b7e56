// From the runs that are switched on to the lines of a chart.

/** Labels of the runs that pass every filter: `off` is {key: Set of values switched off}. */
export function passing(overview, off) {
  const passes = (index) => overview.filters.every((filter) => !off[filter.key]?.has(filter.values[index]));
  return overview.runs.filter((_, index) => passes(index)).map((run) => run.label);
}

/** Look of each run and each group: a colour a group; dash and shape tell apart seeds, and groups of one colour. */
export function looks(overview, colours) {
  const nth = new Map();
  const runs = new Map();
  for (const run of overview.runs) {
    const seed = nth.get(run.group) ?? 0;
    nth.set(run.group, seed + 1);
    runs.set(run.label, { colour: run.group % colours, variant: Math.floor(run.group / colours) + seed });
  }
  const groups = overview.groups.map((_, index) => ({ colour: index % colours, variant: Math.floor(index / colours) }));
  return { runs, groups };
}

export const mean = (values) => values.reduce((total, value) => total + value, 0) / values.length;

/** The training caps of the runs that are on, each once. */
export const caps = (overview, on) => [...new Set(overview.runs.filter((run) => on.has(run.label) && run.cap).map((run) => run.cap))];

/** The lengths of a bucket: its point stands in their middle; the open bucket is drawn a fifth longer than its start. */
function place({ bucket, from, to }) {
  const end = to ?? 1.2 * from;
  return { bucket, from, end, words: (from + end) / 2 };
}

/** Rows of one array a column, as the page's data have curves: {words, value, low, high}. */
const points = ({ words, value, low, high }, series) =>
  words.map((length, n) => ({ series, words: length, value: value[n], low: low?.[n] ?? null, high: high?.[n] ?? null }));

/** Rows of a chart of a score: `curves` and dashed `constant` {series, words, value, low, high}, `buckets` also {bucket, from, end, sentences}. */
export function scoreRows(overview, name, metric, on, grouped) {
  const set = overview.sets[name];
  const group = (label) => overview.groups[overview.runs.find((run) => run.label === label).group];
  const members = new Map();
  for (const { label } of overview.runs) members.set(group(label), [...(members.get(group(label)) ?? []), label]);
  const rows = { curves: [], constant: [], buckets: [] };
  for (const curve of set.curves[metric] ?? []) {
    const labels = curve.kind === "seed" ? [curve.name] : members.get(curve.name) ?? [];
    if (!labels.some((label) => on.has(label))) continue;
    const alone = labels.length === 1 && !grouped;
    const series = alone ? labels[0] : curve.name;
    if (curve.kind === "score" && (grouped || alone)) rows.curves.push(...points(curve, series));
    if (curve.kind === "seed" && !grouped) rows.curves.push(...points(curve, series));
    if (curve.kind === "constant" && (grouped || alone)) rows.constant.push(...points(curve, series));
  }
  const cells = new Map();
  for (const row of set.buckets) {
    if (!on.has(row.run) || !row[metric]) continue;
    const series = grouped ? group(row.run) : row.run;
    const key = `${series}\n${row.bucket}`;
    cells.set(key, [...(cells.get(key) ?? []), { row, series }]);
  }
  for (const found of cells.values()) {
    const [{ row, series }] = found;
    const [, low, high, sentences] = row[metric];
    const several = found.length > 1;
    const value = mean(found.map((each) => each.row[metric][0]));
    const note = several ? `mean of ${found.length} runs` : low === null ? "" : `${set.level} interval over sentences`;
    rows.buckets.push({ ...place(row), series, value, low: several ? null : low, high: several ? null : high, sentences, note });
  }
  rows.buckets.sort((a, b) => a.from - b.from);
  return rows;
}

/** Curves of `difference` or `ratio` of every group to a control. */
export function comparedRows(overview, name, metric, on, kind, control) {
  const shown = new Set(overview.runs.filter((run) => on.has(run.label)).map((run) => overview.groups[run.group]));
  const turn = kind === "ratio" ? (value) => 1 / value : (value) => -value;
  return (overview.sets[name].curves[metric] ?? []).flatMap((curve) => {
    if (curve.kind !== kind) return [];
    if (curve.other === control && shown.has(curve.name)) return points(curve, curve.name);
    if (curve.name !== control || !shown.has(curve.other)) return [];
    return points({ words: curve.words, value: curve.value.map(turn), low: curve.high.map(turn), high: curve.low.map(turn) }, curve.other);
  });
}

/** The buckets of a set, shortest first, with the sentences that a score is of: the most of any run. */
export function bucketCounts(overview, name, metric) {
  const counts = new Map();
  for (const row of overview.sets[name].buckets) {
    const sentences = row[metric]?.[3] ?? 0;
    if (sentences >= (counts.get(row.bucket)?.sentences ?? 0)) counts.set(row.bucket, { ...place(row), sentences });
  }
  return [...counts.values()].sort((a, b) => a.from - b.from);
}

/** Rows of a training chart: {series, update, value}, averaged over the runs of a group where asked for. */
export function trainingRows(overview, metric, on, grouped) {
  const cells = new Map();
  for (const run of overview.runs) {
    if (!on.has(run.label)) continue;
    const series = grouped ? overview.groups[run.group] : run.label;
    for (const point of run.history) {
      const value = point[metric];
      if (value === null || value === undefined) continue;
      const key = `${point.update} ${series}`;
      if (!cells.has(key)) cells.set(key, { series, update: point.update, values: [] });
      cells.get(key).values.push(value);
    }
  }
  return [...cells.values()]
    .map(({ series, update, values }) => ({ series, update, value: mean(values), runs: values.length }))
    .sort((a, b) => a.update - b.update);
}
