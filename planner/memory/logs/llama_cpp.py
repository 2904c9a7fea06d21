"""Reader of llama.cpp's load messages: sizes of weight, KV cache, state, compute and output buffers per device.

**Source**: src/llama-model.cpp, llama-kv-cache.cpp, llama-memory-recurrent.cpp and llama-context.cpp: sizes are divided
by 2²⁰ and have two decimals; common/fit.cpp (before: llama-context.cpp): the memory breakdown in whole MiB, cut off.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from planner.memory.logs.reading import (
    NUMBER,
    LoggedAmount,
    LogLine,
    LogText,
    logged_amount,
    rounded_amount,
    truncated_amount,
)
from planner.memory.result import TermName
from planner.units import MIB

_BUFFER_MARK: Final = " buffer size = "
_BREAKDOWN_MARK: Final = "memory_breakdown_print:"
MARKS: Final = (_BUFFER_MARK, _BREAKDOWN_MARK)
_DECIMALS: Final = 2
_DEVICE: Final = r"([A-Za-z][\w.\-\[\]:]{1,60})"
_BUFFER: Final = re.compile(rf"{_DEVICE} {{1,4}}(?:(model|KV|RS|compute|output) )?buffer size = {{1,10}}{NUMBER} MiB")
_CELL: Final = r" {0,12}(\d{1,9}) {0,12}"
_BREAKDOWN: Final = re.compile(
    rf"\|   ?- {_DEVICE} [^|]{{0,120}}\|{_CELL}={_CELL}\+ "
    rf"\({_CELL}={_CELL}\+{_CELL}\+{_CELL}\) \+ {{0,12}}(-?\d{{1,20}}) "
)
_HOST: Final = re.compile(r"^(?:CPU|BLAS|Host|AMX|ACCEL)|_Host$|_Mapped$|REPACK")
_ON_CARD: Final = re.compile(r"^(?:Metal|MTL\d{0,3})_Mapped$")


class _BufferKind(NamedTuple):
    """Kind of buffer in llama.cpp's log, with the memory term it belongs to and its order of allocation."""

    name: str
    term: TermName
    meaning: str
    order: int


_BUFFER_KINDS: Final = {
    "model": _BufferKind("model buffer", "weights", "weights", 0),
    "KV": _BufferKind("KV buffer", "kv_cache", "keys and values of all cache cells", 1),
    "RS": _BufferKind("state buffer", "state", "states of recurrent layers", 1),
    "output": _BufferKind("output buffer", "logits", "logits and embeddings returned to the caller", 1),
    "compute": _BufferKind("compute buffer", "activations", "compute graph of one micro-batch", 2),
}


