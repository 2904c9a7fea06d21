"""Data types of the memory amounts and speeds read from a log, shared by all formats."""

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
    "llama-bench",
    "llama-batched-bench",
    "serving-benchmark",
    "serving-metrics",
    "serving-results",
    "step-times",
]
FigureName = Literal[
    "prompt", "generation", "throughput", "first-token", "output-token", "step", "request", "cache-tokens"
]
"""What a figure counts, in this order: prompt tokens per second; answer tokens per second while answers are generated,
and over the whole run with its prompts; seconds to the first token; seconds between two tokens of an answer; seconds of
an optimizer step, and of a whole request; tokens in the KV cache."""
Counter = Literal["allocated", "reserved", "process", "other-processes", "card", "capacity", "card-total", "host"]
"""What an amount counts, in this order: live bytes of PyTorch's tensors; bytes held by PyTorch's allocator; the
measured process; other processes; all memory in use on the card; memory usable by a process; nvidia-smi's total; host
memory."""
Sense = Literal["peak", "moment", "at-least", "pool"]
"""How to read an amount: maximum of the run; value when printed; lower bound; pool that an engine fills regardless of
need."""


class LoggedAmount(Spec):
    """One memory amount from a log; `low_bytes` to `high_bytes` is the rounding interval of the printed digits."""

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


class LoggedFigure(Spec):
    """A speed or a token count from a log, with the conditions under which it was measured, None where not stated.

    `low` to `high` is one standard deviation around the mean, or the rounding of the printed digits. `requests` ran at
    the same time, each with `prompt_tokens` to read, or `depth_tokens` in its cache, and `answer_tokens` to generate;
    those of a server (`is_served`) do not start together.
    """

    name: FigureName
    value: float
    low: float
    high: float
    line: int
    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    depth_tokens: int = 0
    requests: int | None = None
    gpu_layers: int | None = None
    kv_cache: str | None = None
    is_served: bool = False


class LogReading(Spec):
    """Result of reading a log: memory amounts, speeds, engine, model, devices and notes.

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
    figures: tuple[LoggedFigure, ...] = ()
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
    """Return a memory amount printed in `line` as a record with its name, meaning and line number."""
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
