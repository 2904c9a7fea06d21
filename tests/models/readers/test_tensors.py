"""Groups of identical layers, and tensors with their checkpoint names and shapes."""

from decoder_cases import tiny

from planner.models.readers.tensors import linear


def test_identical_layers_are_one_group_with_their_positions() -> None:
    groups = tiny("gemma2").main.groups
    assert [group.places for group in groups] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert tiny("gemma2", sliding_window=None).main.groups[0].count == 8


def test_a_projection_has_a_bias_only_where_it_is_said() -> None:
    assert [tensor.name for tensor in linear("up", 3, 2)] == ["up.weight"]
    assert [tensor.shape for tensor in linear("up", 3, 2, bias=True)] == [(3, 2), (3,)]
