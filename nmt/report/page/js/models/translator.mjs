// A model put together from its description and its tensors (nmt/models/base.py).

import { Attention, FixedContext } from "../layers/attention.mjs";
import { Decoder } from "../layers/decoder.mjs";
import { Encoder } from "../layers/encoder.mjs";
import { Output } from "../layers/output.mjs";

export class Translator {
  constructor(about, tensors) {
    const part = (prefix) => Object.fromEntries(
      Object.entries(tensors).filter(([name]) => name.startsWith(`${prefix}.`)).map(([name, tensor]) => [name.slice(prefix.length + 1), tensor]),
    );
    const units = about.model === "RNNsearch" ? [0, 1] : [0];
    const encoder = { embedding: tensors["encoder.embedding.weight"], units: units.map((i) => part(`encoder.units.${i}`)) };
    this.encoder = new Encoder(encoder, about.sizes);
    const sizes = { ...about.sizes, annotation: this.encoder.size };
    const { W_a, U_a, "scoring.v": v } = part("decoder.context");
    const context = about.scoring ? new Attention({ W_a, U_a, v }, about.scoring, sizes) : new FixedContext();
    const { W_s, bias_s } = part("decoder");
    const decoder = { embedding: tensors["decoder.embedding.weight"], W_s, bias_s, unit: part("decoder.unit"), readout: part("decoder.readout") };
    this.decoder = new Decoder(decoder, context, about.state_input, sizes);
    this.output = new Output(part("output"), sizes);
    this.attends = Boolean(about.scoring);
  }

  /** Source ids (S), `</s>` last, to what the decoder attends to. */
  encode(source) {
    return this.decoder.memory(this.encoder.forward(source));
  }
}
