// Formats numbers and words for people.

/** A number with fixed decimals and a true minus sign; a dash if there is no number. */
export function fixed(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `\u2212${text}` : text;
}

/** A number with its sign, for differences. */
export const signed = (value, digits = 2) => (value > 0 ? `+${fixed(value, digits)}` : fixed(value, digits));

/** A fraction in whole per cent; "<1 %" if it is positive but below half a per cent. */
export function percent(share) {
  const value = 100 * share;
  return value > 0 && value < 0.5 ? "<1\u202f%" : `${Math.round(value)}\u202f%`;
}

export const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** A p-value with three decimals, or "<0.001"; a dash if there is no p-value. */
export const pValue = (value) => (value === null ? "–" : value < 0.001 ? "<0.001" : value.toFixed(3));

/** A number with its interval, if it has one. */
export const interval = ({ value, low, high }, digits) =>
  (low ?? null) === null
    ? fixed(value, digits)
    : `${fixed(value, digits)} [${fixed(low, digits)}, ${fixed(high, digits)}]`;
