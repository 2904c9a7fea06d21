"""Titles and values of a plan's fields as text."""

import pytest

from planner.plan.plan import ModelChoice, Plan
from planner.present.format import sentence
from planner.present.plan.settings import (
    adjustments_sentence,
    conflict_texts,
    offered_choices,
    setting_text,
    setting_title,
    settings_summary,
    title_in_sentence,
)
from planner.units import GIB
from planner.workload.defaults import with_defaults
from planner.workload.fields import fields_of
from planner.workload.parallel import Parallel
from planner.workload.presentation import FieldContext
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training

WORKLOAD = Training(
    method="lora",
    lora=Lora(targets=("q_proj", "v_proj")),
    gradient_accumulation=1_000,
    parallel=Parallel(zero=1, tensor=2, sequence=True),
)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ((), ""),
        (("compute",), "Also changed: compute precision to BF16 autocast."),
        (
            ("parallel.zero", "weights"),
            "Also changed: ZeRO stage to Optimizer states (ZeRO-1), weight format to default.",
        ),
        (("parallel.sequence",), "Also changed: sequence parallelism to yes."),
        (("gradient_accumulation",), "Also changed: gradient accumulation steps to 1,000."),
        (
            ("lora.targets", "trainable"),
            "Also changed: target modules to q_proj, v_proj, trainable parameters to all parameters.",
        ),
        (("attention",), "Also changed: attention to SDPA (PyTorch)."),
    ],
)
def test_adjusted_settings_are_listed_with_their_new_values(moved, words):
    assert adjustments_sentence(moved, WORKLOAD) == words


def test_the_summary_of_a_section_lists_choices_and_changed_values(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.1-8B")
    used = with_defaults(WORKLOAD.evolve(gradient_clipping=True, parallel=Parallel()), architecture, 1)
    fields = fields_of("training")
    names = ("compute", "weights", "gradient_clipping", "gradient_accumulation", "micro_batch", "profile", "lora.rank")
    said = settings_summary([fields[name] for name in names], FieldContext(used, architecture))
    assert said == "BF16 autocast, Weights in BF16, gradient clipping, 1,000 accumulation steps, Hugging Face"
    kept = settings_summary([fields["parallel.reshard_after_forward"]], FieldContext(used, architecture))
    freed = used.evolve(parallel=Parallel(reshard_after_forward=False))
    assert (kept, settings_summary([fields["parallel.reshard_after_forward"]], FieldContext(freed, architecture))) == (
        "",
        "no reshard after forward",
    )


def test_choices_begin_with_the_default_and_keep_the_current_value(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.1-8B")
    used = with_defaults(Inference(profile="vllm"), architecture, 1)
    share, weights = fields_of("inference")["engine.memory_utilization"], fields_of("inference")["weights"]
    offered = offered_choices(share, FieldContext(used, architecture), 0.33)
    assert next(iter(offered)) is None
    assert [offered[value].replace("\u2009", " ") for value in (None, 0.5, 0.33)] == ["Default", "50 %", "33 %"]
    assert offered_choices(weights, FieldContext(used, architecture), None)[None] == "Default (BF16)"


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Batch size", "batch size"),
        ("KV-cache precision", "KV-cache precision"),
        ("LoRA rank", "LoRA rank"),
        ("Hugging Face", "Hugging Face"),
        ("I own the GPUs", "I own the GPUs"),
    ],
)
def test_acronyms_keep_their_capitals_within_a_sentence(title, words):
    assert title_in_sentence(title) == words
    assert (sentence("tokens in each sequence"), sentence("")) == ("Tokens in each sequence.", "")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("gpu", None, "none"),
        ("gpu", "1 × rtx-4090 + 2 × tesla-t4", "1 × GeForce RTX 4090 + 2 × Tesla T4"),
        ("gpu", "tesla-t4", "Tesla T4"),
        ("gpu_layers", None, "all"),
        ("loss", None, "default"),
        ("gradient_clipping", True, "yes"),
        ("other_processes_bytes", 2 * GIB, "2.00 GiB"),
        ("sequence_length", 2048, "2,048"),
        ("lora.dropout", 0.05, "5 %"),
        ("optimizer", "adamw", "AdamW"),
        ("compute", "amp-bf16", "BF16 autocast"),
        ("profile", "hf", "Hugging Face Transformers"),
        ("weights", "nf4", "NF4, 64-element blocks"),
    ],
)
def test_a_setting_value_is_formatted_as_text(catalog, field, value, words):
    assert setting_text(field, value, catalog.hardware).replace("\u2009", " ") == words


def test_an_unknown_setting_keeps_its_name():
    assert setting_title("colour") == "colour"
    assert (setting_title("count"), setting_title("engine.n_ubatch")) == ("Number of GPUs", "Physical batch size")


def test_what_two_versions_of_a_plan_have_differently_is_named_with_both_values(catalog):
    mine = Plan(model=ModelChoice(id="openai-community/gpt2"), workload=Inference(batch=4), gpu="rtx-4090")
    training = Training(method="lora", lora=Lora(targets=("q", "k")))
    theirs = Plan(model=ModelChoice(id="gpt3"), workload=training, gpu="gone", count=2)
    names = ("model.id", "model.path", "workload.batch", "workload.lora.targets", "gpu", "count", "cost.job.kind")
    assert conflict_texts(names, mine, theirs, catalog.hardware) == (
        "Model",
        "Batch size: 4 here, default in the file",
        "Target modules: default here, q, k in the file",
        "GPU: GeForce RTX 4090 here, gone in the file",
        "Number of GPUs: 1 here, 2 in the file",
        "Settings of the cost estimate",
    )
