# `just` lists the recipes; it passes the words after a recipe's name to the command: `just train +experiment=rnnencdec50`.

set positional-arguments

default:
    @just --list

# Train a model, then translate and score the test sets
train *overrides='+experiment=rnnsearch50':
    uv run python -m nmt.train "$@"

# Train one job for each combination of values; the comparison page is written to the sweep's folder
sweep *overrides='+experiment=rnnencdec30,rnnencdec50,rnnsearch30,rnnsearch50':
    uv run python -m nmt.train -m "$@"

# Run the whole test protocol on a trained model: just evaluate checkpoint=FILE
evaluate *overrides:
    uv run python -m nmt.evaluate "$@"

# Translate standard input: just translate checkpoint=FILE < source.txt
translate *overrides:
    uv run python -m nmt.translate "$@"

# Compare runs on one page: just compare 'runs=[outputs/*/*]'
compare *overrides:
    uv run python -m nmt.compare "$@"

# The README's second command: tests of every part, without the slow ones
test *options:
    uv run --group dev pytest "$@"

# All tests, including slow ones and those that drive a browser
test-all *options:
    uv run --group dev pytest -m 'slow or not slow' "$@"

# Check lint rules, format and types
lint:
    uv run --group dev ruff check .
    uv run --group dev ruff format --check .
    uv run --group dev mypy

# Fix lint errors that can be fixed automatically, and format
format:
    uv run --group dev ruff check --fix .
    uv run --group dev ruff format .

# Pin the newest versions of all dependencies, with the hashes of their files
constraints:
    uv pip compile pyproject.toml --extra train --universal --python-version 3.11 --upgrade --generate-hashes --no-annotate \
        --no-emit-index-url --custom-compile-command 'just constraints' --output-file constraints.txt
