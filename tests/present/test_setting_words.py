import pytest

from planner.present.format import sentence
from planner.present.plan.settings import adjustments_sentence, offered_choices, settings_summary, title_in_sentence
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
            "Also changed: target modules to q_proj, v_proj, trainable parameters to every parameter.",
        ),
        (("attention",), "Also changed: attention to SDPA (PyTorch)."),
    ],
)
def test_what_moved_is_said_with_its_new_value(moved, words):
    assert adjustments_sentence(moved, WORKLOAD) == words


def test_a_folded_section_says_choices_and_what_differs(catalog):
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


def test_choices_begin_with_the_default_and_keep_what_is_chosen(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.1-8B")
    used = with_defaults(Inference(profile="vllm"), architecture, 1)
    share, weights = fields_of("inference")["engine.memory_utilization"], fields_of("inference")["weights"]
    offered = offered_choices(share, FieldContext(used, architecture), 0.33)
    assert next(iter(offered)) is None
    assert [offered[value].replace("\u2009", " ") for value in (None, 0.5, 0.33)] == ["Default", "50 %", "33 %"]
    assert offered_choices(weights, FieldContext(used, architecture), None)[None] == "Default (BF16)"


@pytest.mark.parametrize(
    ("title", "words"),
    [("Batch size", "batch size"), ("KV-cache precision", "KV-cache precision"), ("LoRA rank", "LoRA rank")],
)
def test_names_keep_their_letters_within_a_sentence(title, words):
    assert title_in_sentence(title) == words
    assert (sentence("tokens in each sequence"), sentence("")) == ("Tokens in each sequence.", "")
