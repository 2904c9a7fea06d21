"""Files of the records of a view."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.errors import PlannerError
from planner.present.record_text import to_csv, to_json
from planner.storage import write_atomically


def write_rows(path: Path, fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    """Write `rows` as JSON where `path` ends so, otherwise as CSV under a header of their `fields`.

    Raises:
        PlannerError: If the file cannot be written.
    """
    text = to_json(rows) if path.suffix.lower() == ".json" else to_csv(fields, rows)
    try:
        write_atomically(path, text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise PlannerError(f"{path} could not be written: {reason}", "Choose another folder.") from error
