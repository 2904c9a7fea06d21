"""How a diffusion pipeline is run: what the text-to-image settings of the diffusers library are called there."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, field_validator

from planner.base import Spec, no_such_name
from planner.dtypes import AS_STORED, SCHEMES

Offload = Literal["none", "model", "sequential"]
Side = Annotated[int, Field(ge=1, le=65_536)]
_SIDES: Final = 2
_DIGITS: Final = 9


def _both_sides(value: object) -> object:
    """Take one number for a square, and `1024x768` as people write it."""
    if isinstance(value, str):
        sides = [part.strip() for part in value.lower().replace("×", "x").split("x")]
        if len(sides) > _SIDES or not all(side.isdecimal() and len(side) <= _DIGITS for side in sides):
            raise ValueError(f"{value!r} is no size in pixels: write width and height, such as 1024x768")
        return [int(side) for side in sides] * (_SIDES // len(sides))
    return (value, value) if isinstance(value, int) else value


ImageSize = Annotated[tuple[Side, Side], BeforeValidator(_both_sides)]
"""Width and height in pixels."""


class Diffusion(Spec):
    """Settings that only pipelines have. Fields that are `None` are filled in from the pipeline."""

    guidance: bool | None = Field(
        default=None, description="a second pass without the prompt in each step; by default unless it is distilled"
    )
    offload: Offload = Field(
        default="none",
        description="what waits in RAM: model: the components that do not run; sequential: all but the running module",
    )
    vae_tiling: bool = Field(default=False, description="decode large images in tiles, one after the other")
    vae_slicing: bool = Field(default=False, description="decode the images of a batch one after the other")
    prompt_tokens: int | None = Field(
        default=None, ge=1, le=100_000, description="length that prompts are padded to, where an encoder leaves it open"
    )
    text_weights: str | None = Field(default=None, description="format of the text encoders; by default as computed")

    @field_validator("text_weights")
    @classmethod
    def _known_scheme(cls, value: str | None) -> str | None:
        if value is not None and value != AS_STORED and value not in SCHEMES:
            raise no_such_name((*SCHEMES, AS_STORED))
        return value
