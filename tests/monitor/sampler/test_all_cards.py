"""The order of the sources."""

from state_kit import PLAIN

from planner.monitor.sampler.all_cards import card_sources


def test_sources_are_asked_in_their_order(tmp_path):
    kinds = [type(source).__name__ for source in card_sources(tmp_path, PLAIN)]
    assert kinds == ["DrmSource", "LibrarySource", "LibrarySource", "ProgramSource", "ProgramSource"]
