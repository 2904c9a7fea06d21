"""Writing of a report to a file, in the format that the file's name asks for."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from planner.errors import MissingPackageError, PlannerError
from planner.installation import extra_command
from planner.present.report.document import Report
from planner.present.report.html import report_html
from planner.present.report.markdown import report_markdown
from planner.present.report.printed import printed_report
from planner.storage import write_atomically

ReportFormat = Literal["html", "pdf", "md"]
_FORMATS: Final[dict[str, ReportFormat]] = {
    ".html": "html",
    ".htm": "html",
    ".pdf": "pdf",
    ".md": "md",
    ".markdown": "md",
}


def report_format(path: Path) -> ReportFormat:
    """Return the format that the name of the file `path` asks for.

    Raises:
        PlannerError: If a report cannot have that format.
    """
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise PlannerError(f"{path}: a report cannot have this format", "End the name with .html, .pdf or .md.")
    return found


def write_report(report: Report, path: Path) -> ReportFormat:
    """Write `report` to the file `path` and return its format; an existing file is replaced.

    Raises:
        MissingPackageError: If a PDF is asked for and the window's packages are not installed.
        PlannerError: If a report cannot have the format of `path`, or the file cannot be written.
    """
    chosen = report_format(path)
    writers: dict[ReportFormat, Callable[[Report], str | bytes]] = {"html": report_html, "md": report_markdown}
    content = writers.get(chosen, _pdf)(report)
    try:
        write_atomically(path, content)
    except OSError as error:
        raise PlannerError(f"{path}: cannot be written ({error.strerror})", "Choose another folder.") from error
    return chosen


def _pdf(report: Report) -> bytes:
    """Return a PDF, made in a process of its own, since only Qt can, whose crash must not end this one."""
    if find_spec("PySide6") is None:
        raise MissingPackageError("a PDF needs the packages of the window", f"Run: {extra_command('app')}")
    # Qt stores fonts in the order of hashes, which are random otherwise, so that no two files would be equal.
    environment = {**os.environ, "QT_HASH_SEED": "0"}
    made = subprocess.run(
        [sys.executable, "-m", "planner.gui.report_pdf"],
        input=json.dumps(printed_report(report)).encode(),
        capture_output=True,
        check=False,
        env=environment,
    )
    if made.returncode:
        reason = made.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["it crashed"]
        raise PlannerError(f"the PDF could not be made ({reason[0]})", "Write an HTML report, which prints as well.")
    return made.stdout
