"""The layout of the memory bar in pixels."""

import pytest
from memory_results import view

from planner.gui.memory.stacked_bar import lay_out


def ends(layout):
    return {piece.segment.name: (round(piece.left), round(piece.right)) for piece in layout.pieces}


def test_pieces_lie_to_scale_and_the_rest_is_free():
    layout = lay_out(view(), 240)
    assert ends(layout) == {
        "weights": (0, 160),
        "kv_cache": (160, 170),
        "framework_overhead": (170, 180),
        "free": (180, 240),
    }
    assert (layout.low, layout.total, layout.high, layout.edge) == pytest.approx((175, 180, 185, 240))


def test_what_others_hold_stands_at_the_end_of_the_card():
    assert ends(lay_out(view(other_gib=2), 240))["other_processes"] == (220, 240)


def test_what_does_not_fit_runs_past_the_edge_of_the_card():
    layout = lay_out(view(cache_gib=13), 306)
    over = next(piece for piece in layout.pieces if piece.segment.kind == "overflow")
    cache = next(piece for piece in layout.pieces if piece.segment.name == "kv_cache")
    assert over.left == pytest.approx(layout.edge)
    assert over.right == pytest.approx(layout.total)
    assert layout.high < layout.width
    assert layout.piece_at(over.left + 1) is cache


def test_without_a_card_the_bar_ends_after_the_upper_bound():
    layout = lay_out(view(capacity_gib=None), 300)
    assert layout.edge is None
    assert layout.card_right == 300
    assert layout.total < layout.high < 300


@pytest.mark.parametrize(
    ("capacity", "texts"),
    [
        (24, ["0 GiB", "4 GiB", "8 GiB", "12 GiB", "16 GiB", "20 GiB", "24 GiB"]),
        (80, ["0 GiB", "16 GiB", "32 GiB", "48 GiB", "64 GiB", "80 GiB"]),
    ],
)
def test_the_scale_has_round_sizes(capacity, texts):
    assert [text.replace("\u2009", " ") for _, text in lay_out(view(capacity), 500).ticks] == texts


def test_nothing_lies_beyond_the_bar():
    assert lay_out(view(), 240).piece_at(241) is None
