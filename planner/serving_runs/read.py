"""Reading of measured serving runs: a scrape of a server's metrics, or a result file of a load generator."""

from pathlib import Path
from typing import Final

from planner.errors import LogError
from planner.parsing import parse_json, parse_prometheus
from planner.serving_runs.record import SOURCE_TITLES, ServingRun
from planner.serving_runs.results import runs_of_results
from planner.serving_runs.scrape import run_of_scrape
from planner.storage import UnreadableFileError, read_regular
from planner.units import MIB

MAX_BYTES: Final = 64 * MIB
_MOST_LINES: Final = 1_000
_HINT: Final = f"Read are {', '.join(SOURCE_TITLES.values())}."


def read_serving_runs(path: Path) -> tuple[ServingRun, ...]:
    """Return the measured runs in the file at `path`: several where a benchmark tried several rates.

    Raises:
        LogError: If it cannot be read, or is of no program that is known.
    """
    try:
        return serving_runs_in(read_regular(path, "measured run", MAX_BYTES))
    except UnreadableFileError as error:
        raise LogError(f"{path}: {error.reason}", error.hint) from error
    except LogError as error:
        raise LogError(f"{path}: {error.message}", error.hint) from error


def serving_runs_in(data: bytes | str) -> tuple[ServingRun, ...]:
    """Return the measured runs in the text of a file.

    Raises:
        LogError: If it is of no program that is known.
        UnreadableFileError: If it breaks a limit or is neither JSON nor a scrape.
    """
    text = data.decode("utf-8-sig", "replace") if isinstance(data, bytes) else data
    runs = _runs_in_json(text) if text.lstrip()[:1] == "{" else _runs_in_scrape(text)
    if not runs:
        raise LogError("no measured serving run was recognized", _HINT)
    return runs


def _runs_in_json(text: str) -> tuple[ServingRun, ...]:
    """Return the runs in a JSON document, or in each line of a file that has one a line."""
    lines = [line for line in text.splitlines() if line.strip()]
    one_each = len(lines) > 1 and lines[0].strip().endswith("}") and lines[1].lstrip().startswith("{")
    documents = [parse_json(line, allow_infinity=True) for line in lines[:_MOST_LINES]] if one_each else None
    if documents is None:
        documents = [parse_json(text, allow_infinity=True)]
    return tuple(run for document in documents if isinstance(document, dict) for run in runs_of_results(document))


def _runs_in_scrape(text: str) -> tuple[ServingRun, ...]:
    run = run_of_scrape(parse_prometheus(text))
    return () if run is None else (run,)
