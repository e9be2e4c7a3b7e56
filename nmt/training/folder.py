"""`RunFolder`: the paths in the folder of a run, and whether another run has used it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nmt.evaluation import results
from nmt.utils.environment import output_folder, rank
from nmt.utils.errors import InputError


@dataclass(frozen=True)
class RunFolder:
    """The folder that a run writes into."""

    path: Path

    @classmethod
    def of_this_command(cls) -> RunFolder:
        """The folder that Hydra has made for the running command."""
        return cls(output_folder())

    @property
    def last(self) -> Path:
        """The checkpoint that a run is resumed from."""
        return self.path / "checkpoints" / "last.ckpt"

    @property
    def best(self) -> Path:
        """The checkpoint that is tested."""
        return self.path / "checkpoints" / "best.ckpt"

    @property
    def results(self) -> Path:
        """results.json: where it exists the run is finished."""
        return self.path / results.FILE

    @property
    def page(self) -> Path:
        return self.path / "report.html"

    def refuse_used(self) -> None:
        """Refuses to write over another run's results or checkpoints; raises InputError."""
        used = [path for path in (self.results, self.last, self.best) if path.exists()]
        if used and rank() == 0:
            raise InputError(
                f"hydra.run.dir={self.path}: holds a run already ({used[0].name}); resume=auto goes "
                "on with it, another hydra.run.dir starts a new one"
            )
