"""Settings of diffusion pipelines, named as in the diffusers library."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from planner.base import Spec, unknown_name_error
from planner.dtypes import AS_STORED, SCHEMES
from planner.errors import SpecError
from planner.models.architecture import embeds_images
from planner.numbers import COUNT, parse_number
from planner.workload.presentation import FieldContext, Presentation, command_line_only

Offload = Literal["none", "model", "sequential"]
Precomputed = Literal["none", "prompts", "all"]
Side = Annotated[int, Field(ge=1, le=65_536)]
_DIMENSIONS: Final = 2
_SIZES: Final = (
    (512, 512),
    (768, 768),
    (1024, 1024),
    (1152, 896),
    (1216, 832),
    (1344, 768),
    (1536, 1536),
    (2048, 2048),
)


def known_weight_format(value: str | None) -> str | None:
    """Return the weight format `value` if it is known; reject any other name."""
    if value is not None and value != AS_STORED and value not in SCHEMES:
        raise unknown_name_error((*SCHEMES, AS_STORED))
    return value


def _parse_size(value: object) -> object:
    """Return width and height from a single number (a square), a pair, or text of the form `1024x768`."""
    if isinstance(value, str):
        sides = [part.strip() for part in value.lower().replace("×", "x").split("x")]
        try:
            pixels = [parse_number(side, COUNT) for side in sides]
        except SpecError:
            pixels = []
        if not 1 <= len(pixels) <= _DIMENSIONS:
            raise ValueError(f"{value!r} is not a size in pixels: write width and height, such as 1024x768")
        return pixels * (_DIMENSIONS // len(pixels))
    return (value, value) if isinstance(value, int) else value


ImageSize = Annotated[tuple[Side, Side], BeforeValidator(_parse_size)]
"""Width and height of an image in pixels."""


def reads_or_makes_images(context: FieldContext) -> bool:
    """Return whether the model processes images of variable size or generates images."""
    free = embeds_images(context.architecture) and context.architecture.stacks[0].positions is None
    return free or context.architecture.kind in ("diffusion", "vision-encoder")


IMAGE_SIZE: Final = Field(
    title="Image size",
    description="width and height of input or generated images in pixels: 1024, 1024x768 or [1024, 768]",
)
IMAGE_SIZE_SHOWN: Final = Presentation(
    "--image-size",
    "main",
    metavar="WxH",
    default="the model's default size",
    explanation="Activations grow with the image size.",
    choices={size: f"{size[0]:,} × {size[1]:,}" for size in _SIZES},
    shown_when=reads_or_makes_images,
)


class Diffusion(Spec):
    """Settings that apply only to diffusion pipelines; a field that is None has the pipeline's default."""

    guidance: Annotated[
        bool | None,
        Field(title="Guidance", description="classifier-free guidance: a second pass without the prompt in each step"),
        Presentation(
            group="decoding",
            default="true unless the model is distilled",
            explanation="Each denoising step also runs without the prompt, and combines the two predictions.",
            choices={True: "Two passes (one without the prompt)", False: "One pass"},
        ),
    ] = None
    offload: Annotated[
        Offload,
        Field(
            title="Offload to RAM",
            description="tensors kept in RAM: model (idle components) or sequential (all but the running module)",
        ),
        Presentation(
            group="main",
            explanation="Offloaded components or modules are on the GPU only while they run.",
            choices={
                "none": "None",
                "model": "Idle components",
                "sequential": "All but the running module",
            },
            mnemonic="r",
        ),
    ] = "none"
    vae_tiling: Annotated[
        bool,
        Field(title="VAE tiling", description="decode large images tile by tile"),
        Presentation(group="decoding"),
    ] = False
    vae_slicing: Annotated[
        bool,
        Field(title="VAE slicing", description="decode the images of a batch one at a time"),
        Presentation(group="decoding"),
    ] = False
    prompt_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000,
            title="Prompt tokens",
            description="prompt length in tokens after padding, unless the text encoder fixes it",
        ),
        Presentation(group="decoding", default="the pipeline's", shown_when=command_line_only),
    ] = None
    text_weights: Annotated[
        str | None,
        AfterValidator(known_weight_format),
        Field(title="Text encoder precision", description="format of the text encoders' weights"),
        Presentation(
            group="decoding",
            default="the compute precision",
            choices={name: name.upper() for name in ("fp32", "bf16", "fp16", "int8", "nf4", "fp8")},
            brief="text encoders in {}",
        ),
    ] = None
