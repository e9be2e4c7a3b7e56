// The network of both models (nmt/layers) for one sentence: it encodes the source, then predicts words.
// Sizes: S source, K hypotheses, H state, A annotation, E embedding, N alignment, M maxout, V vocabulary.

import { linear, logSumExp, rowsOf, sigmoid, tanh, transposed } from "./linear.mjs";

/** Scoring functions (nmt/layers/scoring.py): query (K, N), keys (S, N), v (N) -> scores e_ij (K, S). */
const SCORING = {
  /** v_aᵀ tanh(q_i + k_j), the alignment model of the paper (section A.1.2). */
  additive(query, keys, v) {
    const N = v.length;
    const [K, S] = [query.length / N, keys.data.length / N];
    const scores = new Float32Array(K * S);
    for (let k = 0; k < K; k++) {
      for (let j = 0; j < S; j++) {
        let sum = 0;
        for (let i = 0; i < N; i++) sum += v[i] * tanh(query[k * N + i] + keys.data[j * N + i]);
        scores[k * S + j] = sum;
      }
    }
    return scores;
  },
  dot: (query, keys) => linear(query, keys),
  scaled_dot: (query, keys) => linear(query, keys).map((score) => score / Math.sqrt(keys.columns)),
};

/** The gated hidden unit (nmt/layers/gated_unit.py; appendix A.1.1): s' = (1 - z)∘s + z∘s̃ with
 *
 *     z = σ(W_z e + U_z s + C_z c + b_z)
 *     r = σ(W_r e + U_r s + C_r c + b_r)
 *     s̃ = tanh(W e + U (r∘s) + C c + b)
 *
 * The parts of a stacked matrix stand in the order z, r, s̃: W (3H, E), C (3H, A), U_gates (2H, H), U (H,
 * H), bias (3H).
 *
 * @param state s (K, H)
 * @param given W e + C c + bias (K, 3H)
 */
function nextState({ U_gates, U }, state, given) {
  const H = U.columns;
  const K = state.length / H;
  const fromState = linear(state, U_gates); // (K, 2H)
  const z = new Float32Array(K * H);
  const reset = new Float32Array(K * H); // r∘s
  for (let k = 0; k < K; k++) {
    for (let i = 0; i < H; i++) {
      z[k * H + i] = sigmoid(given[3 * H * k + i] + fromState[2 * H * k + i]);
      reset[k * H + i] = sigmoid(given[3 * H * k + H + i] + fromState[2 * H * k + H + i]) * state[k * H + i];
    }
  }
  const next = linear(reset, U);
  for (let k = 0; k < K; k++) {
    for (let i = 0; i < H; i++) {
      const at = k * H + i;
      next[at] = (1 - z[at]) * state[at] + z[at] * tanh(given[3 * H * k + 2 * H + i] + next[at]);
    }
  }
  return next;
}

/** The states (S, H) of a gated network that starts from zeros and reads W e + bias of each word (S, 3H). */
function readWords(unit, projected, reverse) {
  const H = unit.U.columns;
  const S = projected.length / (3 * H);
  const states = new Float32Array(S * H);
  let state = new Float32Array(H);
  for (let step = 0; step < S; step++) {
    const j = reverse ? S - 1 - step : step;
    state = nextState(unit, state, projected.subarray(3 * H * j, 3 * H * (j + 1)));
    states.set(state, j * H);
  }
  return states;
}

/** RNNencdec or RNNsearch, from its tensors by their names in a checkpoint. */
export class Network {
  /**
   * @param about {scoring: null without attention, state_input: the word from which s_i is computed,
   * "previous" (y_{i-1}, as printed in the paper) or "current" (y_i)}
   * @param tensors matrices {data, columns} and vectors
   */
  constructor({ scoring, state_input: stateInput }, tensors) {
    const part = (prefix) =>
      Object.fromEntries(
        Object.entries(tensors)
          .filter(([name]) => name.startsWith(`${prefix}.`))
          .map(([name, tensor]) => [name.slice(prefix.length + 1), tensor]),
      );
    this.attends = scoring !== null;
    this.mode = "trained"; // or "uniform" or "argmax", which replace the learnt weights
    this.score = SCORING[scoring];
    this.stateInput = stateInput;
    this.sourceTable = tensors["encoder.embedding.weight"]; // (V, E)
    this.targetTable = tensors["decoder.embedding.weight"];
    this.readers = [part("encoder.units.0"), part("encoder.units.1")].filter((unit) => unit.W);
    this.decoder = part("decoder");
    this.context = part("decoder.context");
    this.unit = part("decoder.unit");
    this.readout = part("decoder.readout");
    this.output = part("output");
  }

