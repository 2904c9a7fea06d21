"""Rows that the estimate misses, beside what a run of their mechanism takes: a trace, or what other figures leave over.

    python benchmarks/shown_mechanisms.py [PATTERN] [--check]

Prints each row whose name begins with the regular expression PATTERN, with the errors of the estimate and of the run.
A mechanism is shown where the run is nearer, and within 5 %. A trace takes up to a minute.
"""

import argparse
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from accuracy import FAR, truth
from explained_misses import reason_for
from memory_rows import Predicted, Row, card_named
from old_transformers import CONTEXTS, exllama_bytes
from stated_networks import architecture_of
from truth_rows import predict

from planner.memory.inference.kv_cache import kv_cache_term
from planner.memory.overhead import cublas_workspace_bytes
from planner.memory.weights import MATRIX_ROLES, weight_bytes
from planner.models.architecture import Architecture
from planner.plan.catalog import Catalog, load_catalog
from planner.trace.allocator import CachingAllocator, MemoryBlock
from planner.trace.allocator_settings import DEFAULT_SETTINGS
from planner.trace.recording import Allocations
from planner.trace.replay import AllocatorReplay, replay
from planner.trace.request import Target, TraceRequest
from planner.trace.run import trace
from planner.units import GIB, MB, MIB

_SCRIPT: Final = Path(__file__).resolve().parent / "nets" / "mechanisms.py"
_HALF: Final = 2
_WRITTEN: Final = 128
"""Tokens that BERT generates by the rows: of 100, the script's default, and 128, these leave the same rest in all."""
_TRACED_SIZES: Final = ("0.6B", "8B")
_DENOISER_WEIGHTS: Final = (3 + 4 + 4 + 1 + 5) * 3072**2 * _HALF
"""Weights of the two blocks in `mechanisms.image`, which are among the loaded ones."""


class _Found(NamedTuple):
    row: Row
    estimate: Predicted
    catalog: Catalog

    @property
    def architecture(self) -> Architecture:
        """Return the row's network."""
        return architecture_of(self.row, self.catalog)

    @property
    def workspace(self) -> int:
        """Return the bytes of one cuBLAS workspace."""
        return cublas_workspace_bytes(card_named(self.row.gpu, self.catalog.hardware))


@cache
def _recorded(run: str) -> Allocations:
    target = Target(kind="script", place=str(_SCRIPT), command_arguments=(run,))
    return trace(TraceRequest(target=target, task="training")).allocations


def traced(run: str) -> AllocatorReplay:
    """Return what PyTorch's allocator holds during `run` of nets/mechanisms.py."""
    return replay(_recorded(run))


