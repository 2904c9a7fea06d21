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
    """One module of a U-Net; `skip` is the number of channels that its skip connection adds to the input."""

    kind: Literal["resnet", "transformer", "down", "up", "mid"]
    level: int
    into: int
    out: int
    depth: int = 0
    skip: int = 0


class UNet(Spec):
    """A convolutional denoiser with down- and upsampling levels and attention at some of them."""

    kind: Literal["unet"] = "unet"
    channels: tuple[int, ...] = Field(min_length=1, description="of each level, the largest maps first")
    depths: tuple[int, ...] = Field(description="transformer blocks after each convolution block; 0 for none")
    mid_depth: int = Field(ge=0, description="transformer blocks in the middle")
    layers: int = Field(ge=1, description="convolution blocks of a level on the way down; one more on the way up")
    latent_channels: int = Field(ge=1)
    text_width: int = Field(ge=1)
    sample_size: int = Field(ge=1, description="side in latent pixels of the images that it is made for")
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
    def _resnet_and_attention(level: int, into: int, out: int, depth: int, skip: int = 0) -> Iterator[UNetModule]:
        yield UNetModule("resnet", level, into + skip, out, skip=skip)
        if depth:
            yield UNetModule("transformer", level, out, out, depth)


class DiffusionTransformer(Spec):
    """A transformer denoiser over patches of the latent image and tokens of the text."""

    kind: Literal["transformer"] = "transformer"
    family: Literal["flux", "sd3", "pixart"]
    hidden: int = Field(ge=1)
    intermediate: int = Field(ge=1, description="width of the feed-forward blocks")
    head_dim: int = Field(ge=1)
    blocks: int = Field(ge=0, description="blocks that attend to image and text jointly, or to one after the other")
    single_blocks: int = Field(default=0, ge=0, description="over image and text in one sequence (FLUX)")
    dual_blocks: int = Field(default=0, ge=0, description="blocks with a second attention over the image only (SD 3.5)")
    patch: int = Field(ge=1, description="side of a token's square of latent pixels")
    latent_channels: int = Field(ge=1)
    text_width: int = Field(ge=1)
    sample_size: int = Field(default=128, ge=1, description="side in latent pixels of the images that it is made for")
    guidance_embedded: bool = Field(default=False, description="distilled: no second pass without the prompt")


class ImageDecoder(Spec):
    """An autoencoder's decoder from a latent image to pixels; every level except the last doubles the side."""

    kind: Literal["image-decoder"] = "image-decoder"
    channels: tuple[int, ...] = Field(min_length=1, description="of each level, those of the full image first")
    layers: int = Field(ge=1, description="convolution blocks of a level of the encoder; one more in the decoder")
    latent_channels: int = Field(ge=1)
    sample_size: int = Field(ge=1, description="side in pixels of the tiles in tiled decoding")
    upcast: bool = Field(default=False, description="overflows in fp16, so that diffusers decodes in fp32")

    @property
    def scale(self) -> int:
        """Return the upsampling factor from latent pixels to pixels."""
        return int(2 ** (len(self.channels) - 1))


Denoiser = UNet | DiffusionTransformer
Network = Annotated[Denoiser | ImageDecoder, Field(discriminator="kind")]


class Component(Spec):
    """One model of a pipeline: its role, its tensors, and its network."""

    name: str = Field(description="as in model_index.json: text_encoder_2, unet, vae")
    part: Part
    tensors: tuple[Tensor, ...]
    network: Network | None = None
    stacks: tuple[Stack, ...] = Field(default=(), description="the layers of a text encoder")
    tokens: int | None = Field(default=None, ge=1, description="length that prompts are padded to")
    buffers: int = Field(default=0, ge=0, description="elements of stored tables that are not parameters")
    stored: tuple[StoredTensors, ...] = Field(default=(), description="what its files hold; empty if not read")

    @cached_property
    def parameters(self) -> int:
        """Return the number of parameters."""
        return sum(tensor.parameters for tensor in self.tensors)

    @cached_property
    def largest_tensor(self) -> int:
        """Return the number of elements of the largest parameter."""
        return max(tensor.size for tensor in self.tensors)


def find_networks(components: Iterable[Component]) -> tuple[Denoiser, ImageDecoder]:
    """Return the denoiser and the image decoder.

    Raises:
        ValueError: If the denoiser or the decoder is missing.
    """
    networks = [component.network for component in components]
    denoiser = next((one for one in networks if isinstance(one, UNet | DiffusionTransformer)), None)
    decoder = next((one for one in networks if isinstance(one, ImageDecoder)), None)
    if denoiser is None or decoder is None:
        raise ValueError("a diffusion pipeline has a denoiser and a decoder")
    return denoiser, decoder
