"""Two of the unusual homes of which the benchmark tries all."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOMES = Path(__file__).parents[2] / "benchmarks" / "homes.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the commands are forked")
def test_commands_and_the_window_answer_below_a_file():
    command = [sys.executable, str(HOMES), "--only", "below a file"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout.count("\n")) == (0, 2), told.stdout


def test_at_least_sixty_homes_are_tried():
    told = subprocess.run([sys.executable, str(HOMES), "--list"], capture_output=True, text=True, check=True)
    assert len(set(told.stdout.splitlines())) * 2 >= 60
