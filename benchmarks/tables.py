"""Tables of figures in the manual, which the measuring benchmarks write.

A page of `docs/` marks the place of a table by `<!-- table: NAME -->` and `<!-- end -->`.
"""

import argparse
import os
import platform
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def add_table_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that every benchmark with a table in the manual has."""
    parser.add_argument("--table", action="store_true", help="also write the table into the manual, docs/")


def write_table(page: str, name: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "") -> None:
    """Replace the table `name` of `docs/PAGE.md` and the note below it.

    Raises:
        ValueError: If the page has no markers for the table.
    """
    path = DOCS / f"{page}.md"
    path.write_text(with_table(path.read_text(encoding="utf-8"), name, header, rows, note), encoding="utf-8")


def with_table(text: str, name: str, header: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> str:
    """Return the page `text` with the table `name` replaced; all columns but the first are right-aligned."""
    lines = [_row(header), _row([":--", *["--:"] * (len(header) - 1)]), *map(_row, rows)]
    table = "\n".join([*lines, *(["", note] if note else [])])
    place = re.compile(rf"(<!-- table: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not place.search(text):
        raise ValueError(f"the page marks no place for the table {name}")
    return place.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", text)


def machine_note() -> str:
    """Return a note with the software versions and the number of cores of this machine."""
    return (
        f"Measured on {os.cpu_count()} shared cores with Python {platform.python_version()}, "
        f"PySide6 {version('PySide6-Essentials')} and pydantic {version('pydantic')}."
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
