# `just` lists the recipes; `just train +experiment=rnnencdec50` passes the rest on.

set positional-arguments

default:
    @just --list

# Train a model, then translate and score the test sets
train *overrides='+experiment=rnnsearch50':
    uv run python -m nmt.train "$@"

# Train one job for each combination; the comparison page lies in the sweep's folder at the end
sweep *overrides='+experiment=rnnencdec30,rnnencdec50,rnnsearch30,rnnsearch50':
    uv run python -m nmt.train -m "$@"

# The whole test protocol on a trained model: just evaluate checkpoint=FILE
evaluate *overrides:
    uv run python -m nmt.evaluate "$@"

# Translate standard input: just translate checkpoint=FILE < source.txt
translate *overrides:
    uv run python -m nmt.translate "$@"

# One page for several runs: just compare 'runs=[outputs/*/*]'
compare *overrides:
    uv run python -m nmt.compare "$@"

# The tests that every commit passes (under 5 minutes on two idle cores)
test *options:
    uv run pytest "$@"

# All tests, the slow ones and those that drive a browser too
test-all *options:
    uv run pytest -m 'slow or not slow' "$@"

# Lint, format and types
lint:
    uv run ruff check .
    uv run ruff format --check .
    uv run mypy

# Mend what lint can mend
format:
    uv run ruff check --fix .
    uv run ruff format .
