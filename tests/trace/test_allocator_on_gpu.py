"""The allocator's model against the allocator: on a card where there is one, else with a snapshot as it writes them."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "allocator_on_gpu.py"
MIB = 1 << 20
START = 0x7F0000000000


def run_script(*arguments):
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def has_gpu():
    return pytest.importorskip("torch").cuda.is_available()


@pytest.mark.oracle
def test_blocks_have_the_same_addresses_as_on_the_card():
    if not has_gpu():
        pytest.skip("there is no CUDA GPU here")
    done = run_script()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.oracle
def test_the_comparison_needs_a_card():
    if has_gpu():
        pytest.skip("there is a CUDA GPU here")
    done = run_script()
    assert done.returncode == 3
    assert "this needs a CUDA GPU" in done.stderr


def entry(action, address, size, **more):
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": [], **more}


def block(address, size, state="active_allocated"):
    return {"address": address, "size": size, "requested_size": size, "state": state, "frames": []}


def segment(address, size, blocks, kind="large"):
    used = sum(part["size"] for part in blocks if part["state"] == "active_allocated")
    shares = {"total_size": size, "allocated_size": used, "active_size": used}
    return {"device": 0, "address": address, "segment_type": kind, "stream": 0, "blocks": blocks, **shares}


def snapshot(trace, segments, settings=""):
    return {
        "segments": segments,
        "device_traces": [trace, []],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": settings},
    }


def within():
    """Return a recording that began when 5 of a segment of 20 MiB were in use and 2 MiB of small ones were free."""
    small = START + 64 * MIB
    trace = [
        entry("alloc", START + 5 * MIB, 15 * MIB - MIB // 2),
        entry("free_requested", START, 5 * MIB - 100),
        entry("free_completed", START, 5 * MIB - 100),
        entry("segment_free", small, 2 * MIB),
        entry("segment_alloc", START + 128 * MIB, 20 * MIB),
        entry("alloc", START + 128 * MIB, 6 * MIB),
    ]
    segments = [
        segment(START, 20 * MIB, [block(START, 5 * MIB, "inactive"), block(START + 5 * MIB, 15 * MIB)]),
        segment(
            START + 128 * MIB,
            20 * MIB,
            [block(START + 128 * MIB, 6 * MIB), block(START + 134 * MIB, 14 * MIB, "inactive")],
        ),
    ]
    return snapshot(trace, segments)


def expandable():
    """Return a recording that ends where a card of 50 MiB has no second page of 20 MiB for 30 more."""
    trace = [
        entry("segment_map", START, 20 * MIB),
        entry("alloc", START, 15 * MIB),
        {"action": "oom", "device_free": 30 * MIB, "size": 30 * MIB, "stream": 0, "frames": []},
    ]
    segments = [segment(START, 20 * MIB, [block(START, 15 * MIB), block(START + 15 * MIB, 5 * MIB, "inactive")])]
    return snapshot(trace, segments, "expandable_segments:True")


@pytest.mark.parametrize("make", [within, expandable])
def test_a_saved_snapshot_is_replayed(make, tmp_path):
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps(make()))
    done = run_script("--snapshot", path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert "the same" in done.stdout


def test_a_block_at_another_address_is_a_difference(tmp_path):
    path = tmp_path / "run.pickle"
    changed = within()
    changed["device_traces"][0][-1]["addr"] = START + 130 * MIB
    changed["segments"][1]["blocks"][0]["address"] = START + 130 * MIB
    path.write_bytes(pickle.dumps(changed))
    done = run_script("--snapshot", path)
    assert done.returncode == 1
    assert "event 5, alloc of 6,291,456 B: the model chose another block" in done.stdout


def test_a_snapshot_cannot_run_code(tmp_path):
    path = tmp_path / "run.pickle"
    path.write_bytes(pickle.dumps(subprocess.Popen))
    done = run_script("--snapshot", path)
    assert "a snapshot has no subprocess.Popen" in done.stderr
