"""Aligned tables."""

import pytest

from planner.cli.table import TableColumn, table, terminal_width, wrap

HEADS = (TableColumn("Name", flexible=True), TableColumn("GiB", "right"), TableColumn("Why", flexible=True))
ROWS = [["Weights", "14.96", "two bytes for each parameter"], ["KV cache", "0.50", "keys and values"]]


def test_columns_align_and_lines_have_no_blanks_at_their_end():
    assert table(HEADS, ROWS).splitlines() == [
        "Name        GiB  Why",
        "Weights   14.96  two bytes for each parameter",
        "KV cache   0.50  keys and values",
    ]


def test_the_widest_flexible_column_is_cut_first():
    lines = table(HEADS, ROWS, width=34, cuts=True).splitlines()
    assert lines[1] == "Weights   14.96  two bytes for ea…"
    assert max(map(len, lines)) == 34


def test_wide_columns_give_alike():
    heads = (TableColumn("", flexible=True), TableColumn("", flexible=True))
    lines = table(heads, [["a" * 40, "b" * 30]], width=42, cuts=True).splitlines()
    assert lines[1] == f"{'a' * 19}…  {'b' * 19}…"


def test_columns_are_never_cut_to_nothing():
    assert table(HEADS, ROWS, width=5, cuts=True).splitlines()[1] == "Weights   14.96  two bytes f…"


def test_a_table_without_rows_is_its_header():
    assert table(HEADS, []) == "Name  GiB  Why"


def test_a_column_may_keep_the_end_of_its_texts():
    heads = (TableColumn("Line", flexible=True, narrowest=6, keep="end"), TableColumn("Name"))
    assert table(heads, [["modeling_net.py:42", "x"]], width=10, cuts=True).splitlines()[1] == "…py:42  x"


def test_long_texts_go_on_below_themselves():
    heads = (
        TableColumn("Figure", flexible=True, narrowest=8),
        TableColumn("Value", "right"),
        TableColumn("Why", flexible=True),
    )
    rows = [["  Supply, with headroom", "3,700 W", "a GPU may draw three times its power"], ["  Heat", "5", ""]]
    assert table(heads, rows, width=36).splitlines() == [
        "Figure          Value  Why",
        "  Supply,     3,700 W  a GPU may",
        "  with                 draw three",
        "  headroom             times its",
        "                       power",
        "  Heat              5",
    ]
    assert table(heads, rows, cuts=True) == table(heads, rows)


def test_paragraphs_are_folded_but_addresses_stay_whole():
    address = "https://example.org/a-long-address-of-a-page"
    assert wrap(f"see {address}; and more", 24, "[1] ").splitlines() == [
        "[1] see",
        f"    {address};",
        "    and more",
    ]
    assert wrap("as it is", None, "- ") == "- as it is"
    assert max(map(len, wrap("word " * 20, 3).splitlines())) <= 20


@pytest.mark.parametrize(("said", "width"), [("72", 72), ("", None), ("0", None), ("wide", None), ("²", None)])
def test_a_pipe_is_as_wide_as_is_said(monkeypatch, capsys, said, width):
    monkeypatch.setenv("COLUMNS", said)
    assert terminal_width() == width
