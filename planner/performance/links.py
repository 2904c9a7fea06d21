"""Links between GPUs, and the time of collective operations over them."""

import re
from math import ceil, log2
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu, parse_link_bytes_per_s
from planner.performance.setting import CardLink, TimeSetting

_TABLES_SOURCE: Final = (
    "bus bandwidth with large messages on 2, 4 and 8 GPUs: ai-dynamo/aiconfigurator 095f58a, NCCL tables (512 Mi half "
    "elements)"
)
_SHARE_SOURCE: Final = (
    "aiconfigurator 095f58a: the share of link bandwidth that NCCL reaches on A100 SXM, 222 of 300 GB/s"
)
_ALL_REDUCE_BYTES_PER_S: Final[dict[str, tuple[float, float, float]]] = {
    "NVLink3": (193e9, 217e9, 222e9),
    "NVLink4": (318e9, 350e9, 445e9),
    "NVLink5": (534e9, 634e9, 704e9),
    "PCIe 5": (39e9, 26e9, 25e9),
    "PCIe 4": (20e9, 8.4e9, 4.3e9),
}
"""Bus bandwidth of all-reduce on 2, 4 and 8 GPUs, in bytes per second. The values for PCIe 4.0 are geometric means of
two kinds of machine: L40S without peer access (5.5 GB/s on 4 GPUs, 1.5 on 8), and the shares that PCIe 5.0 reaches."""
_ALL_GATHER_BYTES_PER_S: Final[dict[str, tuple[float, float, float]]] = {
    "NVLink3": (150e9, 192e9, 205e9),
    "NVLink4": (258e9, 318e9, 335e9),
    "NVLink5": (438e9, 567e9, 617e9),
}
"""Bus bandwidth of all-gather and reduce-scatter on 2, 4 and 8 GPUs, in bytes per second; over PCIe that of
all-reduce."""
_REACHED_LINK_SHARE: Final = 222 / 300
_LANE_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Bandwidth of one PCIe lane in each direction by generation, after line coding (PCI-SIG)."""
_PCIE_SHARES: Final = (0.63, 0.41, 0.40)
"""Share of a PCIe 5.0 link that collectives reach on 2, 4 and 8 GPUs (RTX PRO 6000: 39, 26 and 25 of 63 GB/s)."""
_COPY_SHARE: Final = 0.8
"""Share of the PCIe bandwidth that copies from and to pinned memory reach (NVIDIA bandwidthTest: 25 of 31.5 GB/s)."""
_HOP_SECONDS: Final = {"nvlink": 3e-6, "xgmi": 3e-6, "nvlink-pair": 5e-6, "pcie": 10e-6}
"""Latency per hop of a ring in seconds: small messages on 2 to 8 GPUs take 5 to 26 µs over NVLink, and 70 µs or more
over PCIe."""
_NETWORK_HOP_SECONDS: Final = 10e-6
"""Latency from one node to another in seconds (aiconfigurator 095f58a, point to point)."""
NETWORK_SHARE: Final = 0.6
"""Assumed share of the network bandwidth that collectives reach: 0.90 in Calculon's model (caa4b11), but measured are
92 GB/s over all ports of a node with 4 GiB messages (ml-engineering 744d01e), and 17.5 GB/s over two DGX A100 (Vidur
7d47513)."""
_NODE_CARDS: Final = 8
"""Number of GPUs in a vendor's reference machine (HGX, DGX, OAM baseboards)."""
_DOMAIN_CARDS: Final = {
    "gb200-186gb": 72,
    "gb300-288gb": 72,
    "tpu-v2": 256,
    "tpu-v3": 1_024,
    "tpu-v4": 4_096,
    "tpu-v5e": 256,
    "tpu-v5p": 8_960,
    "tpu-v6e": 256,
    "tpu-v7-ironwood": 9_216,
}
"""Number of GPUs that one fabric links, where that is no single machine, by catalog id: the NVLink domain of a rack
(NVIDIA GB200 and GB300 NVL72) or the pod of chips with ICI (Google Cloud TPU documentation, system architecture)."""
_PORT_BYTES_PER_S: Final = (
    ("Blackwell Ultra", 100e9),
    ("Blackwell", 50e9),
    ("Hopper", 50e9),
    ("CDNA4", 50e9),
    ("CDNA3", 50e9),
    ("Ampere", 25e9),
    ("Volta", 6.25e9),
)
"""Network bandwidth per GPU in vendors' reference machines: 50 Gbit/s in DGX-1, 200 Gbit/s in DGX A100, later 400 and
800 Gbit/s."""
_WORKSTATION_PORT_BYTES_PER_S: Final = 1.25e9
"""Bandwidth of 10 Gbit Ethernet, which the GPUs of a workstation share."""


