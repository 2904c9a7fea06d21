"""The files of measured serving runs in the corpus."""

from pathlib import Path

from planner.serving_runs.read import read_serving_runs
from planner.serving_runs.record import ServingRun

CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted((*(CORPUS / "serving-metrics").iterdir(), *(CORPUS / "serving-results").iterdir()))


def run(name: str) -> ServingRun:
    """Return the first run in the file called `name`."""
    return read_serving_runs(next(file for file in FILES if file.name == name))[0]