  /** Encodes source ids (S), `</s>` last. Returns the annotations h_j (S, A), their transpose `across`
   * (A, S), the keys U_a h_j (S, N), and the summary (H) from which the decoder starts: ←h_1 with two
   * directions, →h_Tx with one direction. */
  encode(source) {
    const S = source.length;
    const words = rowsOf(this.sourceTable, source);
    // (S, H) for each direction
    const states = this.readers.map((unit, n) => readWords(unit, linear(words, unit.W, unit.bias), n === 1));
    const H = states[0].length / S;
    const A = H * states.length;
    const annotations = new Float32Array(S * A);
    states.forEach((one, n) => {
      for (let j = 0; j < S; j++) annotations.set(one.subarray(j * H, (j + 1) * H), j * A + n * H);
    });
    const summary = states.length > 1 ? states[1].slice(0, H) : states[0].slice((S - 1) * H);
    const keys = this.attends
      ? { data: linear(annotations, this.context.U_a), columns: this.context.U_a.data.length / A }
      : null;
    const across = { data: transposed(annotations, A), columns: S };
    return { annotations: { data: annotations, columns: A }, across, keys, summary };
  }

  /** The first state: {hidden: s_0 = tanh(W_s summary + b) (1, H), word: embedding of y_0, zeros (1, E)}. */
  initial({ summary }) {
    return {
      hidden: linear(summary, this.decoder.W_s, this.decoder.bias_s).map(tanh),
      word: new Float32Array(this.targetTable.columns),
    };
  }

  /** Returns {scores, attended}: log-probabilities (K, V) of the words y_i; contexts c_i (K, A), weights α_ij
   * (K, S) and log Z_i (K). */
  step(state, memory) {
    const attended = this.attends
      ? this.attend(state.hidden, memory)
      : this.fixedContext(state.hidden, memory);
    return { scores: this.logProbabilities(this.maxout(state, attended.contexts)), attended };
  }

  /** c_i = Σ_j α_ij h_j, α_i = softmax over j of score(W_a s_{i-1}, U_a h_j) (section 3.1). */
  attend(hidden, { across, keys }) {
    // the scores e_ij, which the loop turns into weights
    const weights = this.score(linear(hidden, this.context.W_a), keys, this.context["scoring.v"]);
    const S = across.columns;
    const K = weights.length / S;
    const logNormaliser = new Float32Array(K);
    for (let k = 0; k < K; k++) {
      const row = weights.subarray(k * S, (k + 1) * S);
      logNormaliser[k] = logSumExp(row);
      for (let j = 0; j < S; j++) row[j] = Math.exp(row[j] - logNormaliser[k]);
      if (this.mode === "uniform") row.fill(1 / S);
      if (this.mode === "argmax") {
        const most = row.indexOf(Math.max(...row));
        row.fill(0)[most] = 1;
      }
    }
    return { contexts: linear(weights, across), weights, logNormaliser };
  }

  /** c_i = →h_Tx for every i: the model without attention (section 2.1, appendix A.2.1). */
  fixedContext(hidden, { summary }) {
    const contexts = new Float32Array(hidden.length);
    for (let at = 0; at < contexts.length; at += summary.length) contexts.set(summary, at);
    return { contexts, weights: null, logNormaliser: null };
  }

  /** t_i (K, M): entry j is the larger of entries 2j and 2j + 1 of U_o s_{i-1} + V_o E y_{i-1} + C_o c_i + b
   * (appendix A.2.2). */
  maxout({ hidden, word }, contexts) {
    const { U_o, V_o, C_o, bias } = this.readout;
    const [fromState, fromWord, fromContext] = [
      linear(hidden, U_o, bias),
      linear(word, V_o),
      linear(contexts, C_o),
    ]; // (K, 2M)
    const pair = (at) => fromState[at] + fromWord[at] + fromContext[at];
    return Float32Array.from({ length: fromState.length / 2 }, (_, j) =>
      Math.max(pair(2 * j), pair(2 * j + 1)),
    );
  }

  /** log p(y_i) with p(y_i) ∝ exp(y_iᵀ W_o t_i + b): readouts (K, M) -> (K, V). */
  logProbabilities(readouts) {
    const logits = linear(readouts, this.output.W_o, this.output.bias);
    const V = this.output.bias.length;
    for (let start = 0; start < logits.length; start += V) {
      const row = logits.subarray(start, start + V);
      const logNormaliser = logSumExp(row);
      for (let y = 0; y < V; y++) row[y] = Math.min(0, row[y] - logNormaliser);
    }
    return logits;
  }

  /** The states after the words y_i (K) of a step; hypothesis k continues the previous hypothesis
   * parents[k]. */
  advance(state, { contexts }, words, parents) {
    const H = this.unit.U.columns;
    const K = state.hidden.length / H;
    const chosen = (data) => rowsOf({ data, columns: data.length / K }, parents);
    const word = rowsOf(this.targetTable, words);
    const given = linear(
      this.stateInput === "current" ? word : chosen(state.word),
      this.unit.W,
      this.unit.bias,
    );
    linear(chosen(contexts), this.unit.C).forEach((value, i) => {
      given[i] += value;
    });
    return { hidden: nextState(this.unit, chosen(state.hidden), given), word };
  }
}
