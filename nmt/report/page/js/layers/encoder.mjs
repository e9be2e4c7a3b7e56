// The encoders (nmt/layers/encoder.py): a sentence into annotations and the vector the decoder starts from.
// S source length, E embedding, H state.

import { GatedUnit } from "./gated_unit.mjs";
import { rowsOf } from "./linear.mjs";

/** One unit (RNNencdec) or two, forward and backward (RNNsearch), over one embedding (V, E). */
export class Encoder {
  constructor({ embedding, units }, sizes) {
    this.table = embedding;
    this.embedding = sizes.embedding;
    this.hidden = sizes.hidden;
    this.units = units.map((unit) => new GatedUnit(unit, { ...sizes, annotation: 0 }));
    this.size = units.length * sizes.hidden; // A
  }

  /** Source ids (S) -> annotations h_j (S, A), and the summary (H): ←h_1, or →h_Tx with one direction. */
  forward(source) {
    const H = this.hidden;
    const S = source.length;
    const words = rowsOf(this.table, this.embedding, source); // (S, E)
    const states = this.units.map((unit, direction) => this.read(unit, words, S, direction === 1)); // (S, H) each
    const annotations = new Float32Array(S * this.size);
    states.forEach((one, direction) => {
      for (let j = 0; j < S; j++) annotations.set(one.subarray(j * H, (j + 1) * H), j * this.size + direction * H);
    });
    const summary = states.length > 1 ? states[1].slice(0, H) : states[0].slice((S - 1) * H);
    return { annotations, summary };
  }

  /** The states (S, H) of one gated network that reads `words` from a state of 0. */
  read(unit, words, S, reverse) {
    const H = this.hidden;
    const projected = unit.project(words); // (S, 3H)
    const states = new Float32Array(S * H);
    let state = new Float32Array(H);
    for (let step = 0; step < S; step++) {
      const j = reverse ? S - 1 - step : step;
      state = unit.forward(state, projected.subarray(3 * H * j, 3 * H * (j + 1)));
      states.set(state, j * H);
    }
    return states;
  }
}
