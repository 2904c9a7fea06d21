"""Speeds of a log beside the estimate under their conditions."""

import json
from pathlib import Path

import pytest
from log_texts import RUN, TRAIN, VLLM

import planner
from planner.plan.evaluate import evaluate
from planner.plan.logs.figures import condition_notes, estimated_figure, measured_speed, request_tokens
from planner.plan.plan import ModelChoice
from planner.workload.workload import Inference

CORPUS = Path(__file__).parents[2] / "corpus" / "memory-log"
QWEN = planner.Plan(
    model=ModelChoice(id="Qwen/Qwen2.5-7B"),
    gpu="rtx-4080",
    workload=Inference(profile="llama.cpp", weights="Q4_K_M", prompt_length=512, context_length=640),
)


def text_of(name):
    return (CORPUS / f"{name}.log").read_text(encoding="utf-8")


def of_name(comparison, name):
    return next(figure for figure in comparison.figures if figure.measured.name == name)


def test_a_published_run_of_llama_bench_is_compared_under_its_own_conditions(compared):
    found = compared(text_of("llama_bench_json"), QWEN)
    generation = of_name(found, "generation")
    # 118.9 tokens/s were published for this card (llama.cpp's own README), after no prompt.
    assert generation.is_in_range
    assert not generation.is_of_plan
    assert of_name(found, "prompt").is_of_plan
    assert "Faster than the range" in of_name(found, "prompt").explanation
    assert "Watch clocks" not in of_name(found, "prompt").explanation
    assert "the range" not in generation.explanation
    assert any("other prompts, answers or requests" in note for note in found.notes)


def test_the_plans_own_conditions_are_its_estimate(compared, catalog):
    found = compared(json.dumps({"n_prompt": 0, "n_gen": 128, "n_depth": 512, "avg_ts": 100.0, "stddev_ts": 0.0}), QWEN)
    (figure,) = found.figures
    time = evaluate(QWEN, catalog).time
    assert figure.is_of_plan
    assert figure.predicted == time.tokens_per_second
    assert figure.difference == 100.0 - time.tokens_per_second
    assert found.notes == ()
    assert list(condition_notes(found.figures)) == []


def test_slower_runs_are_told_what_to_look_at_and_which_settings_differ(compared):
    line = json.dumps(
        {
            "n_prompt": 0,
            "n_gen": 128,
            "n_depth": 512,
            "avg_ts": 9.0,
            "stddev_ts": 0.1,
            "n_gpu_layers": 20,
            "type_k": "q8_0",
        }
    )
    (figure,) = compared(line, QWEN).figures
    assert "The run had 20 layers on the GPU, the plan has 29 of 29." in figure.explanation
    assert "The run's KV cache is in q8_0, the plan's in fp16." in figure.explanation
    assert "Slower than the range" in figure.explanation
    assert "gpu-planner monitor" in figure.explanation


def test_a_prompt_after_others_and_a_first_token_under_load_have_no_estimate(compared):
    deep = compared(text_of("llama_bench_table"), QWEN).figures[2]
    assert (deep.predicted, deep.is_in_range, deep.difference) == (None, None, None)
    assert deep.explanation == "The estimate has no such figure."
    served = compared(text_of("vllm_bench_serve"), RUN)
    assert "beside the others' answers" in of_name(served, "first-token").explanation
    assert of_name(served, "throughput").predicted > 0
    assert of_name(served, "output-token").predicted > 0


def test_conditions_that_the_plan_cannot_have_say_why(compared):
    line = json.dumps({"n_prompt": 0, "n_gen": 128, "n_depth": 10**8, "avg_ts": 9.0, "stddev_ts": 0.1})
    (figure,) = compared(line, QWEN).figures
    assert figure.predicted is None
    assert figure.explanation.startswith("There is no estimate under the conditions of this measurement: ")


def test_times_need_a_card_that_is_known(compared):
    line = '{"seconds_per_request": 1.0, "seconds_per_step": 1.0, "seconds_to_first_token": 0.1}'
    (first, request, step) = sorted(compared(line, QWEN).figures, key=lambda one: one.measured.name)
    assert None not in (first.predicted, request.predicted)
    assert step.explanation == "The estimate has no such figure."
    without = QWEN.evolve(gpu=None)
    assert compared(line, without).figures[0].explanation == "A time needs a GPU: the plan names none."
    unknown = compared(line, QWEN.evolve(gpu="groq-lpu"))
    assert unknown.figures[0].explanation.startswith("There is no time estimate: ")


def test_a_pool_in_tokens_is_compared_with_its_range(compared):
    plan = RUN.evolve(workload=RUN.workload.evolve(profile="vllm"))
    pool = of_name(compared(VLLM, plan), "cache-tokens")
    assert pool.predicted_low < pool.predicted < pool.predicted_high
    assert pool.unit == "tokens"
    assert (
        "leave of the engine's share"
        in of_name(compared("GPU KV cache size: 16 tokens", plan), "cache-tokens").explanation
    )
    without = of_name(compared("GPU KV cache size: 16 tokens"), "cache-tokens")
    assert without.explanation == "The plan's program does not fill the GPU with its cache."


def test_only_what_was_measured_under_the_plans_conditions_is_kept(compared, catalog):
    own = evaluate(QWEN, catalog)

    def kept(text, plan=QWEN, evaluation=own):
        return measured_speed(compared(text, plan).figures, evaluation, "note")

    generated = kept(json.dumps({"n_prompt": 0, "n_gen": 128, "n_depth": 512, "avg_ts": 100.0, "stddev_ts": 0.0}))
    assert (generated.value, generated.unit, generated.note) == (100.0, "tokens/s", "note")
    assert kept(text_of("llama_bench_json").replace('"n_prompt": 512', '"n_prompt": 64')) is None
    each = kept('{"requests": 1, "prompt_tokens": 512, "answer_tokens": 128, "seconds_per_output_token": 0.02}')
    assert (each.value, each.unit) == (50.0, "tokens/s")
    assert kept('{"seconds_per_request": 2.0}').unit == "seconds/step"
    step = kept('{"seconds_per_step": 0.5}', TRAIN, evaluate(TRAIN, catalog))
    assert (step.value, step.unit) == (0.5, "seconds/step")
    assert kept("no memory\nModel loading took 2.0 GiB\n", TRAIN, evaluate(TRAIN, catalog)) is None


def test_a_plan_without_an_answer_is_measured_with_a_short_one():
    assert request_tokens(Inference(prompt_length=100, context_length=140)) == (100, 40)
    assert request_tokens(Inference(prompt_length=4096, context_length=4096)) == (3968, 128)
    assert request_tokens(Inference(prompt_length=8, context_length=8)) == (4, 4)


@pytest.mark.parametrize(
    "name", ["request", "prompt", "generation", "throughput", "first-token", "output-token", "step"]
)
def test_a_training_has_only_steps(name, catalog):
    assert (estimated_figure(name, evaluate(TRAIN, catalog)) is None) is (name != "step")


def test_a_request_without_an_answer_has_no_throughput_of_answers(catalog):
    assert estimated_figure("throughput", evaluate(QWEN.evolve(workload=Inference()), catalog)) is None
