// Scoring functions (nmt/layers/scoring.py): query (K, N), keys (S, N) -> scores (K, S). N alignment.

import { linear, tanh } from "./linear.mjs";

/** e_ij = v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2). */
export function additive(query, keys, N, v) {
  const K = query.length / N;
  const S = keys.length / N;
  const scores = new Float32Array(K * S);
  for (let k = 0; k < K; k++) {
    for (let j = 0; j < S; j++) {
      let sum = 0;
      for (let i = 0; i < N; i++) sum += v[i] * tanh(query[k * N + i] + keys[j * N + i]);
      scores[k * S + j] = sum;
    }
  }
  return scores;
}

/** e_ij = q_iᵀ k_j. */
export function dot(query, keys, N) {
  return linear(query, keys, N);
}

/** e_ij = q_iᵀ k_j / √N. */
export function scaledDot(query, keys, N) {
  return linear(query, keys, N).map((score) => score / Math.sqrt(N));
}

export const SCORING = { additive, dot, scaled_dot: scaledDot };
