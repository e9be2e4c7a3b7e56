"""Every kernel that the recurrences launch compiles for a GPU that is not there.

Triton's interpreter, which shows what kernels compute, accepts what its compiler refuses, and knows
neither registers nor the width of a load.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import pytest

from tests.helpers import ROOT

FILE = ROOT / "benchmarks" / "gpu" / "compile.py"
KEYS = ["kernel", "target", "S", "dtype", "registers", "spills", "shared", "vector_loads"]
# How many of each a type takes. A softmax over up to 64 and one over up to 256 positions; additive
# and dot scores, and the scores of a search; encoder, decoder, and decoder without attention, which
# differ in float32 by their padding alone; a unit's last step, after which no product comes; a loss
# weighted or not, with gradients or (which the types share) without.
KERNELS = {
    "score_kernel": 3,
    "context_kernel": 2,
    "weights_backward_kernel": 1,
    "query_backward_kernel": 4,
    "additive_gradients_kernel": 1,
    "open_gates_kernel": 2,
    "next_state_kernel": 1,
    "candidate_backward_kernel": 2,
    "reset_backward_kernel": 2,
    "lookup_backward_kernel": 1,
}
OF_FLOAT32 = {"word_nll_kernel": 4, "adadelta_kernel": 2}  # gradients clipped or not
OF_BFLOAT16 = {
    "open_gates_kernel": 3, "next_state_kernel": 2, "candidate_backward_kernel": 3,
    "word_nll_kernel": 2,
}  # fmt: skip
READS_KEYS_OR_ANNOTATIONS = [name for name in KERNELS if name.split("_")[0] in (
    "score", "context", "weights", "query", "additive",
)]  # fmt: skip

GATES = [name for name in KERNELS if name.split("_")[0] in ("open", "next", "candidate", "reset")]


def compile_py():
    spec = spec_from_file_location("compiled_offline", FILE)
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for annotations
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.parametrize(
    "target",
    ["sm_90", *(pytest.param(name, marks=pytest.mark.slow) for name in ("sm_80", "gfx942"))],
)
def test_all_kernels_compile(target):
    """For the lengths 8 to 200, without spills, keys and annotations loaded 16 bytes at a time."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    run = f"import runpy, sys; sys.argv[1:] = ['{target}']; runpy.run_path('{FILE}', None, '__main__')"
    result = subprocess.run(
        [sys.executable, "-c", run], capture_output=True, text=True, cwd=ROOT, check=False,
        env=environment | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(list(each) == KEYS and each["target"] == target for each in found)
    for dtype in ("float32", "bfloat16"):
        of_type = [each for each in found if each["dtype"] == dtype]
        expected = KERNELS | (OF_BFLOAT16 if dtype == "bfloat16" else OF_FLOAT32)
        assert Counter(each["kernel"] for each in of_type) == expected
        for each in of_type:
            assert each["spills"] == 0, each
            product = each["kernel"] in GATES and each["shared"] > 2**14
            # AMD's tensor cores take their operands from more registers, and it has 512 of them
            most = 160 if product and target.startswith("gfx") else 128
            assert 0 < each["registers"] <= most, each
            if each["kernel"] in READS_KEYS_OR_ANNOTATIONS:
                # 8 positions x 256 entries by 128 threads (AMD: 256): all of them, and no query
                entries = 8 * 256 // (256 if target.startswith("gfx") else 128)
                size = 4 if dtype == "float32" else 2
                assert each["vector_loads"] >= entries * size // 16, each
            if product:
                # 64 sentences and 16 units, 128 entries of each, by 128 threads
                threads = 256 if target.startswith("gfx") else 128
                assert each["vector_loads"] >= (64 + 16) * 128 * 2 // 16 // threads, each
            if each["kernel"] == "word_nll_kernel":
                # 4096 logits by 1024 threads, in each pass over them
                assert each["vector_loads"] >= 1, each
            if each["kernel"] == "adadelta_kernel":
                # parameter, gradient and two averages: 2048 entries by 256 threads (AMD: 512)
                assert each["vector_loads"] >= 4 * (1 if target.startswith("gfx") else 2), each


def test_what_does_not_compile_is_a_line_and_a_status(monkeypatch, capsys):
    tool = compile_py()
    good = tool.Specialisation("a_kernel", "sm_90", 8, "float32", 22, 0, 0, 4)
    bad = tool.Specialisation("b_kernel", "sm_90", 32, "float32", error="CompilationError: no")
    monkeypatch.setattr(tool, "compile_all", lambda target: iter([good]))
    assert tool.main() == 0
    assert list(json.loads(capsys.readouterr().out)) == KEYS
    monkeypatch.setattr(tool, "compile_all", lambda target: iter([bad, good]))
    assert tool.main() == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("error") for line in lines] == ["CompilationError: no", None]
