"""Plans on disk: read with every problem named, written so that a crash never loses the last good version."""

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.errors import PlanFileError, SpecError
from planner.plan.plan import SCHEMA_VERSION, Plan

_LARGEST_BYTES: Final = 16 * 2**20
UNFINISHED: Final = ".unfinished"
"""How the names of files end that are being written; one that stays was left by a process that was killed."""
_OWN_FILE: Final = "Open a file that GPU Planner has saved."
_CHECK_PATH: Final = "Check the path and its rights."


def load_plan(path: Path | str) -> Plan:
    """Return the plan in the file at `path`.

    Raises:
        PlanFileError: If it cannot be read, is not a plan, or comes from a newer version.
    """
    file = Path(path)
    return parse_plan(read_text(file), file)


def is_plan_file(path: Path) -> bool:
    """Return whether the file says of itself that it is a plan.

    What cannot be read is none; the reader that it goes to next says why.
    """
    try:
        # A pipe must not be read twice, and what is not a regular file may have no end.
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return False
        data = path.read_bytes()
    except OSError:
        return False
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return b'"schema_version"' in data  # damaged; read as a plan it is told so
    return isinstance(content, dict) and "schema_version" in content


def parse_plan(text: str, path: Path) -> Plan:
    """Return the plan written in `text`; `path` is named in errors.

    Raises:
        PlanFileError: If it is not a plan, or comes from a newer version.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanFileError(path, f"not valid JSON ({error})", hint=_OWN_FILE) from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise PlanFileError(path, "not a plan: it has no schema_version", hint=_OWN_FILE)
    if version > SCHEMA_VERSION:
        raise PlanFileError(
            path,
            f"made by a newer version of GPU Planner (schema {version}, this one reads up to {SCHEMA_VERSION})",
            hint="Update GPU Planner: pip install --upgrade gpu-planner",
            version=version,
        )
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise PlanFileError(path, problem.message, hint=problem.hint or "Correct that field.") from error


def save_plan(path: Path | str, plan: Plan) -> None:
    """Write `plan` to `path` so that the file holds either the old or the new version, whatever happens.

    Raises:
        PlanFileError: If the folder cannot be written to.
    """
    file = Path(path)
    try:
        write_atomically(file, plan.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise PlanFileError(file, f"cannot be written ({error.strerror})", hint="Choose another folder.") from error


def write_atomically(path: Path, text: str) -> None:
    """Write `text` to a new file beside `path`, flush it to the disk, and put it in place in one step.

    A link keeps pointing to its file, which is the one that is replaced; a file that was there keeps its rights.

    Raises:
        OSError: If the folder cannot be written to; the old file is untouched then.
    """
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=UNFINISHED)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(_rights(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _rights(target: Path) -> int:
    """Return the rights of `target`, or those that a new file has here."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        # The mask can only be read by setting it.
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def read_text(path: Path) -> str:
    """Return the text of a small file.

    Raises:
        PlanFileError: If it is a folder, too large, unreadable or not text.
    """
    try:
        if path.is_dir():
            raise PlanFileError(path, "is a folder, not a plan", hint="Name the plan's file.")
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise PlanFileError(path, "is a device or a pipe, not a plan", hint="Name the plan's file.")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_BYTES + 1)
        if len(content) > _LARGEST_BYTES:
            reason = f"too large for a plan ({about.st_size:,} bytes)"
            raise PlanFileError(path, reason, hint="Open a file of at most 16 MiB.")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PlanFileError(path, "not a text file", hint=_OWN_FILE) from error
    except OSError as error:
        raise PlanFileError(path, f"cannot be read ({error.strerror})", hint=_CHECK_PATH) from error
    except ValueError as error:
        raise PlanFileError(path, f"is not a path ({error})", hint=_CHECK_PATH) from error
