"""Traced against real peaks on a CUDA card: networks of `nets/` are run on it for real, and traced.

    python benchmarks/trace_on_gpu.py [--only NAME …]

Each run has a process of its own. The real peak is the most bytes that were requested of PyTorch's allocator at once,
without cuBLAS's workspaces, which a trace does not count. Prints the error, and the bounds that the trace gives. Exits
with 1 if a real peak is outside of them by more than 1 %, and with 3 without a card.
"""

import argparse
import json
import subprocess
import sys
from typing import NamedTuple

from nets.catalogue import CASES, Case
from real_peaks import MIB, run_for_real

from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.request import TraceRequest
from planner.trace.run import trace

DIFFERS, NO_GPU = 1, 3
_TOLERANCE = 0.01


class Compared(NamedTuple):
    """A run with its real and its traced peak, and the bounds of the latter."""

    name: str
    real_bytes: int
    traced_bytes: int
    low_bytes: int
    high_bytes: int

    @property
    def is_bounded(self) -> bool:
        """Return whether the real peak lies between the bounds or within 1 % of a bound."""
        return self.low_bytes * (1 - _TOLERANCE) <= self.real_bytes <= self.high_bytes * (1 + _TOLERANCE)


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these runs")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    capability = card()
    if capability is None:
        print("error: this needs a CUDA GPU and a build of PyTorch for CUDA; there is none", file=sys.stderr)
        print("hint: benchmarks/trace_accuracy.py compares traces with runs on the CPU", file=sys.stderr)
        return NO_GPU
    if options.child:
        print(f"\n{json.dumps(measure(TraceRequest.model_validate_json(sys.stdin.read())))}")
        return 0
    print(f"{'run':34} {'real MiB':>10} {'traced MiB':>11} {'error':>8}  bounds in MiB")
    code = 0
    for case in CASES:
        if options.only is None or case.name in options.only:
            code = max(code, show(compare(case, capability)))
    return code


def card() -> str | None:
    """Return the compute capability of the card that PyTorch sees, or None without a card."""
    try:
        import torch
    except ImportError:
        return None
    return "{}.{}".format(*torch.cuda.get_device_capability()) if torch.cuda.is_available() else None


def compare(case: Case, capability: str) -> Compared:
    """Run `case` for real in a process of its own, and trace it for a card of `capability`.

    Raises:
        CalledProcessError: If it cannot be run.
    """
    request = case.request.evolve(device="cuda", compute_capability=capability)
    command = [sys.executable, __file__, "--child"]
    done = subprocess.run(command, input=request.model_dump_json(), stdout=subprocess.PIPE, text=True, check=True)
    recording = trace(request)
    peak = peak_moment(recording, live_memory(recording.allocations)).bytes
    low = sum(difference.low_bytes - difference.bytes for difference in recording.differences)
    high = sum(difference.high_bytes - difference.bytes for difference in recording.differences)
    return Compared(case.name, json.loads(done.stdout.splitlines()[-1]), peak, peak + low, peak + high)


def measure(request: TraceRequest) -> int:
    """Run `request` on the card, and return the most bytes that were requested at once, without cuBLAS's workspaces."""
    import torch

    torch.set_default_device("cuda")
    run_for_real(request)
    torch.cuda.synchronize()
    peak = int(torch.cuda.memory_stats()["requested_bytes.all.peak"])
    before = int(torch.cuda.memory_stats()["requested_bytes.all.current"])
    torch._C._cuda_clearCublasWorkspaces()  # noqa: SLF001  # there is no other way to know their size
    return peak - (before - int(torch.cuda.memory_stats()["requested_bytes.all.current"]))


def show(compared: Compared) -> int:
    """Print one row and return its exit code."""
    error = compared.traced_bytes / compared.real_bytes - 1
    sizes = f"{compared.real_bytes / MIB:10,.2f} {compared.traced_bytes / MIB:11,.2f} {error:+8.2%}"
    print(
        f"{compared.name[:34]:34} {sizes}  {compared.low_bytes / MIB:,.2f} to {compared.high_bytes / MIB:,.2f}",
        flush=True,
    )
    return 0 if compared.is_bounded else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
