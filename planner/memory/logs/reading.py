"""Text of a log, searched with limits, and the amounts and speeds that readers of all formats find in it."""

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, Literal, NamedTuple

from planner.base import Spec
from planner.errors import LogError
from planner.memory.result import TermName
from planner.storage import decode_text
from planner.units import GB, GIB, KB, KIB, MB, MIB, TIB

MAX_BYTES: Final = 16 * MIB
MAX_LINE: Final = 64 * KIB
MAX_MATCHED_LINES: Final = 20_000
MAX_MATCHED_CHARACTERS: Final = 512 * KIB
"""Maximum number of lines matched by one reader; an engine's start-up prints less than a hundredth of this."""
_SHOWN: Final = 300
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]{0,16}[A-Za-z]")
_PICKLE: Final = b"\x80"
_ZIP: Final = b"PK\x03\x04"
_UNPICKLED: Final = (
    "Pickle files can run code when they are loaded, so GPU Planner never loads them. In the program that wrote it, "
    "use json.dump(torch.cuda.memory._snapshot(), open('snapshot.json', 'w')) instead, and open that file."
)


class LogLine(NamedTuple):
    """A log line with its number, starting at 1, and the offset of its first character in the log."""

    number: int
    text: str
    start: int

    @property
    def shown(self) -> str:
        """Return the line as shown to the user: stripped, and shortened if it is too long."""
        plain = self.text.strip()
        return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}…"


class LogText:
    """The text of a log; `is_cut` means that a reader reached its limit and skipped part of the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.is_cut = False

    def has(self, *marks: str) -> bool:
        """Return whether one of `marks` occurs anywhere in the log."""
        return any(mark in self.text for mark in marks)

    def lines_with(self, *marks: str) -> Iterator[LogLine]:
        """Yield the lines that contain one of `marks`, in order, each once."""
        number, counted, seen = 1, 0, 0
        for start in sorted(self._line_starts(marks)):
            number += self.text.count("\n", counted, start)
            counted = start
            line = self._line_at(start)
            seen += len(line)
            if seen > MAX_MATCHED_CHARACTERS:
                self.is_cut = True
                return
            yield LogLine(number, line, start)

    def before(self, line: LogLine) -> str:
        """Return the text of the line above `line`."""
        return self._line_at(self._line_start_before(line.start - 2)) if line.start else ""

    def after(self, line: LogLine, most: int) -> Iterator[LogLine]:
        """Yield up to `most` lines below `line`, ending at the first blank line."""
        number, start = line.number, line.start
        for _ in range(most):
            end = self.text.find("\n", start)
            number, start = number + 1, end + 1
            below = self._line_at(start) if end >= 0 else ""
            if not below.strip():
                return
            yield LogLine(number, below, start)

    def _line_starts(self, marks: tuple[str, ...]) -> set[int]:
        starts: set[int] = set()
        for mark in marks:
            at = self.text.find(mark)
            while at >= 0:
                if len(starts) == MAX_MATCHED_LINES:
                    self.is_cut = True
                    break
                starts.add(self._line_start_before(at))
                end = self.text.find("\n", at)
                at = self.text.find(mark, end) if end >= 0 else -1
        return starts

    def _line_start_before(self, at: int) -> int:
        return self.text.rfind("\n", 0, max(at + 1, 0)) + 1

    def _line_at(self, start: int) -> str:
        """Return the text of the line that starts at offset `start`, without color codes."""
        end = self.text.find("\n", start)
        line = self.text[start : min(len(self.text) if end < 0 else end, start + MAX_LINE)]
        return _COLOURS.sub("", line.replace("\r", " "))


def decode_log(data: bytes) -> str:
    """Return the text of a log file in UTF-8 or PowerShell's UTF-16; invalid bytes become replacement characters.

    Raises:
        LogError: If it is too large, or a pickle or a PyTorch file, which are never read.
    """
    if len(data) > MAX_BYTES:
        raise LogError(
            f"the log has {len(data):,} bytes",
            f"Cut it down to the lines about memory: at most {MAX_BYTES // MIB} MiB.",
        )
    if data.startswith((_PICKLE, _ZIP)):
        raise LogError("this is a pickle or a PyTorch file, not text", _UNPICKLED)
    return decode_text(data)


NUMBER: Final = r"(?<![\d.,])(-?\d[\d,]{0,18}(?:\.\d{1,12})?)"
"""Regular-expression group for a printed number, of bounded length so that long runs of digits match quickly."""
UNITS: Final = {
    "B": 1,
    "bytes": 1,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
    "PiB": 1024 * TIB,
    "KB": KB,
    "MB": MB,
    "GB": GB,
}
BINARY: Final = {"KB": KIB, "MB": MIB, "GB": GIB}
"""Units of programs that print KB, MB or GB and divide by powers of 1,024."""


class PrintedAmount(NamedTuple):
    """A size in bytes, with the smallest and largest size that print as the same digits."""

    bytes: int
    low: int
    high: int


def rounded_amount(number: str, factor: int, decimals: int = 0) -> PrintedAmount:
    """Return the size of `number` units of `factor` bytes each, uncertain by half a unit of its last digit.

    `decimals` is the number of decimals that the program rounds to, for programs that drop trailing zeros.
    """
    plain = number.replace(",", "")
    places = max(decimals, len(plain.partition(".")[2]))
    value, half = Fraction(plain) * factor, Fraction(factor, 2 * 10**places)
    return PrintedAmount(round(value), round(value - half), round(value + half))


def truncated_amount(number: str, factor: int) -> PrintedAmount:
    """Return the size printed as `number` units of `factor` bytes, rounded down: up to almost one unit larger."""
    value = int(number.replace(",", "")) * factor
    return PrintedAmount(value, value, value + factor - 1)


def exact_amount(count: int) -> PrintedAmount:
    """Return the size of `count` bytes, printed exactly."""
    return PrintedAmount(count, count, count)


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


class AmountPattern(NamedTuple):
    """Pattern of one amount in a log, with its name, its meaning and what it counts."""

    name: str
    pattern: re.Pattern[str]
    meaning: str
    term: TermName | None = None
    counter: Counter | None = None
    sense: Sense = "peak"

    def amount(self, amount: PrintedAmount, line: LogLine, device: str | None) -> LoggedAmount:
        """Return the record of an amount that was found in `line`."""
        return logged_amount(
            self.name,
            amount,
            self.meaning,
            line,
            term=self.term,
            counter=self.counter,
            sense=self.sense,
            device=device,
        )
