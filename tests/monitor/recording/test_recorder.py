"""Recording from a thread: complete after kills, with errors of the disk reported."""

import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import Queue
from time import monotonic

import pytest
from fake_nvml_kit import CALM, FAST, LONGEST_SECONDS, A, card
from recording_kit import CARDS, sample

from planner.monitor.readings.sample import Sample
from planner.monitor.recording import recorder as recorder_module
from planner.monitor.recording.player import Player
from planner.monitor.recording.recorder import PROGRAM_NAME, Recorder
from planner.monitor.recording.recording import DataLoss, read_recording
from planner.monitor.supervisor.supervisor import Supervisor

KILLS = Path(__file__).parents[3] / "benchmarks" / "recording_kills.py"


def test_recorded_updates_are_read_back(tmp_path):
    path = tmp_path / "run.gpurec"
    with Recorder(path) as recorder:
        recorder.note(CARDS)
        recorder.note_plan({"model": "llama"})
        for second in range(3):
            recorder.note(sample(float(second), a={"power_watts": 100.0}))
        mark = recorder.mark("epoch 2")
    recorder.close()
    found = read_recording(path)
    assert next(iter(found)) == CARDS
    assert (found.samples, found.marks, found.plan) == (3, (mark,), {"model": "llama"})
    assert (found.header.program, found.loss, recorder.failure) == (PROGRAM_NAME, DataLoss(), None)


def test_what_was_recorded_is_on_the_disk_when_the_recorder_closes(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(recorder_module.os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    with Recorder(tmp_path / "run.gpurec") as recorder:
        recorder.note(CARDS)
    assert synced == [recorder.path.stat().st_ino]


def test_a_new_file_is_a_valid_recording_from_the_start(tmp_path):
    with Recorder(tmp_path / "run.gpurec") as recorder:
        assert read_recording(recorder.path).loss == DataLoss(is_cut=True)


def test_an_unfinished_recording_can_be_replayed(tmp_path):
    with Recorder(tmp_path / "run.gpurec") as recorder:
        recorder.note(CARDS)
        recorder.note(sample(0.0, a={"power_watts": 1.0}))
        found = wait_for_samples(recorder.path, 1)
        assert (found.seconds, found.loss) == (0.0, DataLoss(is_cut=True))
        recorder.note(sample(1.0, a={"power_watts": 2.0}))
        assert wait_for_samples(recorder.path, 2).seconds == 1.0
        player = Player(found)
        assert list(player.updates_until(5.0)) == [CARDS, sample(0.0, a={"power_watts": 1.0})]
        assert player.is_over, "what was opened ends where it ended then"


def wait_for_samples(path, count):
    deadline = monotonic() + LONGEST_SECONDS
    while (found := read_recording(path)).samples < count:
        assert monotonic() < deadline
    return found


def test_many_updates_are_written_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, "_FLUSH_SECONDS", 0.0)
    with Recorder(tmp_path / "run.gpurec") as recorder:
        for second in range(100):
            recorder.note(sample(float(second)))
    assert read_recording(recorder.path).samples == 100


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_a_disk_error_ends_the_recording_and_is_reported(tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder = Recorder(tmp_path / "run.gpurec")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (recorder.path.stat().st_size + 20, limits[1]))
        recorder.note(CARDS)
        recorder._thread.join(LONGEST_SECONDS)
        recorder.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert recorder.failure == "File too large"
    recorder.note(CARDS)
    assert read_recording(recorder.path).loss.is_cut


def test_an_invalid_plan_ends_the_recording(tmp_path):
    with Recorder(tmp_path / "run.gpurec") as recorder:
        recorder.note(CARDS)
        recorder.note_plan({"bytes": float("nan")})
        recorder._thread.join(LONGEST_SECONDS)
    assert "not JSON compliant" in recorder.failure
    assert read_recording(recorder.path).loss.is_cut


class _HangingDisk(io.BytesIO):
    """A disk that takes the first thing and then hangs until it is let go."""

    def __init__(self):
        super().__init__()
        self.goes_on = threading.Event()
        self.count = 0

    def write(self, data):
        self.count += 1
        if self.count > 1:
            self.goes_on.wait(LONGEST_SECONDS)
        return super().write(data)


def test_a_hanging_disk_does_not_block_the_caller(tmp_path, monkeypatch):
    disk = _HangingDisk()
    monkeypatch.setattr(recorder_module, "open_new", lambda path, replace: disk)
    monkeypatch.setattr(recorder_module, "_MAX_QUEUED", 3)
    monkeypatch.setattr(recorder_module, "_CLOSE_TIMEOUT_SECONDS", 0.01)
    recorder = Recorder(tmp_path / "run.gpurec")
    while recorder.failure is None:
        recorder.note(CARDS)
    recorder.close()
    assert recorder.failure == "cannot write to the disk"
    disk.goes_on.set()
    recorder._queue.put(None)
    recorder._thread.join(LONGEST_SECONDS)


def test_a_real_run_is_recorded(fake_nvml, tmp_path):
    fake_nvml.say(card(0, A))
    with Recorder(tmp_path / "run.gpurec") as recorder:
        queue = Queue()
        with Supervisor(lambda update: (recorder.note(update), queue.put(update)), FAST, CALM, fake_nvml.environment):
            heard = [queue.get(timeout=LONGEST_SECONDS) for _ in range(8)]
    found = list(read_recording(recorder.path))
    assert found[: len(heard)] == heard
    assert any(A in update.devices for update in found if isinstance(update, Sample))


def test_ten_kills_lose_a_second_at_most():
    command = [sys.executable, KILLS, "--kills", "10", "--at-once", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 kills, every file opened" in done.stdout
