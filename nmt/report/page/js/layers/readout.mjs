// The deep output with a maxout layer (nmt/layers/readout.py; appendix A.2.2). K rows, M maxout.

import { linear } from "./linear.mjs";

/** t_i = max over pairs of t̃_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i + b; unit j is the larger of entries 2j, 2j + 1. */
export class Readout {
  constructor({ U_o, V_o, C_o, bias }, { hidden, embedding, annotation }) {
    Object.assign(this, { U_o, V_o, C_o, bias, hidden, embedding, annotation });
  }

  /** s_{i-1} (K, H), E y_{i-1} (K, E), c_i (K, A) -> t_i (K, M). */
  forward(state, word, context) {
    const fromState = linear(state, this.U_o, this.hidden, this.bias); // (K, 2M)
    const fromWord = linear(word, this.V_o, this.embedding);
    const fromContext = linear(context, this.C_o, this.annotation);
    const pair = (at) => fromState[at] + fromWord[at] + fromContext[at];
    return Float32Array.from({ length: fromState.length / 2 }, (_, j) => Math.max(pair(2 * j), pair(2 * j + 1)));
  }
}
