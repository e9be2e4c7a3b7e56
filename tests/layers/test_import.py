"""The layers can be taken out of the project: torch is all that they need."""

import ast
import sys

from tests.helpers import ROOT


def test_layers_need_torch_only():
    imported = set()
    for file in (ROOT / "nmt/layers").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(".".join(str(node.module).split(".")[:2]))
    others = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert others == {"torch", "torch.nn", "nmt.layers"}
