"""Generative adversarial networks: two modules that a step of its own trains in turn."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

_NOISE = 100


def _generator(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.ConvTranspose2d(_NOISE, 8 * width, 4, 1, 0, bias=False)]
    for factor in (8, 4, 2):
        layers += [nn.BatchNorm2d(factor * width), nn.ReLU(True)]
        layers.append(nn.ConvTranspose2d(factor * width, factor // 2 * width, 4, 2, 1, bias=False))
    layers += [nn.BatchNorm2d(width), nn.ReLU(True), nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()]
    return nn.Sequential(*layers)


def _discriminator(width: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    for factor in (1, 2, 4):
        layers.append(nn.Conv2d(factor * width, 2 * factor * width, 4, 2, 1, bias=False))
        layers += [nn.BatchNorm2d(2 * factor * width), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Flatten(0))


def step(modules: dict[str, nn.Module], inputs: tuple[torch.Tensor, ...], optimizers: dict[str, Any]) -> None:
    """Train the discriminator on real and made images, then the generator through it."""
    generator, discriminator = modules["generator"], modules["discriminator"]
    (real,) = inputs
    noise = torch.randn(real.shape[0], _NOISE, 1, 1)
    made = generator(noise)
    optimizers["discriminator"].zero_grad()
    scores = discriminator(real)
    loss = functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores))
    loss.backward()
    scores = discriminator(made.detach())
    loss = functional.binary_cross_entropy_with_logits(scores, torch.zeros_like(scores))
    loss.backward()
    optimizers["discriminator"].step()
    optimizers["generator"].zero_grad()
    scores = discriminator(made)
    functional.binary_cross_entropy_with_logits(scores, torch.ones_like(scores)).backward()
    optimizers["generator"].step()


def dcgan() -> tuple[dict[str, nn.Module], tuple[torch.Tensor, ...], Any]:
    """Return a DCGAN for images of 64 × 64."""
    modules = {"generator": _generator(32), "discriminator": _discriminator(32)}
    return modules, (torch.randn(32, 3, 64, 64),), step


def generator() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the generator alone."""
    return _generator(32), (torch.randn(32, _NOISE, 1, 1),)
