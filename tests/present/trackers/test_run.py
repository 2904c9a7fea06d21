"""What all trackers share: fields of a plan by their path, and dated texts."""

from planner.present.trackers.moments import TextNote
from planner.present.trackers.run import dated_line, plain_fields


def test_nested_fields_have_their_path_and_empty_ones_are_left_out():
    plan = {"gpu": "rtx-4090", "count": 2, "model": {"id": "x", "trace": None}, "corrections": [], "words": ["a", 1]}
    assert plain_fields(plan) == {"gpu": "rtx-4090", "count": 2, "model.id": "x", "words": "['a', 1]"}


def test_a_dated_text_begins_with_its_time():
    assert dated_line(TextNote(1_700_000_000.4, 0.0, "first step")) == "- 2023-11-14T22:13:20+00:00 first step"
