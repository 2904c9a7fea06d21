"""What a way to spread work over cards may say."""

import pytest

from planner.errors import SpecError
from planner.workload.parallel import Parallel
from planner.workload.workload import Inference


def test_alone_everything_is_whole():
    alone = Parallel()
    assert alone.is_plain
    assert (alone.model_shards, alone.state_shards) == (1, 1)


def test_a_replica_takes_the_cards_that_share_matrices_layers_and_sequences():
    spread = Parallel(data=4, tensor=2, pipeline=3, context=5, expert=4)
    assert spread.model_shards == 2 * 3 * 5
    assert spread.state_shards == 4 * 5
    assert not spread.is_plain


def test_auto_holds_until_a_degree_is_set():
    assert Parallel().is_open
    assert not Parallel(tensor=2).is_open
    assert Parallel(sharing="auto", zero=3).sharing == "manual"
    assert Parallel().evolve(pipeline=2).sharing == "manual"
    assert not Parallel(offload="parameters").is_open


@pytest.mark.parametrize("changes", [{"zero": 1}, {"expert": 2}, {"offload": "optimizer"}, {"tensor": 2}])
def test_what_is_shared_or_offloaded_is_not_plain(changes):
    assert not Parallel(**changes).is_plain


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"pipeline": 2, "pipeline_layers": (1, 2, 3)}, "names 3 stages, but pipeline is 2"),
        ({"pipeline": 2, "pipeline_layers": (0, 4)}, "at least 1"),
        ({"interleave": 2}, "at least 2 stages"),
        ({"pipeline": 2, "interleave": 2, "pipeline_layers": (2, 2)}, "leave out pipeline_layers"),
        ({"zero": 4}, "zero: must be at most 3, not 4"),
        ({"tensor": 0}, "tensor: must be at least 1, not 0"),
    ],
)
def test_settings_of_what_is_not_there_are_refused(fields, said):
    with pytest.raises(SpecError, match=said):
        Parallel(**fields)


def test_layers_of_stages_are_read_with_commas_between_them():
    assert Parallel(pipeline=4, pipeline_layers="1, 2,2,3").pipeline_layers == (1, 2, 2, 3)


def test_other_programs_may_use_nothing():
    assert Inference(other_processes_bytes=0).other_processes_bytes == 0
