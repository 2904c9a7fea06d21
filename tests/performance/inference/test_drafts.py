"""Time with drafts: the arithmetic of a check, and published speeds beside it."""

import pytest
from small_models import bundled
from timed_requests import LLAMA_8B, gpu, served, timed

from planner.models.drafts import with_draft
from planner.performance.estimate import estimate_time
from planner.performance.inference.passes import PassTime
from planner.performance.inference.request import Drafter, decoding_step_time, prompt_time
from planner.performance.inference.service import saturated_throughput, sequences_that_fit
from planner.performance.inference.steps import StepTimes
from planner.performance.setting import TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def drafting(card, method, count=1, model=LLAMA_8B, profile="vllm", **fields):
    """Return the time of a request with tokens drafted by `method`."""
    architecture = with_draft(bundled().models.model(model), method)
    tokens = {name: fields.pop(name) for name in ("tokens", "acceptance") if name in fields}
    workload = Inference(profile=profile, speculation={"method": method, **tokens}, **fields)
    filled = with_defaults(workload, architecture, count)
    return estimate_time(architecture, filled, ((gpu(card), count),), TimeSetting())


def test_a_check_is_a_pass_over_all_tokens_and_the_passes_of_the_draft():
    run = served(engine="vllm", weights="bf16", gpu="rtx-4090")
    small = served(engine="vllm", weights="bf16", gpu="rtx-4090", model="meta-llama/Llama-3.2-1B")
    both = run._replace(draft=Drafter(3, 2.5, small))
    four = decoding_step_time(run._replace(draft=Drafter(3, 1.0, None)), 2, 500)
    assert four.cache_read == pytest.approx(decoding_step_time(run, 2, 500).cache_read)
    one = decoding_step_time(small, 2, 500)
    assert decoding_step_time(both, 2, 500).seconds == pytest.approx((four.seconds + 3 * one.seconds) / 2.5)
    assert decoding_step_time(both, 2, 500).drafting == pytest.approx(3 * one.seconds / 2.5)
    own, drafted = prompt_time(run, 2, 500), prompt_time(small, 2, 500)
    assert prompt_time(both, 2, 500) == own.followed_by(PassTime(drafting=drafted.seconds))
    assert prompt_time(run._replace(draft=Drafter(3, 1.0, None)), 2, 500) == own


def test_a_draft_takes_room_from_the_sequences():
    run = served(engine="vllm", weights="bf16", gpu="rtx-4090")
    small = served(engine="vllm", weights="bf16", gpu="rtx-4090", model="meta-llama/Llama-3.2-1B")
    both = run._replace(draft=Drafter(3, 2.5, small))
    assert sequences_that_fit(both, "bf16", 2_000, 24e9) < sequences_that_fit(run, "bf16", 2_000, 24e9)
    assert saturated_throughput(both, 4, 500, 200).output_token_seconds == decoding_step_time(both, 4, 600).seconds


def test_eagle3_on_h100_is_as_fast_as_published():
    """EAGLE-3 (arXiv 2503.01840), SGLang on H100, Llama 3.1 8B, one request: 158.34 tokens/s, and 373.25 with it.

    The paper drafts trees; a chain of 5 tokens of which 0.7 are accepted yields 2.94.
    """
    fields = {"profile": "sglang", "weights": "bf16", "prompt_length": 128, "context_length": 640}
    plain = timed("h100-sxm5-80gb", **fields)
    assert plain.tokens_per_second == pytest.approx(158.34, rel=0.05)
    found = drafting("h100-sxm5-80gb", "eagle3", tokens=5, acceptance=0.7, **fields)
    assert found.tokens_per_second == pytest.approx(373.25, rel=0.05)


