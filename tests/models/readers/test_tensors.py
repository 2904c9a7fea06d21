"""Groups of identical layers, and tensors with their checkpoint names and shapes."""

from decoder_cases import tiny


def test_identical_layers_are_one_group_with_their_positions() -> None:
    groups = tiny("gemma2").main.groups
    assert [group.places for group in groups] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert tiny("gemma2", sliding_window=None).main.groups[0].count == 8
