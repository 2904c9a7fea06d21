"""Records as text for other programs: tab-separated for the clipboard, CSV and JSON for files."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from planner.present.columns import Column


def to_tsv(columns: Sequence[Column[Any]], records: Sequence[Any]) -> str:
    """Return a header and a line a record, as the table shows them."""
    lines = [[column.header for column in columns]]
    lines += [[column.text(record) for column in columns] for record in records]
    return "\n".join("\t".join(line) for line in lines) + "\n"


def to_csv(fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return a header of `fields`, which every row has, and a line a row; what is unknown is left empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_json(rows: Sequence[Mapping[str, object]]) -> str:
    """Return a list with an object a row."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n"


def rows_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts, the header among them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
