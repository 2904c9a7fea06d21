"""How many patches and tokens an image is for a network, at its own size or at another."""

from functools import lru_cache
from math import isqrt

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.models.layers import Stack
from planner.units import ceil_div

DEFAULT_SIDE = 1_024
"""Pixels of the images that are assumed where a network reads any size: `image_size` says otherwise."""


@lru_cache(maxsize=256)
def at_image_size(architecture: Architecture, size: tuple[int, int] | None) -> Architecture:
    """Return an image encoder that reads images of `size`, its width and height; other networks as they are.

    Its parameters stay: the table of positions is interpolated, as `interpolate_pos_encoding` of transformers does.

    **Assumes** that what its sequence has beside a square of patches, such as a class token, stays too.

    Raises:
        SpecError: If the image is smaller than a patch, or the network does not cut images into patches.
    """
    if size is None or architecture.kind != "vision-encoder":
        return architecture
    tower = architecture.main
    side = tower.patch_side
    if side is None or tower.positions is None:
        raise SpecError("image_size", f"{architecture.model_type} does not cut images into patches", "Leave it out.")
    if min(size) < side:
        raise SpecError("image_size", f"is smaller than a patch of {side} × {side} pixels")
    more = tower.positions - isqrt(tower.positions) ** 2
    patches = (size[0] // side) * (size[1] // side)
    return architecture.evolve(stacks=(*architecture.stacks[:-1], tower.evolve(positions=patches + more)))


def reads_images(architecture: Architecture) -> bool:
    """Return whether images become tokens of the prompt: not where layers attend to them across, as in Llama 3.2."""
    if architecture.kind != "vision-language" or architecture.stacks[0].name != "vision":
        return False
    return all(group.layer.cross_attention is None for group in architecture.main.groups) and (
        architecture.stacks[0].merge is not None
    )


def patches_of_image(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return the sequence that a tower makes of an image: what it is built for, or as many patches as `size` has.

    Towers that read any size round it to whole squares of the patches that they merge.
    """
    if tower.positions is not None:
        return tower.positions
    width, height = size or (DEFAULT_SIDE, DEFAULT_SIDE)
    squares = isqrt(tower.merge or 1)
    unit = (tower.patch_side or 1) * squares
    return ceil_div(width, unit) * ceil_div(height, unit) * squares**2


def elements_of_image(tower: Stack, patches: int) -> int:
    """Return the elements of an image that is cut into `patches`; 0 where no convolution cuts it.

    What the sequence has beside a square of patches, such as a class token, is no part of the image.
    """
    cut = next((tensor for tensor in tower.before if tensor.role == "conv" and len(tensor.shape) > 3), None)
    if cut is None:
        return 0
    seen = isqrt(patches) ** 2 if tower.positions is not None else patches
    return seen * (cut.size // cut.shape[0])


def tokens_of_image(tower: Stack, size: tuple[int, int] | None) -> int:
    """Return the tokens of the language model that an image becomes."""
    return max(1, patches_of_image(tower, size) // (tower.merge or 1))
