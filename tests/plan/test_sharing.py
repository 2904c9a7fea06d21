"""How several cards share a plan that leaves it open."""

from planner.plan.sharing import sharing_counts, sharing_schemes
from planner.workload.workload import Inference


def test_only_numbers_of_cards_that_can_share_the_network_count(catalog):
    forty_heads = catalog.models.model("Qwen/Qwen2.5-14B")
    vllm = Inference(profile="vllm")
    assert list(sharing_counts(vllm, forty_heads)) == [2, 4, 8, 16, 32, 64]
    degrees = [sharing_schemes(vllm, forty_heads, count)[-1].settings for count in (8, 16)]
    assert [(one["tensor"], one["pipeline"]) for one in degrees] == [(8, 1), (8, 2)]
