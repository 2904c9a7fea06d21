"""Modules of the benchmarks, which lie beside the package and import each other by name."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def modules_of_the_benchmarks():
    """Let the tests import the benchmark's modules, and leave the path as it was."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path.remove(str(ROOT / "benchmarks"))
