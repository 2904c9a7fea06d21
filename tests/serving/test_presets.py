"""The bundled presets of traffic."""

from planner.serving.presets import load_traffic_presets
from planner.serving.requests import draw_requests


def test_each_kind_of_service_has_traffic_targets_and_sources():
    presets = load_traffic_presets()
    assert {preset.id for preset in presets} == {"chat", "rag", "code-completion", "agents", "summaries", "batch"}
    for preset in presets:
        drawn = draw_requests(preset.traffic, 50, 0)
        assert min(drawn.prompt) > 0, preset.id
        assert preset.targets.limits, preset.id
        assert all(len(source) > 20 for source in preset.sources), preset.id


def test_a_turn_of_an_agent_repeats_what_went_before():
    agents = next(preset for preset in load_traffic_presets() if preset.id == "agents")
    drawn = draw_requests(agents.traffic, 3_000, 0)
    # Without the limit of 128,000 tokens the mean prompt of the source is 67,800 tokens.
    assert 40_000 < sum(drawn.prompt) / len(drawn) < 68_000
    assert max(drawn.prompt) <= 128_000
