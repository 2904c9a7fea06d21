"""A fixture that writes a log to a file and imports it."""

import pytest

from planner.monitor.recording.log_import import import_log


@pytest.fixture
def imported(tmp_path):
    def read(text, encoding="utf-8", name="gpu_log.csv", columns=None):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return import_log(path, columns)

    return read
