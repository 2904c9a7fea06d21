"""How long it takes, in words."""

import pytest

from planner.memory.result import Symbol
from planner.performance.result import TimeResult, TimeTerm
from planner.plan.evaluate import evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.cost.time import TimeEstimateView, pace_explanation, pace_phrase, unknown_time_sentence
from planner.present.cost.time import time_view as view_of
from planner.present.format import THIN
from planner.workload.workload import Inference, Training


def term(name: str, seconds: float, overlapped: float = 0.0) -> TimeTerm:
    return TimeTerm(
        name=name,
        seconds=seconds,
        overlapped_seconds=overlapped,
        formula="F / r",
        symbols=(Symbol("F", 100, "operations", "model"), Symbol("r", 50.0, "rate", "card")),
        source="a paper",
        certainty="measured",
    )


def seen(text: str) -> str:
    """Return `text` with its thin spaces as plain ones, which can be told apart in a test."""
    return text.replace(THIN, " ")


def time_view(time: TimeResult) -> TimeEstimateView:
    view = view_of(time)
    return view._replace(answer=seen(view.answer), reason=seen(view.reason))


def step(**changes: object) -> TimeResult:
    return TimeResult.model_validate(
        {
            "task": "training",
            "kind": "step",
            "seconds": 1.24,
            "low_seconds": 1.08,
            "high_seconds": 1.42,
            "tokens_per_second": 6610.0,
            "low_tokens_per_second": 5800.0,
            "high_tokens_per_second": 7500.0,
            "bound": "compute",
            "mfu_fraction": 0.41,
            "terms": (term("optimizer", 0.24), term("matrix_products", 1.0), term("gradient_exchange", 0.5, 0.5)),
            "notes": ("a note",),
            **changes,
        }
    )


def service(**changes: object) -> TimeResult:
    return TimeResult.model_validate(
        {
            "task": "inference",
            "kind": "service",
            "seconds": 7.2,
            "tokens_per_second": 48.2,
            "first_token_seconds": 0.13,
            "output_token_seconds": 0.0207,
            "low_output_token_seconds": 0.018,
            "high_output_token_seconds": 0.025,
            **changes,
        }
    )


def test_a_step_is_answered_in_a_sentence():
    view = time_view(step())
    assert view.answer == "One step takes 1.24 s (1.08 – 1.42): 6,610 (5,800 – 7,500) tokens/s."
    assert view.reason == (
        "The step is limited by compute (model FLOPs utilization, MFU: 41 %). "
        "Estimated from measurements on GPUs of the same family."
    )
    assert view.notes == ("a note",)


def test_a_request_is_answered_in_a_sentence():
    assert time_view(service()).answer == (
        "A request takes 7.20 s, the first token arrives after 130 ms and each further token takes "
        "20.7 ms (18.0 – 25.0); 48.2 tokens/s."
    )
    few = service(first_token_seconds=None, output_token_seconds=None, tokens_per_second=None)
    assert time_view(few).answer == "A request takes 7.20 s."
    images = service(
        first_token_seconds=None, output_token_seconds=None, tokens_per_second=None, samples_per_second=9.0
    )
    assert time_view(images).answer == "A request takes 7.20 s; 9.00 samples/s."


def test_a_prompt_and_its_answer_may_be_bound_by_different_things():
    reading = service(bound="host", first_token_bound="compute", token_bound="host", mfu_fraction=0.01)
    assert time_view(reading).reason.startswith(
        "Prefill is limited by compute, decoding by kernel launches by the host "
        "(model FLOPs utilization, MFU of the whole request: 1 %). "
    )
    encoding = service(bound="host", output_token_seconds=None)
    assert time_view(encoding).reason.startswith("The request is limited by kernel launches by the host. ")


def test_the_longest_part_stands_first_and_says_what_is_hidden():
    rows = time_view(step()).rows
    assert [row.title for row in rows] == ["Matrix products", "Optimizer", "Gradient communication"]
    assert [seen(row.share_text) for row in rows] == ["81 %", "19 %", "0 %"]
    assert rows[2].text == "hidden"
    assert seen(rows[2].overlapped) == "500 ms overlapped"
    assert rows[0].substituted == "100 / 50"
    assert [symbol.value for symbol in rows[0].symbols] == ["100", "50"]


