"""The LightningModules `RNNsearch` and `RNNencdec`: loss, gradient clipping, optimizer."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from nmt.config.loading import load_plain
from nmt.config.schema import ModelConfig, to_containers
from nmt.data.batch import Batch
from nmt.data.module import TranslationData
from nmt.data.pairs import Pairs
from nmt.data.vocabulary import Vocabulary, load_vocabulary
from nmt.fused import backend_of, is_fused
from nmt.fused.choice import Way, fastest_way, possible_ways
from nmt.fused.gpu.graphs import LossGraphs
from nmt.layers import Likelihood
from nmt.models.checkpoint import expanded, read_checkpoint
from nmt.models.held_out_metrics import HeldOutMetrics, Sums
from nmt.models.networks import Parts, assemble, rnnencdec, rnnsearch
from nmt.models.optimizer import make_optimizer, replace_optimizer
from nmt.utils.version import __version__

log = logging.getLogger(__name__)


class Translator(pl.LightningModule, ABC):
    """Trains `network`, which computes p(y | x).

    A subclass defines the static method `parts`, which returns the encoder and the module that computes
    the decoder's context.

    Args:
        config: the configuration of a training run, as plain dictionaries and lists. Checkpoints
            store this configuration as hyperparameters.
        source_size, target_size: sizes of the vocabularies, including `</s>` and `<unk>`.

    Attributes:
        config: the same configuration as validated objects.
        network: the `nmt.layers.Network`. Translation needs only this attribute.
        graphs: the CUDA graphs that compute the training loss.
        vocabularies: the source and target vocabulary, from the data module or a checkpoint.
        way: whether updates use Triton kernels and CUDA graphs; None until `choose_way` or a checkpoint sets it.
        kernels_failed: whether a kernel failed in the run that saved the loaded checkpoint.
        description: further entries that a checkpoint stores under the key `nmt`.
    """

    def __init__(self, config: dict[str, Any], source_size: int, target_size: int) -> None:
        super().__init__()
        self.save_hyperparameters(logger=False)
        self.config = load_plain(config)
        self.vocabularies: tuple[Vocabulary, Vocabulary] | None = None
        self.way: Way | None = None
        self.kernels_failed = False
        self.description: dict[str, Any] = {}
        self.finite = torch.tensor(True)  # whether every gradient so far was finite
        self.log_sums = Sums(2)  # sum of NLL, and number of words, since the last log entry
        self.held_out = nn.ModuleList()  # one `HeldOutMetrics` per data set
        parts = self.parts(self.config.model, source_size)
        self.network = assemble(self.config, parts, target_size)
        self.graphs = LossGraphs(bool(self.config.model.graphs) and is_fused(self.network))

    @staticmethod
    @abstractmethod
    def parts(model: ModelConfig, source_size: int) -> Parts:
        """Returns the encoder, and the module that computes the decoder's context."""

    def forward(self, batch: Batch) -> Likelihood:
        """Returns the likelihood of the target sentences, with readouts and attention."""
        likelihood: Likelihood = self.network(*batch.pairs)
        return likelihood

    def training_step(self, batch: Batch, index: int) -> dict[str, Tensor]:
        """Returns the loss: NLL in nats, summed over a sentence's words and averaged over sentences."""
        nll = self.graphs.loss(self.network, batch.pairs)
        self._log_nll(nll.detach(), batch, index)
        return {
            "loss": nll * batch.weight,
            "words": batch.words,
            # created on the device, because a copy from pageable host memory would synchronize the GPU
            "sentences": torch.full_like(batch.words, len(batch.rows)),
        }

    def _log_nll(self, nll: Tensor, batch: Batch, index: int) -> None:
        """Logs the NLL per word of all updates since the last log entry.

        The NLL of a single update would not be representative, because its sentences have similar lengths.
        """
        if self._trainer is None:
            return
        self.log_sums.update(nll, batch.words)
        trainer = self.trainer
        is_last = (index + 1) % trainer.accumulate_grad_batches == 0
        if is_last and (trainer.global_step + 1) % trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            nll, words = self.log_sums.compute()
            # moved to the CPU, because the progress bar reads this number at every update
            self.log("train/nll_per_word", (nll / words).cpu(), prog_bar=True)
            self.log_sums.reset()

    def on_validation_start(self) -> None:
        data = self.trainer.datamodule  # type: ignore[attr-defined]
        split = data.prepared.valid if isinstance(data, TranslationData) else None
        self._measure({"valid": split}, self.config.evaluation.valid_sentences)

    def on_test_start(self) -> None:
        tests = self.trainer.datamodule.prepared.test  # type: ignore[attr-defined]
        self._measure({f"test/{name}": pairs for name, pairs in tests.items()})

    def _measure(self, splits: dict[str, Pairs | None], translated: int | None = None) -> None:
        """Creates the metrics of each data set. The keys of `splits` are prefixes of the metric names."""
        metrics = [HeldOutMetrics(self.config, *split, translated) for split in splits.items()]
        self.held_out = nn.ModuleList(metrics).to(self.device)

    def validation_step(
        self, batch: Batch, index: int, dataloader_idx: int = 0
    ) -> dict[str, Likelihood] | None:
        """Adds a batch to the metrics of its data set, and returns the likelihood of its pairs.

        For BLEU, sentences are translated greedily. Returns None if this rank has no sentence of the batch.
        """
        if not len(batch.rows):
            return None
        likelihood = self(batch)
        self.held_out[dataloader_idx].update(self.network, batch, likelihood)  # type: ignore[operator]
        return {"likelihood": likelihood}

    def on_validation_epoch_end(self) -> None:
        for metrics in self.held_out:
            for key, score in metrics.scores().items():  # type: ignore[operator]
                shown = metrics.name == "valid" and key in ("nll_per_word", "bleu")
                self.log(f"{metrics.name}/{key}", score, prog_bar=shown)

    test_step = validation_step
    on_test_epoch_end = on_validation_epoch_end

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: int | float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Scales the gradient to an L2 norm of at most `trainer.gradient_clip_val` (appendix B.2).

        If the optimizer is `FusedAdadelta`, its kernel scales the gradients. With
        `trainer.gradient_clip_algorithm=value`, each element of the gradient is clipped instead.
        """
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients)
        if gradient_clip_val and gradient_clip_algorithm == "value":
            nn.utils.clip_grad_value_(self.parameters(), gradient_clip_val)
        elif gradient_clip_val and hasattr(optimizer, "clip_next"):
            optimizer.clip_next(norm, gradient_clip_val)
        elif gradient_clip_val:
            nn.utils.clip_grads_with_norm_(self.parameters(), gradient_clip_val, norm)
        self.log("train/gradient_norm", norm.detach())
        self.finite = norm.isfinite() & self.finite

    def setup(self, stage: str) -> None:
        """Takes the vocabularies from the data module, and deletes the CUDA graphs of an earlier fit."""
        self.graphs.clear()
        data = self._trainer and self.trainer.datamodule  # type: ignore[attr-defined]
        if isinstance(data, TranslationData):
            text = data.prepared
            self.vocabularies = text.vocabularies
            self.description = {"fingerprint": text.fingerprint} | self.description

    def teardown(self, stage: str) -> None:
        """Deletes the CUDA graphs. Lightning frees the tensors that they use, and a test needs their memory."""
        self.graphs.clear()

    def configure_optimizers(self) -> Any:
        on_gpu = self.network.device.type == "cuda" or self.graphs.rehearse
        kernels = on_gpu and self.choose_way().kernels
        return make_optimizer(self, self.config.optimizer, self._updates(), kernels)

    def choose_way(self) -> Way:
        """Chooses for all ranks whether updates on a GPU use Triton kernels and CUDA graphs.

        A resumed run uses the choice in its checkpoint, if the configuration allows this choice. In a
        new run, rank 0 times all allowed combinations on a batch of medium length.
        """
        trainer, backend = self._trainer, backend_of(self.network)
        usable = backend.has_kernels(self.network.device)
        if trainer is not None:  # kernels round differently from torch, so ranks must agree
            usable = trainer.strategy.reduce_boolean_decision(usable)
        model = self.config.model
        ways = possible_ways(model.kernels, model.graphs, usable, is_fused(self.network))
        if self.way in ways:
            ways = [self.way]
        data = trainer.datamodule if trainer is not None else None  # type: ignore[attr-defined]
        largest = None
        if trainer is not None and isinstance(data, TranslationData):
            self.train()
            medium, largest = (batch.move_to(self.device).pairs for batch in data.examples())
            if len(ways) > 1:
                with trainer.precision_plugin.train_step_context():
                    if trainer.is_global_zero:
                        ways = [fastest_way(self.network, medium, ways)]
                ways = [trainer.strategy.broadcast(ways[0])]
        self.way = ways[0]
        self.graphs.enabled = self.way.graphs
        self.kernels_failed &= model.kernels == "auto"  # `kernels: true` retries failed kernels
        backend.kernels = self.way.kernels and not self.kernels_failed
        log.info("updates are computed with %s", Way(backend.kernels, self.way.graphs))
        if trainer is not None and largest is not None and self.way.graphs:
            with trainer.precision_plugin.train_step_context():
                self.graphs.reserve(self.network, largest)
        return self.way

    def _updates(self) -> int:
        """Returns the planned number of updates, which is the length of the learning-rate schedule.

        Lightning's `estimated_stepping_batches` would start the data loader too early: before a resumed
        run knows its number of finished updates, which decides at which batch the data loader starts.
        """
        limits = [self.config.trainer["max_steps"]]
        if self._trainer is not None:
            trainer = self.trainer
            data = trainer.datamodule  # type: ignore[attr-defined]
            limits = [trainer.max_steps] if trainer.max_steps > 0 else []
            if (trainer.max_epochs or 0) > 0 and isinstance(data, TranslationData):
                limits.append(trainer.max_epochs * data.schedule.updates_per_epoch())  # type: ignore[operator]
        return min(limits, default=self.config.trainer["max_steps"])

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Stores the version, vocabularies, `description`, `way`, and the total of `log_sums` over all ranks."""
        sums = self.trainer.strategy.reduce(self.log_sums.values.clone(), reduce_op="sum")
        checkpoint["log_sums"] = sums.tolist()
        checkpoint["nmt"] = {"version": __version__, **self.description}
        if self.way is not None:
            lost = self.way.kernels and not backend_of(self.network).kernels
            failed = self.kernels_failed or (lost and bool(self.config.model.kernels))
            checkpoint["nmt"]["way"] = {**self.way._asdict(), "failed": failed}
        if self.vocabularies is not None:
            for side, vocabulary in zip(("source", "target"), self.vocabularies, strict=True):
                checkpoint["nmt"][f"{side}_vocabulary"] = vocabulary.state()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restores `way`, `kernels_failed`, the vocabularies, and (on rank 0) `log_sums`.

        Lightning restores the optimizer with its stored settings. If the settings in the configuration
        differ, they replace the stored settings.
        """
        checkpoint["state_dict"] = expanded(checkpoint["state_dict"])
        stored = checkpoint["nmt"]
        if "way" in stored:
            self.way = Way(**{key: stored["way"][key] for key in Way._fields})
            self.kernels_failed = stored["way"]["failed"]
        self.vocabularies = (
            load_vocabulary(stored["source_vocabulary"]),
            load_vocabulary(stored["target_vocabulary"]),
        )
        if self._trainer is not None and self.trainer.is_global_zero:
            self.log_sums.update(*torch.tensor(checkpoint["log_sums"], dtype=torch.float64))
        before, now = checkpoint["hyper_parameters"]["config"], to_containers(self.config)
        if self._trainer is not None and before["optimizer"] != now["optimizer"]:
            made = make_optimizer(self, self.config.optimizer, self._updates())
            same_class = before["optimizer"]["_target_"] == now["optimizer"]["_target_"]
            replace_optimizer(checkpoint, made, same_class)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, *options: Any, **named: Any) -> Any:
        """Returns the trained model, loaded by Lightning. `read_checkpoint` checks the file first."""
        read_checkpoint(checkpoint_path, named.pop("trust", ()))
        return super().load_from_checkpoint(checkpoint_path, *options, **named)


class RNNsearch(Translator):
    """Predicts each target word from its own context c_i = Σ_j α_ij h_j."""

    parts = staticmethod(rnnsearch)


class RNNencdec(Translator):
    """Predicts every target word from the same context c_i = →h_Tx."""

    parts = staticmethod(rnnencdec)
