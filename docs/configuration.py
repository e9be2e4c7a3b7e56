"""Writes configuration.md, the reference of all options and keys.

python -m docs.configuration > docs/configuration.md
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from omegaconf import MISSING, OmegaConf

from nmt.cli.composition import PLUS, conf_folder, register_configs
from nmt.config.changes import effect_of
from nmt.config.commands import SCHEMAS, TrainConfig
from nmt.config.keys import described, entries
from nmt.config.schema import TRAINER_EFFECTS, TextConfig

HEAD = """\
# Configuration

`python -m docs.configuration` generates this page from the schema and from `conf/`.

To set a key, type `key=value` after a command. To choose an option of a group, type `group=option`:

```bash
uv run python -m nmt.train +experiment=rnnsearch30 regime=tiny scoring=dot optimizer.lr=5e-4
```

Overrides have priority over `experiment`, `experiment` over `regime`, and `regime` over the other groups.
`python -m nmt.train --cfg job` prints the composed configuration, and `--help` lists the groups. A wrong key or value
ends a command with exit code 2; the message names the key.

- Sections with the arguments of a class, such as `trainer` and `optimizer.options`, accept any argument of that class.
- Type `experiment` with a plus: `+experiment=rnnsearch50`.
- A value that contains `=`, a comma or a bracket needs two pairs of quotes, one for the shell, one for Hydra:
  `'name="a=b"'`.
- `null` unsets a value whose type includes None.
"""

EFFECTS = """\
The column *effect* says what a key changes. The effect decides whether `resume` and `ckpt_path`, which continue a run,
accept another value, and whether runs that differ in the key count as different runs. Unlisted keys, such as arguments
of a class, have the effect of their section.

| effect | what the key changes | `resume` | `ckpt_path` | comparisons and sweeps |
| --- | --- | --- | --- | --- |
| weights | the network and its vocabularies | refused | refused | different run |
| training | what the model learns | refused | allowed | different run |
| length | when the training ends | allowed | allowed | different run |
| tests | search, scores and test sets | allowed | allowed | different run |
| machine | devices, folders and output | allowed | allowed | same run |
| local | like machine, but `nmt.evaluate` ignores the value in a checkpoint | allowed | allowed | same run |

### Groups over a checkpoint

With `resume`, `ckpt_path` and `checkpoint`, type keys. Of the groups, an option of `logger` or `search` replaces the
whole stored section. An option of `trainer` replaces the keys that its file sets and the keys for devices. An option of
`data` replaces the keys that its file sets; all test sets count as one key. An option of another group is refused if it
differs from the stored run; the message names the keys to type instead. `callbacks.NAME=null` removes a callback.
`initial_checkpoint` starts a new run, so it accepts all groups.

`resume` and `ckpt_path` cannot change `experiment` and `regime`. `nmt.evaluate`, `nmt.translate` and `nmt.score`
accept only the keys and sections listed under their names.
"""
# Interpolations, and what a reader sees instead
READABLE = {
    r"'\$\{by_experiment:\$\{experiment\},\{other:(\w+),(\w+):(\w+)\}\}'": r"\1 (\2: \3)",
    r"'\$\{wandb_offline:.*?\}\}'": "true unless WANDB_MODE=online",
}
INSIDE = "\n".join(
    f"These arguments of `trainer` have the effect *{effect}*: "
    f"{', '.join(f'`{name}`' for name, each in TRAINER_EFFECTS.items() if each == effect)}."
    for effect in dict.fromkeys(TRAINER_EFFECTS.values())
)


def reference() -> str:
    """Returns the content of docs/configuration.md."""
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        defaults = compose("train")
    options = (
        (
            f"`{'+' * (file.parent.name in PLUS)}{file.parent.name}`",
            f"`{file.stem}`",
            _comment(file),
        )
        for file in sorted(conf_folder().glob("[!h]*/*.yaml"))
    )
    keys = dict(entries(TrainConfig))
    parts = [
        HEAD,
        *("## Groups\n", _table(("group", "option", "what it is"), options)),
        *(
            "## Keys\n",
            EFFECTS,
            _keys(
                ((path, OmegaConf.select(defaults, path), keys[path]) for path in keys),
                effect=lambda path: effect_of(TrainConfig, path),
            ),
            f"{INSIDE}\n",
        ),
        "## Keys of `data.train`, `data.valid` and each `data.test.NAME`\n",
        _keys((path, entry.default, entry) for path, entry in entries(TextConfig)),
    ]
    for command, schema in SCHEMAS.items():
        if schema is not TrainConfig:
            own = [(path, entry) for path, entry in entries(schema) if path not in keys]
            shared = sorted({path.partition(".")[0] for path, _ in entries(schema) if path in keys})
            parts += [f"## Keys of nmt.{command}\n", _keys((p, _default(e), e) for p, e in own)]
            parts.append(
                f"`nmt.{command}` also accepts {', '.join(f'`{each}`' for each in shared)}.\n"
            )
    return "\n".join(parts).rstrip() + "\n"


def _comment(file: Path) -> str:
    """Returns the first comment of an option's file, without its lines `# @package ...` and `# python ...`."""
    lines = itertools.takewhile(lambda line: line[:2] == "# ", file.read_text().splitlines())
    return " ".join(line[2:] for line in lines if not line.startswith(("# @package", "# python")))


def _default(entry: dataclasses.Field[Any]) -> Any:
    factory = entry.default_factory
    return factory() if callable(factory) else entry.default


def _keys(
    rows: Iterable[tuple[str, Any, dataclasses.Field[Any]]],
    effect: Callable[[str], str] | None = None,
) -> str:
    """Returns a table of keys, with their types, defaults, meanings and, if given, effects."""
    cells = []
    for path, default, entry in rows:
        plain = OmegaConf.to_container(default) if OmegaConf.is_config(default) else default
        text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, width=10**6)
        for interpolation, words in READABLE.items():
            text = re.sub(interpolation, words, text)
        shown = f"`{text.removesuffix('...' + chr(10)).strip()}`"
        meaning = entry.metadata["meaning"].replace("<", "\\<")
        shown = "must be given" if plain == MISSING else shown
        own = (effect(path),) if effect else ()
        cells.append((f"`{path}`", described(entry), shown, *own, meaning))
    return _table(
        ("key", "accepted", "default", *(("effect",) if effect else ()), "meaning"), cells
    )


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in lines
    )


if __name__ == "__main__":
    register_configs()
    print(reference(), end="")
