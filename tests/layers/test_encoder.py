"""The encoders against an independent NumPy transcription (`reference.py`)."""

import numpy as np
import pytest

from tests.layers import reference
from tests.layers.nets import batch, make, sentences


@pytest.mark.parametrize("recurrence", ["plain", "fused"])
@pytest.mark.parametrize("scoring", ["additive", "none"])
def test_encoder_is_the_papers(scoring, recurrence):
    net = make(scoring, recurrence=recurrence)
    source, mask, *_ = batch()
    annotations, summary = net.encoder(source, mask)
    encode = reference.forward_only if scoring == "none" else reference.bidirectional
    for b, words in enumerate(sentences(source, mask)):
        expected, last = encode(reference.weights_of(net), words)
        np.testing.assert_allclose(annotations[b, : len(words)].detach(), expected, atol=1e-12)
        np.testing.assert_allclose(summary[b].detach(), last, atol=1e-12)
