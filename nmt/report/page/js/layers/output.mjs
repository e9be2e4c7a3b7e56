// The distribution over the next word (nmt/layers/output.py): p(y_i) ∝ exp(y_iᵀ W_o t_i). K rows, M maxout, V vocabulary.

import { linear, logSumExp } from "./linear.mjs";

export class Output {
  constructor({ W_o, bias }, { maxout }) {
    Object.assign(this, { W_o, bias, maxout });
    this.size = bias.length; // V
  }

  /** Log-probabilities (K, V) of all words after the readouts (K, M). */
  logProbabilities(readout) {
    const V = this.size;
    const logits = linear(readout, this.W_o, this.maxout, this.bias);
    for (let start = 0; start < logits.length; start += V) {
      const logNormaliser = logSumExp(logits, start, V);
      for (let y = start; y < start + V; y++) logits[y] = Math.min(0, logits[y] - logNormaliser);
    }
    return logits;
  }
}
