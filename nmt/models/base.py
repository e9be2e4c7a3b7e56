"""`RNNsearch` and `RNNencdec` as Lightning trains them: loss, clipping, optimizer.

B batch, S source length, T target length.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torchmetrics import SumMetric

from nmt.config import ModelConfig, OptimizerConfig
from nmt.data.batch import Batch
from nmt.fused.gpu.adadelta import FusedAdadelta
from nmt.layers import Likelihood
from nmt.models.networks import Parts, assemble, rnnencdec, rnnsearch
from nmt.models.optimizer import make_optimizer
from nmt.utils.errors import InputError


def exact_sum() -> SumMetric:
    """A sum in float64, over all devices, in which NaN is kept."""
    metric = SumMetric(nan_strategy="disable")
    metric.set_dtype(torch.float64)
    return metric


class Translator(pl.LightningModule, ABC):
    """Trains p(y | x); `network` computes it, and is all that translating needs.

    A model is a subclass with a static method `parts`, which gives the encoder and the decoder's
    context.

    Args:
        model: the sizes and options of the layers.
        source_size, target_size: symbols of the vocabularies, `</s>` and `<unk>` included.
        optimizer, updates: the update rule, and the number of updates its schedule spans; only
            training needs them.
        reverse_source: whether the encoder reads the words of a sentence backwards.
    """

    def __init__(
        self,
        model: ModelConfig,
        source_size: int,
        target_size: int,
        optimizer: OptimizerConfig | None = None,
        updates: int = 1,
        reverse_source: bool = False,
    ) -> None:
        super().__init__()
        self.optimizer = optimizer
        self.updates = updates
        # what a checkpoint says besides weights, see `nmt.models.checkpoint`
        self.description: dict[str, Any] = {}
        self.finite = torch.tensor(True)  # whether every gradient so far was
        self.nll_sum, self.word_sum = exact_sum(), exact_sum()  # since the last log entry
        parts = self.parts(model, source_size)
        self.network = assemble(model, parts, target_size, reverse_source=reverse_source)

    @staticmethod
    @abstractmethod
    def parts(model: ModelConfig, source_size: int) -> Parts:
        """The encoder, and the context of the decoder for its annotations."""

    def forward(self, batch: Batch) -> Likelihood:
        """The likelihood of the given translations, with readouts and attention."""
        likelihood: Likelihood = self.network(
            batch.source, batch.source_mask, batch.target, batch.target_mask
        )
        return likelihood

    def training_step(self, batch: Batch, index: int) -> dict[str, Tensor]:
        """The loss: NLL of a sentence in nats, summed over words, averaged over sentences."""
        nll = self.network.loss(batch.source, batch.source_mask, batch.target, batch.target_mask)
        self._log_nll(nll.detach(), batch, index)
        return {
            "loss": nll * batch.weight,
            "words": batch.words,
            # made where the others are: a copy from the host's ordinary memory makes a GPU wait
            "sentences": torch.full_like(batch.words, len(batch.rows)),
        }

    def _log_nll(self, nll: Tensor, batch: Batch, index: int) -> None:
        """Logs the NLL per word of all updates since the last log entry.

        That of a single update would be of one length: batches come sorted, pool by pool.
        """
        self.nll_sum.update(nll)
        self.word_sum.update(batch.words)
        trainer = self.trainer
        is_last = (index + 1) % trainer.accumulate_grad_batches == 0
        if is_last and (trainer.global_step + 1) % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            nll_per_word = self.nll_sum.compute() / self.word_sum.compute()
            self.log("train/nll_per_word", nll_per_word, prog_bar=True)
            self.nll_sum.reset()
            self.word_sum.reset()

    def transfer_batch_to_device(
        self, batch: Any, device: torch.device, dataloader_idx: int
    ) -> Any:
        """Moves a batch without waiting for the copies; Lightning waits for everything but tensors."""
        if not isinstance(batch, Batch):
            return super().transfer_batch_to_device(batch, device, dataloader_idx)
        return batch.to(device, non_blocking=device.type == "cuda")

    def validation_step(self, batch: Batch, index: int) -> dict[str, Likelihood] | None:
        """The likelihood of the reference translations; `nmt.training.Validation` sums it up."""
        return {"likelihood": self(batch)} if len(batch) else None

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Scales the gradient to an L2 norm of at most `trainer.gradient_clip_val` (appendix B.2).

        `FusedAdadelta` does so itself, on its way over the gradients.
        """
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if gradient_clip_val and isinstance(optimizer, FusedAdadelta):
            optimizer.clip(norm, gradient_clip_val)
        elif gradient_clip_val:
            nn.utils.clip_grads_with_norm_(self.parameters(), gradient_clip_val, norm)
        self.log("train/gradient_norm", norm.detach())
        self.finite = norm.isfinite() & self.finite

    def setup(self, stage: str) -> None:
        """Drops CUDA graphs of an earlier fit, as `teardown` does those of this one."""
        self._drop_graphs()

    def teardown(self, stage: str) -> None:
        """Drops CUDA graphs: Lightning frees what they rest on, and a test needs their memory."""
        self._drop_graphs()

    def _drop_graphs(self) -> None:
        for part in self.modules():
            if cache := getattr(part, "graph_cache", None):
                cache.clear()

    def configure_optimizers(self) -> Any:
        assert self.optimizer is not None
        return make_optimizer(self.parameters(), self.optimizer, self.updates)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the model's description, and the sums since the last log entry, of all devices."""
        sums = torch.stack([self.nll_sum.sum_value, self.word_sum.sum_value])
        checkpoint["log_sums"] = self.trainer.strategy.reduce(sums, reduce_op="sum").tolist()
        checkpoint["nmt"] = self.description

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restores the sums since the last log entry, on one device."""
        if self._trainer is not None and self.trainer.is_global_zero:
            for metric, value in zip(
                (self.nll_sum, self.word_sum), checkpoint["log_sums"], strict=True
            ):
                metric.update(value)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *_: Any, **__: Any) -> Any:
        """Refused: Lightning would build the model without its vocabularies, and check nothing.

        Raises:
            InputError: that says how a checkpoint is loaded.
        """
        raise InputError(
            f"load_from_checkpoint: a checkpoint of nmt is loaded by nmt.load({str(checkpoint_path)!r}),"
            " with its vocabularies; its `trained.model` is the LightningModule"
        )


class RNNsearch(Translator):
    """Each target word is written from an expected annotation c_i = Σ_j α_ij h_j of its own."""

    parts = staticmethod(rnnsearch)


class RNNencdec(Translator):
    """Every target word is written from the same context c_i = →h_Tx."""

    parts = staticmethod(rnnencdec)
