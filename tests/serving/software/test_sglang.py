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
    assert not found.mixes_prefill
    assert found.caches_prefixes
    assert found.block_tokens == 1


def test_arrivals_are_looked_for_as_often_as_is_set():
    model, gpu = bundled().models.model("meta-llama/Llama-3.1-8B"), bundled().hardware.gpu("l40s")
    settings = Inference(profile="sglang", engine={"scheduler_recv_interval": 10})
    assert [SCHEDULER.scheduling(each, model, gpu).polls_every for each in (Inference(), settings)] == [1, 10]
