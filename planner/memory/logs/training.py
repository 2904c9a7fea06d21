"""Reader of memory peaks printed by training programs: transformers' Trainer, PEFT's examples, torchtune.

**Source**: transformers 5.23, trainer_pt_utils.metrics_format: bytes shifted by 20 bits and called MB; trainer_utils:
a stage's peak is its initial memory plus `alloc_delta` plus `peaked_delta`. PEFT's examples print whole MiB with
no unit. torchtune prints GiB of 2³⁰, its first versions GB of 10⁹, both with two decimals.
"""

import re
from collections.abc import Iterator
from typing import Final

from planner.memory.logs.reading import Counter, LoggedAmount, logged_amount
from planner.memory.logs.text import (
    NUMBER,
    UNITS,
    LogLine,
    LogText,
    PrintedAmount,
    exact_amount,
    rounded_amount,
    truncated_amount,
)
from planner.units import MIB

_TRAINER: Final = re.compile(
    r"\b(before_init_mem_gpu|(?:init|train)_mem_gpu_(?:alloc|peaked)_delta)[\"']?\s{0,12}[=:]\s{0,12}(-?\d{1,16})(MB)?"
)
_PEFT: Final = re.compile(r"GPU Total Peak Memory consumed during the train \(max\): {0,4}(\d{1,9})\b")
_TUNE: Final = re.compile(rf"GPU peak memory (allocation|reserved|active): {{0,4}}{NUMBER} ?(GiB|GB)")
_TUNE_STEP: Final = re.compile(rf"peak_memory_(alloc|reserved|active):{NUMBER}")
_TUNE_COUNTERS: Final[dict[str, Counter]] = {"allocation": "allocated", "alloc": "allocated", "reserved": "reserved"}
_NAMES: Final = {
    "allocation": "peak allocated",
    "alloc": "peak allocated",
    "reserved": "peak reserved",
    "active": "peak active",
}
_DECIMALS: Final = 2
_MARKS: Final = ("_mem_gpu", "GPU Total Peak Memory", "GPU peak memory ", "peak_memory_")
_NEEDED: Final = ("train_mem_gpu_alloc_delta", "train_mem_gpu_peaked_delta")


def read_training(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the memory peaks of a training run, the highest of each kind."""
    highest: dict[str, LoggedAmount] = {}
    metrics: dict[str, tuple[PrintedAmount, LogLine]] = {}
    for line in text.lines_with(*_MARKS):
        for found in _TRAINER.finditer(line.text):
            metrics[found[1]] = (truncated_amount(found[2], MIB) if found[3] else exact_amount(int(found[2])), line)
        for item in _peak_amounts(line):
            known = highest.get(item.name)
            highest[item.name] = item if known is None or item.bytes > known.bytes else known
    yield from highest.values()
    yield from _trainer_peak_amount(metrics)


def _peak_amounts(line: LogLine) -> Iterator[LoggedAmount]:
    """Yield the peaks that PEFT's examples or torchtune print in `line`."""
    for found in _PEFT.finditer(line.text):
        meaning = "peak bytes of live tensors in training"
        yield logged_amount("peak allocated", truncated_amount(found[1], MIB), meaning, line, counter="allocated")
    for found in _TUNE.finditer(line.text):
        yield _torchtune_amount(found[1], rounded_amount(found[2], UNITS[found[3]], _DECIMALS), line)
    for found in _TUNE_STEP.finditer(line.text):
        yield _torchtune_amount(found[1], rounded_amount(found[2], UNITS["GiB"]), line)


def _torchtune_amount(counter_name: str, amount: PrintedAmount, line: LogLine) -> LoggedAmount:
    """Return a peak that torchtune printed, by its name for the counter (allocation, reserved, active)."""
    meaning = "peak of the run up to this line"
    return logged_amount(_NAMES[counter_name], amount, meaning, line, counter=_TUNE_COUNTERS.get(counter_name))


def _trainer_peak_amount(metrics: dict[str, tuple[PrintedAmount, LogLine]]) -> Iterator[LoggedAmount]:
    """Yield the training peak from the Trainer's metrics: memory before training, growth, and peak above both."""
    if all(name in metrics for name in _NEEDED):
        parts = [amount for name, (amount, _) in metrics.items() if name != "init_mem_gpu_peaked_delta"]
        total = PrintedAmount(*(sum(part) for part in zip(*parts, strict=True)))
        meaning = "allocated before training, its lasting growth, and its peak above that"
        yield logged_amount("peak allocated in training", total, meaning, metrics[_NEEDED[1]][1], counter="allocated")
