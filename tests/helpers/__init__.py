"""Code for tests in several folders: processes, models, run folders, a browser, the documentation."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
