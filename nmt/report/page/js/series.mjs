// From the runs that are switched on to the lines of a chart.

/** Labels of the runs that pass every filter: `chosen` is {key: Set of values switched off}. */
export function passing(overview, off) {
  return overview.runs
    .filter((_, index) =>
      overview.filters.every((filter) => !off[filter.key]?.has(filter.values[index])),
    )
    .map((run) => run.label);
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
  const groups = overview.groups.map((_, index) => ({
    colour: index % colours,
    variant: Math.floor(index / colours),
  }));
  return { runs, groups };
}

export function mean(values) {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** Standard deviation of a sample (n − 1). */
export function deviation(values) {
  const centre = mean(values);
  return Math.sqrt(values.reduce((total, v) => total + (v - centre) ** 2, 0) / (values.length - 1));
}

/** Rows of a by-length chart: {series, bucket, from, value, low, high, sentences, note}. */
export function lengthRows(overview, set, metric, on, grouped) {
  const { level } = overview.sets[set];
  const rows = overview.sets[set].rows.filter((row) => on.has(row.run) && row[metric]);
  if (!grouped) {
    return rows.map((row) => {
      const [value, low, high] = row[metric];
      return { ...place(row, metric), series: row.run, value, low, high, note: low === null ? "" : `${level} interval` };
    });
  }
  const groupOf = new Map(overview.runs.map((run) => [run.label, run.group]));
  const cells = new Map();
  for (const row of rows) {
    const key = `${groupOf.get(row.run)} ${row.bucket}`;
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(row);
  }
  return [...cells.values()].map((members) => {
    const series = overview.groups[groupOf.get(members[0].run)];
    const values = members.map((row) => row[metric][0]);
    const value = mean(values);
    if (values.length === 1) {
      const [, low, high] = members[0][metric];
      return { ...place(members[0], metric), series, value, low, high, note: low === null ? "one run" : `one run, ${level} interval` };
    }
    const sd = deviation(values);
    const note = `mean ± standard deviation of ${values.length} runs`;
    return { ...place(members[0], metric), series, value, low: value - sd, high: value + sd, note };
  });
}

const place = (row, metric) => ({ bucket: row.bucket, from: row.from, to: row.to, sentences: row[metric]?.[3] ?? 0 });

/** What the lengths of a test set count. */
export const countedWords = (set) => (set?.bucket_by === "target" ? "reference words" : "source words");

/** Where the training caps of the runs that are on stand among buckets [{from, to}] that are a place each: [{place, cap}]. */
export function capPlaces(overview, buckets, on) {
  const caps = new Set(overview.runs.filter((run) => on.has(run.label) && run.cap).map((run) => run.cap));
  return [...caps].flatMap((cap) => {
    const at = buckets.findIndex(({ from, to }) => from <= cap && to !== null && cap <= to);
    if (at < 0) return [];
    const { from, to } = buckets[at];
    return [{ cap, place: at - 0.5 + (cap - from + 1) / (to - from + 1) }];
  });
}

/** The buckets of a set in ascending order, with the sentences that a score is of: the most of any run. */
export function bucketCounts(overview, set, metric) {
  const counts = new Map();
  for (const row of overview.sets[set].rows) {
    const found = place(row, metric);
    if (found.sentences >= (counts.get(row.bucket)?.sentences ?? 0)) counts.set(row.bucket, found);
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
