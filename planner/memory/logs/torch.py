"""Readers of the memory output of PyTorch (statistics, out-of-memory messages, snapshots, summaries) and its trainers.

Each reader's docstring has the source of its format.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from planner.memory.logs.reading import (
    BINARY,
    NUMBER,
    UNITS,
    AmountPattern,
    Counter,
    LoggedAmount,
    LogLine,
    LogText,
    PrintedAmount,
    Sense,
    exact_amount,
    logged_amount,
    rounded_amount,
    truncated_amount,
)
from planner.parsing import parse_json
from planner.storage import UnreadableFileError
from planner.units import MIB

_MARKS: Final = ("allocated_bytes.all.peak", "reserved_bytes.all.peak")
_NESTED: Final = ("allocated_bytes", "reserved_bytes")
_QUOTE: Final = "[\"']"
_FLAT: Final = re.compile(
    rf"{_QUOTE}?(allocated|reserved|active|requested|inactive_split)_bytes\.all\.peak{_QUOTE}?\s{{0,8}}[,:=]\s{{0,8}}(\d{{1,16}})"
)
_DEEP: Final = re.compile(
    rf"{_QUOTE}(allocated|reserved|active|requested|inactive_split)_bytes{_QUOTE}\s{{0,8}}:\s{{0,8}}\{{\s{{0,8}}"
    rf"{_QUOTE}all{_QUOTE}\s{{0,8}}:\s{{0,8}}\{{[^{{}}]{{0,400}}?{_QUOTE}peak{_QUOTE}\s{{0,8}}:\s{{0,8}}(\d{{1,16}})"
)
_COUNTERS: Final[dict[str, Counter]] = {"allocated": "allocated", "reserved": "reserved"}
_MEANINGS: Final = {
    "allocated": "peak bytes of live tensors (max_memory_allocated)",
    "reserved": "peak bytes held by PyTorch's allocator",
    "active": "live tensors and those still in use by other streams",
    "requested": "bytes requested by the program, before rounding",
    "inactive_split": "free parts of blocks that are partly in use",
}


def read_torch_stats(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the peak of each byte counter in the last `torch.cuda.memory_stats()` of `text`, exact to the byte.

    Only keys are matched, so dictionaries, ordered dictionaries, lists of pairs and JSON are read alike.
    """
    found: dict[str, re.Match[str]] = {}
    for pattern in _statistics_patterns(text):
        for match in pattern.finditer(text.text):
            found[match[1]] = match
    for counted, match in found.items():
        start = match.start()
        line = LogLine(text.text.count("\n", 0, start) + 1, f"{counted}_bytes.all.peak: {match[2]}", start)
        name, amount = f"peak {counted.replace('_', ' ')}", exact_amount(int(match[2]))
        yield logged_amount(name, amount, _MEANINGS[counted], line, counter=_COUNTERS.get(counted))


def _statistics_patterns(text: LogText) -> Iterator[re.Pattern[str]]:
    """Yield the patterns of flat and nested `memory_stats()` that may occur in `text`."""
    if text.has(*_MARKS):
        yield _FLAT
    if all(text.has(f'"{key}"') or text.has(f"'{key}'") for key in _NESTED):
        yield _DEEP


_SIZE: Final = NUMBER + r" (bytes|[KMGT]iB)"
_MARK: Final = "out of memory. Tried to allocate "
_REQUESTED: Final = re.compile(_SIZE)
_OWN: Final = re.compile(rf"this process has {_SIZE} memory in use")
_DEVICE: Final = re.compile(r"GPU (\d{1,4})(?: has a total|;)")
_OTHERS: Final = re.compile(rf"Process (\d{{1,10}}) has {_SIZE} memory in use")
_AFTER: Final = 4


_MESSAGE_PATTERNS: Final = (
    AmountPattern(
        "usable memory",
        re.compile(rf"total capac(?:ity|ty) of {_SIZE}|{_SIZE} total capacity"),
        "memory of the GPU usable by a process",
        counter="capacity",
    ),
    AmountPattern(
        "free memory",
        re.compile(rf"of which {_SIZE} is free|{_SIZE} free"),
        "free memory when the allocation failed",
        sense="moment",
    ),
    AmountPattern(
        "private pools",
        re.compile(rf"with {_SIZE} allocated in private pools"),
        "memory of CUDA graphs, part of the allocated bytes",
        sense="moment",
    ),
)
_HELD: Final = re.compile(rf"{_SIZE} is allocated by PyTorch|{_SIZE} already allocated")
_UNUSED: Final = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated|{_SIZE} cached")
_RESERVED: Final = re.compile(rf"{_SIZE} reserved in total by PyTorch")


