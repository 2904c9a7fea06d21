"""Reading of recorded traffic: CSV and JSON Lines, with the columns of Azure's, BurstGPT's and Mooncake's traces."""

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from planner.errors import TrafficFileError
from planner.parsing import MAGNITUDE_LIMIT, parse_json
from planner.serving.traffic import CommonPrefix, TrafficTrace
from planner.storage import UnreadableFileError, decode_text, read_regular
from planner.units import MIB

MOST_TRAFFIC_BYTES: Final = 256 * MIB
_MOST_REQUESTS: Final = 1_000_000
_MOST_LINE_VALUES: Final = 100_000
_KIND: Final = "trace of requests"
_COLUMNS_HINT: Final = (
    "A trace has a line for each request, with its arrival (arrival_seconds, timestamp or TIMESTAMP), its input tokens "
    "(input_tokens, input_length or ContextTokens) and its output tokens (output_tokens, output_length or "
    "GeneratedTokens)."
)
_ARRIVALS: Final[Mapping[str, float]] = {
    "arrival_seconds": 1.0,
    "arrived_at": 1.0,
    "arrival_time": 1.0,
    "queued_ts": 1.0,
    "timestamp_ms": 1e-3,
    "timestamp": 1.0,
}
"""Names of the column of arrivals in lower case, with the seconds of its unit; a time of day has none."""
_INPUTS: Final = (
    "input_tokens",
    "input_length",
    "input_toks",
    "prompt_tokens",
    "contexttokens",
    "request tokens",
    "num_prefill_tokens",
)
_OUTPUTS: Final = (
    "output_tokens",
    "output_length",
    "output_toks",
    "completion_tokens",
    "generatedtokens",
    "response tokens",
    "num_decode_tokens",
)
_BLOCKS: Final = "hash_ids"
_BLOCK_TOKENS: Final = 512
"""Tokens of a block in Mooncake's traces, whose arrivals are in milliseconds (kvcache-ai/Mooncake FAST25-release)."""
_MILLISECONDS: Final = 1e-3


class _Row(NamedTuple):
    """A recorded request with its line in the file, and the numbers of the blocks of its prompt."""

    arrival: float
    prompt: int
    output: int
    blocks: tuple[int, ...]


def load_traffic(path: Path | str) -> TrafficTrace:
    """Return the requests that a trace file has recorded, in order of their arrival.

    Requests without a prompt or without an answer, which have failed, are left out.

    Raises:
        TrafficFileError: If the file cannot be read, or is not such a trace; the reason names the line.
    """
    place = Path(path)
    try:
        return parse_traffic(read_regular(place, _KIND, MOST_TRAFFIC_BYTES), place.name)
    except UnreadableFileError as error:
        raise TrafficFileError(place, error.reason, hint=error.hint) from error


def parse_traffic(data: bytes, name: str) -> TrafficTrace:
    """Return the requests in the bytes of a trace file called `name`: JSON Lines if it begins with a brace, else CSV.

    Raises:
        TrafficFileError: If it is not such a trace; the reason names the line.
    """
    text, path = decode_text(data), Path(name)
    try:
        rows = _json_rows(text) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text)
        kept = sorted((row for row in rows if row.prompt > 0 and row.output > 0), key=lambda row: row.arrival)
        if not kept:
            raise UnreadableFileError("has no request with a prompt and an answer", _COLUMNS_HINT)
        return _trace_of(kept, name)
    except UnreadableFileError as error:
        raise TrafficFileError(path, error.reason, hint=error.hint) from error


def _trace_of(rows: Sequence[_Row], name: str) -> TrafficTrace:
    first = rows[0].arrival
    return TrafficTrace(
        arrival_seconds=tuple(row.arrival - first for row in rows),
        input_tokens=tuple(row.prompt for row in rows),
        output_tokens=tuple(row.output for row in rows),
        beginnings=_common_beginnings(rows),
        source=name,
    )


def _common_beginnings(rows: Sequence[_Row]) -> tuple[tuple[CommonPrefix, ...], ...]:
    """Return the beginnings that each prompt shares: up to each block after which fewer prompts go on together."""
    uses = Counter(block for row in rows for block in row.blocks)
    if not uses:
        return ()
    found = []
    for row in rows:
        counts = [*(uses[block] for block in row.blocks), 1]
        found.append(
            tuple(
                CommonPrefix(row.blocks[place], min(row.prompt, (place + 1) * _BLOCK_TOKENS))
                for place in range(len(row.blocks))
                if counts[place] > max(1, counts[place + 1])
            )
        )
    return tuple(found)


