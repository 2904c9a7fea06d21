"""The model of PyTorch's caching allocator against the allocator itself, on a machine with a CUDA GPU.

    python benchmarks/allocator_on_gpu.py [--save FOLDER]
    python benchmarks/allocator_on_gpu.py --snapshot FILE …      (no GPU needed)

Trains a small network alongside tensors of random size and lifetime, once with each of several settings, and replays
what `torch.cuda.memory` recorded: every block must have the address that it had on the card, and the peaks must equal
those of `torch.cuda.memory_stats`. `--save` keeps the snapshots. `--snapshot` replays snapshots that
`torch.cuda.memory._dump_snapshot` wrote elsewhere. Exits with 1 if a run differs, and with 3 without a GPU.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from snapshots import Outcome, compare, load_snapshot

MIB = 1 << 20
CAPACITY_BYTES = 1 << 30
RUNS = {
    "": None,
    "expandable_segments:True": None,
    "roundup_power2_divisions:4": None,
    "max_split_size_mb:32": CAPACITY_BYTES,
    "garbage_collection_threshold:0.5": CAPACITY_BYTES,
}
"""The settings of each run, and the process's limit on the card's memory if the run has one."""
DIFFERS, NO_GPU = 1, 3


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path, help="folder that the snapshots are kept in")
    parser.add_argument("--snapshot", type=Path, nargs="+", default=[], help="snapshots to replay instead of a run")
    parser.add_argument("--record", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.snapshot:
        return show((path.name, outcome) for path in options.snapshot for outcome in compare(load_snapshot(path)))
    if not has_gpu():
        print("error: this needs a CUDA GPU and a build of PyTorch for CUDA; there is none", file=sys.stderr)
        print("hint: --snapshot FILE replays a snapshot that was recorded elsewhere", file=sys.stderr)
        return NO_GPU
    if options.record is not None:
        record(options.record, options.save)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return show(run(settings, options.save or Path(folder)) for settings in RUNS)


def has_gpu() -> bool:
    """Return whether PyTorch is installed and sees a CUDA GPU."""
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


def show(rows: Iterable[tuple[str, Outcome]]) -> int:
    """Print each outcome once known, and return 1 if one differs."""
    print(f"{'run':34} {'settings':34} {'allocations':>11} {'reserved MiB':>13} {'peak MiB':>9}  result")
    code = 0
    for name, found in rows:
        sizes = f"{found.reserved_bytes / MIB:13,.0f} {found.peak_reserved_bytes / MIB:9,.0f}"
        result = found.difference or "the same"
        print(f"{name[-34:]:34} {found.settings or 'none':34} {found.allocations:11,} {sizes}  {result}", flush=True)
        code = DIFFERS if found.difference else code
    return code


def run(settings: str, folder: Path) -> tuple[str, Outcome]:
    """Record a run with `settings` in a process of its own, since they are read when PyTorch starts."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{settings.partition(':')[0] or 'default'}.pickle"
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings}
    environment.pop("PYTORCH_ALLOC_CONF", None)
    subprocess.run([sys.executable, __file__, "--record", settings, "--save", path], env=environment, check=True)
    snapshot = load_snapshot(path)
    (outcome,) = compare(snapshot, snapshot["capacity_bytes"])
    peaks = [outcome.peak_reserved_bytes, outcome.peak_allocated_bytes]
    if not outcome.difference and peaks != snapshot["peaks"]:
        outcome = outcome._replace(difference=f"most reserved and allocated: {peaks}, the card {snapshot['peaks']}")
    return path.name, outcome


def record(settings: str, path: Path) -> None:
    """Run the workload, and write its snapshot together with the peak and the capacity."""
    import pickle

    import torch

    torch.cuda.init()
    capacity = RUNS[settings]
    if capacity is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(capacity / total)
        capacity = int(capacity / total * total)
    torch.cuda.memory._record_memory_history(context=None)  # noqa: SLF001  # documented, and there is no other way
    work()
    torch.cuda.synchronize()
    snapshot = torch.cuda.memory._snapshot()  # noqa: SLF001  # documented, and there is no other way
    peaks = [torch.cuda.memory_stats()[f"{name}_bytes.all.peak"] for name in ("reserved", "allocated")]
    path.write_bytes(pickle.dumps({**snapshot, "capacity_bytes": capacity, "peaks": peaks}))


def work() -> None:
    """Train a small network for steps of varying length, alongside tensors of random size and lifetime."""
    import torch

    chance = random.Random(0)
    network = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4).cuda()
    optimizer = torch.optim.AdamW(network.parameters())
    others = []
    for _ in range(12):
        batch = torch.randn(8, chance.randrange(32, 256), 256, device="cuda")
        network(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        for _ in range(100):
            others.append(torch.empty(int(2 ** chance.uniform(4, 25)), dtype=torch.uint8, device="cuda"))
            if len(others) > 48:
                del others[chance.randrange(len(others))]


if __name__ == "__main__":
    sys.exit(main())
