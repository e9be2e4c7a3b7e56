// The decoder of both models, step by step (nmt/layers/decoder.py; appendix A.2.2).
// K hypotheses, H state, A annotation, E embedding, M maxout.

import { GatedUnit } from "./gated_unit.mjs";
import { linear, rowsOf, tanh } from "./linear.mjs";
import { Readout } from "./readout.mjs";

/** s_i = f(s_{i-1}, E y, c_i) by the gated unit, s_0 = tanh(W_s summary + b), with readout t_i.
 *
 * The word y is y_{i-1} with stateInput "previous" (the paper as printed) and y_i with "current"; E y_0 = 0.
 * A state is {hidden: s_{i-1} (K, H), word: E y_{i-1} (K, E)}.
 */
export class Decoder {
  constructor(tensors, context, stateInput, sizes) {
    this.context = context;
    this.stateInput = stateInput;
    this.table = tensors.embedding; // (V, E)
    this.W_s = tensors.W_s;
    this.bias_s = tensors.bias_s;
    this.hidden = sizes.hidden;
    this.embedding = sizes.embedding;
    this.unit = new GatedUnit(tensors.unit, sizes);
    this.readout = new Readout(tensors.readout, sizes);
  }

  /** What an encoder gave, with the keys that do not depend on the decoder's state. */
  memory({ annotations, summary }) {
    return { annotations, summary, keys: this.context.keys(annotations) };
  }

  initial(memory) {
    const hidden = linear(memory.summary, this.W_s, this.hidden, this.bias_s).map(tanh);
    return { hidden, word: new Float32Array(this.embedding) };
  }

  /** The readouts t_i (K, M), and c_i with its weights, from s_{i-1} and y_{i-1}. */
  step(state, memory) {
    const attended = this.context.forward(state.hidden, memory);
    return { readout: this.readout.forward(state.hidden, state.word, attended.contexts), attended };
  }

  /** The states after the words y_i (K) were written, with the c_i of the same step. */
  advance(state, attended, words) {
    const word = rowsOf(this.table, this.embedding, words);
    const read = this.stateInput === "current" ? word : state.word;
    return { hidden: this.unit.forward(state.hidden, this.unit.project(read), attended.contexts), word };
  }

  /** Hypothesis k becomes the former hypothesis parents[k]. */
  reorder(state, attended, parents) {
    const A = attended.contexts.length / (state.hidden.length / this.hidden);
    return [
      { hidden: rowsOf(state.hidden, this.hidden, parents), word: rowsOf(state.word, this.embedding, parents) },
      { contexts: rowsOf(attended.contexts, A, parents) },
    ];
  }
}
