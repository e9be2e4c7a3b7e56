// A link that holds a sentence and the settings it is translated with: #live=<text>&beam=...&attention=...

const KEYS = ["beam", "attention", "unknown", "first", "second"];

export function writeLink(text, settings) {
  return `#${new URLSearchParams({ live: text, ...Object.fromEntries(KEYS.map((key) => [key, String(settings[key] ?? "")])) })}`;
}

/** {text, settings: those that the link names}; null where it leads to no sentence. */
export function readLink(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const text = parts.get("live");
  if (text === null) return null;
  return { text, settings: Object.fromEntries(KEYS.filter((key) => parts.get(key)).map((key) => [key, parts.get(key)])) };
}
