"""The time of a request as it is told: figures, intervals, parts, bound and notes."""

import pytest
from known_engines import ENGINES
from small_models import bundled
from timed_requests import CHAT, LLAMA_8B, gpu, timed

from planner.performance.inference.estimate import (
    inference_time,
    is_decoding_measured,
    request_spread_factor,
    served_model,
)
from planner.performance.inference.request import encoder_pass_time, prompt_time
from planner.performance.inference.work import work_of
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def test_a_request_is_its_prompt_and_a_step_for_each_token():
    found = timed(**CHAT)
    assert found.seconds == pytest.approx(found.first_token_seconds + 512 * found.output_token_seconds)
    assert found.tokens_per_second == pytest.approx(1 / found.output_token_seconds)
    assert found.samples_per_second == pytest.approx(1 / found.seconds)
    assert sum(term.exposed_seconds for term in found.terms) == pytest.approx(found.seconds)
    assert found.bound == "memory bandwidth"
    assert (found.task, found.kind, found.basis) == ("inference", "service", "same card")


def test_intervals_hold_their_figure():
    found = timed(**CHAT)
    for name in ("seconds", "tokens_per_second", "first_token_seconds", "output_token_seconds"):
        assert getattr(found, f"low_{name}") < getattr(found, name) < getattr(found, f"high_{name}")


def test_families_without_a_measurement_say_so():
    found = timed("radeon-rx-7900-xtx", **CHAT)
    assert found.basis == "unmeasured"
    assert "No speed of this engine" in found.notes[0]
    assert timed("h100-pcie-80gb", **CHAT).basis == "family"  # measured in other programs
    known = timed(**CHAT)
    assert found.high_seconds / found.seconds > known.high_seconds / known.seconds


def test_cards_that_share_matrices_exchange():
    found = timed("h100-sxm5-80gb", 4, profile="vllm", parallel={"tensor": 4}, prompt_length=64, context_length=4096)
    assert found.term("tensor_exchange").seconds > 0
    alone = timed("h100-sxm5-80gb", 1, profile="vllm", prompt_length=64, context_length=4096)
    assert found.output_token_seconds < alone.output_token_seconds < 4 * found.output_token_seconds


def test_replicas_answer_more_but_none_sooner():
    one, four = timed(**CHAT), timed(count=4, **CHAT)
    assert four.tokens_per_second == pytest.approx(4 * one.tokens_per_second)
    assert four.seconds == pytest.approx(one.seconds)


def test_layers_left_in_the_hosts_memory():
    whole, half = timed(gpu_layers=33, **CHAT), timed(gpu_layers=16, **CHAT)
    assert whole.term("offload") is None
    assert half.term("offload").certainty == "assumed"
    assert half.output_token_seconds > 3 * whole.output_token_seconds
    assert half.bound == "host"


def test_parameters_brought_from_the_hosts_memory():
    found = timed(parallel={"offload": "parameters"}, prompt_length=8, context_length=16)
    assert found.term("offload").seconds / 8 == pytest.approx(15_009_849_344 / (1.969e9 * 16 * 0.8), rel=1e-3)


def test_a_batch_of_64_on_an_a100_unpacks_nf4_for_each_step():
    found = timed("a100-sxm4-80gb", weights="nf4", batch=64, prompt_length=8, context_length=16)
    assert found.term("dequantisation").seconds > 0
    assert found.term("host").seconds > 0


def test_a_context_that_ends_with_the_prompt_has_no_answer():
    found = timed("h100-sxm5-80gb", profile="vllm", weights="bf16")
    assert found.seconds == found.first_token_seconds
    assert [term.name for term in found.terms] == ["prefill"]
    assert found.output_token_seconds > 0
    assert "no answer is counted" in found.notes[0]
    assert found.bound == "compute"


def test_encoders_make_one_pass():
    found = timed("a100-sxm4-80gb", model="google-bert/bert-large-uncased", batch=8, prompt_length=384)
    assert found.output_token_seconds is None
    assert found.samples_per_second == pytest.approx(8 / found.seconds)
    assert found.tokens_per_second == pytest.approx(8 * 384 / found.seconds)
    assert found.low_seconds < found.seconds < found.high_seconds


