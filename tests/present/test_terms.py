"""What a term of the glossary is in a plan."""

import pytest

from planner.glossary import glossary
from planner.plan.catalog import Catalog, load_catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import ModelChoice, Plan
from planner.present.format import THIN
from planner.present.terms import FIGURES, in_plan
from planner.workload.workload import Inference, Training

MODEL = ModelChoice(id="meta-llama/Llama-3.1-8B")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


@pytest.fixture(scope="module")
def serving(catalog) -> Evaluation:
    return evaluate(Plan(model=MODEL, workload=Inference(), gpu="rtx-4090"), catalog)


@pytest.fixture(scope="module")
def training(catalog) -> Evaluation:
    workload = Training(method="qlora", micro_batch=2, gradient_accumulation=4)
    return evaluate(Plan(model=MODEL, workload=workload, gpu="h100-sxm5-80gb", count=4), catalog)


@pytest.fixture(scope="module")
def without_card(catalog) -> Evaluation:
    return evaluate(Plan(model=MODEL, workload=Training()), catalog)


def test_every_figure_belongs_to_a_term():
    assert set(FIGURES) <= {entry.term for entry in glossary()}


@pytest.mark.parametrize("term", FIGURES)
def test_every_figure_can_be_read_for_every_plan(term, serving, training, without_card):
    for evaluation in (serving, training, without_card):
        text = in_plan(term, evaluation)
        assert text == "" or text.startswith("In your plan: ")


def test_a_term_without_a_figure_says_nothing(serving):
    assert in_plan("Epoch", serving) == ""


def test_memory_terms_state_their_size_and_share(serving):
    assert in_plan("KV cache", serving) == f"In your plan: 512{THIN}MiB, 3{THIN}% of the 16.4{THIN}GiB needed."
    assert in_plan("Gradients", serving) == "In your plan: no gradients at the peak of memory."


def test_fields_state_their_value_for_the_task_that_has_them(serving, training):
    assert in_plan("LoRA", training) == "In your plan: method QLoRA (4 bits)."
    assert in_plan("LoRA", serving) == ""
    assert in_plan("Adapter rank", training) == "In your plan: LoRA rank 16."
    assert in_plan("Context length", serving).endswith("4,096 of 131,072 tokens that the model allows.")


def test_how_gpus_share_the_work_is_said_of_several_gpus_only(catalog, serving, training, without_card):
    assert in_plan("ZeRO", training) == "In your plan: ZeRO stage None (DDP)."
    assert in_plan("Data parallelism", training) == "In your plan: data parallelism 4."
    for term in ("ZeRO", "FSDP", "Data parallelism", "Tensor parallelism"):
        assert in_plan(term, serving) == in_plan(term, without_card) == ""
    served_by_two = evaluate(serving.plan.evolve(count=2), catalog)
    assert in_plan("ZeRO", served_by_two) == ""
    assert in_plan("Tensor parallelism", served_by_two) == "In your plan: tensor parallelism 1."


def test_the_global_batch_is_a_product(training, serving):
    assert in_plan("Global batch size", training) == "In your plan: 2 × 4 × 4 = 32 sequences a step."
    assert in_plan("Global batch size", serving) == ""


def test_the_utilization_is_a_share_of_the_peak_rate(training):
    share = training.time.mfu_fraction
    assert in_plan("MFU", training) == f"In your plan: {share * 100:.0f}{THIN}% of the peak rate."


def test_figures_of_the_card_need_a_card(serving, without_card):
    assert in_plan("CUDA core", serving) == "In your plan: GeForce RTX 4090, 16,384 cores."
    assert in_plan("CUDA core", without_card) == ""
    assert "no published FP4 rate" in in_plan("FP4", serving)
    assert in_plan("GPU", without_card) == ""
    assert in_plan("Usable memory", without_card) == ""
    assert in_plan("Usable memory", serving).endswith("usable on each GPU.")


def test_a_card_without_a_figure_says_nothing(catalog, serving):
    bare = serving.gpu.replaced(
        shader_cores=None, bandwidth_bytes_per_s=None, rates=(), mig=None, ecc=None, unified_memory=True
    )
    evaluation = serving.replaced(gpu=bare)
    for term in ("CUDA core", "Ridge point", "FLOPS", "MIG", "ECC"):
        assert in_plan(term, evaluation) == ""
    assert in_plan("Unified memory", evaluation).endswith("unified memory.")


def test_memory_of_other_programs_is_said(catalog):
    plan = Plan(model=MODEL, workload=Inference(other_processes_bytes=2**30), gpu="rtx-4090")
    assert in_plan("Used by other programs", evaluate(plan, catalog)) == f"In your plan: 1.00{THIN}GiB of the GPU."


def test_speeds_are_those_of_the_task(serving, training):
    assert "tokens a second" in in_plan("Throughput", serving)
    assert in_plan("TTFT", training) == ""
    assert "a step" in in_plan("Training step", training)
    assert in_plan("Training step", serving) == ""
    assert "a request" in in_plan("Latency", serving)
    assert in_plan("Latency", training) == ""
    assert "and each later token by memory bandwidth" in in_plan("Memory-bound", serving)


def test_speeds_without_an_estimate_say_nothing(serving, catalog):
    unknown = serving.time.replaced(
        seconds=None, tokens_per_second=None, samples_per_second=None, bound=None, mfu_fraction=None
    )
    evaluation = serving.replaced(plan=serving.plan)
    evaluation.__dict__["time"] = unknown
    for term in ("Throughput", "Memory-bound", "MFU"):
        assert in_plan(term, evaluation) == ""
    evaluation.__dict__["time"] = unknown.replaced(samples_per_second=12.0)
    assert in_plan("Throughput", evaluation) == "In your plan: 12.0 samples a second."
