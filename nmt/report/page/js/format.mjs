// Numbers and words as people read them.

const MINUS = "\u2212";
const THIN = "\u202f";

/** A number with fixed decimals and a true minus sign; a dash for none. */
export function fixed(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? MINUS + text : text;
}

/** With its sign, as differences are written. */
export function signed(value, digits = 2) {
  return value > 0 ? `+${fixed(value, digits)}` : fixed(value, digits);
}

/** A share as a whole per cent; less than one half of one is said to be so. */
export function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.5) return `<1${THIN}%`;
  return `${Math.round(value)}${THIN}%`;
}

export function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A p-value: three decimals, or that it is below the last of them; a dash for none. */
export function pValue(value) {
  if (value === null) return "–";
  return value < 0.001 ? "<0.001" : value.toFixed(3);
}
