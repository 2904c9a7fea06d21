"""What layers keep where some of them is frozen, adapted, quantized or fused: rules that hold of every family."""

import pytest
from pydantic import ValidationError
from small_models import llama
from tuned_networks import kept, needed

from planner.workload.formats import formats_for
from planner.workload.training import Lora, Training


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"lora": {}}, "adapters need the method lora or qlora"),
        ({"method": "lora", "trainable": ("*norm*",)}, "trains only its adapters"),
        ({"method": "qlora", "compute": "fp32"}, "cannot compute in fp32"),
        ({"method": "qlora", "profile": "litgpt"}, "choose bf16 or fp16"),
        ({"method": "lora", "weights": "int8", "compute": "bf16"}, "choose amp-bf16"),
        ({"weights": "nf4"}, "choose the method qlora"),
        ({"method": "qlora", "weights": "bf16"}, "keeps the base model in"),
        ({"weights": "bf16", "compute": "fp32"}, "cannot be trained"),
        ({"method": "lora", "compute": "amp-fp16", "lora": {"adapter_dtype": "bf16"}}, "keep them in fp32"),
        ({"optimizer": "muon", "optimizer_step": "fused"}, "has no fused step"),
        ({"checkpoint_every": 2}, "needs activation_checkpointing full"),
        ({"activation_checkpointing": "selective", "profile": "torchtune"}, "every k-th layer"),
        ({"activation_checkpointing": "selective", "method": "lora", "lora": {"dora": True}}, "DoRA"),
        ({"lora": {"targets": ()}, "method": "lora"}, "name at least one"),
    ],
    ids=str,
)
def test_what_cannot_be_trained_so_is_refused(how, said):
    with pytest.raises(ValidationError, match=said):
        Training.model_validate(how)


def test_targets_are_names_with_commas_or_all_linear():
    assert Lora.model_validate({"targets": "q_proj, v_proj"}).targets == ("q_proj", "v_proj")
    assert Lora.model_validate({"targets": ["all-linear"]}).targets == "all-linear"


def test_formats_go_with_the_method_the_arithmetic_and_the_trainer():
    assert formats_for("full", "amp-bf16") == ("fp32", "bf16")
    assert formats_for("qlora", "amp-bf16") == ("nf4", "nf4-dq")
    assert formats_for("qlora", "bf16") == ()
    assert formats_for("qlora", "bf16", "litgpt") == ("nf4", "nf4-dq")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"optimizer": "soap", "compute": "bf16"}, "SOAP"),
        ({"optimizer": "soap", "method": "lora", "compute": "bf16", "lora": {"adapter_dtype": "bf16"}}, "SOAP"),
        ({"method": "lora", "lora": {"targets": 5}}, "targets"),
    ],
    ids=str,
)
def test_formats_and_targets_that_do_not_go_are_refused(how, said):
    with pytest.raises(ValidationError, match=said):
        Training.model_validate(how)


def test_selective_checkpoints_go_with_adapters_and_megatron_has_its_own():
    whole, selective = (needed(llama(), method="lora", activation_checkpointing=kind) for kind in ("none", "selective"))
    assert kept(selective) < kept(whole)
    Training(optimizer="soap", compute="amp-bf16", method="lora")
