#!/usr/bin/env bash
# Makes the demonstration docs/demo.html from the two models in examples/models: bash examples/demo.sh
# It translates the test sets (minutes). Overrides of nmt.evaluate may follow, such as data.test.by_length.pairs=70.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf outputs/demo
for model in rnnencdec rnnsearch; do
    uv run python -m nmt.evaluate checkpoint=examples/models/$model.ckpt logger=none hydra.run.dir=outputs/demo/$model "$@"
done
uv run python -m nmt.compare 'runs=[outputs/demo/rnnencdec,outputs/demo/rnnsearch]' output=outputs/demo/page
mv outputs/demo/page/comparison.html docs/demo.html