def test_a_decoder_behind_an_encoder_reads_both_caches():
    short = timed(model="google-t5/t5-large", prompt_length=100, context_length=64, batch=64)
    long = timed(model="google-t5/t5-large", prompt_length=2000, context_length=64, batch=64)
    assert long.first_token_seconds > short.first_token_seconds
    assert long.term("cache_read").seconds > short.term("cache_read").seconds
    assert short.seconds == pytest.approx(short.first_token_seconds + 64 * short.output_token_seconds)


def test_a_decoder_behind_an_encoder_begins_with_one_token_of_each_sequence():
    architecture = bundled().models.model("google-t5/t5-large")
    fields = {"weights": "bf16", "prompt_length": 100, "context_length": 64, "batch": 4_096}
    workload = with_defaults(Inference(**fields), architecture, 1)
    run = served_model(architecture, workload, gpu("rtx-4090"), TimeSetting())
    reading = encoder_pass_time(run, work_of(architecture, "bf16", 0), 4_096, 100)
    begin = prompt_time(run._replace(encoder_tokens=100), 4_096, 1)
    found = timed(model="google-t5/t5-large", **fields)
    assert found.first_token_seconds == pytest.approx(reading.followed_by(begin).seconds)


def test_images_are_read_before_the_prompt():
    model = "Qwen/Qwen2-VL-7B-Instruct"
    seen = timed(model=model, prompt_length=2000, context_length=2100, images=1, image_size=1024)
    unseen = timed(model=model, prompt_length=2000, context_length=2100, images=0)
    assert seen.first_token_seconds > 1.05 * unseen.first_token_seconds
    assert seen.output_token_seconds == unseen.output_token_seconds


