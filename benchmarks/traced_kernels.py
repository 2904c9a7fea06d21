"""Published measurements of single operators, as traces of the same operators.

All are traced in one run of `nets/kernels.py`, where each frees what it had before the next one starts.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from memory_rows import Excluded, Predicted, Row, card_named

from planner.hardware.catalog import HardwareCatalog
from planner.memory.overhead import cublas_workspace_bytes
from planner.trace.analysis.live_memory import live_memory
from planner.trace.request import Target, TraceRequest
from planner.trace.run import trace

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
    runs = [(row, _run_of(row)) for row in rows]
    traced = tuple({run: None for _, run in runs if isinstance(run, str)})
    peaks = dict(zip(traced, _peaks(traced), strict=True)) if traced else {}
    for row, run in runs:
        if isinstance(run, Excluded):
            yield row, run
            continue
        threads = _WORKSPACES.get(run.partition(",")[0], 2)
        workspaces = threads * cublas_workspace_bytes(card_named(row.gpu, hardware))
        yield row, Predicted(peaks[run] + workspaces, run)


def _run_of(row: Row) -> str | Excluded:
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


def _peaks(runs: tuple[str, ...]) -> list[int]:
    """Return the peak of each of `runs`: the most bytes between two moments when nothing is alive."""
    target = Target(kind="script", place=str(_SCRIPT), command_arguments=runs)
    peaks = [0]
    for total in live_memory(trace(TraceRequest(target=target, task="training")).allocations).totals:
        if total:
            peaks[-1] = max(peaks[-1], total)
        elif peaks[-1]:
            peaks.append(0)
    return [peak for peak in peaks if peak]
