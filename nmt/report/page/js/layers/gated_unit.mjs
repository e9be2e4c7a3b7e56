// The gated hidden unit (nmt/layers/gated_unit.py; appendix A.1.1). K rows, E embedding, H state, A annotation.

import { linear, sigmoid, tanh } from "./linear.mjs";

/** s' = (1 - z)∘s + z∘s̃ with
 *
 *     z = σ(W_z e + U_z s + C_z c + b_z)
 *     r = σ(W_r e + U_r s + C_r c + b_r)
 *     s̃ = tanh(W e + U (r∘s) + C c + b)
 *
 * The parts of a stacked matrix stand in the order z, r, s̃: W (3H, E), C (3H, A), U_gates (2H, H), U (H, H), bias (3H).
 */
export class GatedUnit {
  constructor({ W, U_gates, U, C, bias }, { embedding, hidden, annotation }) {
    Object.assign(this, { W, U_gates, U, C, bias, embedding, hidden, annotation });
  }

  /** [W_z; W_r; W] e + bias: words (K, E) -> (K, 3H). */
  project(words) {
    return linear(words, this.W, this.embedding, this.bias);
  }

  /** The next states (K, H) from s (K, H), projected words (K, 3H) and c (K, A), or null without a context. */
  forward(state, projected, context = null) {
    const H = this.hidden;
    const K = state.length / H;
    const given = context === null ? projected : linear(context, this.C, this.annotation); // (K, 3H)
    if (context !== null) for (let i = 0; i < given.length; i++) given[i] += projected[i];
    const fromState = linear(state, this.U_gates, H); // (K, 2H)
    const z = new Float32Array(K * H);
    const reset = new Float32Array(K * H); // r∘s
    for (let k = 0; k < K; k++) {
      for (let i = 0; i < H; i++) {
        z[k * H + i] = sigmoid(given[3 * H * k + i] + fromState[2 * H * k + i]);
        reset[k * H + i] = sigmoid(given[3 * H * k + H + i] + fromState[2 * H * k + H + i]) * state[k * H + i];
      }
    }
    const next = linear(reset, this.U, H);
    for (let k = 0; k < K; k++) {
      for (let i = 0; i < H; i++) {
        const at = k * H + i;
        next[at] = (1 - z[at]) * state[at] + z[at] * tanh(given[3 * H * k + 2 * H + i] + next[at]);
      }
    }
    return next;
  }
}
