"""Convolutional networks."""

import torch
from torch import nn
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]


def convnet() -> tuple[nn.Module, Inputs]:
    """Return a small classifier in the manner of VGG."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128):
        layers += [
            nn.Conv2d(channels, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        ]
        layers.append(nn.MaxPool2d(2))
        channels = width
    head = (nn.Flatten(), nn.Linear(128 * 8 * 8, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))
    return nn.Sequential(*layers, *head), (torch.randn(32, 3, 64, 64),)


def _convolution(channels: int, width: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(width))


class BasicBlock(nn.Module):
    """Two convolutions of 3 × 3 beside a shortcut."""

    expansion = 1

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = _convolution(channels, width, 3, stride), _convolution(width, width, 3)
        same = stride == 1 and channels == width
        self.shortcut = nn.Identity() if same else _convolution(channels, width, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        inner = self.second(functional.relu(self.first(x), inplace=True))
        return functional.relu(inner + self.shortcut(x), inplace=True)


class Bottleneck(nn.Module):
    """A narrow convolution of 3 × 3 between two of one pixel, beside a shortcut."""

    expansion = 4

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.first, self.second = _convolution(channels, width, 1), _convolution(width, width, 3, stride)
        self.third = _convolution(width, 4 * width, 1)
        same = stride == 1 and channels == 4 * width
        self.shortcut = nn.Identity() if same else _convolution(channels, 4 * width, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        inner = functional.relu(self.first(x), inplace=True)
        inner = self.third(functional.relu(self.second(inner), inplace=True))
        return functional.relu(inner + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """A residual network with its real sizes."""

    def __init__(self, block: type[BasicBlock] | type[Bottleneck], depths: tuple[int, ...]) -> None:
        super().__init__()
        self.stem = nn.Sequential(_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        channels, blocks = 64, []
        for stage, depth in enumerate(depths):
            for place in range(depth):
                width = 64 << stage
                blocks.append(block(channels, width, 2 if stage and not place else 1))
                channels = width * block.expansion
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes."""
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def resnet18() -> tuple[nn.Module, Inputs]:
    """Return a ResNet-18 for images of 224 × 224."""
    return ResNet(BasicBlock, (2, 2, 2, 2)), (torch.randn(8, 3, 224, 224),)


def resnet50() -> tuple[nn.Module, Inputs]:
    """Return a ResNet-50 for images of 224 × 224."""
    return ResNet(Bottleneck, (3, 4, 6, 3)), (torch.randn(4, 3, 224, 224),)


def resnet50_channels_last() -> tuple[nn.Module, Inputs]:
    """Return a ResNet-50 whose tensors keep their channels last."""
    module, (images,) = resnet50()
    return module.to(memory_format=torch.channels_last), (images.to(memory_format=torch.channels_last),)


class ConvNeXtBlock(nn.Module):
    """A convolution of 7 × 7 for each channel, then a perceptron over the channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.spatial = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.scale = nn.Parameter(torch.full((width,), 1e-6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        inner = self.norm(self.spatial(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.perceptron(inner)).permute(0, 3, 1, 2)


class ChannelNorm(nn.Module):
    """Layer normalisation over the channels of images."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the normalised images."""
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext() -> tuple[nn.Module, Inputs]:
    """Return a ConvNeXt with the widths of its tiny form, and half its depth."""
    widths, depths = (96, 192, 384, 768), (2, 2, 4, 2)
    layers: list[nn.Module] = [nn.Conv2d(3, widths[0], 4, 4), ChannelNorm(widths[0])]
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=True)):
        if stage:
            layers += [ChannelNorm(widths[stage - 1]), nn.Conv2d(widths[stage - 1], width, 2, 2)]
        layers += [ConvNeXtBlock(width) for _ in range(depth)]
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(widths[-1]), nn.Linear(widths[-1], 1000))
    return nn.Sequential(*layers, *head), (torch.randn(4, 3, 160, 160),)


def _double(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(_convolution(channels, width, 3), nn.ReLU(), _convolution(width, width, 3), nn.ReLU())


class UNet(nn.Module):
    """A U-Net for segmentation."""

    def __init__(self, classes: int = 4, width: int = 32, depth: int = 4) -> None:
        super().__init__()
        widths = [width << level for level in range(depth)]
        self.down = nn.ModuleList(_double(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * one, one, 2, 2) for one in widths[-2::-1])
        self.joined = nn.ModuleList(_double(2 * one, one) for one in widths[-2::-1])
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes for each pixel."""
        kept = []
        for level, block in enumerate(self.down):
            x = block(functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        kept.pop()
        for up, joined in zip(self.up, self.joined, strict=True):
            x = joined(torch.cat((kept.pop(), up(x)), 1))
        return self.head(x)


def unet() -> tuple[nn.Module, Inputs]:
    """Return a U-Net for images of 128 × 128."""
    return UNet(), (torch.randn(8, 3, 128, 128),)


class Separable(nn.Module):
    """An inverted bottleneck with squeeze and excitation, as of MobileNetV3."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        inner = 4 * channels
        self.expand = nn.Sequential(_convolution(channels, inner, 1), nn.Hardswish())
        self.spatial = nn.Sequential(
            nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False), nn.BatchNorm2d(inner), nn.Hardswish()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(inner, channels, 1),
            nn.ReLU(),
            nn.Conv2d(channels, inner, 1),
            nn.Hardsigmoid(),
        )
        self.project = _convolution(inner, width, 1)
        self.same = stride == 1 and channels == width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        inner = self.spatial(self.expand(x))
        inner = self.project(inner * self.squeeze(inner))
        return x + inner if self.same else inner


def mobilenet() -> tuple[nn.Module, Inputs]:
    """Return a network of separable convolutions for images of 160 × 160."""
    layers: list[nn.Module] = [_convolution(3, 16, 3, 2), nn.Hardswish()]
    channels = 16
    for width, stride in ((24, 2), (24, 1), (40, 2), (40, 1), (80, 2), (80, 1), (80, 1)):
        layers.append(Separable(channels, width, stride))
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(80, 1000)), (
        torch.randn(16, 3, 160, 160),
    )


def sound() -> tuple[nn.Module, Inputs]:
    """Return a classifier of sound, of convolutions in one dimension."""
    layers: list[nn.Module] = []
    channels = 1
    for width in (64, 128, 256, 256):
        layers += [nn.Conv1d(channels, width, 9, 4, 4), nn.GroupNorm(8, width), nn.GELU()]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(256, 35)), (
        torch.randn(32, 1, 16_000),
    )


def video() -> tuple[nn.Module, Inputs]:
    """Return a classifier of short films, of convolutions in three dimensions."""
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128):
        layers += [nn.Conv3d(channels, width, 3, padding=1), nn.BatchNorm3d(width), nn.ReLU(), nn.MaxPool3d(2)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(128, 50)), (
        torch.randn(4, 3, 8, 64, 64),
    )
