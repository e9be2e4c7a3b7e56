"""`RunFolder`: the paths in the folder of a run, and whether another run has used it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nmt.evaluation import results
from nmt.training.checkpoint_folder import CheckpointFolder
from nmt.utils.environment import output_folder, rank
from nmt.utils.errors import InputError
from nmt.utils.files import remove_partial


@dataclass(frozen=True)
class RunFolder:
    """The folder that a run writes into."""

    path: Path

    @classmethod
    def of_this_command(cls) -> RunFolder:
        """The folder that Hydra has made for the running command."""
        return cls(output_folder())

    @property
    def checkpoints(self) -> CheckpointFolder:
        return CheckpointFolder(self.path / "checkpoints")

    @property
    def results(self) -> Path:
        """results.json: where it exists the run is finished."""
        return self.path / results.FILE

    def set_results_aside(self) -> None:
        """Renames results.json, so that a run that continues counts as unfinished."""
        if self.results.is_file():
            self.results.replace(self.path / "results.earlier.json")

    @property
    def page(self) -> Path:
        return self.path / "report.html"

    def remove_partial(self) -> None:
        """Removes partial files of a killed process; the folder must be locked by this process.

        Only in folders that a run writes to: the folder that was typed may hold other files.
        """
        own = ("translations", "alignments", "figures", "wandb")
        remove_partial([self.path, self.checkpoints.path, *(self.path / name for name in own)])

    def refuse_used(self) -> None:
        """Refuses to write over another run's results or checkpoints; raises InputError."""
        written = [self.results, *self.checkpoints.found()]
        used = [path for path in written if path.exists()]
        if used and rank() == 0:
            raise InputError(
                f"hydra.run.dir={self.path}: holds a run already ({used[0].name}); take another"
            )
