// Runs one model in its own thread, so that the page never waits for it. A message {kind, ...} comes with
// a port. The worker sends to it {answer} or {error}, and {steps, words} as the progress of a translation.

import { inflateBytes } from "../data.mjs";
import { readModel } from "./translation.mjs";

const PATIENCE = 40; // milliseconds of work between two checks for messages

let trained = null;
let turn = 0; // number of the latest translation: a new one ends the previous one

const ANSWERS = {
  async load({ model }) {
    trained = readModel(await inflateBytes(model));
    const { model: name, languages, search, dictionary, scoring } = trained.about;
    const { words } = trained.about.source_vocabulary;
    return { model: name, languages, search, scoring, words, dictionary: Boolean(dictionary) };
  },
  read: ({ text }) => trained.read(text),
  stop: () => {
    turn++;
  },
  /** Runs a translation to its end; gives no answer if a newer one is requested meanwhile. */
  async translate({ text, settings, prefix }, port) {
    const own = ++turn;
    const job = trained.translate(text, settings, prefix);
    let since = performance.now();
    for (let steps = 1; own === turn; steps++) {
      const { done, value } = job.next();
      if (done) return value;
      if (performance.now() - since < PATIENCE) continue;
      port.postMessage({ steps, words: trained.spell(value) });
      await new Promise((resolve) => {
        setTimeout(resolve);
      });
      since = performance.now();
    }
    return undefined;
  },
};

addEventListener("message", async ({ data: { kind, ...given }, ports: [port] }) => {
  try {
    const answer = await ANSWERS[kind](given, port);
    if (answer !== undefined) port.postMessage({ answer });
  } catch (error) {
    port.postMessage({ error: String(error?.message ?? error) });
  }
});
