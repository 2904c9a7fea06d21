"""The default sharding of a plan."""

from planner.plan.sharding import default_sharding

from planner.workload.workload import Inference


def test_only_numbers_of_cards_that_can_share_the_network_count(catalog):
    forty_heads = catalog.models.model("Qwen/Qwen2.5-14B")
    assert list(default_sharding(Inference(profile="vllm"), forty_heads).counts) == [2, 4, 8]
