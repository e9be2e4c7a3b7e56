"""The layers can be imported into a notebook alone."""

import subprocess
import sys


def test_layers_need_torch_only():
    code = (
        "import sys, torch; before = set(sys.modules); import nmt.layers; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names)), "
        "[m for m in sys.modules if m.startswith('nmt.') and not m.startswith('nmt.layers')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['nmt'] []"
