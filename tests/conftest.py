"""Shared set-up: no screen is needed, and no test touches the user's own folders."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(autouse=True)
def own_state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give every test its own empty state folder."""
    folder = tmp_path / "gpu-planner-home"
    monkeypatch.setenv("GPU_PLANNER_HOME", str(folder))
    yield folder
