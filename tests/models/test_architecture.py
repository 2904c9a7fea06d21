"""Parameters, active parameters and stored format of a whole network, computed by hand."""

import pytest
from pydantic import ValidationError
from small_models import bundled

from planner.dtypes import AS_STORED
from planner.models.architecture import (
    Architecture,
    Layer,
    LayerGroup,
    Moe,
    Norm,
    Stack,
    StoredTensors,
    Tensor,
)  # fmt: skip

EXPERTS = Tensor(name="experts", shape=(10,), role="expert", copies=8)
ROUTER = Tensor(name="router", shape=(8, 2), role="router")
HEAD = Tensor(name="head", shape=(3, 2), role="head")
LAYER = Layer(
    feed_forward=Moe(experts=8, top_k=2, intermediate=5), norm=Norm(kind="rms"), norm_count=1, tensors=(EXPERTS, ROUTER)
)
STACK = Stack(name="decoder", hidden=2, groups=(LayerGroup(layer=LAYER, count=3),))
MODEL = Architecture(model_type="m", kind="decoder", hidden=2, stacks=(STACK,), head=(HEAD,))


def test_active_parameters_leave_out_the_experts_that_are_not_selected():
    assert MODEL.parameters == 3 * (80 + 16) + 6
    assert MODEL.active_parameters == MODEL.parameters - 3 * 60
    assert (MODEL.depth, MODEL.has_variable_length, MODEL.fixed_length) == (3, True, None)


@pytest.mark.parametrize(
    ("formats", "dtype", "quantization", "expected"),
    [
        ((), None, None, "bf16"),
        ((), "fp16", None, "fp16"),
        (("BF16",), "bf16", None, "bf16"),
        (("BF16", "F32"), "bf16", None, AS_STORED),
        (("F8_E4M3", "BF16"), "bf16", "fp8", "fp8"),
    ],
)
def test_the_weight_format_is_the_stored_one(formats, dtype, quantization, expected):
    stored = tuple(StoredTensors(format=name, place="layers", elements=1, bytes=2) for name in formats)
    model = MODEL.evolve(stored=stored, stored_dtype=dtype, quantization=quantization)
    assert (model.stored_as, model.stored_bytes) == (expected, 2 * len(formats))


def test_a_pipeline_has_components_and_other_networks_have_stacks():
    for changes in ({"stacks": ()}, {"kind": "diffusion"}):
        with pytest.raises(ValidationError, match="a diffusion pipeline needs components"):
            MODEL.evolve(**changes)


def test_matrices_that_may_have_an_adapter_are_named():
    llama = bundled().models.model("meta-llama/Llama-3.2-1B")
    projections = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert llama.adaptable_names == (*projections, "embed_tokens", "lm_head")
    image = next(record for record in bundled().models.records if record.kind == "diffusion")
    assert bundled().models.model(image.id).adaptable_names == ("embed_tokens", "lm_head")


def test_layers_with_routed_experts_are_numbered():
    assert MODEL.expert_layers == (0, 1, 2)
    assert bundled().models.model("stabilityai/stable-diffusion-xl-base-1.0").expert_layers == ()


def test_a_network_has_a_head_of_its_own_unless_it_says_otherwise():
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    stated = {name: getattr(model, name) for name in model.model_fields_set - {"tied_head"}}
    assert Architecture(**stated).tied_head is False
