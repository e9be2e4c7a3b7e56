// The models of the page, each in its own worker.

import { unpack } from "../data.mjs";
import { byId } from "../dom.mjs";

/** One model: `read` tells which words it knows, `translate` gives the record of a sentence. */
class LiveModel {
  constructor(address, label) {
    this.label = label;
    this.worker = new Worker(address);
  }

  /** The answer of the worker (js/model/worker.mjs) to a message. */
  ask(message, progress) {
    const { port1, port2 } = new MessageChannel();
    this.worker.postMessage(message, [port2]);
    return new Promise((resolve, reject) => {
      port1.onmessage = ({ data: { answer, error, steps, words } }) => {
        if (steps !== undefined) progress(steps, words);
        else if (error !== undefined) reject(new Error(error));
        else resolve(answer);
      };
      this.worker.onerror = (event) => reject(new Error(event.message));
    });
  }

  async load(model) {
    this.about = await this.ask({ kind: "load", model });
    this.attends = this.about.model === "RNNsearch";
    return this;
  }

  /** {words, known} of a text: its words, and for each word whether the model knows it. */
  read(text) {
    return this.ask({ kind: "read", text });
  }

  /** The record of a translation (js/model/translation.mjs). There is no answer if a newer translation is
   * requested meanwhile. */
  async translate(text, settings, prefix, progress) {
    const since = performance.now();
    const record = await this.ask({ kind: "translate", text, settings, prefix }, progress);
    return record && { ...record, seconds: (performance.now() - since) / 1000 };
  }

  stop() {
    this.ask({ kind: "stop" });
  }
}

/** Loads the models of the page, by their labels. */
export async function startModels(labels) {
  const address = URL.createObjectURL(new Blob([await unpack("live-program")], { type: "text/javascript" }));
  return Promise.all(
    labels.map((label, n) => new LiveModel(address, label).load(byId(`live-${n}`).textContent)),
  );
}
