"""Forward and backward passes of denoisers, with sizes counted by hand, and against traces of diffusers' modules."""

import json
from pathlib import Path

import pytest
from made_pipelines import PIPELINE
from small_models import bundled

from planner.memory.estimate import resolve_workload
from planner.memory.software import memory_of
from planner.memory.software.diffusers.denoisers import denoiser_inputs, denoiser_pass, image_encoder_pass
from planner.memory.training.tape import Tape, TapeFormats
from planner.models.diffusion import ImageDecoder
from planner.models.readers.config_json import read_config
from planner.workload.training import Training

PURE = TapeFormats(2, 2, autocast=False)
GOLDEN = Path(__file__).parents[3] / "golden" / "denoiser-peaks.json"


def made(kind, **config):
    """Return the denoiser of a small pipeline with a transformer."""
    pipeline = {**PIPELINE, "components": {**PIPELINE["components"]}}
    del pipeline["components"]["unet"]
    pipeline["components"]["transformer"] = {"_class_name": kind, "num_layers": 2, "attention_head_dim": 8, **config}
    return next(one for one in read_config(pipeline, "made").components if one.part == "denoiser")


UNET = next(one for one in read_config(PIPELINE, "made").components if one.part == "denoiser")
SIZES = {"num_attention_heads": 2, "joint_attention_dim": 12, "pooled_projection_dim": 6}
FLUX = made("FluxTransformer2DModel", num_single_layers=2, in_channels=16, guidance_embeds=True, **SIZES)
SD3 = made("SD3Transformer2DModel", qk_norm="rms_norm", dual_attention_layers=[0], **SIZES)
PIXART = made("PixArtTransformer2DModel", num_attention_heads=3, caption_channels=12, sample_size=128)
PLAIN = [
    made("FluxTransformer2DModel", num_single_layers=1, in_channels=16, **SIZES),
    made("SD3Transformer2DModel", **SIZES),
    made("PixArtTransformer2DModel", num_attention_heads=3, caption_channels=12, sample_size=64),
]


def unet(**config):
    """Return the U-Net of a small pipeline with further settings."""
    pipeline = {
        **PIPELINE,
        "components": {**PIPELINE["components"], "unet": {**PIPELINE["components"]["unet"], **config}},
    }
    return next(one for one in read_config(pipeline, "made").components if one.part == "denoiser")


SIZED = unet(addition_embed_type="text_time", projection_class_embeddings_input_dim=10)


def loads(component, formats=PURE, adapted=None, side=4, text=3, **options):
    tape = Tape(formats, adapted, **options)
    inputs = denoiser_inputs(component, side, side, text)
    return tape.run(lambda: denoiser_pass(tape, component.network, inputs))


@pytest.mark.parametrize("checkpointed", [False, True])
def test_every_parameter_of_a_denoiser_gets_a_gradient(checkpointed):
    for component in (UNET, SIZED, FLUX, SD3, PIXART, *PLAIN):
        for formats in (PURE, TapeFormats(4, 2, autocast=True)):
            assert loads(component, formats, checkpointed=checkpointed).end == (0, 0, component.parameters)


@pytest.mark.parametrize(
    ("component", "target", "layers"),
    # The first U-Net level has one block on the way down and two on the way up; FLUX two blocks of each kind.
    [(UNET, "attn2.to_k", 3), (FLUX, "attn.to_q", 4), (SD3, "attn.to_q", 2), (PIXART, "ff.net.2", 2)],
)
def test_every_layer_that_is_named_gets_an_adapter(component, target, layers):
    names = [one.name.removesuffix(".weight") for one in component.tensors if one.role == "linear"]
    adapted = frozenset(name for name in names if f".{name}".endswith(f".{target}"))
    shape = next(one.shape for one in component.tensors if f".{one.name}".endswith(f".{target}.weight"))
    middle = 1 if component is UNET else 0  # as wide as the second level
    found = loads(component, PURE._replace(adapter=2, rank=2), adapted)
    wider = (64 - 32) * 2 * middle
    assert found.end.gradients == (layers + middle) * 2 * sum(shape) + wider


def test_a_linear_projection_keeps_nothing_where_a_convolution_keeps_its_input():
    linear = unet(use_linear_projection=True)
    assert loads(linear).end.gradients == linear.parameters
    adapted = frozenset(one.name.removesuffix(".weight") for one in UNET.tensors if one.name.endswith("to_q.weight"))
    formats = PURE._replace(adapter=2, rank=1)
    kept, fewer = (loads(one, formats, adapted).kept.per_image for one in (UNET, linear))
    # By hand, in bf16: two projections around a transformer, three times with 32 channels on 16 pixels and once with 64
    # on 4; the first one reads what no gradient reaches.
    assert kept - fewer == 2 * (2 * 3 * 32 * 16 + 2 * 64 * 4 - 32 * 16)


def test_an_encoder_holds_the_feature_maps_of_its_widest_level():
    """By hand: two levels of 4 and 8 channels, with one block each, over 8 × 8 pixels in fp32."""
    network = ImageDecoder(channels=(4, 8), layers=1, latent_channels=2, sample_size=8)
    tape = Tape(TapeFormats(4, 4, autocast=False), frozenset())
    found = tape.run(lambda: image_encoder_pass(tape, network, 8, 8))
    # The first block: its input, the sum of both, and that divided by one.
    assert max(one.per_image for one in found.forward) == 4 * 64 * (4 + 4 + 4 + 4)
    assert found.kept.per_image == 4 * 16 * 4


@pytest.mark.parametrize("case", json.loads(GOLDEN.read_text(encoding="utf-8")), ids=lambda case: case["name"])
@pytest.mark.sweep
def test_peaks_are_those_of_traces(case):
    architecture = bundled().models.model(case["model"])
    workload = resolve_workload(architecture, Training(**case["workload"], precomputed="all"), 1).workload
    peak = memory_of(architecture, workload).timeline(architecture, workload).peak().total
    assert peak == pytest.approx(case["peak_bytes"], rel=0.012)
