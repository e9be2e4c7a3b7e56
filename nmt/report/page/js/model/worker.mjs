// One model in a thread of its own, so that the page never waits for it. A message is {kind, ...} with a port for its answer:
// {answer}, or {error}; {steps} tells how far a translation is.

import { inflateBytes } from "../data.mjs";
import { readModel } from "./translation.mjs";

const PATIENCE = 40; // milliseconds of work before messages are looked at

let trained = null;
let turn = 0; // of the translation that is wanted: each ends the one before it

const ANSWERS = {
  async load({ model }) {
    trained = readModel(await inflateBytes(model));
    const { model: name, languages, search, dictionary } = trained.about;
    return { model: name, languages, search, dictionary: Boolean(dictionary) };
  },
  read: ({ text }) => trained.read(text),
  stop: () => { turn++; },
  /** Runs a translation to its end; no answer where another one is asked for meanwhile. */
  async translate({ text, settings, prefix }, port) {
    const own = ++turn;
    const job = trained.translate(text, settings, prefix);
    let since = performance.now();
    for (let steps = 1; own === turn; steps++) {
      const { done, value } = job.next();
      if (done) return value;
      if (performance.now() - since < PATIENCE) continue;
      port.postMessage({ steps });
      await new Promise((resolve) => { setTimeout(resolve); });
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
