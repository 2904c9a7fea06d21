"""Plan files: loading with precise errors, and crash-safe saving."""

from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.errors import PlanFileError, SpecError
from planner.installation import update_hint
from planner.models.load import load_model
from planner.parsing import parse_json
from planner.plan.catalog import Catalog
from planner.plan.plan import SCHEMA_VERSION, ModelChoice, Plan
from planner.storage import UnreadableFileError, read_regular, write_atomically
from planner.units import MIB

_LARGEST_BYTES: Final = 16 * MIB
_OPEN_OWN_FILE: Final = "Open a file that GPU Planner has saved."
_PLAN_TYPE: Final = "application/vnd.gpu-planner.plan+json"
_IN_HTML: Final = (f'<script type="{_PLAN_TYPE}">', "</script>")
_IN_MARKDOWN: Final = ("<!-- The plan, which `gpu-planner` opens from this file:\n", "\n-->")


def load_plan(path: Path | str) -> Plan:
    """Return the plan in the file at `path`.

    Raises:
        PlanFileError: If the file cannot be read, is not a plan, or comes from a newer version.
    """
    file = Path(path)
    return parse_plan(read_text(file), file)


def embedded_plan_html(plan: Plan) -> str:
    """Return an element that stores `plan` in an HTML document, from which `load_plan` reads it."""
    # No text of the plan may end the element.
    return plan.model_dump_json().replace("<", "\\u003c").join(_IN_HTML)


def embedded_plan_markdown(plan: Plan) -> str:
    """Return a comment that stores `plan` in a Markdown document, from which `load_plan` reads it."""
    return (
        plan.model_dump_json()
        .replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("--", "-\\u002d")
        .join(_IN_MARKDOWN)
    )


def _embedded_plan_text(text: str) -> str | None:
    """Return the text of the last plan that is stored in a report, or None if the text is no report with a plan."""
    for start, end in (_IN_HTML, _IN_MARKDOWN):
        before, found, rest = text.rpartition(start)
        plan, ended, _ = rest.partition(end)
        if before and found and ended:
            return plan
    return None


def is_plan_file(path: Path) -> bool:
    """Return whether the file at `path` identifies itself as a plan, or as a report that has one.

    An unreadable file does not count as a plan; the next reader reports the error.
    """
    try:
        data = read_regular(path, "plan", _LARGEST_BYTES)
    except UnreadableFileError:
        return False
    try:
        content = parse_json(data)
    except UnreadableFileError:
        return b'"schema_version"' in data  # a damaged plan: reading it as one reports the damage
    return isinstance(content, dict) and "schema_version" in content


def parse_plan(text: str, path: Path) -> Plan:
    """Return the plan in the text of a plan file, or of a report that was made from one; errors name `path`.

    Raises:
        PlanFileError: If it is not a plan, or comes from a newer version.
    """
    try:
        data = parse_json(_embedded_plan_text(text) or text)
    except UnreadableFileError as error:
        raise PlanFileError(path, error.reason, hint=f"{error.hint} {_OPEN_OWN_FILE}") from error
    version = data.get("schema_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise PlanFileError(path, "not a plan: it has no schema_version", hint=_OPEN_OWN_FILE)
    if version > SCHEMA_VERSION:
        raise PlanFileError(
            path,
            f"made by a newer version of GPU Planner (schema {version}, this one reads up to {SCHEMA_VERSION})",
            hint=update_hint(),
            version=version,
        )
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        problem = SpecError.from_validation(error)
        raise PlanFileError(path, problem.message, hint=problem.hint or "Correct that field.") from error


def save_plan(path: Path | str, plan: Plan) -> None:
    """Write `plan` to `path` atomically: after a crash, the file has either the old or the new content.

    Raises:
        PlanFileError: If the file cannot be written.
    """
    file = Path(path)
    try:
        write_atomically(file, plan.model_dump_json(indent=2) + "\n")
    except OSError as error:
        raise PlanFileError(file, f"cannot be written ({error.strerror})", hint="Choose another folder.") from error


def read_text(path: Path) -> str:
    """Return the text of a file that is small enough for a plan.

    Raises:
        PlanFileError: If it is a folder, too large, unreadable or not text.
    """
    try:
        return read_regular(path, "plan", _LARGEST_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise PlanFileError(path, "not a text file", hint=_OPEN_OWN_FILE) from error
    except UnreadableFileError as error:
        raise PlanFileError(path, error.reason, hint=error.hint) from error


def named_plan(word: str, catalog: Catalog) -> Plan:
    """Return the plan in the file `word`, or a new plan for the model that `word` names.

    Raises:
        PlannerError: If `word` is neither, or the file cannot be read.
    """
    path = Path(word)
    return load_plan(path) if is_plan_file(path) else Plan.model_construct(model=_named_model(word, catalog))


def _named_model(word: str, catalog: Catalog) -> ModelChoice:
    loaded = load_model(word, catalog.models)
    if loaded.path is None:
        return ModelChoice.model_construct(id=loaded.name)
    return ModelChoice.of_file(loaded.name, loaded.architecture, loaded.path)
