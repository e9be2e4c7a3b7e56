"""The JoeyNMT process of `benchmarks.peers`; it runs in JoeyNMT's environment and does not import nmt.

Each input line is a request in JSON. The answer is the number of seconds that the request took. If the
request contains "count", the answer is the number of multiply-adds in the matrix products.
"""

import json
import logging
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.vocabulary import Vocabulary
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

PAD, BOS, EOS = 1, 2, 3
SHIFT = 4  # added to our word ids, since ids 0 to 3 are special symbols in JoeyNMT


def make(vocabulary: int) -> Any:
    """Builds the JoeyNMT model most similar to RNNsearch, with GRUs, Bahdanau's attention and 256 units."""
    special = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None,
        unk_id=0, pad_id=PAD, bos_id=BOS, eos_id=EOS, sep_id=None, lang_tags=[],
    )  # fmt: skip
    words = [Vocabulary([f"w{i}" for i in range(vocabulary)], special) for _ in range(2)]
    embeddings = {"embedding_dim": 128, "scale": False}
    model: Any = build_model(
        {
            "encoder": {
                "type": "recurrent", "rnn_type": "gru", "embeddings": embeddings,
                "hidden_size": 256, "bidirectional": True, "num_layers": 1,
            },
            "decoder": {
                "type": "recurrent", "rnn_type": "gru", "embeddings": embeddings,
                "hidden_size": 256, "num_layers": 1, "attention": "bahdanau",
                "init_hidden": "bridge", "input_feeding": True,
            },
        },
        *words,
    )  # fmt: skip
    model.loss_function = ("crossentropy", 0.0)
    return model


def pad(sentences: list[list[int]], first: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
    """Returns padded JoeyNMT ids (B sentences, L ids), each row beginning with `first`, and the lengths (B,)."""
    rows = [[*first, *(w + SHIFT for w in row[:-1]), EOS] for row in sentences]
    longest = max(map(len, rows))
    padded = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return padded, torch.tensor([len(row) for row in rows])


def batch_of(source: list[list[int]], target: list[list[int]] | None) -> Batch:
    """Makes a JoeyNMT batch, sorted by length because packed sequences require it."""
    sources, lengths = pad(source)
    order = lengths.argsort(descending=True)
    targets = None if target is None else pad(target, [BOS])[0][order]
    return Batch(
        src=sources[order], src_length=lengths[order], src_prompt_mask=None, trg=targets,
        trg_prompt_mask=None, indices=order, device=torch.device("cpu"), pad_index=PAD,
        eos_index=EOS, is_train=target is not None,
    )  # fmt: skip


def train(model: Any, optimizer: torch.optim.Optimizer, work: dict[str, Any]) -> None:
    """Runs one update, like JoeyNMT's `TrainManager`."""
    batch = batch_of(*work["train"])
    model.train()
    loss = model(return_type="loss", **vars(batch))[0]
    batch.normalize(loss, normalization="batch").backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()


def translate(model: Any, work: dict[str, Any]) -> None:
    """Runs a beam search in which every output has exactly `steps` words."""
    model.eval().requires_grad_(False)  # FlopCounterMode fails if parameters require gradients
    steps = work["steps"]
    search(
        model, batch_of(work["search"], None), max_output_length=steps, beam_size=work["beam"],
        beam_alpha=-1, min_output_length=steps, generate_unk=True,
    )  # fmt: skip
    model.requires_grad_(True)


def main() -> None:
    logging.disable(logging.INFO)
    clock = time.process_time
    answers, sys.stdout = sys.stdout, sys.stderr  # stdout is reserved for answers
    model: Any = None
    optimizer: Any = None
    for line in sys.stdin:
        work = json.loads(line)
        if "threads" in work:
            torch.set_num_threads(work["threads"])
            clock = time.process_time if work["threads"] == 1 else time.perf_counter
        start = clock()
        with FlopCounterMode(display=False) if "count" in work else nullcontext() as counter:
            if "vocabulary" in work:
                model = make(work["vocabulary"])
                optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
            elif "train" in work:
                train(model, optimizer, work)
            else:
                translate(model, work)
        answer = counter.get_total_flops() / 2 if counter else clock() - start
        print(answer, file=answers, flush=True)


main()