def test_operations_and_their_share_of_the_rate():
    found = timed("a100-sxm4-80gb", prompt_length=1000, context_length=1000)
    products = 2 * 1000 * 32 * (4096 * 4096 * 2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 2 * 128_256 * 4096
    assert found.flops_per_step == pytest.approx(products + 32 * 4 * 4096 * 500_000)
    assert found.mfu_fraction == pytest.approx(found.flops_per_step / found.seconds / 312e12)


def test_what_a_card_cannot_run_has_a_reason_and_no_figure():
    found = timed("apple-m3-max", profile="vllm")
    assert found.seconds is None
    assert found.unsupported


@pytest.mark.parametrize(
    ("change", "missing"), [({"bandwidth_bytes_per_s": None}, "memory bandwidth"), ({"rates": ()}, "arithmetic rate")]
)
def test_cards_without_figures_have_no_time(change, missing):
    found = timed(gpu("rtx-4090").evolve(**change), **CHAT)
    assert found.unsupported == f"the {missing} of GeForce RTX 4090 is unknown"


def test_without_a_card_there_is_no_time():
    architecture = bundled().models.model(LLAMA_8B)
    workload = with_defaults(Inference(**CHAT), architecture, 1)
    assert inference_time(architecture, workload, ()).unsupported == "No GPU is chosen."


def test_unlike_cards_are_as_quick_as_the_slowest():
    architecture = bundled().models.model(LLAMA_8B)
    workload = with_defaults(Inference(parallel={"pipeline": 2}, **CHAT), architecture, 2)
    found = inference_time(architecture, workload, ((gpu("rtx-4090"), 1), (gpu("rtx-4000-ada"), 1)))
    alone = inference_time(architecture, workload, ((gpu("rtx-4000-ada"), 2),))
    assert found.seconds == alone.seconds
    assert "RTX 4000 Ada" in found.notes[-1]


def test_a_measured_speed_takes_the_place_of_the_estimate():
    own = TimeSetting(measured=MeasuredSpeed(value=50.0, unit="tokens/s"))
    found = timed(setting=own, **CHAT)
    assert found.tokens_per_second == pytest.approx(50.0)
    assert found.output_token_seconds == pytest.approx(1 / 50)
    assert found.basis == "measured"
    assert found.high_seconds == pytest.approx(1.1 * found.seconds)
    assert sum(term.exposed_seconds for term in found.terms) == pytest.approx(found.seconds)
    request = timed(setting=TimeSetting(measured=MeasuredSpeed(value=3.0, unit="seconds/step")), **CHAT)
    assert request.seconds == pytest.approx(3.0)
    rate = timed(setting=TimeSetting(measured=MeasuredSpeed(value=2.0, unit="samples/s")), **CHAT)
    assert rate.samples_per_second == pytest.approx(2.0)


def test_a_speed_of_another_card_is_carried_over_by_the_ratio():
    plain_here, plain_there = timed("rtx-4090", **CHAT), timed("rtx-3090", **CHAT)
    own = TimeSetting(measured=MeasuredSpeed(value=100.0, unit="tokens/s"))
    found = timed("rtx-4090", setting=own, measured_on=gpu("rtx-3090"), **CHAT)
    ratio = plain_here.tokens_per_second / plain_there.tokens_per_second
    assert found.tokens_per_second == pytest.approx(100.0 * ratio)
    assert found.high_seconds == pytest.approx(1.15 * found.seconds)
    assert "scaled by the ratio" in found.notes[0]


def test_a_speed_that_cannot_be_carried_over_says_why():
    one = TimeSetting(measured=MeasuredSpeed(value=100.0, unit="tokens/s", count=3))
    found = timed(count=2, setting=one, parallel={"pipeline": 2}, **CHAT)
    assert "cannot be transferred" in found.unsupported
    nowhere = TimeSetting(measured=MeasuredSpeed(value=100.0, unit="tokens/s"))
    unknown = gpu("rtx-3090").evolve(bandwidth_bytes_per_s=None)
    assert timed(setting=nowhere, measured_on=unknown, **CHAT).seconds is None


def test_encoders_scale_with_what_was_measured_without_figures_of_tokens():
    own = TimeSetting(measured=MeasuredSpeed(value=10.0, unit="samples/s"))
    found = timed("a100-sxm4-80gb", model="google-bert/bert-large-uncased", prompt_length=384, setting=own)
    assert found.samples_per_second == pytest.approx(10.0)
    assert found.first_token_seconds is None


def test_cards_of_families_that_were_not_measured_spread_wider():
    assert is_decoding_measured(ENGINES["llama.cpp"], "Ada")
    assert not is_decoding_measured(ENGINES["vllm"], "Radeon")
    several, one, none = (
        request_spread_factor("prefill", ENGINES[engine], family)
        for engine, family in (("vllm", "Hopper SXM"), ("llama.cpp", "Ada"), ("llama.cpp", "TPU"))
    )
    assert several == one < none  # what is left out is as far off with one source as with several
    assert request_spread_factor("decode", ENGINES["vllm"], "TPU") == 1.6


def test_an_engine_that_one_source_measured_says_so():
    alone = "One source alone measured such work"
    assert any(note.startswith(alone) for note in timed("rtx-4090", weights="Q4_K_M", profile="llama.cpp").notes)
    assert not any(note.startswith(alone) for note in timed("h100-sxm5-80gb", profile="vllm").notes)


def test_a_slice_of_a_card_is_estimated_from_its_family():
    hardware = bundled().hardware
    half = next(each for each in hardware.slices(gpu("h100-sxm5-80gb")) if "3g.40gb" in each.id)
    assert timed(half, **CHAT).basis == "family"


LOCAL = {"profile": "llama.cpp", "prompt_length": 64, "context_length": 512}


def test_layers_in_ram_name_their_share_and_their_bandwidth():
    found = timed("rtx-3090", weights="Q4_K_M", gpu_layers=16, **LOCAL)
    offloaded = next(term for term in found.terms if term.name == "offload")
    assert {symbol.name for symbol in offloaded.symbols} >= {"f", "H"}


def test_experts_in_ram_name_their_layers():
    experts = {"engine": {"n_cpu_moe": 10}, "weights": "MXFP4_MOE", "model": "openai/gpt-oss-20b"}
    found = timed("rtx-3090", **experts, **LOCAL)
    offloaded = next(term for term in found.terms if term.name == "offload")
    assert next(symbol.value for symbol in offloaded.symbols if symbol.name == "l") == 10


def test_terms_have_formula_symbols_and_source():
    found = timed(count=2, parallel={"pipeline": 2}, **CHAT)
    names = {term.name for term in found.terms}
    assert names >= {"prefill", "weights_read", "decode_compute", "cache_read", "elementwise", "host"}
    assert "pipeline_transfers" in names
    assert all(term.formula and term.source for term in found.terms)
    assert found.term("weights_read").symbols[0].name == "T"
    assert "Pipeline stages run one after the other" in found.notes[0]


def test_the_prefill_term_states_the_seconds_of_attention():
    found = timed("a100-sxm4-80gb", model="google-bert/bert-large-uncased", batch=8, prompt_length=384)
    attention = {one.name: one.value for one in found.term("prefill").symbols}["attention"]
    assert attention == pytest.approx(8 * 24 * 4 * 1024 * 384**2 / (312e12 * 0.6), abs=1e-6)
