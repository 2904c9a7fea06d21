"""Networks that take the noise out of images: a U-Net with attention, and a transformer."""

import math

import torch
from torch import nn
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]


def _embedded_time(steps: torch.Tensor, width: int) -> torch.Tensor:
    frequencies = torch.exp(torch.arange(width // 2) * (-math.log(10_000) / (width // 2)))
    angles = steps[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), 1)


class Residual(nn.Module):
    """Two convolutions with group normalisation, and the time added between them."""

    def __init__(self, channels: int, width: int, time: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, width, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, width))
        self.second = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.shortcut = nn.Identity() if channels == width else nn.Conv2d(channels, width, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        return self.shortcut(x) + self.second(self.first(x) + self.time(time)[:, :, None, None])


class Attention(nn.Module):
    """Attention among the pixels of an image."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, width)
        self.inward, self.outward = nn.Conv1d(width, 3 * width, 1), nn.Conv1d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        batch, width, *size = x.shape
        inner = self.inward(self.norm(x).flatten(2))
        query, key, value = (
            part.reshape(batch, self.heads, width // self.heads, -1).transpose(2, 3) for part in inner.chunk(3, 1)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        return x + self.outward(attended.transpose(2, 3).reshape(batch, width, -1)).reshape(batch, width, *size)


class DiffusionUNet(nn.Module):
    """A U-Net that is told the time, with attention where images are small."""

    def __init__(self, width: int = 64, multipliers: tuple[int, ...] = (1, 2, 2, 4), time: int = 256) -> None:
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        widths = [width * one for one in multipliers]
        self.down, self.shrink = nn.ModuleList(), nn.ModuleList()
        channels = width
        for level, inner in enumerate(widths):
            self.down.append(Residual(channels, inner, time))
            self.shrink.append(nn.Conv2d(inner, inner, 3, 2, 1) if level < len(widths) - 1 else nn.Identity())
            channels = inner
        self.middle = nn.ModuleList((Residual(channels, channels, time), Attention(channels)))
        self.up = nn.ModuleList()
        for inner in reversed(widths):
            self.up.append(Residual(channels + inner, inner, time))
            channels = inner
        self.head = nn.Sequential(nn.GroupNorm(8, channels), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1))

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return the noise in `x` at the times `steps`."""
        time = self.time(_embedded_time(steps, self.width))
        x = self.stem(x)
        kept = []
        for block, shrink in zip(self.down, self.shrink, strict=True):
            x = block(x, time)
            kept.append(x)
            x = shrink(x)
        first, attention = self.middle
        x = attention(first(x, time))
        for level, block in enumerate(self.up):
            if level:
                x = functional.interpolate(x, scale_factor=2.0)
            x = block(torch.cat((x, kept.pop()), 1), time)
        return self.head(x)


def diffusion_unet() -> tuple[nn.Module, Inputs]:
    """Return a diffusion U-Net for images of 32 × 32."""
    return DiffusionUNet(), (torch.randn(8, 3, 32, 32), torch.randint(1000, (8,)))


class DiTBlock(nn.Module):
    """A transformer block that the time scales and shifts."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first = nn.LayerNorm(width, elementwise_affine=False)
        self.second = nn.LayerNorm(width, elementwise_affine=False)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        shift, scale, gate, shift_two, scale_two, gate_two = self.modulation(time)[:, None].chunk(6, 2)
        x = x + gate * self._attend(self.first(x) * (1 + scale) + shift)
        return x + gate_two * self.perceptron(self.second(x) * (1 + scale_two) + shift_two)

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        query, key, value = self.inward(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value)
        return self.outward(attended.transpose(1, 2).reshape(batch, length, width))


class DiT(nn.Module):
    """A diffusion transformer on patches of latent images."""

    def __init__(self, width: int = 384, depth: int = 8, heads: int = 6, patch: int = 2, size: int = 32) -> None:
        super().__init__()
        self.width, self.patch = width, patch
        self.embed = nn.Conv2d(4, width, patch, patch)
        self.places = nn.Parameter(torch.zeros(1, (size // patch) ** 2, width))
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(DiTBlock(width, heads) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 4 * patch * patch)

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """Return the noise in the latent images `x` at the times `steps`."""
        size = x.shape[-1]
        time = self.time(_embedded_time(steps, self.width))
        x = self.embed(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x, time)
        x = self.head(self.norm(x)).transpose(1, 2)
        return functional.fold(x, (size, size), self.patch, stride=self.patch)


def dit() -> tuple[nn.Module, Inputs]:
    """Return a small diffusion transformer for latent images of 32 × 32."""
    return DiT(), (torch.randn(4, 4, 32, 32), torch.randint(1000, (4,)))
