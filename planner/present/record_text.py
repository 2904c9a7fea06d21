"""Records as text for export: tab-separated for the clipboard, CSV and JSON for files."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from planner.present.columns import Column


def to_tsv(columns: Sequence[Column[Any]], records: Sequence[Any]) -> str:
    """Return records as tab-separated text: a header and one line per record, with the texts of the table."""
    lines = [[column.header for column in columns]]
    lines += [[column.text(record) for column in columns] for record in records]
    return "\n".join("\t".join(line) for line in lines) + "\n"


def to_csv(fields: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    """Return `rows` as CSV with a header of `fields`; unknown values are empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=fields, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def to_json(rows: Sequence[Mapping[str, object]]) -> str:
    """Return `rows` as a JSON list of objects."""
    return json.dumps(list(rows), indent=2, ensure_ascii=False) + "\n"


def rows_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of texts, the header among them, as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
