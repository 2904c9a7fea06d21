"""Training workloads: formats, adapters and refused combinations."""

import pytest
from pydantic import ValidationError

from planner.errors import SpecError
from planner.workload.training import Lora
from planner.workload.workload import Training


@pytest.mark.parametrize(("weights", "compute"), [("bf16", "fp32"), ("fp32", "bf16"), ("fp16", "amp-fp16")])
def test_formats_that_pytorch_does_not_train_in_are_refused(weights: str, compute: str):
    with pytest.raises(SpecError, match=f"parameters in {weights} cannot be trained in {compute}"):
        Training(weights=weights, compute=compute)


def test_autocast_accepts_parameters_in_its_own_format():
    assert Training(weights="bf16", compute="amp-bf16").weights == "bf16"


def test_adapter_targets_are_a_list_or_text_with_commas() -> None:
    assert Lora.model_validate({"targets": "q_proj, v_proj"}).targets == ("q_proj", "v_proj")
    assert Lora.model_validate({"targets": ["all-linear", "q_proj"]}).targets == "all-linear"
    with pytest.raises(ValidationError, match="name at least one linear layer"):
        Lora.model_validate({"targets": []})


def test_only_lora_and_qlora_train_adapters() -> None:
    assert [Training.model_validate({"method": method}).adapts for method in ("full", "lora", "qlora")] == [
        False,
        True,
        True,
    ]