def test_deepseek_v3_with_its_own_layer_is_nearly_as_much_faster_as_published():
    """DeepSeek-V3 (arXiv 2412.19437), section 5.4.3: 85 to 90 % accepted, 1.8 times the tokens a second."""
    model, fields = "deepseek-ai/DeepSeek-V3", {"parallel": {"tensor": 8}, "batch": 128, "context_length": 1024}
    plain = timed("h200-sxm-141gb", 8, model, profile="sglang", **fields)
    found = drafting("h200-sxm-141gb", "mtp", 8, model, profile="sglang", acceptance=0.875, **fields)
    assert found.tokens_per_second / plain.tokens_per_second == pytest.approx(1.8, rel=0.08)
    assert "checks 1 drafted token and yields 1.88 on average" in found.notes[0]


def test_the_note_tells_from_how_many_sequences_on_drafting_costs_time():
    fields = {"prompt_length": 128, "context_length": 256}
    few = drafting("l40s", "eagle", tokens=8, acceptance=0.5, **fields)
    assert "times as fast as without a draft" in few.notes[0]
    assert "sequences at once on, drafting costs more time" in few.notes[1]
    many = drafting("l40s", "eagle", tokens=8, acceptance=0.5, batch=256, **fields)
    assert "times slower than without a draft" in many.notes[0]
    assert not any("on, drafting costs" in note for note in many.notes)
    term = next(term for term in few.terms if term.name == "drafting")
    values = {symbol.name: symbol.value for symbol in term.symbols}
    assert term.seconds == pytest.approx(values["T"] / values["E"] * values["k"] * values["t"], rel=1e-3)


def test_repeated_words_cost_no_pass_and_a_model_of_its_own_has_measured_kernels():
    fields = {"weights": "bf16", "prompt_length": 128, "context_length": 256}
    plain = timed("h100-sxm5-80gb", profile="vllm", **fields)
    guessed = drafting("h100-sxm5-80gb", "ngram", tokens=3, acceptance=0.5, **fields)
    assert guessed.tokens_per_second == pytest.approx(1.875 * plain.tokens_per_second, rel=0.05)
    architecture = bundled().models.model(LLAMA_8B)
    small = with_draft(architecture, "model", bundled().models.model("meta-llama/Llama-3.2-1B"))
    workload = Inference(profile="vllm", speculation={"model": "meta-llama/Llama-3.2-1B"}, **fields)
    filled = with_defaults(workload, small, 1)
    found = estimate_time(small, filled, ((gpu("h100-sxm5-80gb"), 1),), TimeSetting())
    assert found.tokens_per_second > 1.4 * plain.tokens_per_second


def test_steps_of_a_simulation_agree_with_the_formula():
    run = served(engine="vllm", weights="bf16", gpu="rtx-4090")
    small = served(engine="vllm", weights="bf16", gpu="rtx-4090", model="meta-llama/Llama-3.2-1B")
    both = run._replace(draft=Drafter(3, 2.5, small))
    times, plain = StepTimes(both, 500), StepTimes(run, 500)
    assert (times.tokens_per_step, times.rows_per_sequence, plain.tokens_per_step) == (2.5, 4, 1.0)
    step = times.decoding(4)
    assert step.seconds + 4 * 500 * step.per_token == pytest.approx(decoding_step_time(both, 4, 500).seconds, rel=0.02)
    assert times.mixed(0, 0, 100, 0.0) > plain.mixed(0, 0, 100, 0.0)
    alone = decoding_step_time(both, 4, 500).seconds * 2.5
    assert times.mixed(4, 2_000, 16, 0.0) == pytest.approx(alone, rel=0.25)


def test_the_host_starts_the_passes_of_a_draft_too():
    run = served(engine="vllm", weights="bf16", gpu="h100-sxm5-80gb", model="Qwen/Qwen3-0.6B")
    both = run._replace(draft=Drafter(3, 2.5, run))
    step = StepTimes(both, 1).decoding(1_000)
    assert step.least == pytest.approx(4 * 1_000 * 25e-6 / 2.5)
    assert step.least == pytest.approx(decoding_step_time(both, 1_000, 1).seconds)


def test_the_time_of_adapters_is_told_to_be_left_out():
    found = timed(profile="vllm", adapters={"slots": 2}, prompt_length=128, context_length=256)
    assert any("LoRA adapters is not counted" in note for note in found.notes)