def last_peak_bytes(run: str) -> int:
    """Return the most that blocks hold in the last third of `run`, after loading, as its script resets the counter."""
    found, allocator = _recorded(run), CachingAllocator(DEFAULT_SETTINGS, None)
    alive: dict[int, MemoryBlock] = {}
    totals = []
    events = [(time, index, False) for index, time in enumerate(found.made) if found.bytes[index]]
    events += [(time, index, True) for index, time in enumerate(found.freed) if found.bytes[index] and time >= 0]
    for _, index, is_free in sorted(events):
        if is_free:
            allocator.free(alive.pop(index))
        elif block := allocator.malloc(found.bytes[index]):
            alive[index] = block
        totals.append(allocator.allocated_bytes)
    return max(totals[-len(totals) // 3 :])


def _in_pieces(found: _Found) -> int:
    """Return weights, cache and workspace, beside which pieces of 256 tokens are nothing; in bf16 as traced."""
    row, size = found.row, found.row.model.partition("-")[2]
    prompt, written = (int(number) for number in re.findall(r"=(\d+)", row.other))
    if row.scheme == "bf16" and size in _TRACED_SIZES:
        return traced(f"prompt_in_pieces,{size},{prompt},256").peak_allocated_bytes + found.workspace
    cached = kv_cache_term(found.architecture, 1, prompt + written, 0, "bf16")
    weights = weight_bytes(found.architecture, row.scheme or "")
    tied = found.architecture.tied_head and row.precision.startswith("fp8")
    head = max(tensor.size for tensor in found.architecture.main.before) * _HALF if tied else 0
    return weights + head + (cached.bytes if cached else 0) + found.workspace


def _generating(found: _Found) -> int:
    """Return what BERT holds that generates without a cache."""
    row = found.row
    attention = row.technique.partition("=")[2]
    run = f"bert_generating,{attention},{row.batch},{row.length},{_WRITTEN}"
    return last_peak_bytes(run) + found.workspace


def _counted_in_mib(found: _Found) -> int:
    """Return what BERT's loop holds, read as its page does where what it heads MB are MiB: as 10⁶ bytes each."""
    row, workspaces = found.row, 2 * found.workspace
    run = f"bert_summed,{row.technique.partition('=')[2]},{row.batch},{row.length}"
    return round((last_peak_bytes(run) + workspaces) / MIB * MB)


def _second_exllama(found: _Found) -> int:
    """Return the estimate with the scratch space of ExLlamaV2's kernels in place of the first version's buffer.

    **Formula**: max over quantised matrices of 2 · inputs · outputs + 4 · outputs · 2,048 tokens · 8 sequences + 256.

    **Source**: AutoGPTQ 0.7.1 nn_modules/qlinear/qlinear_exllamav2.py `QuantLinear.scratch_space_fixed`,
    modeling/_utils.py `autogptq_post_init`.
    """
    shapes = {
        tensor.shape for tensor, _ in found.architecture.main.tensors_with_counts() if tensor.role in MATRIX_ROLES
    }
    scratch = max(2 * outputs * inputs + 4 * outputs * 2048 * 8 + 256 for outputs, inputs in shapes)
    return found.estimate.bytes + scratch - exllama_bytes(found.row.scheme, found.architecture)


def _without_head(found: _Found) -> int:
    """Return what DistilBERT holds, block by block."""
    row = found.row
    run = f"distilbert,{row.technique.partition('=')[2]},{row.batch},{row.length}"
    return last_peak_bytes(run) + found.workspace


def _book(found: _Found) -> int:
    """Return what the book's GPT reserves."""
    attention = "flash" if "Flash" in found.row.technique else "own"
    return traced(f"book_gpt,{attention},{found.row.batch},{found.row.length}").reserved_bytes


def _adafactor(found: _Found) -> int:
    """Return what BERT Large reserves with Adafactor, and the context that its page measured."""
    run = f"bert_adafactor,{found.row.batch},{found.row.length}"
    return traced(run).reserved_bytes + CONTEXTS["bertl"].bytes


def _image(found: _Found) -> int:
    """Return what the row had reserved after loading, as it says, and what an image reserves beside weights."""
    record = next(record for record in truth() if record["id"] == found.row.id)
    after = re.search(r"after load ([\d.]+) GiB", record["notes"])
    assert after is not None
    return round(float(after[1]) * GIB) + traced("image,128").reserved_bytes - _DENOISER_WEIGHTS


def _context(found: _Found) -> int:
    """Return the estimate with the context that the plain network leaves over in the same table (optgptq-016)."""
    plain = _find("optgptq-016", found.catalog)
    return found.estimate.bytes + round(plain.row.measured_gib * GIB) - plain.estimate.bytes


def _more_cards(found: _Found) -> int:
    """Return the sum over one card more: the row's is above what its two cards have (79.2 GiB each)."""
    answer = predict(found.row._replace(cards=found.row.cards + 1), found.catalog)
    assert isinstance(answer, Predicted)
    return answer.bytes


def _unfused(found: _Found) -> int:
    """Return the estimate with attention whose scores are kept, which Transformer Engine falls back to."""
    technique = found.row.technique.replace("attention=default", "attention=unfused")
    answer = predict(found.row._replace(technique=technique), found.catalog)
    assert isinstance(answer, Predicted)
    return answer.bytes


_RUNS: Final[tuple[tuple[str, Callable[[_Found], int]], ...]] = (
    (r"qwen3-", _in_pieces),
    (r"qwen15-04[12]", _second_exllama),
    (r"sdpa-0(1[3-9]|2[0-4])", _generating),
    (r"sdpa-0(26|28|30|32)", _counted_in_mib),
    (r"sdpa-0(49|5\d|6[0-4])", _without_head),
    (r"rasbt-00[56]", _book),
    (r"bertl-008", _adafactor),
    (r"fluxq-0(01|05|09|11)", _image),
    (r"optgptq-", _context),
    (r"qwen2-055", _more_cards),
    (r"mcore-043", _unfused),
)


def _find(name: str, catalog: Catalog) -> _Found:
    row = next(Row.from_csv(record) for record in truth() if record["id"] == name)
    answer = predict(row, catalog)
    assert isinstance(answer, Predicted)
    return _Found(row, answer, catalog)


def main() -> int:
    """Print the rows of the command line's pattern; return 1 with `--check` if the mechanism of one is not shown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="regular expression with which the rows' names begin")
    parser.add_argument("--check", action="store_true", help="end with 1 where a mechanism is not shown")
    arguments = parser.parse_args()
    catalog, failed = load_catalog(), 0
    print(f"{'row':12} {'measured':>9} {'estimate':>9} {'':>8} {'run':>9}")
    for name in [record["id"] for record in truth() if re.match(arguments.pattern, record["id"])]:
        run = next((run for pattern, run in _RUNS if re.match(pattern, name)), None)
        if run is None or reason_for(name) is None:
            continue
        found = _find(name, catalog)
        measured, estimate, needed = found.row.measured_gib, found.estimate.bytes / GIB, run(found) / GIB
        far, near = estimate / measured - 1, needed / measured - 1
        if abs(far) <= FAR:
            continue
        failed += abs(near) > FAR
        print(f"{name:12} {measured:9.3f} {estimate:9.3f} {far:+8.1%} {needed:9.3f} {near:+8.1%}", flush=True)
    print(f"not within {FAR:.0%}: {failed}")
    return 1 if arguments.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
