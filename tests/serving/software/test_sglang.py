"""Scheduling of SGLang: prompts in steps of their own, by the size of the card."""

from small_models import bundled

from planner.serving.software.sglang import SCHEDULER
from planner.workload.workload import Inference


def scheduling(gpu):
    return SCHEDULER.scheduling(
        Inference(), bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu(gpu)
    )


def test_chunks_grow_with_the_card():
    assert [scheduling(gpu).step_tokens for gpu in ("rtx-4090", "l40s", "h100-sxm5-80gb", "b200-sxm-180gb")] == [
        2_048,
        4_096,
        8_192,
        16_384,
    ]


def test_decoding_waits_for_prompts():
    found = scheduling("l40s")
    assert not found.mixes
    assert found.caches_prefixes
    assert found.block_tokens == 1
