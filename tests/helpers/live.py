"""Models with drawn weights, as pages take them: nothing needs to be trained to hold a page's arithmetic to torch's."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from nmt.config.schema import Config
from nmt.data.vocabulary import BpeVocabulary, Vocabulary, WordVocabulary
from nmt.inference.live_export import export_live, rounded_to_8_bits
from nmt.inference.model import Model
from nmt.models import build_model
from nmt.report.page import embed
from nmt.report.page.live import FILE
from tests.helpers.run_folders import ENGLISH, FRENCH

NODE = shutil.which("node")
JS = Path(embed.__file__).parent / "js"


def drawn_model(
    model: str = "RNNsearch",
    *,
    scoring: str = "Additive",
    state_input: str = "previous",
    bpe: bool = False,
    seed: int = 0,
    spread: float = 0.4,
    sizes: tuple[int, int, int, int] = (11, 7, 9, 6),
    words: tuple[Sequence[str], Sequence[str]] = (ENGLISH, FRENCH),
    dictionary: dict[str, str] | None = None,
) -> Model:
    """A model in evaluation mode whose weights are drawn; hidden, embedding, alignment, maxout are `sizes`."""
    config = OmegaConf.structured(Config)
    config.model._target_ = f"nmt.models.{model}"
    config.model.state_input = state_input
    config.model.hidden, config.model.embedding, _, config.model.maxout = sizes
    if model == "RNNsearch":
        config.model.scoring = {"_target_": f"nmt.layers.{scoring}"}
        config.model.alignment = sizes[2]
    objects = OmegaConf.to_object(config)
    assert isinstance(objects, Config)
    vocabularies: list[Vocabulary] = [
        BpeVocabulary.learn([" ".join(side)], 300) if bpe else WordVocabulary(dict.fromkeys(side))
        for side in words
    ]
    torch.manual_seed(seed)
    built = build_model(objects, *map(len, vocabularies)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.normal_(std=spread)
    return Model(built.network, *vocabularies, objects, dictionary)


def write_live(trained: Model, folder: Path) -> Path:
    """The file of a model that a page holds."""
    export_live(trained, folder)
    return folder / FILE


def description(file: Path) -> dict[str, Any]:
    return json.loads(zlib.decompress(file.read_bytes()).partition(b"\n")[0])


def rounded(trained: Model) -> Model:
    """The model with the weights that a page has of it."""
    state = trained.network.state_dict()
    for name, weight in state.items():
        if weight.ndim == 2:
            codes, scale = rounded_to_8_bits(weight.numpy())
            state[name] = torch.from_numpy(codes * scale[:, None])
    sizes = [
        part.embedding.num_embeddings for part in (trained.network.encoder, trained.network.decoder)
    ]
    model = build_model(trained.config, *sizes).network
    model.load_state_dict(state)
    return dataclasses.replace(trained, network=model.eval())


def in_node(folder: Path, script: str, **given: Any) -> Any:
    """What a script prints as JSON; it has `given` by name, and imports from the page's `js` as $JS."""
    assert NODE is not None
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    lines = [
        'import { readFileSync } from "node:fs";',
        f'const given = JSON.parse(readFileSync("{folder}/given.json", "utf-8"));',
        script.replace("$JS", JS.as_uri()),
    ]
    file = folder / "script.mjs"
    file.write_text("\n".join(lines), encoding="utf-8")
    limit = 300 + 10 * len(given.get("texts", ()))  # a busy core, a large model, beam 12
    done = subprocess.run([NODE, str(file)], capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
