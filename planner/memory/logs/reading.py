"""Data types of the memory amounts read from a log, shared by all formats."""

from typing import Literal

from planner.base import Spec
from planner.memory.logs.text import LogLine, PrintedAmount
from planner.memory.result import TermName

LogFormat = Literal[
    "torch-summary",
    "torch-stats",
    "torch-snapshot",
    "torch-out-of-memory",
    "vllm",
    "llama.cpp",
    "nvidia-smi",
    "training",
]
Counter = Literal["allocated", "reserved", "process", "other-processes", "card", "capacity", "card-total", "host"]
"""What was counted: PyTorch's live bytes; those its allocator holds; one process on the card; the others there; all
that is used on the card; the bytes that a process can see; nvidia-smi's total; memory of the host."""
Sense = Literal["peak", "moment", "at-least", "pool"]
"""How to take an amount: the most there was; what was held when it was printed; known only from below; what an engine
fills the card with, whatever the run needs."""


class LoggedAmount(Spec):
    """One memory amount in a log; `low_bytes` to `high_bytes` is the rounding interval of the printed digits."""

    name: str
    bytes: int
    low_bytes: int
    high_bytes: int
    meaning: str
    line: int
    text: str
    term: TermName | None = None
    counter: Counter | None = None
    sense: Sense = "peak"
    device: str | None = None


class LogReading(Spec):
    """Result of reading a log: memory amounts, engine, model, devices and notes.

    `formats` are the recognized formats, the one with the most amounts first. `splits_model` means that the devices
    hold parts of one model instead of copies; `cache_tokens` is the capacity of the engine's KV cache in tokens.
    """

    formats: tuple[LogFormat, ...]
    measured: tuple[LoggedAmount, ...]
    engine: Literal["pytorch", "vllm", "llama.cpp"] | None = None
    version: str | None = None
    model: str | None = None
    devices: tuple[str, ...] = ()
    splits_model: bool = False
    context_length: int | None = None
    cache_tokens: int | None = None
    notes: tuple[str, ...] = ()


def logged_amount(
    name: str,
    amount: PrintedAmount,
    meaning: str,
    line: LogLine,
    *,
    term: TermName | None = None,
    counter: Counter | None = None,
    sense: Sense = "peak",
    device: str | None = None,
) -> LoggedAmount:
    """Return `amount`, printed in `line`, with its name and meaning."""
    return LoggedAmount(
        name=name,
        bytes=amount.bytes,
        low_bytes=amount.low,
        high_bytes=amount.high,
        meaning=meaning,
        line=line.number,
        text=line.shown,
        term=term,
        counter=counter,
        sense=sense,
        device=device,
    )
