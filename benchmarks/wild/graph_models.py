"""Graph networks of torch-geometric, on one random graph."""

from typing import Any

import torch
from torch import nn
from torch_geometric import nn as graph_nn

_NODES, _EDGES, _FEATURES = 800, 6000, 32


def graph() -> dict[str, torch.Tensor]:
    """Return nodes with features, and edges between them."""
    return {"x": torch.randn(_NODES, _FEATURES), "edge_index": torch.randint(_NODES, (2, _EDGES))}


def model(name: str, **options: Any) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return a ready model with three layers and 5 classes for each node."""
    sizes = {"in_channels": _FEATURES, "hidden_channels": 64, "num_layers": 3, "out_channels": 5}
    module: nn.Module = getattr(graph_nn, name)(**sizes, **options)
    return module, graph()


def principal_neighborhoods() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return PNA, which aggregates neighbours in many ways."""
    options = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"]}
    return model("PNA", **options, deg=torch.tensor([1, 5, 20, 60, 100, 200, 200, 100]))


def graph_unet() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return Graph U-Net, which keeps the half of the nodes that a score chooses."""
    return graph_nn.GraphUNet(_FEATURES, 64, 5, depth=2), graph()


class TwoLayers(nn.Module):
    """Two layers of one kind, as in the examples of torch-geometric."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__()
        layer = getattr(graph_nn, kind)
        self.first, self.second = layer(_FEATURES, 64, **options), layer(64, 5, **options)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        """Return the scores of each node."""
        hidden = self.first(x, edge_index, *others).relu()
        hidden = nn.functional.dropout(hidden, training=self.training)
        result: torch.Tensor = self.second(hidden, edge_index, *others)
        return result


def two_layers(kind: str, **options: Any) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return two layers of `kind`."""
    return TwoLayers(kind, options), tuple(graph().values())


def relations() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a network with a weight for each kind of edge."""
    module = TwoLayers("RGCNConv", {"num_relations": 4})
    return module, (*graph().values(), torch.randint(4, (_EDGES,)))


def pooled() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a classifier of whole graphs, 8 of which are one batch."""
    return _Pooled(), (*graph().values(), torch.arange(8).repeat_interleave(_NODES // 8))


class _Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = graph_nn.GIN(_FEATURES, 64, 3)
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(graph_nn.global_mean_pool(self.layers(x, edge_index), batch))
        return scores


def attentive() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return AttentiveFP, for molecules."""
    module = graph_nn.AttentiveFP(_FEATURES, 64, 1, edge_dim=8, num_layers=2, num_timesteps=2)
    batch = torch.arange(8).repeat_interleave(_NODES // 8)
    return module, (*graph().values(), torch.randn(_EDGES, 8), batch)


def autoencoder() -> tuple[nn.Module, dict[str, torch.Tensor]]:
    """Return a graph autoencoder, whose loss draws edges that are not there."""
    return _Autoencoder(), graph()


class _Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = graph_nn.GAE(graph_nn.GCN(_FEATURES, 64, 2, 16))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = self.inner.recon_loss(self.inner.encode(x, edge_index), edge_index)
        return loss
