"""A few of the kills of windows and recorders of which the benchmarks do a thousand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[2] / "benchmarks" / "window_kills.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the windows are forked")
def test_windows_that_are_killed_while_they_save_damage_nothing_and_leave_nothing():
    command = [sys.executable, str(KILLS), "--kills", "2", "--at-once", "1", "--seed", "5"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.stderr == ""
    last = told.stdout.splitlines()[-1]
    # What is lost of the last second depends on how busy the machine is.
    assert "2 windows killed in 1 rounds, 1 with two windows" in last
    assert "0 saved plans lost" in last
    assert last.endswith("0 damaged, 0 leftovers")


def test_recordings_of_killed_writers_are_read_to_their_end(tmp_path):
    from recording_kills import kill_writers

    kills = list(kill_writers(tmp_path, [0.1, 0.3, 3.0], at_once=3))
    assert len(kills) == 3
    assert kills[-1].samples
