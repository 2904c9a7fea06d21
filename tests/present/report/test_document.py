"""The structure of a report."""

from planner.present.columns import number_column, text_column
from planner.present.report.document import (
    Bullets,
    CodeListing,
    Drawing,
    Prose,
    ReportColumn,
    ReportTable,
    section,
    table_of,
)


def test_a_section_leaves_out_what_is_empty():
    drawing, listing = Drawing(1, 1, (), "nothing"), CodeListing("")
    empty = (None, Prose(""), Bullets(()), ReportTable((ReportColumn("a"),), ()))
    found = section("Title", *empty, Prose("a"), drawing, listing)
    assert found.title == "Title"
    assert found.blocks == (Prose("a"), drawing, listing)


def test_a_table_of_the_applications_columns_leaves_out_hidden_and_empty_ones():
    columns = (
        text_column("name", "Name", str),
        text_column("note", "Note", lambda _row: None, unknown=""),
        text_column("hidden", "Hidden", str, shown=False),
        number_column("length", "Length", len, unit="letters"),
    )
    found = table_of(columns, ["card", "model"])
    assert found.columns == (ReportColumn("Name"), ReportColumn("Length, letters", "right"))
    assert found.rows == (("card", "4"), ("model", "5"))
