"""Log files, and the file of saved corrections."""

import hashlib
from datetime import date
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from pydantic import FailFast, ValidationError

from planner.base import Spec
from planner.errors import LogError, PlanFileError, SpecError
from planner.memory.corrections import Correction
from planner.memory.logs.reading import MAX_BYTES, decode_log
from planner.parsing import parse_json
from planner.paths import state_dir
from planner.storage import CHECK_PATH, UnreadableFileError, read_regular, read_stored, write_stored
from planner.units import MIB

_LARGEST: Final = 4 * MIB
_DIGITS: Final = 12
_MOST_KEPT: Final = 1_000


class Log(NamedTuple):
    """A log's text, name and date, and the first digits of its SHA-256 digest."""

    text: str
    name: str
    date: str
    digest: str


class _CorrectionsFile(Spec):
    """Contents of the corrections file."""

    schema_version: int = 1
    corrections: Annotated[tuple[Correction, ...], FailFast()] = ()


def pasted_log(text: str, today: date, name: str = "pasted text") -> Log:
    """Return the log in pasted text, dated `today`."""
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return Log(text, name, today.isoformat(), digest)


def open_log(path: Path) -> Log:
    """Return the log in the file at `path`, dated by the file's modification time.

    Raises:
        LogError: If it cannot be read, is too large, or is a pickle, which is never loaded.
    """
    try:
        data = read_regular(path, "log", MAX_BYTES)
        written = date.fromtimestamp(path.stat().st_mtime)
    except UnreadableFileError as error:
        raise LogError(f"{path}: {error.reason}", error.hint) from error
    except OSError as error:
        raise LogError(f"{path}: cannot be read ({error.strerror})", CHECK_PATH) from error
    return pasted_log(decode_log(data), written, path.name)


def corrections_file() -> Path:
    """Return the path of the user's corrections file."""
    return state_dir() / "corrections.json"


def load_corrections(path: Path) -> tuple[Correction, ...]:
    """Return the corrections saved at `path`; none if the file does not exist.

    Raises:
        PlanFileError: If the file is damaged.
    """
    hint = "Delete it: each correction can be derived from its log again."
    try:
        data = read_stored(path, "list of corrections", _LARGEST)
        return () if data is None else _CorrectionsFile.model_validate(parse_json(data)).corrections
    except UnreadableFileError as error:
        raise PlanFileError(path, error.reason, hint=hint) from error
    except ValidationError as error:
        raise PlanFileError(path, SpecError.from_validation(error).message, hint=hint) from error


def save_correction(path: Path, correction: Correction) -> None:
    """Save `correction` to the file at `path`, replacing an older one for the same kind of run.

    Raises:
        PlanFileError: If the file is damaged or cannot be written.
    """
    others = tuple(known for known in load_corrections(path) if known.key != correction.key)
    content = _CorrectionsFile(corrections=(correction, *others)[:_MOST_KEPT])
    try:
        write_stored(path, content.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise PlanFileError(
            path, f"cannot be written ({error.strerror})", hint="Check the folder's permissions."
        ) from error