def test_what_is_not_known_says_why():
    unknown = TimeResult(task="training", kind="step", unsupported="there is no rate of this GPU")
    view = time_view(unknown)
    assert view.answer == ""
    assert view.reason == "The time is unknown: there is no rate of this GPU."
    assert view.rows == ()
    assert unknown_time_sentence(step()) == ""


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (None, ""),
        (TimeResult(task="training", kind="step", unsupported="x"), ""),
        (step(), "6,610 tokens/s"),
        (step(tokens_per_second=None, samples_per_second=212.0), "212 samples/s"),
        (step(tokens_per_second=None), "1.24 s per step"),
        (service(tokens_per_second=None), "7.20 s per request"),
        (service(tokens_per_second=None, samples_per_second=0.125, samples="images"), "8.00 s per image"),
        (service(tokens_per_second=None, samples_per_second=2.5, samples="images"), "2.50 images/s"),
    ],
)
def test_the_pace_in_a_few_words(time, words):
    assert seen(pace_phrase(time)) == words


def test_without_a_bound_or_share_nothing_is_said_of_them():
    assert time_view(step(bound=None, mfu_fraction=None, basis="measured")).reason == "Based on your measurement."
    assert time_view(step(bound=None)).reason.startswith("Model FLOPs utilization, MFU: ")


def test_the_pace_is_explained_by_the_answer_its_context_its_prompt_and_the_source(catalog):
    model = ModelChoice(id="meta-llama/Llama-3.1-8B")
    plan = Plan(model=model, workload=Inference(context_length=8_192, batch=2), gpu="rtx-4090")
    evaluation = evaluate(plan, catalog)
    said = seen(pace_explanation(evaluation.time, evaluation.workload))
    assert said.startswith("Time to first token ")
    assert " (prefill of 2 prompts of 4,096 tokens), then " in said
    assert " tokens/s per request, averaged from 4,096 to 8,192 tokens of context. 2 concurrent requests: " in said
    assert said.endswith("tokens/s in total. Estimated from measurements on GPUs of the same family.")
    short = evaluate(plan.evolve(workload=Inference()), catalog)
    assert "tokens/s per request at 4,096 tokens of context." in pace_explanation(short.time, short.workload)


@pytest.mark.parametrize(
    ("parallel", "where"),
    [({"data": 2}, " on each GPU"), ({"data": 2, "tensor": 2}, " on each replica of 2 GPUs"), ({"tensor": 4}, "")],
)
def test_the_pace_says_where_the_answers_of_a_batch_are_written(catalog, parallel, where):
    workload = Inference(context_length=8_192, batch=3, profile="vllm", parallel={"sharing": "manual", **parallel})
    cards = parallel.get("data", 1) * parallel.get("tensor", 1)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=workload, gpu="h100-sxm5-80gb", count=cards)
    evaluation = evaluate(plan, catalog)
    assert f" 3 concurrent requests{where}: " in pace_explanation(evaluation.time, evaluation.workload)


@pytest.mark.parametrize(
    ("parallel", "copies"),
    [({"data": 2}, " 2 replicas, one per GPU: "), ({"data": 2, "tensor": 2}, " 2 replicas, each on 2 GPUs: ")],
)
def test_the_pace_says_that_replicas_of_single_requests_add_up(catalog, parallel, copies):
    workload = Inference(profile="vllm", parallel={"sharing": "manual", **parallel})
    cards = parallel["data"] * parallel.get("tensor", 1)
    plan = Plan(model=ModelChoice(id="meta-llama/Llama-3.1-8B"), workload=workload, gpu="h100-sxm5-80gb", count=cards)
    evaluation = evaluate(plan, catalog)
    said = pace_explanation(evaluation.time, evaluation.workload)
    assert f"{copies}{pace_phrase(evaluation.time)} in total." in said


def test_what_only_reads_says_how_many_prompts_of_how_many_tokens(catalog):
    plan = Plan(
        model=ModelChoice(id="meta-llama/Llama-3.1-8B"),
        workload=Inference(context_length=4_096, prompt_length=4_096, batch=4),
        gpu="h100-sxm5-80gb",
    )
    assert time_view(evaluate(plan, catalog).time).answer.startswith(
        "Prefill of 4 prompts of 4,096 tokens at once takes "
    )
    single = evaluate(plan.evolve(workload=plan.workload.evolve(batch=1)), catalog)
    assert time_view(single.time).answer.startswith("Prefill of a prompt of 4,096 tokens takes ")


def test_a_step_is_explained_by_its_time_and_a_measurement_is_no_estimate():
    said = pace_explanation(step(basis="measured"), Training())
    assert said.startswith("One step takes ")
    assert said.endswith("Based on your measurement.")
    assert "estimate" not in said


def test_without_a_time_there_is_nothing_to_explain():
    assert pace_explanation(None, Training()) == ""


def test_an_answer_whose_prompt_takes_no_known_time_is_explained_without_it():
    time = TimeResult(task="inference", kind="service", seconds=2.0, output_token_seconds=0.1, basis="same card")
    assert pace_explanation(time, Inference(prompt_length=8, context_length=8, batch=2)) == (
        "10.0 tokens/s per request at 8 tokens of context. Estimated from measurements on this GPU."
    )
