"""What tests of several folders share: processes, models, run folders, a browser, the documentation."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
