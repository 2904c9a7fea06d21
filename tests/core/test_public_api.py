import planner
from planner.plan.plan import Plan


def test_every_public_name_is_there():
    assert all(getattr(planner, name) is not None for name in planner.__all__)


def test_names_are_sorted_and_said_once():
    names = [name for name in planner.__all__ if not name.startswith("__")]
    assert names == sorted(names)
    assert set(planner._HOMES) == set(names)


def test_a_public_name_is_the_one_of_its_home():
    assert planner.Plan is Plan


def test_what_is_not_there_is_an_attribute_error():
    assert not hasattr(planner, "forecast")
