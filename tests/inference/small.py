"""A small model of five source and six target words. Large weights make translations differ."""

import pyarrow as pa
import torch

from nmt.config.schema import Config, ModelConfig, SearchConfig, TextConfig
from nmt.data.pairs import Pairs, encode
from nmt.data.vocabulary import WordVocabulary
from nmt.inference.held_out import read_sentences
from nmt.inference.model import Model
from nmt.models import build_model

SOURCE = WordVocabulary(["the", "cat", "red", "dog", "sees"])
TARGET = WordVocabulary(["le", "chat", "rouge", "chien", "voit", "un"])
TEXT = [
    ("the red cat sees the dog", "le chat rouge voit le chien"),
    ("the cat", "le chat"),
    ("a cat sees", "un chat voit"),
    ("dog", "un chien noir"),
    ("the cat sees the cat", "le chat voit un chat"),
]
SEARCH = SearchConfig(beam_size=3, max_ratio=2.0, batch_size=2)


def make_pairs(texts, source=SOURCE, target=TARGET):
    rows = pa.Table.from_pylist(
        [
            {
                "source": s,
                "target": t,
                "source_words": len(s.split()),
                "target_words": len(t.split()),
                "target_text": t,
                "line": number,
                "alignment": "0-0 1-1" if number == 1 else None,
            }
            for number, (s, t) in enumerate(texts)
        ]
    )
    return Pairs("train", encode(rows, (source, target)), (source, target), {}, "")


SENTENCES = read_sentences(make_pairs(TEXT), TextConfig())


def make_network(scoring="Additive", source=SOURCE, target=TARGET, **options):
    torch.manual_seed(5)
    chosen = {"scoring": {"_target_": f"nmt.layers.scoring.{scoring}"}, **options}
    if scoring is None:
        chosen = {"scoring": None, "alignment": None, "_target_": "nmt.models.RNNencdec"}
    sizes = {"hidden": 6, "embedding": 5, "alignment": 7, "maxout": 4}
    config = Config(model=ModelConfig(init="glorot", **sizes | chosen))
    network = build_model(config, len(source), len(target)).network.eval().double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(2)
    return network


def make_trained(
    network,
    source=SOURCE,
    target=TARGET,
    search=SEARCH,
    dictionary=None,
    threads=1,
    precision="32-true",
    kept=2,
):
    config = Config(search=search, threads=threads)
    config.trainer.update(accelerator="cpu", precision=precision, enable_progress_bar=False)
    config.report.sentences = kept
    return Model(network, source, target, config, dictionary)
