"""What the blocks of a diffusion transformer hold at once.

All functions return elements, following which tensors the code of diffusers still refers to at each operator.

**Source**: diffusers 0.40 `models/transformers/transformer_flux.py`, `transformer_sd3.py`, `models/attention.py`,
`models/attention_processor.py`, `models/embeddings.apply_rotary_emb`.
"""

from typing import Final

from planner.models.pipeline import DiffusionTransformer

_FP32: Final = 4


def transformer_elements(network: DiffusionTransformer, image: int, text: int, size: int) -> int:
    """Return the most that a pass holds at once for so many tokens of image and text, in elements of `size` bytes.

    **Formula** in widths h, with I image tokens, T text tokens, N = I + T and r = i / h: FLUX (6 + r + c)N in blocks
    over one sequence, (5 + c)N + 3T or (5 + 2r)I + 3T in others, where c is the rotation in fp32; SD 3 (4 + 2r)I beside
    the texts, and the attention's whole result in the last block; PixArt (4 + 2r)I + T.
    """
    return network.hidden * _WIDTHS[network.family](network, image, text, size)


def rotation_bytes(network: DiffusionTransformer, tokens: int) -> int:
    """Return the table of sines and cosines that all images share: in fp32 for each token, none where none rotate."""
    return 2 * tokens * network.head_dim * _FP32 if network.family == "flux" else 0


def _flux(network: DiffusionTransformer, image: int, text: int, size: int) -> int:
    both = image + text
    inner = network.intermediate // network.hidden
    # Queries in fp32, times the cosine; the rotated ones, in fp32 and times the sine, and the sum.
    rotation = 4 if size == _FP32 else 7
    joint = max((5 + rotation) * both, (5 + 2 * inner) * image) + 3 * text if network.blocks else 0
    single = max(6 + inner + rotation, 6 + 2 * inner) * both if network.single_blocks else 0
    return max(joint, single)


def _sd3(network: DiffusionTransformer, image: int, text: int, _: int) -> int:
    both = image + text
    inside = (4 + 2 * (network.intermediate // network.hidden)) * image
    second = 2 * image if network.dual_blocks else 0
    return max(7 * both + 3 * text, inside + max(second + 3 * text, both + 2 * text))


def _pixart(network: DiffusionTransformer, image: int, text: int, _: int) -> int:
    return (4 + 2 * (network.intermediate // network.hidden)) * image + text


_WIDTHS: Final = {"flux": _flux, "sd3": _sd3, "pixart": _pixart}
