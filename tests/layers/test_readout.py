"""The maxout readout."""

import torch

from nmt.layers import Readout


def test_maxout_takes_the_larger_of_neighbours():
    readout = Readout(hidden=2, embedding=1, context=1, maxout=2)
    with torch.no_grad():
        for matrix in (readout.U_o, readout.V_o, readout.C_o):
            matrix.zero_()
        readout.bias.copy_(torch.tensor([1.0, 5.0, 4.0, 2.0]))
    found = readout(torch.zeros(1, 2), torch.zeros(1, 1), torch.zeros(1, 1))
    assert found.tolist() == [[5.0, 4.0]]
