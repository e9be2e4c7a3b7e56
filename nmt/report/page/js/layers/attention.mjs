// Where the decoder's context c_i comes from (nmt/layers/attention.py): attention, or one fixed vector.
// K queries, S source length, H state, A annotation, N alignment.

import { linear, logSumExp } from "./linear.mjs";
import { SCORING } from "./scoring.mjs";

/** What may stand in place of the weights that were learnt, to see what they are good for. */
export const ATTENTION = ["trained", "uniform", "argmax"];

/** c_i = Σ_j α_ij h_j, α_i = softmax over j of score(W_a s_{i-1}, U_a h_j) (section 3.1). */
export class Attention {
  constructor({ W_a, U_a, v }, scoring, { hidden, annotation, alignment }) {
    Object.assign(this, { W_a, U_a, v, hidden, annotation, alignment });
    this.score = SCORING[scoring];
    this.mode = "trained";
  }

  /** U_a h_j: annotations (S, A) -> (S, N). */
  keys(annotations) {
    return linear(annotations, this.U_a, this.annotation);
  }

  /** States (K, H) -> contexts (K, A), weights α_ij (K, S) and log-normalisers log Z_i (K). */
  forward(state, memory) {
    const A = this.annotation;
    const K = state.length / this.hidden;
    const query = linear(state, this.W_a, this.hidden); // (K, N)
    const weights = this.score(query, memory.keys, this.alignment, this.v); // (K, S) scores, overwritten below
    const S = weights.length / K;
    const logNormaliser = new Float32Array(K);
    const contexts = new Float32Array(K * A);
    for (let k = 0; k < K; k++) {
      const row = weights.subarray(k * S, (k + 1) * S);
      logNormaliser[k] = logSumExp(row, 0, S);
      row.forEach((score, j) => { row[j] = Math.exp(score - logNormaliser[k]); });
      this.replace(row);
      const sums = new Float64Array(A);
      for (let j = 0; j < S; j++) for (let i = 0; i < A; i++) sums[i] += row[j] * memory.annotations[j * A + i];
      contexts.set(sums, k * A);
    }
    return { contexts, weights, logNormaliser };
  }

  /** Other weights of a step (S), where they are asked for. */
  replace(row) {
    if (this.mode === "uniform") row.fill(1 / row.length);
    if (this.mode === "argmax") {
      const most = row.indexOf(Math.max(...row));
      row.fill(0);
      row[most] = 1;
    }
  }
}

/** c_i = →h_Tx for every i: the model without attention (section 2.1, appendix A.2.1). */
export class FixedContext {
  keys() {
    return null;
  }

  forward(state, memory) {
    const H = memory.summary.length;
    const contexts = new Float32Array(state.length);
    for (let k = 0; k * H < state.length; k++) contexts.set(memory.summary, k * H);
    return { contexts, weights: null, logNormaliser: null };
  }
}
