from itertools import product

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.data.batch import pad
from nmt.search import beam_search
from nmt.utils.errors import RunError

from .models import END, TableModel, TinyModel, layered_model, reference_search, settings

SOURCES = [[4, 7, 2, 0], [3, 0], [9, 8, 2, 5, 6, 3, 0], [0], [2, 2, 10, 4, 0]]


def assert_same(found, expected):
    assert [h.tokens for h in found] == [h.tokens for h in expected]
    assert [h.finished for h in found] == [h.finished for h in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.log_probability == pytest.approx(theirs.log_probability, abs=1e-10)


OPTIONS = (
    {},
    {"length_penalty": 0.7},
    {"length_penalty": 1.5, "min_ratio": 0.5},
    {"min_ratio": 1.3},
    {"max_ratio": 0.6},
    {"min_ratio": 2.0, "max_ratio": 1.5},  # minimum above the maximum
)


@pytest.mark.parametrize(
    ("forbid_unknown", "options", "beam"),
    [*product([False], OPTIONS, [1, 3]), *product([True], OPTIONS[:3], [2]), (False, {}, 12)],
)
def test_beam_search_equals_a_reference_search(forbid_unknown, options, beam):
    source, mask = pad(SOURCES)
    for seed, sharpness, vocabulary in ((7, 1.5, 11), (4, 3.0, 301)):
        model = TinyModel(vocabulary, seed=seed, sharpness=sharpness)
        chosen = settings(beam_size=beam, nbest=beam, **options)
        expected = [
            reference_search(model, torch.tensor(sentence), chosen, forbid_unknown)
            for sentence in SOURCES
        ]
        for nbest in {1, (beam + 1) // 2, beam}:
            chosen = settings(beam_size=beam, nbest=nbest, **options)
            found = beam_search(model, source, mask, chosen, forbid_unknown)
            for hypotheses, best in zip(found, expected, strict=True):
                assert_same(hypotheses, best[:nbest])


@pytest.mark.parametrize("attentive", [True, False])
@pytest.mark.parametrize("state_input", ["previous", "current"])
def test_beam_search_of_a_network(attentive, state_input):
    model = layered_model(attentive, state_input)
    chosen = settings(beam_size=4, nbest=4)
    for sentence, found in zip(SOURCES, beam_search(model, *pad(SOURCES), chosen), strict=True):
        assert_same(found, reference_search(model, torch.tensor(sentence), chosen))


def test_beam_shrinks_with_each_finished_hypothesis():
    # Probabilities after any word: </s> .5, word 2 .25, word 3 .125, word 4 .125, <unk> 0.
    table = torch.tensor([[0.5, 1e-30, 0.25, 0.125, 0.125]] * 5, dtype=torch.float64).log()
    model = TableModel(table)
    chosen = settings(beam_size=3, nbest=3)
    short, long = beam_search(model, *pad([[0], [3, 3, 3, 0]]), chosen)
    # Step 1 keeps the words </s>, 2 and 3. Step 2 keeps the hypotheses "2 </s>" (.125) and "3 </s>"
    # (.0625). "2 2" is equally probable as "3 </s>", but </s> has the lower word index.
    assert [h.tokens for h in short] == [[0], [2, 0], [3, 0]] == [h.tokens for h in long]
    assert short[1].log_probability == pytest.approx(torch.tensor(0.125).log().item())
    assert model.hypotheses == [1, 2]
    # With nbest=1 the search stops after step 1, since no other hypothesis can become better.
    greedy_like = TableModel(table)
    beam_search(greedy_like, *pad([[0], [3, 3, 3, 0]]), settings(beam_size=3))
    assert greedy_like.hypotheses == [1]


def test_finished_sentences_leave_the_batch():
    model = TinyModel(seed=2)
    beam_search(model, *pad(SOURCES), settings(beam_size=5, nbest=5))
    assert model.sentences[0] == 5
    assert model.sentences == sorted(model.sentences, reverse=True)
    assert len(model.sentences) <= 3 * 7
    assert model.sentences[3] < 5  # the sentence without words takes at most three steps


def test_max_ratio_counts_source_symbols():
    never = torch.zeros(6, 6, dtype=torch.float64)
    never[:, END] = -1e9
    [[found]] = beam_search(
        TableModel(never), *pad([[2, 3, 4, 0]]), settings(beam_size=3, max_ratio=1.5)
    )
    assert (len(found.tokens), found.finished) == (6, False)


def test_min_ratio_delays_the_end_symbol():
    always = torch.zeros(6, 6, dtype=torch.float64)
    always[:, END] = 50
    chosen = settings(beam_size=2, min_ratio=0.5)
    [[found]] = beam_search(TableModel(always), *pad([[2, 3, 4, 2, 0]]), chosen)
    assert found.tokens == [1, 1, 0]  # two words: floor(0.5 * 5)
    [[banned]] = beam_search(TableModel(always), *pad([[2, 3, 0]]), chosen, forbid_unknown=True)
    assert banned.tokens == [2, 0]
    assert banned.log_probability == pytest.approx(-50, abs=1e-6)  # not renormalised


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("beam", [1, 3, 5])
def test_ties_go_to_the_lower_word_index(dtype, beam):
    """At every step, 20 of the 40 words have equal scores, but the beam keeps fewer."""
    draw = torch.Generator().manual_seed(7)
    for _ in range(5):
        ranks = torch.rand(40, 40, generator=draw).argsort(1)
        table = torch.where(ranks < 20, 0.0, -1e4).to(dtype)
        model = TableModel(table)
        chosen = settings(beam_size=beam, nbest=beam)
        [found] = beam_search(model, *pad([[3, 4, 0]]), chosen)
        expected = reference_search(model, torch.tensor([3, 4, 0]), chosen)
        assert [h.tokens for h in found] == [h.tokens for h in expected]
        assert [h.log_probability for h in found] == pytest.approx(
            [h.log_probability for h in expected], abs=1e-5
        )


def test_equal_scores_are_ordered_by_words():
    """Word 3 has a logit of -1, and so has </s> after word 5. So both translations are equally probable."""
    table = torch.full((6, 6), -1e4, dtype=torch.float64)
    table[END, 5], table[END, 3] = 0.0, -1.0
    table[5, 4], table[5, END] = 0.0, -1.0
    table[3, END], table[3, 4] = 0.0, -1.0

    def found(nbest):
        chosen = settings(beam_size=6, nbest=nbest, max_ratio=1.0)
        return beam_search(TableModel(table), *pad([[2, END]]), chosen)[0]

    first, second = found(2)
    assert first.log_probability == second.log_probability
    assert (first.tokens, second.tokens) == ([3, END], [5, END])
    assert found(1) == [first]


def test_length_penalty_divides_by_length():
    # Probabilities: .3 for "</s>", .7 * .4 = .28 for "2 </s>", less for longer hypotheses.
    table = torch.full((3, 3), 1e-30, dtype=torch.float64)
    table[END] = torch.tensor([0.3, 1e-30, 0.7])
    table[2] = torch.tensor([0.4, 0.55, 0.05])
    model = TableModel(table.log())
    source = pad([[2, 0]])
    [[plain]] = beam_search(model, *source, settings(beam_size=4))
    [[long]] = beam_search(model, *source, settings(beam_size=4, length_penalty=1.0))
    assert plain.tokens == [0]
    assert long.tokens == [2, 0]
    assert long.log_probability == pytest.approx(torch.tensor(0.28).log().item())


def test_nan_weights_raise_an_error():
    with pytest.raises(RunError, match="NaN"):
        beam_search(TableModel(torch.full((5, 5), torch.nan)), *pad([[2, 0]]), settings())
    with pytest.raises(RunError, match="all 0"):  # a diverged model
        beam_search(TableModel(torch.full((5, 5), -torch.inf)), *pad([[2, 0]]), settings())


class Casts(TorchDispatchMode):
    """Counts how often a weight is cast to another type."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        cast = function is torch.ops.aten._to_copy.default
        self.count += cast and args[0].data_ptr() == self.weight.data_ptr()
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("outside", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("kept", [True, False])  # whether autocast caches casts (Lightning: False)
def test_weights_are_cast_once(kept, outside):
    net = layered_model(True, "current").float()
    source, mask = pad(SOURCES)
    with outside(), torch.autocast("cpu", torch.bfloat16, cache_enabled=kept):
        with Casts(net.output.W_o) as casts:
            [found, *_] = beam_search(net, source, mask, settings(beam_size=2))
        assert torch.is_autocast_cache_enabled() == kept
    assert len(found[0].tokens) > 1
    assert casts.count == 1


def test_open_hypothesis_can_win_at_the_last_step():
    """The best hypothesis has an improbable first word; its later words are certain.

    At the second step its log p / length is -3.33 / 2, worse than `</s>` (-1.2). At the end it is -3.33 / 9.
    """
    words = 48
    table = torch.full((words, words), -1e4, dtype=torch.float64)
    table[END] = torch.tensor([0.0] + [0.6643 / (words - 2)] * (words - 1)).log()
    table[END, END] = torch.tensor(0.3).log()
    table[END, 2] = torch.tensor(0.0357).log()
    for word in range(2, 9):
        table[word, word + 1] = 0.0
    table[9, END] = 0.0
    chosen = settings(beam_size=2, length_penalty=1.0, max_ratio=3.0)
    [[found]] = beam_search(TableModel(table), *pad([[2, 3, END]]), chosen)
    assert found.tokens == [*range(2, 10), END]
    assert found.log_probability / 9 == pytest.approx(-0.370, abs=1e-3)
