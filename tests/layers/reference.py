"""The equations of the paper (appendix A) in NumPy, for one sentence pair at a time.

The code loops over positions and words, without batches, padding or stacked matrices. It uses no code of
the package. `weights_of` gives the weights of a network the names of the paper.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gated_unit(w, e, s, c=None):
    """Computes s_i from z_i, r_i and s̃_i (A.1.1)."""
    zero = 0.0
    C, C_z, C_r = (w["C"] @ c, w["C_z"] @ c, w["C_r"] @ c) if c is not None else (zero,) * 3
    z = sigmoid(w["W_z"] @ e + w["U_z"] @ s + C_z + w["b_z"])
    r = sigmoid(w["W_r"] @ e + w["U_r"] @ s + C_r + w["b_r"])
    candidate = np.tanh(w["W"] @ e + w["U"] @ (r * s) + C + w["b"])
    return (1 - z) * s + z * candidate


def bidirectional(w, sentence):
    """Returns the annotations [→h_j; ←h_j] (S words, 2n units) and ←h_1 for a list of S word ids (A.2.1)."""
    n = len(w["ahead"]["U"])
    words = [w["embedding"][x] for x in sentence]
    ahead = []
    s = np.zeros(n)
    for e in words:
        s = gated_unit(w["ahead"], e, s)
        ahead.append(s)
    back = []
    s = np.zeros(n)
    for e in reversed(words):
        s = gated_unit(w["back"], e, s)
        back.insert(0, s)
    return np.array([np.concatenate(pair) for pair in zip(ahead, back, strict=True)]), back[0]


def forward_only(w, sentence):
    """Returns the states →h_j (S words, n units) and the last state →h_Tx."""
    s = np.zeros(len(w["ahead"]["U"]))
    states = []
    for x in sentence:
        s = gated_unit(w["ahead"], w["embedding"][x], s)
        states.append(s)
    return np.array(states), s


def score(w, scoring, q, k):
    """Returns the score of a query and a key. The additive score is that of A.1.2."""
    if scoring == "additive":
        return w["v_a"] @ np.tanh(q + k)
    if scoring == "cosine":
        return np.exp(w["log_scale"]).item() * (q @ k) / np.sqrt((q @ q) * (k @ k))
    return q @ k / (np.sqrt(len(q)) if scoring == "scaled_dot" else 1)


def attend(w, scoring, s, annotations):
    """Returns the weights α_i of the S source words (S,), and log Σ exp e_ij."""
    if scoring == "general":  # Luong et al. (2015): a bilinear form
        e = np.array([s @ w["W_a"].T @ h for h in annotations])
    else:
        e = np.array([score(w, scoring, w["W_a"] @ s, w["U_a"] @ h) for h in annotations])
    total = np.exp(e).sum()
    return np.exp(e) / total, np.log(total)


def decode(w, scoring, state_input, annotations, summary, sentence):
    """Returns -log p, and the weights and log Z of `attend`, for each target word (A.2.2)."""
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
    """Returns the weights of a `tests.layers.nets.Net` by their names in the paper."""
    arrays = {name: p.detach().numpy() for name, p in net.named_parameters()}

    def unit(prefix):
        names = {}
        for matrix, stacked in (("W", "W"), ("C", "C"), ("b", "bias")):
            if f"{prefix}.{stacked}" in arrays:
                parts = np.split(arrays[f"{prefix}.{stacked}"], 3)
                names |= dict(zip((f"{matrix}_z", f"{matrix}_r", matrix), parts, strict=True))
        names["U_z"], names["U_r"] = np.split(arrays[f"{prefix}.U_gates"], 2)
        return names | {"U": arrays[f"{prefix}.U"]}

    named = {
        "embedding": "encoder.embedding.weight",
        "embedding_out": "decoder.embedding.weight",
        "W_s": "decoder.W_s",
        "b_s": "decoder.bias_s",
        "U_o": "decoder.readout.U_o",
        "V_o": "decoder.readout.V_o",
        "C_o": "decoder.readout.C_o",
        "b_o": "decoder.readout.bias",
        "W_o": "output.W_o",
        "b_y": "output.bias",
        "W_a": "decoder.context.W_a",
        "U_a": "decoder.context.U_a",
        "v_a": "decoder.context.scoring.v",
        "log_scale": "decoder.context.scoring.log_scale",
    }
    weights = {name: arrays[found] for name, found in named.items() if found in arrays}
    units = {"ahead": unit("encoder.units.0"), "unit": unit("decoder.unit")}
    back = {"back": unit("encoder.units.1")} if len(net.encoder.units) == 2 else {}
    return weights | units | back
