"""What must hold of any model, card and workload."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from known_engines import ENGINES
from small_models import bundled

from planner.cost.demand import wait_seconds
from planner.performance.inference.gpu_speed import gpu_speed
from planner.performance.inference.passes import ModelSplit
from planner.performance.inference.request import ServedModel, decoding_step_time, prompt_time
from planner.performance.inference.service import saturated_throughput
from planner.performance.inference.work import work_of
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting

MODELS = ("meta-llama/Llama-3.1-8B", "mistralai/Mixtral-8x7B-v0.1", "google/gemma-3-4b-it", "deepseek-ai/DeepSeek-V3")
CARDS = ("rtx-4090", "a100-sxm4-80gb", "h20-96gb", "b200-sxm-180gb", "apple-m3-max", "l40s")
FORMATS = ("fp32", "bf16", "fp8", "awq4-128", "nf4")


@st.composite
def runs(draw, engines=tuple(ENGINES), formats=FORMATS, **shares):
    engine, card = draw(st.sampled_from(engines)), bundled().hardware.gpu(draw(st.sampled_from(CARDS)))
    return made(card, engine, draw(st.sampled_from(MODELS)), draw(st.sampled_from(formats)), **shares)


def made(card, engine, model, weights, **shares):
    architecture = bundled().models.model(model)
    speed = gpu_speed(card, ENGINES[engine], weights)
    split = ModelSplit(links_of(card, TimeSetting()), **shares)
    return ServedModel(architecture, work_of(architecture, weights), speed, split, "fp16")


batches = st.integers(1, 512)
contexts = st.integers(1, 100_000)


@settings(max_examples=60)
@given(runs(), batches, batches, contexts)
@example(made(bundled().hardware.gpu("rtx-4090"), "llama.cpp", MODELS[0], "fp8"), 15, 17, 1)
def test_more_sequences_never_make_a_step_shorter_nor_bring_less(one, batch, more, context):
    fewer, all_ = decoding_step_time(one, batch, context), decoding_step_time(one, batch + more, context)
    assert all_.seconds >= fewer.seconds * (1 - 1e-9)
    # Kernels that unpack quantised weights take over at some number of rows: that step costs more than one row brings.
    taken_over = 0.0 if fewer.dequantisation else all_.dequantisation
    assert (batch + more) / (all_.seconds - taken_over) >= batch / fewer.seconds * (1 - 1e-9)


@settings(max_examples=60)
@given(runs(), batches, contexts, contexts)
def test_a_longer_context_is_never_quicker(one, batch, context, more):
    longer = decoding_step_time(one, batch, context + more).seconds
    assert longer >= decoding_step_time(one, batch, context).seconds * (1 - 1e-9)


@settings(max_examples=60)
@given(runs(), st.integers(1, 8), st.integers(1, 20_000), st.integers(1, 20_000))
def test_a_longer_prompt_is_never_quicker(one, batch, tokens, more):
    longer = prompt_time(one, batch, tokens + more).seconds
    assert longer >= prompt_time(one, batch, tokens).seconds * (1 - 1e-6)


@settings(max_examples=40)
@given(st.sampled_from(CARDS), st.sampled_from(MODELS), st.sampled_from(tuple(ENGINES)))
def test_fewer_bits_are_never_more_to_read(card, model, engine):
    gpu = bundled().hardware.gpu(card)
    read = [made(gpu, engine, model, weights).work.read_bytes(1) for weights in ("fp32", "bf16", "fp8", "awq4-128")]
    assert read == sorted(read, reverse=True)


@settings(max_examples=40)
@given(st.sampled_from(CARDS), st.sampled_from(MODELS), st.sampled_from((2, 4, 8)), batches)
def test_sharing_matrices_never_shortens_more_than_by_the_cards(card, model, cards, batch):
    gpu = bundled().hardware.gpu(card)
    alone, shared = made(gpu, "vllm", model, "bf16"), made(gpu, "vllm", model, "bf16", tensor=cards)
    assert decoding_step_time(shared, batch, 1000).seconds >= decoding_step_time(alone, batch, 1000).seconds / cards


@settings(max_examples=40)
@given(runs(), batches, st.integers(1, 4_000), st.integers(1, 2_000))
def test_queued_requests_bring_no_more_than_their_steps(one, batch, prompt, answer):
    found = saturated_throughput(one, batch, prompt, answer)
    assert found.tokens_per_second <= batch / decoding_step_time(one, batch, prompt + answer / 2).seconds * (1 + 1e-9)


@settings(max_examples=60)
@given(st.floats(0.01, 0.99), st.floats(0.01, 1e4), st.integers(1, 600))
def test_more_requests_wait_longer_and_more_places_shorter(busy, answered, places):
    waits = wait_seconds(busy * answered, answered, places)
    assert 0 <= waits <= wait_seconds(min(busy * 1.005, 0.999) * answered, answered, places)
    assert wait_seconds(2 * busy * answered, 2 * answered, 2 * places) <= waits
