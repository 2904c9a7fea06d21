"""One rank of several that do not exist: what it holds, against the shares and against ranks that really run."""

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from planner.errors import TraceError
from planner.trace.analysis.memory import facts_of
from planner.trace.recording import CATEGORIES, TraceRecording
from planner.trace.request import Input, Target, TensorInput, TraceParallel, TraceRequest
from planner.trace.worker.job import record_trace

FILE = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))

class Net(nn.Module):
    def __init__(self, width=256, depth=6):
        super().__init__()
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        return self.head(self.blocks(x))
"""


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory):
    file = tmp_path_factory.mktemp("net") / "spread_net.py"
    file.write_text(FILE, encoding="utf-8")

    def make(**changes: object) -> TraceRequest:
        plain = TraceRequest(
            target=Target(kind="file", place=str(file), name="Net"),
            inputs=(Input(value=TensorInput(shape=(64, 256))),),
            task="training",
            device="cpu",
        )
        return plain.evolve(**changes)

    return make


@cache
def traced(request: TraceRequest) -> TraceRecording:
    """Return the recording of a request, which is traced once for all tests that compare with it."""
    return record_trace(request, lambda *_: None)


def most(recording: TraceRecording, category: str) -> int:
    """Return the most bytes of a category that are alive at once."""
    columns = recording.allocations
    events = [
        event
        for count, made, freed, kind in zip(columns.bytes, columns.made, columns.freed, columns.category, strict=True)
        if CATEGORIES[kind] == category
        for event in ((made, count), (freed, -count))
        if event[0] >= 0
    ]
    alive = peak = 0
    for _, change in sorted(events):
        alive += change
        peak = max(peak, alive)
    return peak


def test_a_replica_has_an_additional_gradient_bucket(request_of) -> None:
    alone = traced(request_of())
    replica = traced(request_of(parallel=TraceParallel(ranks=2, strategy="ddp")))
    bytes_of_gradients = 4 * alone.parameters
    assert most(replica, "communication") == pytest.approx(bytes_of_gradients, rel=0.01)
    assert facts_of(replica).allocated_bytes == pytest.approx(
        facts_of(alone).allocated_bytes + bytes_of_gradients, rel=0.01
    )


@pytest.mark.parametrize("ranks", [2, 8])
def test_a_shard_has_its_fraction_of_parameters_gradients_and_states(request_of, ranks: int) -> None:
    alone = traced(request_of())
    shard = traced(request_of(parallel=TraceParallel(ranks=ranks, strategy="fsdp")))
    for category in ("parameters", "gradients", "optimizer_states"):
        # Rows of odd numbers are padded to whole shards.
        assert most(shard, category) == pytest.approx(most(alone, category) / ranks, rel=0.03), category
    assert shard.parameters == alone.parameters
    assert any("shards" in note for note in shard.notes)


def test_whole_parameters_exist_for_one_unit_at_a_time(request_of) -> None:
    sharded = traced(request_of(parallel=TraceParallel(ranks=8, strategy="fsdp")))
    kept = traced(request_of(parallel=TraceParallel(ranks=8, strategy="fsdp", reshard_after_forward=False)))
    whole = 4 * sharded.parameters
    assert most(sharded, "communication") < whole
    assert most(kept, "communication") > whole


def test_units_can_be_named(request_of) -> None:
    named = traced(request_of(parallel=TraceParallel(ranks=8, strategy="fsdp", units=("Linear",))))
    default = traced(request_of(parallel=TraceParallel(ranks=8, strategy="fsdp")))
    assert most(named, "communication") < most(default, "communication")
    with pytest.raises(TraceError, match="no module is a Nothing"):
        traced(request_of(parallel=TraceParallel(ranks=8, strategy="fsdp", units=("Nothing",))))


def test_no_process_group_remains(request_of) -> None:
    import torch.distributed as dist

    resize = __import__("torch").UntypedStorage.resize_
    record_trace(request_of(parallel=TraceParallel(ranks=2, strategy="ddp")), lambda *_: None)
    assert not dist.is_initialized()
    assert __import__("torch").UntypedStorage.resize_ is resize


def _real_peak(request: TraceRequest) -> int:
    """Return the bytes that the first of real ranks holds at most."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "real_ranks.py")],
        input=request.model_dump_json(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return int(done.stdout.split()[-1])


@pytest.mark.oracle
def test_a_replica_peaks_where_real_replicas_do(request_of) -> None:
    request = request_of(parallel=TraceParallel(ranks=2, strategy="ddp"))
    expected = pytest.approx(facts_of(traced(request)).allocated_bytes, rel=0.001)
    # Gloo's threads let a bucket go when they come to it: in some runs it is still held at the peak, which no plan can
    # say. The run that holds the least is the one to compare.
    peaks: list[int] = []
    while len(peaks) < 5 and (not peaks or min(peaks) != expected):
        peaks.append(_real_peak(request))
    assert min(peaks) == expected
