"""Published constants."""

from planner.cost.constants import Constant


def test_a_constant_keeps_what_its_source_says_of_the_date() -> None:
    constant = Constant(id="a", kind="pue", name="an average", value=1.5, unit="ratio", date="2024", source="a survey")
    assert constant.figure.date == "2024"
