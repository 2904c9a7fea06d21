"""Published speeds, against the estimate: the aims that the benchmark states."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.oracle
def test_published_speeds_are_within_the_aims() -> None:
    script = ROOT / "benchmarks" / "throughput_accuracy.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every aim is met" in done.stdout
