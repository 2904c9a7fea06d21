"""Diffusion pipelines: components that run one after the other, such as text encoders, denoiser and image decoder.

Networks are described by what determines their memory: the levels of a U-Net, the widths of a transformer's blocks,
the feature maps of a decoder.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from planner.base import Spec
from planner.models.layers import Stack, StoredTensors, Tensor

Part = Literal["text", "denoiser", "image-decoder", "other"]


class UNetModule(NamedTuple):
    """One module of a U-Net; `skip` is the number of input channels from its skip connection."""

    kind: Literal["resnet", "transformer", "down", "up", "mid"]
    level: int
    into: int
    out: int
    depth: int = 0
    skip: int = 0


class UNet(Spec):
    """A convolutional denoiser with down- and upsampling levels and attention at some of them."""

    kind: Literal["unet"] = "unet"
    channels: tuple[int, ...] = Field(min_length=1, description="channels of each level, from the largest feature maps")
    depths: tuple[int, ...] = Field(description="number of transformer blocks after each convolution block, by level")
    heads: tuple[int, ...] = Field(description="number of attention heads, by level")
    mid_depth: int = Field(ge=0, description="number of transformer blocks in the middle block")
    layers: int = Field(ge=1, description="convolution blocks per down-path level; up-path levels have one more")
    latent_channels: int = Field(ge=1)
    text_width: int = Field(ge=1)
    sample_size: int = Field(ge=1, description="image side in latent pixels that the model was trained for")
    linear_projection: bool = False

    def steps(self) -> Iterator[UNetModule]:
        """Yield the U-Net's modules in execution order: the down path, the middle block, the up path."""
        kept = [self.channels[0]]
        width, last = self.channels[0], len(self.channels) - 1
        for level, out in enumerate(self.channels):
            for _ in range(self.layers):
                yield from self._resnet_and_attention(level, width, out, self.depths[level])
                width = out
                kept.append(width)
            if level < last:
                yield UNetModule("down", level, width, width)
                kept.append(width)
        yield UNetModule("mid", last, width, width, self.mid_depth)
        for level in range(last, -1, -1):
            out = self.channels[level]
            for _ in range(self.layers + 1):
                yield from self._resnet_and_attention(level, width, out, self.depths[level], kept.pop())
                width = out
            if level:
                yield UNetModule("up", level, width, width)

    @staticmethod
    def _resnet_and_attention(
        level: int, in_channels: int, out_channels: int, depth: int, skip: int = 0
    ) -> Iterator[UNetModule]:
        """Yield one convolution block, followed by `depth` transformer blocks if there are any."""
        yield UNetModule("resnet", level, in_channels + skip, out_channels, skip=skip)
        if depth:
            yield UNetModule("transformer", level, out_channels, out_channels, depth)


class DiffusionTransformer(Spec):
    """A transformer denoiser over patches of the latent image and tokens of the text."""

    kind: Literal["transformer"] = "transformer"
    family: Literal["flux", "sd3", "pixart"]
    hidden: int = Field(ge=1)
    intermediate: int = Field(ge=1, description="width of the feed-forward blocks")
    head_dim: int = Field(ge=1)
    blocks: int = Field(ge=0, description="number of blocks with joint attention or cross-attention to the text")
    single_blocks: int = Field(
        default=0, ge=0, description="number of blocks over image and text in one sequence (FLUX)"
    )
    dual_blocks: int = Field(
        default=0, ge=0, description="number of blocks with a second attention over the image alone (SD 3.5)"
    )
    patch: int = Field(ge=1, description="side of a patch in latent pixels")
    latent_channels: int = Field(ge=1)
    text_width: int = Field(ge=1)
    sample_size: int = Field(
        default=128, ge=1, description="image side in latent pixels that the model was trained for"
    )
    guidance_embedded: bool = Field(
        default=False, description="whether the model is distilled and needs no second pass without the prompt"
    )


class ImageDecoder(Spec):
    """An autoencoder's decoder from a latent image to pixels; every level except the last doubles the side."""

    kind: Literal["image-decoder"] = "image-decoder"
    channels: tuple[int, ...] = Field(min_length=1, description="channels of each level, from the full image size")
    layers: int = Field(ge=1, description="convolution blocks per encoder level; decoder levels have one more")
    latent_channels: int = Field(ge=1)
    sample_size: int = Field(ge=1, description="side in pixels of the tiles in tiled decoding")
    upcast: bool = Field(
        default=False, description="whether decoding overflows in fp16, so that diffusers decodes in fp32"
    )

    @property
    def scale(self) -> int:
        """Return the upsampling factor from latent pixels to pixels."""
        return int(2 ** (len(self.channels) - 1))


Denoiser = UNet | DiffusionTransformer
Network = Annotated[Denoiser | ImageDecoder, Field(discriminator="kind")]


class Component(Spec):
    """One model of a diffusion pipeline: its role, tensors and network."""

    name: str = Field(description="name in model_index.json, such as text_encoder_2, unet or vae")
    part: Part
    tensors: tuple[Tensor, ...]
    network: Network | None = None
    stacks: tuple[Stack, ...] = Field(default=(), description="stacks of layers of a text encoder")
    tokens: int | None = Field(default=None, ge=1, description="padded prompt length in tokens")
    buffers: int = Field(default=0, ge=0, description="number of elements in stored tables that are not parameters")
    stored: tuple[StoredTensors, ...] = Field(
        default=(), description="stored sizes of the component's tensors; empty if its files were not read"
    )

    @cached_property
    def parameters(self) -> int:
        """Return the number of parameters in the component."""
        return sum(tensor.parameters for tensor in self.tensors)

    @property
    def largest_tensor(self) -> int:
        """Return the number of elements in the component's largest tensor."""
        return max(tensor.size for tensor in self.tensors)


def find_networks(components: Iterable[Component]) -> tuple[Denoiser, ImageDecoder]:
    """Return the denoiser and the image decoder of a diffusion pipeline.

    Raises:
        ValueError: If the denoiser or the decoder is missing.
    """
    networks = [component.network for component in components]
    denoiser = next((one for one in networks if isinstance(one, UNet | DiffusionTransformer)), None)
    decoder = next((one for one in networks if isinstance(one, ImageDecoder)), None)
    if denoiser is None or decoder is None:
        raise ValueError("a diffusion pipeline has a denoiser and a decoder")
    return denoiser, decoder
