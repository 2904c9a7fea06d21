"""Published measurements of single operators, as traces of the same operators.

    python benchmarks/traced_kernels.py norm_head,torch,512,5120,125696 image_decoder,torch,128,1

All are traced in one run of `nets/kernels.py`, where each frees what it had before the next one starts. Called with
kernels, prints what is alive at the peak of each, and what PyTorch's allocator reserves for it alone.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from memory_rows import Excluded, Predicted, Row, card_named

from planner.hardware.catalog import HardwareCatalog
from planner.memory.overhead import cublas_workspace_bytes
from planner.trace.allocator_settings import AllocatorSettings
from planner.trace.analysis.live_memory import live_memory
from planner.trace.recording import TraceRecording
from planner.trace.replay import replay
from planner.trace.request import Target, TraceRequest
from planner.trace.run import trace
from planner.units import GIB

_SCRIPT: Final = Path(__file__).resolve().parent / "nets" / "kernels.py"
_SIZES: Final = {
    "geglu": ("bsz", "T", "hidden_size", "intermediate_size"),
    "rope": ("seq_len", "hidden_size", "num_q_heads", "num_kv_heads"),
    "kl_div": ("B", "T", "V"),
    "fused_moe": ("T", "E", "H", "intermediate_dim", "K"),
}
"""Kernels of Liger's benchmark that are traced, and what their script calls the sizes."""
_OTHER_NAMES: Final = {("rope", "H"): "hidden_size", ("rope", "T"): "seq_len"}
_WORKSPACES: Final = {"kl_div": 0, "rope": 1}
"""Threads that call cuBLAS where it is not both: none, or only the one that computes the angles."""
_NOT_TRACED: Final = {
    "rms_norm": "Triton's norm, whose sums per multiprocessor are not PyTorch's",
    "embedding": "it holds 12 and 14 GiB of earlier runs beside the four tensors of its own",
    "fused_linear_orpo_loss": "a loss of pairs in chunks, whose kernels were not read",
    "fused_moe of liger": "Triton's experts, whose buffers were not read",
}


def predict_kernels(rows: Iterable[Row], hardware: HardwareCatalog) -> Iterator[tuple[Row, Predicted | Excluded]]:
    """Yield the traced peak of the operator of each of `rows`, or the reason why it is not traced."""
    runs = [(row, run_of(row)) for row in rows]
    traced = tuple({run: None for _, run in runs if isinstance(run, str)})
    peaks = dict(zip(traced, _peaks(trace(_request(traced))), strict=True)) if traced else {}
    for row, run in runs:
        if isinstance(run, Excluded):
            yield row, run
            continue
        threads = _WORKSPACES.get(run.partition(",")[0], 2)
        workspaces = threads * cublas_workspace_bytes(card_named(row.gpu, hardware))
        yield row, Predicted(peaks[run] + workspaces, run)


def run_of(row: Row) -> str | Excluded:
    """Return the kernel, whose it is and its sizes, as the script reads them."""
    if row.model.startswith("lm_head"):
        return ",".join(("head", "torch", *re.findall(r"=(\d+)", row.model)))
    name, provider = row.model.removeprefix("kernel/"), row.technique.rpartition("=")[2]
    reason = _NOT_TRACED.get(name) or _NOT_TRACED.get(f"{name} of {provider}")
    if reason:
        return Excluded(f"an operator: {reason}")
    swept, _, rest = row.other.partition(";")
    key, _, size = swept.partition("=")
    sizes = json.loads(rest) | {_OTHER_NAMES.get((name, key), key): size}
    return ",".join((name, provider, *(str(sizes[one]) for one in _SIZES[name])))


def _request(runs: tuple[str, ...]) -> TraceRequest:
    target = Target(kind="script", place=str(_SCRIPT), command_arguments=runs)
    return TraceRequest(target=target, task="training")


def _peaks(recording: TraceRecording) -> list[int]:
    """Return the peak of each kernel of `recording`: the most bytes between two moments when nothing is alive."""
    peaks = [0]
    for total in live_memory(recording.allocations).totals:
        if total:
            peaks[-1] = max(peaks[-1], total)
        elif peaks[-1]:
            peaks.append(0)
    return [peak for peak in peaks if peak]


def main() -> None:
    """Print the peaks of the kernels that the command line names."""
    for run in sys.argv[1:]:
        found = trace(_request((run,)))
        reserved = replay(found.allocations, AllocatorSettings()).reserved_bytes
        print(f"{run:44} alive {_peaks(found)[0] / GIB:6.2f} GiB, reserved {reserved / GIB:6.2f} GiB")


if __name__ == "__main__":
    main()
