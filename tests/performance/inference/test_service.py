"""Requests per second of a saturated service, with the arithmetic."""

import pytest
from small_models import bundled

from planner.performance.inference.service import MAX_SEQUENCES_PER_STEP, service_rate
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def serve(prompt=500.0, answer=300.0, gpu="h100-sxm5-80gb", cards=1, model="meta-llama/Llama-3.1-8B", **changes):
    architecture = bundled().models.model(model)
    workload = with_defaults(Inference(**{"profile": "vllm", **changes}), architecture, cards)
    card = bundled().hardware.gpu(gpu) if isinstance(gpu, str) else gpu
    return service_rate(architecture, workload, card, TimeSetting(), prompt, answer)


def test_an_engine_takes_as_many_at_once_as_fit():
    assert serve().at_once == MAX_SEQUENCES_PER_STEP
    long = serve(prompt=8_000.0, answer=1_000.0)
    assert 8 < long.at_once < MAX_SEQUENCES_PER_STEP
    assert serve(batch=400).at_once == 400
    assert serve(cards=2, parallel={"data": 2}).at_once == 2 * MAX_SEQUENCES_PER_STEP


def test_software_that_does_not_batch_takes_what_the_workload_says():
    assert serve(profile="llama.cpp", weights="Q4_K_M", batch=4).at_once == 4
    assert serve(profile="hf").at_once == 1


def test_a_place_is_taken_while_its_request_is_read_and_written():
    found = serve()
    each = found.reading_seconds + 300 * found.output_token_seconds
    assert found.requests_per_second == pytest.approx(found.at_once / each)
    assert found.tokens_per_second == pytest.approx(300 * found.requests_per_second)
    twice = serve(cards=2, parallel={"data": 2})
    assert twice.requests_per_second == pytest.approx(2 * found.requests_per_second)
    assert twice.reading_seconds == pytest.approx(found.reading_seconds)


def test_longer_requests_take_longer():
    assert serve().requests_per_second > serve(prompt=1_000.0).requests_per_second
    assert serve().requests_per_second > serve(answer=600.0).requests_per_second
    assert serve(prompt=0.0).requests_per_second > serve().requests_per_second


def test_what_is_not_a_service_of_words_is_not_told():
    assert serve(model="stable-diffusion-v1-5/stable-diffusion-v1-5", profile=None) is None
    bare = bundled().hardware.gpu("h100-sxm5-80gb").evolve(bandwidth_bytes_per_s=None)
    assert serve(gpu=bare) is None
    assert serve(gpu=bare.evolve(memory_bytes=None)) is None
