"""Titles and log formats of programs."""

from planner.workload.software.software import EngineSettings, Software
from planner.workload.software.vllm import VllmSettings


def test_only_set_fields_are_explicit() -> None:
    assert EngineSettings().explicit_names() == ()
    assert VllmSettings(max_num_seqs=8, enforce_eager=False).explicit_names() == ("max_num_seqs", "enforce_eager")


def test_titles_and_log_format_fall_back_on_title_and_name() -> None:
    plain = Software(name="x", module="x", title="X engine", version="1")
    assert (plain.title_for("training"), plain.brief_title, plain.log_format) == ("X engine", "X engine", "x")


def test_titles_and_log_format_can_differ() -> None:
    own = Software(
        name="x", module="x", title="X engine", version="1", training_title="X and Y", short_title="X", log="y"
    )
    assert (own.title_for("training"), own.title_for("inference")) == ("X and Y", "X engine")
    assert (own.brief_title, own.log_format) == ("X", "y")
