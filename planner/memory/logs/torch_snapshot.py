"""A PyTorch memory snapshot, `torch.cuda.memory._snapshot()`, as JSON: segments, and the history where it was recorded.

**Source**: torch/cuda/memory.py, `_snapshot`: segments have `total_size` and `allocated_size`; the history of a device
is a list of actions, of which `alloc` and `free_requested` change what is allocated, `segment_alloc`, `segment_free`,
`segment_map` and `segment_unmap` what is reserved.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from planner.memory.logs.amounts import exact
from planner.memory.logs.reading import Counter, Measured, Sense, measured
from planner.memory.logs.text import Line, LogText

_MOST_CONTAINERS: Final = 250_000
_MOST_VALUES: Final = 1_000_000
"""What 16 MiB of a real snapshot stay below; more would take many times the memory of the text itself."""
_DEVICES: Final = 1_024
_COUNTED: Final[tuple[tuple[Counter, str, dict[str, int]], ...]] = (
    ("allocated", "allocated_size", {"alloc": 1, "free_requested": -1}),
    (
        "reserved",
        "total_size",
        {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1},
    ),
)


def read_torch_snapshot(text: LogText) -> Iterator[Measured]:
    """Yield what each device had allocated and reserved, at the peak where the history is in it."""
    segments, traces = _parts(text)
    for device in sorted({_number(segment.get("device")) for segment in segments})[:_DEVICES]:
        own = [segment for segment in segments if _number(segment.get("device")) == device]
        trace = traces[device] if 0 <= device < len(traces) else []
        line = Line(1, f"segments of device {device}", 0)
        since = "the most since its recorded history begins" if trace else "when the snapshot was taken"
        sense: Sense = "peak" if trace else "moment"
        for counter, key, steps in _COUNTED:
            now = sum(_number(segment.get(key)) for segment in own)
            amount, meaning = exact(_highest(now, trace, steps)), f"bytes {counter} by PyTorch, {since}"
            yield measured(counter, amount, meaning, line, counter=counter, sense=sense, device=str(device))


def _parts(text: LogText) -> tuple[list[dict[str, object]], list[list[dict[str, object]]]]:
    plain = text.text.strip()
    if not (plain[:1] in ("{", "[") and '"total_size"' in plain and '"allocated_size"' in plain):
        return [], []
    if plain.count("{") + plain.count("[") > _MOST_CONTAINERS or plain.count(",") > _MOST_VALUES:
        return [], []
    try:
        data = json.loads(plain)
    except (ValueError, RecursionError):
        return [], []
    segments, traces = (data.get("segments"), data.get("device_traces")) if isinstance(data, dict) else (data, [])
    lists = traces if isinstance(traces, list) else []
    return _objects(segments), [_objects(trace) for trace in lists]


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _highest(now: int, trace: Iterable[dict[str, object]], steps: dict[str, int]) -> int:
    """Go back from the present: what was allocated last was not there before."""
    held = highest = now
    for event in reversed(list(trace)):
        held -= steps.get(str(event.get("action")), 0) * _number(event.get("size"))
        highest = max(highest, held)
    return highest
