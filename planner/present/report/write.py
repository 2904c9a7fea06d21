"""Writing of a report to a file in the format that the file's name asks for, and a report as Markdown."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

from planner.errors import MissingPackageError, PlannerError
from planner.installation import extra_command
from planner.plan.files import embedded_plan_markdown
from planner.present.format import THIN
from planner.present.report.document import (
    Block,
    Bullets,
    CodeListing,
    Prose,
    Report,
    ReportColumn,
    ReportTable,
)
from planner.present.report.html import printed_report, report_html
from planner.storage import write_atomically

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|])")
_STARTS_BLOCK: Final = re.compile(r"^(\d*)([#+\-=.)])(?=\s)")
"""The start of a text that Markdown would take for a heading or a list."""


def report_markdown(report: Report) -> str:
    """Return `report` as a Markdown document, with the plan at its end."""
    lines = [f"# {_escaped(report.title)}", "", f"**{_escaped(report.question)}**", ""]
    lines += [
        f"- **{_escaped(answer.title)}** – {_escaped(answer.text.replace(chr(10), '. '))}".rstrip(" –")
        for answer in report.answers
    ]
    for part in report.sections:
        lines += ["", f"## {_escaped(part.title)}"]
        for block in part.blocks:
            lines += ["", *_block_lines(block)]
    lines += ["", "---", "", _escaped(report.made)]
    if report.plan is not None:
        lines += ["", embedded_plan_markdown(report.plan)]
    return "\n".join(lines) + "\n"


def _block_lines(block: Block) -> Iterator[str]:
    match block:
        case Prose(text):
            yield _escaped(text)
        case Bullets(items):
            yield from (f"- {_escaped(item)}" for item in items)
        case ReportTable(columns, rows, last_is_total):
            yield from _table_lines(columns, rows, last_is_total=last_is_total)
        case CodeListing(text, name):
            if name:
                yield f"`{name}`"
                yield ""
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            yield f"{fence}\n{text.rstrip()}\n{fence}"
        case _:
            yield f"*Figure in the HTML and PDF reports: {_escaped(block.caption)}*"


def _table_lines(
    columns: Sequence[ReportColumn], rows: Sequence[Sequence[str]], *, last_is_total: bool
) -> Iterator[str]:
    yield _row_line([_escaped(column.title) for column in columns])
    yield _row_line(["---:" if column.align == "right" else "---" for column in columns])
    for index, row in enumerate(rows):
        cells = [_escaped(cell) for cell in row]
        if last_is_total and index == len(rows) - 1:
            cells = [f"**{cell}**" if cell else "" for cell in cells]
        yield _row_line(cells)


def _row_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    """Return plain text as Markdown that shows the same characters."""
    plain = text.replace("\n", "; ").replace(THIN, " ")
    return _STARTS_BLOCK.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", plain))


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
