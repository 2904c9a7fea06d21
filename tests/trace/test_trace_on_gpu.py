"""The script that compares traces with runs on a card."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "trace_on_gpu.py"


@pytest.mark.oracle
def test_the_comparison_needs_a_card() -> None:
    if pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is a CUDA GPU here")
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "this needs a CUDA GPU" in done.stderr