class Links(NamedTuple):
    """Links between the GPUs in one job, with their bandwidths.

    `all_reduce_bytes_per_s` and `all_gather_bytes_per_s` are bus bandwidths of all-reduce and all-gather on 2, 4 and 8
    GPUs of one node; `network_bytes_per_s` is each GPU's bandwidth to other nodes, and `host_bytes_per_s` that to
    host memory.
    """

    kind: CardLink
    name: str
    cards_per_node: int
    all_reduce_bytes_per_s: tuple[float, float, float]
    all_gather_bytes_per_s: tuple[float, float, float]
    network_bytes_per_s: float
    host_bytes_per_s: float
    source: str

    def bus_bytes_per_s(self, cards: int, *, gathers: bool = False) -> float:
        """Return the bus bandwidth of a ring collective over `cards` GPUs, which fill one node before the next.

        **Formula**: within a node as measured; over several nodes the slower of that and the ports of a node's GPUs.

        **Source**: NVIDIA nccl-tests doc/PERFORMANCE.md (bus bandwidth).
        """
        inside = min(cards, self.cards_per_node)
        table = self.all_gather_bytes_per_s if gathers else self.all_reduce_bytes_per_s
        own = table[0] if inside <= 2 else table[1] if inside <= 4 else table[2]
        if cards <= self.cards_per_node:
            return own
        ports = self.network_bytes_per_s * NETWORK_SHARE * inside
        return min(own, ports) if inside > 1 else ports

    def ring_seconds(self, cards: int, wire_bytes: float, *, gathers: bool = False) -> float:
        """Return the seconds of a ring collective over `cards` in which each GPU sends `wire_bytes`.

        **Formula**: bytes ÷ bus bandwidth + (g − 1) · hop, with the network's hop between nodes.
        """
        if cards < 2:
            return 0.0
        return wire_bytes / self.bus_bytes_per_s(cards, gathers=gathers) + self.ring_latency_seconds(cards)

    def ring_latency_seconds(self, cards: int) -> float:
        """Return the latency of one ring collective over `cards` in seconds, summed over its hops."""
        nodes = -(-cards // self.cards_per_node)
        return (cards - nodes) * _HOP_SECONDS[self.kind] + (nodes - 1 and nodes) * _NETWORK_HOP_SECONDS

    def all_reduce_latency_seconds(self, cards: int) -> float:
        """Return the latency of one all-reduce in seconds: a ring within a node, a tree up and down between nodes."""
        nodes = -(-cards // self.cards_per_node)
        between = 2 * ceil(log2(nodes)) * _NETWORK_HOP_SECONDS if nodes > 1 else 0.0
        return 2 * (min(cards, self.cards_per_node) - 1) * _HOP_SECONDS[self.kind] + between

    def point_to_point_bytes_per_s(self, cards_apart: int) -> float:
        """Return the bandwidth from a GPU to one that is `cards_apart` ranks away, in bytes per second."""
        return (
            self.all_reduce_bytes_per_s[0]
            if cards_apart < self.cards_per_node
            else self.network_bytes_per_s * NETWORK_SHARE
        )


def links_of(gpu: Gpu, setting: TimeSetting) -> Links:
    """Return the links between GPUs `gpu`, from `setting` or by default from the catalog.

    Bridges between pairs are used only if `setting` has them.

    **Assumes** eight GPUs per node with one network port each, as in vendors' reference machines, or as many as one
    fabric links; workstations and consumer GPUs share one port of 10 Gbit/s.
    """
    kind = setting.link or default_link(gpu)
    name, all_reduce_bytes_per_s, all_gather_bytes_per_s, source = _links_within_node(gpu, kind)
    node = setting.cards_per_node or _DOMAIN_CARDS.get(gpu.id, _NODE_CARDS)
    network = setting.network_bytes_per_s or _network_port_bytes_per_s(gpu, node)
    return Links(
        kind, name, node, all_reduce_bytes_per_s, all_gather_bytes_per_s, network, host_bytes_per_s(gpu), source
    )


def default_link(gpu: Gpu) -> CardLink:
    """Return the kind of link between GPUs `gpu` in one machine, from the catalog."""
    text = gpu.interconnect or ""
    if text.startswith(("NVLink", "NVLink-C2C")) and "bridge" not in text:
        return "nvlink"
    return "xgmi" if text.startswith(("Infinity Fabric", "ICI", "24x", "NeuronLink", "scale-up")) else "pcie"


def _links_within_node(
    gpu: Gpu, kind: CardLink
) -> tuple[str, tuple[float, float, float], tuple[float, float, float], str]:
    """Return link name, all-reduce and all-gather bandwidth on 2, 4 and 8 GPUs, and their source."""
    if kind == "pcie":
        return _pcie_links(gpu)
    text = gpu.interconnect or ""
    generation = re.search(r"NVLink\d", text)
    name = generation[0] if generation else text.partition(";")[0].partition(" ")[0] or kind
    # The catalog states the sum of both directions.
    both_ways = parse_link_bytes_per_s(text)
    if kind == "nvlink" and name in _ALL_REDUCE_BYTES_PER_S and "bridge" not in text:
        return name, _ALL_REDUCE_BYTES_PER_S[name], _ALL_GATHER_BYTES_PER_S[name], _TABLES_SOURCE
    one_way = both_ways / 2 if both_ways else _DEFAULT_FABRIC_BYTES_PER_S
    reached = one_way * _REACHED_LINK_SHARE
    if kind == "nvlink-pair":
        _, beyond, _, _ = _pcie_links(gpu)
        return name, (reached, beyond[1], beyond[2]), (reached, beyond[1], beyond[2]), _SHARE_SOURCE
    return name, (reached, reached, reached), (reached, reached, reached), _SHARE_SOURCE


_DEFAULT_FABRIC_BYTES_PER_S: Final = 56.25e9
"""Assumed bandwidth of unknown fabrics in one direction: the RTX 3090's bridge, half of 112.5 GB/s (GA102
whitepaper)."""


def _pcie_links(gpu: Gpu) -> tuple[str, tuple[float, float, float], tuple[float, float, float], str]:
    """Return PCIe name, all-reduce and all-gather bandwidth on 2, 4 and 8 GPUs, and their source."""
    generation, lanes = _pcie_generation_and_lanes(gpu)
    name = f"PCIe {generation}"
    table = _ALL_REDUCE_BYTES_PER_S.get(name)
    if table is not None and lanes == 16:
        return name, table, table, _TABLES_SOURCE
    one_way = _LANE_BYTES_PER_S[generation] * lanes
    first, second, third = (share * one_way for share in _PCIE_SHARES)
    shares = (first, second, third)
    return name, shares, shares, f"{_TABLES_SOURCE}; the shares that PCIe 5.0 reaches"


def _pcie_generation_and_lanes(gpu: Gpu) -> tuple[int, int]:
    """Return generation and lane count of the GPU's PCIe link; 4.0 × 16 if the catalog has none."""
    found = re.search(r"PCIe (\d)\.\d x(\d+)", gpu.interconnect or "")
    return (int(found[1]), int(found[2])) if found else (4, 16)


def host_bytes_per_s(gpu: Gpu) -> float:
    """Return the copy bandwidth between a GPU and host memory, in bytes per second."""
    chip = re.search(r"NVLink-C2C (\d+) GB/s", gpu.interconnect or "")
    if chip:
        return float(chip[1]) * 1e9 / 2 * _COPY_SHARE
    generation, lanes = _pcie_generation_and_lanes(gpu)
    return _LANE_BYTES_PER_S[generation] * lanes * _COPY_SHARE


def _network_port_bytes_per_s(gpu: Gpu, node: int) -> float:
    """Return the bandwidth of a GPU's network port in nodes of `cards_per_node` GPUs, in bytes per second."""
    stacked = (gpu.memory_type or "").startswith("HBM")
    port = next((speed for name, speed in _PORT_BYTES_PER_S if gpu.architecture == name), None)
    return port if port is not None and stacked else _WORKSTATION_PORT_BYTES_PER_S / min(node, _NODE_CARDS)
