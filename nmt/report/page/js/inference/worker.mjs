// One model in a thread of its own, so that the page never waits for it. What the page says and what it is told:
//
//   {kind: "load", about, bits, weights, rules}       {kind: "loaded"}
//   {kind: "read", turn, text}                        {kind: "read", turn, words, known}
//   {kind: "translate", turn, text, settings, prefix} {kind: "written", turn, steps} ..., {kind: "translated", turn, record}
//   {kind: "stop"}                                    {kind: "failed", turn, message} where something went wrong
//
// A translation that is asked for ends the one before it.

import { inflateBytes } from "../bytes.mjs";
import { unpackWeights } from "../models/weights.mjs";
import { TrainedModel } from "./translation.mjs";

const PATIENCE = 40; // milliseconds of work before messages are looked at

let trained = null;
let turn = 0;

const pause = () => new Promise((resolve) => { setTimeout(resolve); });

/** Runs a generator to its end; null where another translation was asked for meanwhile. */
async function run(job, own) {
  let since = performance.now();
  for (let steps = 1; ; steps++) {
    const { done, value } = job.next();
    if (done) return value;
    if (performance.now() - since < PATIENCE) continue;
    postMessage({ kind: "written", turn: own, steps });
    await pause();
    if (own !== turn) return null;
    since = performance.now();
  }
}

async function answer(message) {
  if (message.kind === "load") {
    const tensors = unpackWeights(await inflateBytes(message.weights), message.about, message.bits);
    trained = new TrainedModel(message.about, tensors, message.rules);
    postMessage({ kind: "loaded" });
  } else if (message.kind === "read") {
    postMessage({ kind: "read", turn: message.turn, ...trained.read(message.text) });
  } else if (message.kind === "stop") {
    turn = -1;
  } else if (message.kind === "translate") {
    turn = message.turn;
    const record = await run(trained.translate(message.text, message.settings, message.prefix ?? []), message.turn);
    if (turn === message.turn) postMessage({ kind: "translated", turn: message.turn, record });
  }
}

addEventListener("message", async ({ data }) => {
  try {
    await answer(data);
  } catch (error) {
    postMessage({ kind: "failed", turn: data.turn, message: String(error?.message ?? error) });
  }
});