def _json_rows(text: str) -> list[_Row]:
    """Return the requests of JSON Lines, or of one JSON list."""
    if text.lstrip().startswith("["):
        values = parse_json(text)
        return _rows_of(((number, value) for number, value in enumerate(values, 1)), "entry")
    lines = ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())
    return _rows_of(((number, _json_line(line, number)) for number, line in lines), "line")


def _json_line(line: str, number: int) -> object:
    try:
        return parse_json(line, most_values=_MOST_LINE_VALUES)
    except UnreadableFileError as error:
        raise UnreadableFileError(f"line {number:,} {error.reason}", error.hint) from error


def _csv_rows(text: str) -> list[_Row]:
    """Return the requests of a CSV file, whose first line names the columns."""
    reader = csv.DictReader(text.splitlines())
    try:
        return _rows_of(((reader.line_num, row) for row in reader), "line")
    except csv.Error as error:
        raise UnreadableFileError(f"line {reader.line_num:,} is not CSV: {error}", _COLUMNS_HINT) from error


def _rows_of(values: Iterable[tuple[int, object]], place: str) -> list[_Row]:
    """Return the requests in numbered objects, whose columns are found in the first one."""
    rows: list[_Row] = []
    read: Callable[[Mapping[str, Any], str], _Row] | None = None
    for number, value in values:
        where = f"{place} {number:,}"
        if not isinstance(value, Mapping):
            raise UnreadableFileError(f"{where} is not a request", _COLUMNS_HINT)
        read = read or _reader_of(value, where)
        rows.append(read(value, where))
        if len(rows) > _MOST_REQUESTS:
            raise UnreadableFileError(f"has more than {_MOST_REQUESTS:,} requests", "Take a part of the file.")
    return rows


def _reader_of(value: Mapping[str, Any], where: str) -> Callable[[Mapping[str, Any], str], _Row]:
    """Return a function that reads a request, with the columns found in its first one."""
    names = {str(name).strip().lower(): name for name in value}
    arrival = next((names[name] for name in _ARRIVALS if name in names), None)
    prompt = next((names[name] for name in _INPUTS if name in names), None)
    output = next((names[name] for name in _OUTPUTS if name in names), None)
    if arrival is None or prompt is None or output is None:
        missing = (
            "arrival" if arrival is None else "number of input tokens" if prompt is None else "number of output tokens"
        )
        raise UnreadableFileError(f"{where} has no {missing}", _COLUMNS_HINT)
    unit = _MILLISECONDS if _BLOCKS in names else _ARRIVALS[str(arrival).strip().lower()]

    def read(row: Mapping[str, Any], place: str) -> _Row:
        time = _time(row.get(arrival), place, str(arrival))
        tokens = (_whole(row.get(prompt), place, str(prompt)), _whole(row.get(output), place, str(output)))
        return _Row(unit * time, *tokens, _blocks(row, place))

    return read


def _time(value: object, where: str, name: str) -> float:
    """Return a time in its unit: a number, or a date with its time of day in seconds."""
    try:
        found = float(value)  # type: ignore[arg-type]  # a wrong type is an error like a wrong text
        if not -MAGNITUDE_LIMIT < found < MAGNITUDE_LIMIT:
            raise UnreadableFileError(f"{where}: {name} is not a time", _COLUMNS_HINT)
        return found
    except (TypeError, ValueError):
        pass
    try:
        # Azure writes seven digits of a second, of which Python reads six.
        whole, _, fraction = str(value).strip().partition(".")
        digits = fraction[: next((place for place, sign in enumerate(fraction) if not sign.isdigit()), len(fraction))]
        moment = datetime.fromisoformat(whole + fraction[len(digits) :])
        return (moment.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() + float(f"0.{digits or 0}")
    except (ValueError, OverflowError) as error:
        raise UnreadableFileError(f"{where}: {name} is not a time", _COLUMNS_HINT) from error


def _whole(value: object, where: str, name: str) -> int:
    """Return a number of tokens."""
    try:
        found = float(value)  # type: ignore[arg-type]  # a wrong type is an error like a wrong text
    except (TypeError, ValueError) as error:
        raise UnreadableFileError(f"{where}: {name} is not a number of tokens", _COLUMNS_HINT) from error
    if not 0 <= found < _MOST_TOKENS or found != int(found):
        raise UnreadableFileError(f"{where}: {name} is not a number of tokens", _COLUMNS_HINT)
    return int(found)


_MOST_TOKENS: Final = 1e8


def _blocks(row: Mapping[str, Any], where: str) -> tuple[int, ...]:
    """Return the numbers of the blocks of a prompt, none where the trace has none."""
    found = row.get(_BLOCKS) or ()
    if not isinstance(found, list | tuple) or not all(type(block) is int and block >= 0 for block in found):
        raise UnreadableFileError(f"{where}: {_BLOCKS} are not whole numbers", _COLUMNS_HINT)
    return tuple(found)
