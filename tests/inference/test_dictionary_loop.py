"""The dictionary of `search.replace_unk`: learnt from attention, kept in the checkpoint."""

import hashlib

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from omegaconf import OmegaConf
from torch.utils.data import DataLoader

from nmt.config.schema import Config, SearchConfig
from nmt.config.validation import validate
from nmt.data.splits import HeldOut
from nmt.data.word_vocabulary import WordVocabulary
from nmt.inference.dictionary_loop import Lexicon
from nmt.inference.force_decoding import Codec
from nmt.layers import TeacherForced
from nmt.models import build
from nmt.models.checkpoint import describe_run, read_checkpoint, store_ending
from nmt.utils.errors import InputError
from nmt.utils.files import verify

SOURCE, TARGET = WordVocabulary(["the", "red", "cat"]), WordVocabulary(["le", "chat", "rouge"])
ROWS = [
    {
        "line": line,
        "source": source,
        "target": target,
        "source_words": len(source.split()),
        "target_words": len(target.split()),
        "alignment": None,
    }
    for line, (source, target) in enumerate(
        [("the red cat", "le chat rouge"), ("red Smith", "Smith rousse"), ("red", "rouge")]
    )
]
LINKS = [[0, 2, 1], [1, 0], [0]]  # source word of each target word


def small_config(**model):
    config = OmegaConf.structured(Config)
    config.model.scoring = {"_target_": "nmt.layers.Additive"}
    for name in ("hidden", "embedding", "alignment", "maxout"):
        config.size[name] = 4
    for name, value in model.items():
        config.model[name] = value
    return config


@pytest.fixture
def model():
    return build(OmegaConf.to_object(small_config()), len(SOURCE), len(TARGET)).eval()


def attend(monkeypatch, model, links):
    """Puts the weights that stand for given links in place of the model's own."""

    def forward(target, target_mask, memory):
        weights = torch.zeros(*target.shape, memory.mask.shape[1])
        for place, length in enumerate(memory.mask.sum(1).tolist()):
            row = next(n for n, row in enumerate(ROWS) if len(row["source"].split()) + 1 == length)
            for i, j in enumerate(links[row]):
                weights[place, i, j] = 1.0
        return TeacherForced(torch.zeros(*target.shape, 2), weights, torch.zeros(target.shape))

    monkeypatch.setattr(model.decoder, "forward", forward)


def learn(lexicon, pairs):
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False,
                         enable_model_summary=False, enable_checkpointing=False)  # fmt: skip
    batches = [pairs.batch(np.array([1, 0])), pairs.batch(np.array([2]))]
    trainer.test(lexicon, DataLoader(batches, batch_size=None), verbose=False)
    return lexicon.dictionary


def test_words_are_learnt_from_hard_links_beyond_the_shortlist(monkeypatch, model):
    attend(monkeypatch, model, LINKS)
    pairs = HeldOut("train", ROWS, SOURCE, TARGET)
    codec = Codec(SOURCE, TARGET, " ".join)
    found = learn(Lexicon(model, codec, pairs, 0.5), pairs)
    assert found == {"the": "le", "cat": "chat", "red": "rouge", "Smith": "Smith"}


def test_a_word_that_attends_to_the_end_teaches_nothing(monkeypatch, model):
    attend(monkeypatch, model, [[3, 2, 1], [2, 2], [1]])  # </s> follows the last word
    pairs = HeldOut("train", ROWS, SOURCE, TARGET)
    found = learn(Lexicon(model, Codec(SOURCE, TARGET, " ".join), pairs, 0.5), pairs)
    assert found == {"cat": "chat", "red": "rouge"}


def checkpoint(path, model):
    content = {
        "nmt": describe_run(OmegaConf.to_object(small_config()), SOURCE, TARGET, "f"),
        "global_step": 7,
        "state_dict": model.state_dict(),
    }
    torch.save(content, path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(f"{path.name}.sha256").write_text(f"{digest}  {path.name}\n")


def test_a_checkpoint_carries_what_the_end_of_its_run_says(tmp_path, model):
    path = tmp_path / "best.ckpt"
    checkpoint(path, model)
    before = read_checkpoint(path)
    assert before.dictionary_for(SearchConfig(replace_unk="copy")) is None
    with pytest.raises(InputError, match=r"search.replace_unk=dictionary: .*best.ckpt holds no"):
        before.dictionary_for(SearchConfig(replace_unk="dictionary"))
    store_ending(path, {"updates": 9}, {"cat": "chat"})
    after = read_checkpoint(path)
    assert (before.training, after.training) == (None, {"updates": 9})
    assert after.dictionary_for(SearchConfig(replace_unk="dictionary")) == {"cat": "chat"}
    assert after.sha256 == verify(path) != before.sha256
    assert len((tmp_path / "best.ckpt.sha256").read_text().splitlines()) == 1
    assert all(torch.equal(after.weights[name], value) for name, value in before.weights.items())
    assert after.update == 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"_target_": "nmt.models.RNNencdec", "scoring": None},
          "search": {"replace_unk": "copy"}}, "search.replace_unk=copy: RNNencdec attends to no"),
        ({"tokenizer": {"kind": "bpe"}, "search": {"replace_unk": "dictionary"}}, "tokenizer=bpe"),
        ({"evaluation": {"dictionary_sample": 0}, "search": {"replace_unk": "dictionary"}},
         "evaluation.dictionary_sample=0"),
    ],
)  # fmt: skip
def test_what_cannot_replace_words_is_refused(changes, message):
    config = OmegaConf.merge(small_config(), {k: v for k, v in changes.items() if k != "model"})
    for name, value in changes.get("model", {}).items():
        config.model[name] = value
    with pytest.raises(InputError, match=message):
        validate(config)
    config.search.replace_unk = "none"
    validate(config)
