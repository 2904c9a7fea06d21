"""Titles and log formats of programs."""

from planner.workload.software.software import Software


def test_titles_and_log_format_fall_back_on_title_and_name() -> None:
    plain = Software(name="x", module="x", title="X engine", version="1")
    assert (plain.title_for("training"), plain.brief_title, plain.log_format) == ("X engine", "X engine", "x")


def test_titles_and_log_format_can_differ() -> None:
    own = Software(
        name="x", module="x", title="X engine", version="1", training_title="X and Y", short_title="X", log="y"
    )
    assert (own.title_for("training"), own.title_for("inference")) == ("X and Y", "X engine")
    assert (own.brief_title, own.log_format) == ("X", "y")