def read_llama_cpp(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the buffers of the largest model loaded in the log, summed per device, and the unaccounted memory."""
    buffers = [item for line in text.lines_with(_BUFFER_MARK) for item in _buffer_amounts(line)]
    models = _split_by_model(buffers)
    device_sums = _sums_per_device(max(models, key=lambda model: sum(item.bytes for item in model), default=[]))
    yield from device_sums
    yield from _breakdown_amounts(text, without_buffers=not device_sums)


def _buffer_amounts(line: LogLine) -> Iterator[tuple[int, LoggedAmount]]:
    """Yield allocation order and size of the buffer that `line` reports, if it reports one."""
    match = _BUFFER.search(line.text)
    if match:
        # In 2023 and 2024 the line of the weights had only "buffer".
        kind = _BUFFER_KINDS[match[2] or "model"]
        place, on_host = match[1], _is_host_buffer(match[1])
        yield (
            kind.order,
            logged_amount(
                kind.name,
                rounded_amount(match[3], MIB, _DECIMALS),
                f"{kind.meaning}, in {place}",
                line,
                term=None if on_host else kind.term,
                counter="host" if on_host else None,
                device=None if on_host else place.removesuffix("_Split"),
            ),
        )


def _split_by_model(buffers: Iterable[tuple[int, LoggedAmount]]) -> Iterator[list[LoggedAmount]]:
    """Yield the buffers of each loaded model; a weight buffer after a compute buffer starts the next model."""
    buffers_of_model: list[LoggedAmount] = []
    last = 0
    for order, item in buffers:
        if order == 0 < last:
            yield buffers_of_model
            buffers_of_model = []
        last = order
        buffers_of_model.append(item)
    yield buffers_of_model


def _sums_per_device(buffers: list[LoggedAmount]) -> list[LoggedAmount]:
    """Return the buffer sizes summed per kind and device, since layers with a window have a separate cache."""
    sums: dict[tuple[str, str | None], LoggedAmount] = {}
    for item in buffers:
        known = sums.get((item.name, item.device))
        sums[item.name, item.device] = item if known is None else _sum_of_amounts(known, item)
    return list(sums.values())


def _sum_of_amounts(first: LoggedAmount, second: LoggedAmount) -> LoggedAmount:
    return first.evolve(
        bytes=first.bytes + second.bytes,
        low_bytes=first.low_bytes + second.low_bytes,
        high_bytes=first.high_bytes + second.high_bytes,
    )


def _breakdown_amounts(text: LogText, without_buffers: bool) -> Iterator[LoggedAmount]:
    """Yield the amounts of each device's last memory breakdown; one before any load is llama.cpp's projection."""
    last: dict[str, tuple[re.Match[str], LogLine]] = {}
    for line in text.lines_with(_BREAKDOWN_MARK):
        match = _BREAKDOWN.search(line.text)
        if match and 0 <= int(match[8]) <= int(match[2]) and not _is_host_buffer(match[1]):
            last[match[1]] = (match, line)
    for device, (match, line) in last.items():
        yield from _device_breakdown_amounts(device, match, line, without_buffers)


def _device_breakdown_amounts(
    device: str, match: re.Match[str], line: LogLine, without_buffers: bool
) -> Iterator[LoggedAmount]:
    total, _free, _self, model, context, compute, unaccounted = (
        truncated_amount(match[group], MIB) for group in range(2, 9)
    )
    yield logged_amount("usable memory", total, "total memory of the device", line, counter="capacity", device=device)
    if without_buffers:
        yield logged_amount("model", model, "weights", line, term="weights", device=device)
        yield logged_amount("context", context, "keys, values and states", line, term="kv_cache", device=device)
        yield logged_amount(
            "compute", compute, "compute graph of one micro-batch", line, term="activations", device=device
        )
    yield logged_amount(
        "unaccounted",
        unaccounted,
        "GPU context, library workspaces and other processes, together",
        line,
        term="framework_overhead",
        device=device,
    )


def _is_host_buffer(place: str) -> bool:
    """Return whether a buffer's place, such as `CPU_Mapped`, is in host memory."""
    return bool(_HOST.search(place)) and not _ON_CARD.search(place)


_BUILD: Final = re.compile(r"build(?:_info)?: {1,3}b?(\d{3,6})\b")
_CONTEXT: Final = re.compile(r"\bn_ctx {1,12}= (\d{1,10})\b")
_CARD: Final = re.compile(r"Device (\d{1,3}): ([^,]{3,60}), compute capability")
_NAME: Final = re.compile(r"general\.name {1,20}= ([^\r\n]{1,120})")
_MARKS: Final = ("build", "n_ctx ", "compute capability", "general.name ")


class LlamaCppFacts(NamedTuple):
    """Facts printed in llama.cpp's log: build, model, cards, and context length, the last one if repeated."""

    version: str | None = None
    model: str | None = None
    context_length: int | None = None
    cards: tuple[str, ...] = ()


def read_llama_cpp_facts(text: LogText) -> LlamaCppFacts:
    """Return the version, model, context length and cards that llama.cpp printed in `text`."""
    version = model = context = None
    cards: dict[str, str] = {}
    for line in text.lines_with(*_MARKS):
        build, length, card, name = (pattern.search(line.text) for pattern in (_BUILD, _CONTEXT, _CARD, _NAME))
        version = version or (f"b{build[1]}" if build else None)
        context = int(length[1]) if length else context
        model = model or (name[1].strip() if name else None)
        if card:
            cards[card[1]] = card[2]
    return LlamaCppFacts(version, model, context or None, tuple(cards.values()))
