"""Networks of fully connected layers."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional

Inputs = tuple[torch.Tensor, ...]


def mlp() -> tuple[nn.Module, Inputs]:
    """Return a classifier of four wide layers."""
    widths = (784, 2048, 2048, 1024)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers, nn.Linear(widths[-1], 10)), (torch.randn(512, 784),)


class Mixer(nn.Module):
    """A block of an MLP-Mixer: one perceptron over the patches, one over the channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.over_patches = nn.Sequential(nn.Linear(patches, 4 * patches), nn.GELU(), nn.Linear(4 * patches, patches))
        self.over_channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `x` of (batch, patches, width), mixed."""
        x = x + self.over_patches(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.over_channels(self.second(x))


class MixerClassifier(nn.Module):
    """An MLP-Mixer on patches that are flat already."""

    def __init__(self, patches: int = 64, width: int = 384, depth: int = 6) -> None:
        super().__init__()
        self.embed = nn.Linear(192, width)
        self.blocks = nn.ModuleList(Mixer(patches, width) for _ in range(depth))
        self.head = nn.Linear(width, 100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the classes."""
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def mixer() -> tuple[nn.Module, Inputs]:
    """Return an MLP-Mixer for images of 64 patches."""
    return MixerClassifier(), (torch.randn(32, 64, 192),)


class VariationalAutoencoder(nn.Module):
    """A convolutional variational autoencoder, which returns its loss."""

    def __init__(self, width: int = 64, latent: int = 128) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, 1),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 4 * width, 4, 2, 1),
            nn.BatchNorm2d(4 * width),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
        )
        features = 4 * width * 8 * 8
        self.mean, self.log_variance = nn.Linear(features, latent), nn.Linear(features, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, features),
            nn.Unflatten(1, (4 * width, 8, 8)),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the reconstruction and the loss: its error, and the divergence of the code from a normal one."""
        features = self.encoder(x)
        mean, log_variance = self.mean(features), self.log_variance(features)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        reconstruction = self.decoder(code)
        divergence = -0.5 * torch.mean(1 + log_variance - mean.pow(2) - log_variance.exp())
        return {"loss": functional.mse_loss(reconstruction, x) + divergence, "reconstruction": reconstruction}


def vae() -> tuple[nn.Module, Inputs]:
    """Return a variational autoencoder for images of 64 × 64."""
    return VariationalAutoencoder(), (torch.rand(32, 3, 64, 64),)


class Recommender(nn.Module):
    """Two tables of embeddings with a perceptron over their rows: most parameters see no gradient but zeros."""

    def __init__(self, users: int = 60_000, items: int = 30_000, width: int = 64) -> None:
        super().__init__()
        self.users, self.items = nn.EmbeddingBag(users, width, mode="mean"), nn.Embedding(items, width)
        self.head = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, history: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        """Return a score for each pair of a history and an item."""
        return self.head(torch.cat((self.users(history), self.items(item)), 1))


def recommender() -> tuple[nn.Module, Inputs]:
    """Return a recommender with histories of 20 items."""
    return Recommender(), (torch.randint(60_000, (4096, 20)), torch.randint(30_000, (4096,)))
