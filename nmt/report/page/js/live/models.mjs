// The models of the page, each in a worker of its own.

import { inflate } from "../bytes.mjs";
import { byId } from "../dom.mjs";

/** One model: `read` tells which words it knows, `translate` gives the record of a sentence. */
class LiveModel {
  constructor(address, about, bits, weights) {
    this.label = about.label;
    this.about = about;
    this.attends = about.model === "RNNsearch";
    this.turn = 0;
    this.waiting = new Map();
    this.worker = new Worker(address);
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.loaded = new Promise((resolve, reject) => {
      this.waiting.set("load", { resolve, reject });
      this.worker.addEventListener("error", (event) => reject(new Error(event.message)));
    });
    this.worker.postMessage({ kind: "load", about, bits, weights, rules: about.rules });
  }

  hear(message) {
    const key = message.turn ?? "load"; // what is said of loading belongs to no turn
    const asked = this.waiting.get(key);
    if (message.kind === "written") {
      asked?.progress?.(message.steps);
      return;
    }
    this.waiting.delete(key);
    if (message.kind === "failed") asked?.reject(new Error(message.message));
    else asked?.resolve(message);
  }

  ask(message, progress) {
    const turn = ++this.turn;
    this.worker.postMessage({ ...message, turn });
    return new Promise((resolve, reject) => this.waiting.set(turn, { resolve, reject, progress }));
  }

  /** {words, known} of a text. */
  read(text) {
    return this.ask({ kind: "read", text });
  }

  /** The record of a translation (js/inference/translation.mjs); never answered where another is asked for meanwhile. */
  async translate(text, settings, prefix, progress) {
    const since = performance.now();
    const { record } = await this.ask({ kind: "translate", text, settings, prefix }, progress);
    return record && { ...record, seconds: (performance.now() - since) / 1000 };
  }

  stop() {
    this.worker.postMessage({ kind: "stop" });
  }
}

/** Starts the models that the page holds. */
export async function startModels(live) {
  const program = await inflate(byId("live-program").textContent);
  const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
  return live.models.map((about, i) => new LiveModel(address, about, live.bits, byId(`live-${i}`).textContent));
}
