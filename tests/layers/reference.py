"""The equations of the paper (appendix A) in NumPy, one sentence pair at a time, from the page.

Loops over positions and words, no batch, no padding, no stacking: nothing in common with the
package but the names of the weights, which `weights_of` reads out of a model.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated_unit(w, e, s, c=None):
    """A.1.1: z_i, r_i, s̃_i and s_i."""
    zero = 0.0
    C, C_z, C_r = (w["C"] @ c, w["C_z"] @ c, w["C_r"] @ c) if c is not None else (zero,) * 3
    z = sigmoid(w["W_z"] @ e + w["U_z"] @ s + C_z + w["b_z"])
    r = sigmoid(w["W_r"] @ e + w["U_r"] @ s + C_r + w["b_r"])
    candidate = np.tanh(w["W"] @ e + w["U"] @ (r * s) + C + w["b"])
    return (1 - z) * s + z * candidate


def bidirectional(w, sentence):
    """A.2.1: annotations [→h_j; ←h_j] (S, 2n) and ←h_1 of a list of word ids."""
    n = len(w["ahead"]["U"])
    words = [w["embedding"][x] for x in sentence]
    ahead, s = [], np.zeros(n)
    for e in words:
        s = gated_unit(w["ahead"], e, s)
        ahead.append(s)
    back, s = [], np.zeros(n)
    for e in reversed(words):
        s = gated_unit(w["back"], e, s)
        back.insert(0, s)
    return np.array([np.concatenate(pair) for pair in zip(ahead, back, strict=True)]), back[0]


def forward_only(w, sentence):
    """→h_j (S, n) and →h_Tx."""
    s, states = np.zeros(len(w["ahead"]["U"])), []
    for x in sentence:
        s = gated_unit(w["ahead"], w["embedding"][x], s)
        states.append(s)
    return np.array(states), s


def score(w, scoring, q, k):
    """A.1.2 for additive; the products are its relatives."""
    if scoring == "additive":
        return w["v_a"] @ np.tanh(q + k)
    if scoring == "cosine":
        return np.exp(w["log_scale"]) * (q @ k) / np.sqrt((q @ q) * (k @ k))
    return q @ k / (np.sqrt(len(q)) if scoring == "scaled_dot" else 1)


def attend(w, scoring, s, annotations):
    """α_i and log Σ exp e_ij."""
    if scoring == "general":  # Luong et al. (2015): one matrix between state and annotation
        e = np.array([s @ w["W_a"].T @ h for h in annotations])
    else:
        e = np.array([score(w, scoring, w["W_a"] @ s, w["U_a"] @ h) for h in annotations])
    total = np.exp(e).sum()
    return np.exp(e) / total, np.log(total)


def decode(w, scoring, state_input, annotations, summary, sentence):
    """A.2.2: for each word of the target its -log p, the weights and the log-normaliser."""
    s = np.tanh(w["W_s"] @ summary + w["b_s"])
    before = np.zeros(w["embedding_out"].shape[1])  # E y_0 = 0
    nlls, all_weights, normalisers = [], [], []
    for y in sentence:
        if scoring == "none":
            c = summary
        else:
            weights, log_z = attend(w, scoring, s, annotations)
            c = sum(a * h for a, h in zip(weights, annotations, strict=True))
            all_weights.append(weights)
            normalisers.append(log_z)
        t = w["U_o"] @ s + w["V_o"] @ before + w["C_o"] @ c + w["b_o"]
        maxout = np.array([max(t[2 * j], t[2 * j + 1]) for j in range(len(t) // 2)])
        logits = w["W_o"] @ maxout + w["b_y"]
        nlls.append(np.log(np.exp(logits).sum()) - logits[y])
        now = w["embedding_out"][y]
        s = gated_unit(w["unit"], now if state_input == "current" else before, s, c)
        before = now
    return np.array(nlls), np.array(all_weights), np.array(normalisers)


def weights_of(net):
    """The weights of a `tests.layers.nets.Net` under the paper's names."""

    def array(tensor):
        return tensor.detach().numpy()

    def unit(layer):
        names = {}
        n = layer.U.shape[0]
        for matrix, stacked in (("W", layer.W), ("C", layer.C), ("b", layer.bias)):
            if stacked is not None:
                parts = array(stacked)
                names |= {
                    f"{matrix}_z": parts[:n],
                    f"{matrix}_r": parts[n : 2 * n],
                    matrix: parts[2 * n :],
                }
        gates = array(layer.U_gates)
        return names | {"U_z": gates[:n], "U_r": gates[n:], "U": array(layer.U)}

    decoder, readout = net.decoder, net.decoder.readout
    weights = {
        "embedding": array(net.encoder.embedding.weight),
        "ahead": unit(net.encoder.units[0]),
        "back": unit(net.encoder.units[-1]),
        "embedding_out": array(decoder.embedding.weight),
        "unit": unit(decoder.unit),
        "W_s": array(decoder.W_s),
        "b_s": array(decoder.bias_s),
        "U_o": array(readout.U_o),
        "V_o": array(readout.V_o),
        "C_o": array(readout.C_o),
        "b_o": array(readout.bias),
        "W_o": array(net.output.W_o),
        "b_y": array(net.output.bias),
    }
    if net.scoring != "none":
        weights |= {"W_a": array(decoder.context.W_a)}
        if net.scoring == "general":
            assert decoder.context.U_a is None
        else:
            weights |= {"U_a": array(decoder.context.U_a)}
    if net.scoring == "additive":
        weights["v_a"] = array(decoder.context.scoring.v)
    if net.scoring == "cosine":
        weights["log_scale"] = array(decoder.context.scoring.log_scale)[0]
    return weights