def read_torch_errors(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the amounts in each out-of-memory message; a run needs at least allocated plus requested bytes.

    **Source**: c10/cuda/CUDACachingAllocator.cpp: sizes have two decimals in binary units. Before 2.1 the message was
    in brackets, before 1.5 unallocated bytes of the allocator were called "cached".
    """
    for line in text.lines_with(_MARK):
        # Quoted messages may be wrapped, and several may follow each other.
        joined = " ".join([line.text, *(below.text for below in text.after(line, _AFTER))])
        message = "".join(joined.partition(_MARK)[1:]).split(_MARK)[1]
        requested, device = _REQUESTED.match(message), _DEVICE.search(message)
        if requested:
            yield from _message_amounts(message, _matched_amount(requested), line, device[1] if device else None)


def _message_amounts(
    message: str, requested: PrintedAmount, line: LogLine, device: str | None
) -> Iterator[LoggedAmount]:
    yield from _process_amounts(message, line, device)
    for item in _MESSAGE_PATTERNS:
        found = item.pattern.search(message)
        if found:
            yield item.amount(_matched_amount(found), line, device)
    held, unused, reserved = _HELD.search(message), _UNUSED.search(message), _RESERVED.search(message)
    if held:
        needed, meaning = (
            _sum_of_amounts(_matched_amount(held), requested),
            "bytes allocated when the allocation failed, plus the failed request",
        )
        yield logged_amount(
            "allocated and requested", needed, meaning, line, counter="allocated", sense="at-least", device=device
        )
    total = (
        _matched_amount(reserved)
        if reserved
        else _sum_of_amounts(_matched_amount(held), _matched_amount(unused))
        if held and unused
        else None
    )
    if total:
        meaning = "bytes held by PyTorch's allocator when the allocation failed"
        yield logged_amount("reserved", total, meaning, line, counter="reserved", sense="at-least", device=device)


def _process_amounts(message: str, line: LogLine, device: str | None) -> Iterator[LoggedAmount]:
    """Yield the bytes of processes on the card; the largest counts, because containers hide which process is "this"."""
    own = _OWN.search(message)
    others = sorted(
        ((_matched_amount(found, 1), f"process {found[1]}") for found in _OTHERS.finditer(message)), reverse=True
    )
    amount, name = (_matched_amount(own), "this process") if own else others.pop(0) if others else (None, "")
    if amount:
        meaning = "bytes held on the GPU when the allocation failed"
        yield logged_amount(name, amount, meaning, line, counter="process", sense="at-least", device=device)
    for amount, name in others:
        yield logged_amount(
            name, amount, "another process", line, counter="other-processes", sense="moment", device=device
        )


def _matched_amount(match: re.Match[str], skipped_groups: int = 0) -> PrintedAmount:
    """Return the size that a match found: the first number and unit after `skipped_groups` groups."""
    number, unit = [group for group in match.groups() if group is not None][skipped_groups : skipped_groups + 2]
    return rounded_amount(number, UNITS[unit])


def _sum_of_amounts(first: PrintedAmount, second: PrintedAmount) -> PrintedAmount:
    return PrintedAmount(first.bytes + second.bytes, first.low + second.low, first.high + second.high)


_DEVICES: Final = 1_024
_COUNTED: Final[tuple[tuple[Counter, str, dict[str, int]], ...]] = (
    ("allocated", "allocated_size", {"alloc": 1, "free_requested": -1}),
    (
        "reserved",
        "total_size",
        {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1},
    ),
)


def read_torch_snapshot(text: LogText) -> Iterator[LoggedAmount]:
    """Yield allocated and reserved bytes per device of a JSON memory snapshot; peak bytes if it has a history.

    **Source**: torch/cuda/memory.py, `_snapshot`: segments have `total_size` and `allocated_size`; the history of a
    device is a list of actions, of which `alloc` and `free_requested` change what is allocated, `segment_alloc`,
    `segment_free`, `segment_map` and `segment_unmap` what is reserved.
    """
    segments, traces = _segments_and_histories(text)
    for device in sorted({_json_integer(segment.get("device")) for segment in segments})[:_DEVICES]:
        own = [segment for segment in segments if _json_integer(segment.get("device")) == device]
        trace = traces[device] if 0 <= device < len(traces) else []
        line = LogLine(1, f"segments of device {device}", 0)
        since = "peak since the start of the recorded history" if trace else "when the snapshot was taken"
        sense: Sense = "peak" if trace else "moment"
        for counter, key, steps in _COUNTED:
            now = sum(_json_integer(segment.get(key)) for segment in own)
            amount, meaning = exact_amount(_peak_bytes(now, trace, steps)), f"bytes {counter} by PyTorch, {since}"
            yield logged_amount(counter, amount, meaning, line, counter=counter, sense=sense, device=str(device))


def _segments_and_histories(text: LogText) -> tuple[list[dict[str, object]], list[list[dict[str, object]]]]:
    """Return the segments of all devices and the event history of each device, empty if `text` is no snapshot."""
    plain = text.text.strip()
    if not (plain[:1] in ("{", "[") and '"total_size"' in plain and '"allocated_size"' in plain):
        return [], []
    try:
        data = parse_json(plain)
    except UnreadableFileError:
        return [], []
    segments, traces = (data.get("segments"), data.get("device_traces")) if isinstance(data, dict) else (data, [])
    lists = traces if isinstance(traces, list) else []
    return _json_objects(segments), [_json_objects(trace) for trace in lists]


def _json_objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _json_integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _peak_bytes(current_bytes: int, trace: Iterable[dict[str, object]], sign_by_action: dict[str, int]) -> int:
    """Return the peak bytes in a history, replayed backwards from `current_bytes`."""
    held = highest = current_bytes
    for event in reversed(list(trace)):
        held -= sign_by_action.get(str(event.get("action")), 0) * _json_integer(event.get("size"))
        highest = max(highest, held)
    return highest


_SUMMARY_MARK: Final = "PyTorch CUDA memory summary"
_SUMMARY_DEVICE: Final = re.compile(r"memory summary, device ID (\d{1,4})")
_SUMMARY_SIZE: Final = r" {0,12}(\d{1,12}) {1,4}([KMGTP]?i?B) {0,6}\|"
_SUMMARY_ROW: Final = re.compile(r"\| {0,4}([A-Z][A-Za-z\- ]{5,30}?) {1,20}\|" + _SUMMARY_SIZE * 2)


_SUMMARY_COUNTERS: Final = {
    "Allocated memory": ("peak allocated", "allocated"),
    "Active memory": ("peak active", "active"),
    "Requested memory": ("peak requested", "requested"),
    "GPU reserved memory": ("peak reserved", "reserved"),
    "Non-releasable memory": ("peak non-releasable", "inactive_split"),
}
"""Name and counter in `memory_stats()` of each row in `memory_summary()`."""


def read_torch_summary(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the peak of each byte counter in every `torch.cuda.memory_summary()` of `text`.

    **Source**: torch/cuda/memory.py: sizes are divided by powers of 1,024 and truncated, whatever the unit is called;
    versions before 2.0 wrote KB, MB and GB for the same powers of 1,024 (pytorch/pytorch#91854).
    """
    device: str | None = None
    for line in (
        text.lines_with(_SUMMARY_MARK, *(f"| {title} " for title in _SUMMARY_COUNTERS))
        if text.has(_SUMMARY_MARK)
        else ()
    ):
        named, row = _SUMMARY_DEVICE.search(line.text), _SUMMARY_ROW.search(line.text)
        if named:
            device = named[1]
        elif row and row[1] in _SUMMARY_COUNTERS:
            (name, counted), amount = (
                _SUMMARY_COUNTERS[row[1]],
                truncated_amount(row[4], BINARY.get(row[5]) or UNITS[row[5]]),
            )
            yield logged_amount(name, amount, _MEANINGS[counted], line, counter=_COUNTERS.get(counted), device=device)


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
_TRAINER_MARKS: Final = ("_mem_gpu", "GPU Total Peak Memory", "GPU peak memory ", "peak_memory_")
_NEEDED: Final = ("train_mem_gpu_alloc_delta", "train_mem_gpu_peaked_delta")


def read_training(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the memory peaks of a training run by transformers' Trainer, PEFT's examples or torchtune.

    **Source**: transformers 5.23, trainer_pt_utils.metrics_format: bytes shifted by 20 bits and called MB;
    trainer_utils: a stage's peak is its initial memory plus `alloc_delta` plus `peaked_delta`. PEFT's examples print
    whole MiB with no unit. torchtune prints GiB of 2³⁰, its first versions GB of 10⁹, both with two decimals.
    """
    highest: dict[str, LoggedAmount] = {}
    metrics: dict[str, tuple[PrintedAmount, LogLine]] = {}
    for line in text.lines_with(*_TRAINER_MARKS):
        for found in _TRAINER.finditer(line.text):
            metrics[found[1]] = (truncated_amount(found[2], MIB) if found[3] else exact_amount(int(found[2])), line)
        for item in _peak_amounts(line):
            known = highest.get(item.name)
            highest[item.name] = item if known is None or item.bytes > known.bytes else known
    yield from highest.values()
    yield from _trainer_peak_amount(metrics)


def _peak_amounts(line: LogLine) -> Iterator[LoggedAmount]:
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
