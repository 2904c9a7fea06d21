"""LoRA: the formulas, against traces of the same networks with adapters beside their linear layers."""

from typing import Any

import pytest

from planner.memory.estimate import fullest_timeline
from planner.memory.software import training_memory
from planner.memory.training.step import TrainingSetup

pytest.importorskip("transformers")

from traced_families import FAMILIES, kept_by_the_body, traced

from planner.models.readers.config_json import read_config
from planner.trace.analysis.memory import facts_of
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.sweep]

PEAK = 0.01
SAVED = 0.01
KEPT = ("activations", "inputs", "gradients", "temporaries")
SHARED = 0.002
"""Share of the peak that may be saved beside the formulas: tables of the rotary embedding, one for all sequences."""
COPIED = 0.01
"""That share with checkpoints of a frozen network: the embedding's gradient, which the step before left."""
WAYS = {
    "bf16": Training(method="lora", compute="bf16"),
    "amp": Training(method="lora"),
    "amp-fp32": Training(method="lora", weights="fp32"),
    "fp32": Training(method="lora", compute="fp32"),
    "bf16-adapters": Training(method="lora", compute="bf16", lora=Lora(adapter_dtype="bf16")),
    "dropout": Training(method="lora", compute="bf16", lora=Lora(dropout=0.1)),
    "amp-dropout": Training(method="lora", lora=Lora(dropout=0.1)),
    "checkpoints": Training(method="lora", compute="bf16", activation_checkpointing="full"),
    "amp-checkpoints": Training(method="lora", activation_checkpointing="full"),
}
EVERY_WAY = (
    "llama",
    "qwen2",
    "qwen3",
    "gemma3",
    "phi3",
    "olmo2",
    "gpt2",
    "gpt_neox",
    "falcon",
    "mixtral",
    "opt",
    "cohere",
    "bert",
    "glm",
    "starcoder2",
    "stablelm",
    "granite",
    "bart",
)
UNCOUNTED = ("bert", "bart", "t5")
"""Not compared with checkpoints, where the estimate is up to 9 % low.

What transformers asks a gradient for then is not all counted: the norm of the embedding keeps its input (BERT), two
stacks have embeddings of their own, and T5's cross-attention keeps the gradient of a bias of zeros.
"""
SOME = {"llama": ("q_proj", "v_proj"), "gpt2": ("c_attn",), "qwen3": ("gate_proj", "up_proj"), "phi3": ("down_proj",)}
QUICK = {("llama", "bf16"), ("gpt2", "amp-dropout"), ("olmo2", "bf16")}


def cases() -> list[Any]:
    """Return the families and ways to compare, the slow ones marked."""
    every = [(name, way) for name in (*EVERY_WAY, "t5") for way in WAYS]
    every = [(name, way) for name, way in every if name not in UNCOUNTED or "checkpoints" not in way]
    return [pytest.param(*case, id="-".join(case), marks=() if case in QUICK else pytest.mark.oracle) for case in every]


@pytest.mark.parametrize(("family", "way"), cases())
def test_adapters_on_all_linears_keep_and_peak_as_predicted(family: str, way: str) -> None:
    _check(family, WAYS[way])


@pytest.mark.parametrize("way", ["bf16", "amp", "amp-fp32", "checkpoints"])
@pytest.mark.parametrize("family", SOME)
@pytest.mark.oracle
def test_adapters_on_some_linears_keep_and_peak_as_predicted(family: str, way: str) -> None:
    _check(family, WAYS[way].evolve(lora=Lora(targets=SOME[family])))


def _check(family: str, way: Training) -> None:
    config = FAMILIES[family].config()
    architecture = read_config(config.to_dict(), FAMILIES[family].model_type)
    workload = with_defaults(way.evolve(micro_batch=2, sequence_length=512), architecture, count=1)
    recording = traced(FAMILIES[family], workload)
    peak = facts_of(recording).allocated_bytes
    setup = training_memory(workload.profile).setup(architecture, workload)
    assert fullest_timeline(architecture, workload).peak().total == pytest.approx(peak, rel=PEAK)
    beside = COPIED if workload.activation_checkpointing == "full" else SHARED
    head = config.vocab_size * config.hidden_size
    assert _predicted(setup, workload, head) == pytest.approx(
        kept_by_the_body(recording, *KEPT), rel=SAVED, abs=beside * peak
    )


def _predicted(setup: TrainingSetup, workload: Training, head: int) -> int:
    """Return what is kept at the end of the forward pass with autocast's copies, the head's aside."""
    if workload.activation_checkpointing == "full":
        return setup.saved.total
    copies = sum(term.bytes for term in setup.casts.forward)
    return setup.saved.total + copies - (2 * head if copies and workload.weights == "fp32" else 0)
