"""Number of patches and tokens that images have in vision encoders and vision-language models."""

from functools import lru_cache
from math import isqrt

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.layers import Stack
from planner.units import ceil_div

DEFAULT_SIDE = 1_024
"""Default width and height in pixels of images for networks that accept any size."""


@lru_cache(maxsize=256)
def with_image_size(architecture: Architecture, size: tuple[int, int] | None) -> Architecture:
    """Return an image encoder adapted to images of `size` (width, height); other networks are returned unchanged.

    The parameters stay the same: position embeddings are interpolated, as by transformers' `interpolate_pos_encoding`.

    **Assumes** that tokens other than the square of patches, such as a class token, stay the same.

    Raises:
        SpecError: If the image is smaller than a patch, or the network does not divide images into patches.
    """
    if size is None or architecture.kind != "vision-encoder":
        return architecture
    tower = architecture.main
    side = tower.patch_side
    if side is None or tower.positions is None:
        raise SpecError("image_size", f"{architecture.model_type} does not divide images into patches", "Remove it.")
    if min(size) < side:
        raise SpecError("image_size", f"is smaller than a patch of {side} × {side} pixels")
    more = tower.positions - isqrt(tower.positions) ** 2
    patches = (size[0] // side) * (size[1] // side)
    return architecture.evolve(stacks=(*architecture.stacks[:-1], tower.evolve(positions=patches + more)))


def embeds_images(architecture: Architecture) -> bool:
    """Return whether images become prompt tokens; false for models with cross-attention to images, as in Llama 3.2."""
    if architecture.kind != "vision-language" or architecture.stacks[0].name != "vision":
        return False
    return all(group.layer.cross_attention is None for group in architecture.main.groups) and (
        architecture.stacks[0].merge is not None
    )


def image_patches(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return an image's sequence length in a vision tower: its fixed length, or the number of patches in `size`.

    Towers that accept any size round it up to whole squares of merged patches.
    """
    if tower.positions is not None:
        return tower.positions
    width, height = size or (DEFAULT_SIDE, DEFAULT_SIDE)
    squares = isqrt(tower.merge or 1)
    unit = (tower.patch_side or 1) * squares
    return ceil_div(width, unit) * ceil_div(height, unit) * squares**2


def image_elements(tower: Stack, patches: int) -> int:
    """Return the number of pixel values in an image of `patches` patches; 0 if the tower has no patch convolution.

    Tokens that are not patches, such as a class token, are not counted.
    """
    cut = next((tensor for tensor in tower.before if tensor.role == "conv" and len(tensor.shape) > 3), None)
    if cut is None:
        return 0
    seen = isqrt(patches) ** 2 if tower.positions is not None else patches
    return seen * (cut.size // cut.shape[0])


def image_tokens(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return the number of tokens that an image of `size` takes in the language model's prompt."""
    return max(1, image_patches(tower, size) // (tower.merge or 1))
