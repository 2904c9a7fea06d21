"""Links between cards, and the time of collective operations over them."""

import re
from functools import lru_cache
from math import ceil, log2
from typing import Final, NamedTuple

from planner.hardware.gpu import Gpu, parse_link_bytes_per_s
from planner.performance.setting import CardLink, TimeSetting

_TABLES: Final = (
    "bus bandwidth of large messages on 2, 4 and 8 cards: ai-dynamo/aiconfigurator 095f58a, NCCL tables (512 Mi half "
    "elements)"
)
_SHARED: Final = "aiconfigurator 095f58a: the share of link bandwidth that NCCL reaches on A100 SXM, 222 of 300 GB/s"
_MEASURED: Final[dict[str, tuple[float, float, float]]] = {
    "NVLink3": (193e9, 217e9, 222e9),
    "NVLink4": (318e9, 350e9, 445e9),
    "NVLink5": (534e9, 634e9, 704e9),
    "PCIe 5": (39e9, 26e9, 25e9),
    "PCIe 4": (20e9, 8.4e9, 4.3e9),
}
"""All-reduce on 2, 4 and 8 cards. Of PCIe 4.0 two kinds of machine are known: L40S whose cards do not reach each other
directly (5.5 GB/s on 4, 1.5 on 8), and the shares that PCIe 5.0 reaches; these are the middle, by ratio."""
_GATHERED: Final[dict[str, tuple[float, float, float]]] = {
    "NVLink3": (150e9, 192e9, 205e9),
    "NVLink4": (258e9, 318e9, 335e9),
    "NVLink5": (438e9, 567e9, 617e9),
}
"""All-gather and reduce-scatter; over PCIe they are as fast as all-reduce."""
_REACHED: Final = 222 / 300
_LANE_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""One lane in each direction: PCI-SIG, after line coding."""
_PCIE_SHARES: Final = (0.63, 0.41, 0.40)
"""Shares of a PCIe 5.0 link on 2, 4 and 8 cards (RTX PRO 6000: 39, 26 and 25 of 63 GB/s)."""
_COPY_SHARE: Final = 0.8
"""Share of its PCIe link that a copy from or to pinned memory reaches; NVIDIA bandwidthTest: 25 of 31.5 GB/s."""
_HOPS: Final = {"nvlink": 3e-6, "xgmi": 3e-6, "nvlink-pair": 5e-6, "pcie": 10e-6}
"""Seconds per hop of a ring: 5 to 26 µs for small messages on 2 to 8 cards over NVLink, 70 and more over PCIe."""
_NETWORK_HOP: Final = 10e-6
"""Seconds from one node to another: aiconfigurator 095f58a, point to point."""
NETWORK_SHARE: Final = 0.6
"""What collectives reach of network ports, assumed: 0.90 in Calculon's model (caa4b11), but 92 GB/s of all ports of a
node with 4 GiB messages in ml-engineering 744d01e, and 17.5 over two DGX A100 in Vidur 7d47513."""
_NODE: Final = 8
"""Cards in vendors' reference machines (HGX, DGX, OAM baseboards)."""
_RACK: Final = {"gb200-186gb": 72, "gb300-288gb": 72}
"""Cards that one NVLink domain joins in a rack (NVIDIA GB200 and GB300 NVL72)."""
_PORTS: Final = (
    ("Blackwell Ultra", 100e9),
    ("Blackwell", 50e9),
    ("Hopper", 50e9),
    ("CDNA4", 50e9),
    ("CDNA3", 50e9),
    ("Ampere", 25e9),
    ("Volta", 6.25e9),
)
"""Network bandwidth per card in vendors' reference machines: 50 Gbit/s in DGX-1, 200 in DGX A100, then 400 and 800."""
_DESK_PORT: Final = 1.25e9
"""10 Gbit Ethernet, shared by the cards of a workstation."""


class Links(NamedTuple):
    """Links between the cards of a job.

    `within` and `gathering` are bus bandwidths of all-reduce and all-gather on 2, 4 and 8 cards of one node;
    `network_bytes_per_s` is each card's bandwidth to other nodes, and `host_bytes_per_s` that to host memory.
    """

    kind: CardLink
    name: str
    node: int
    within: tuple[float, float, float]
    gathering: tuple[float, float, float]
    network_bytes_per_s: float
    host_bytes_per_s: float
    source: str

    def bus_bytes_per_s(self, cards: int, *, gathers: bool = False) -> float:
        """Return the bus bandwidth of a ring over `cards`, which fill one node before the next.

        **Formula**: within a node as measured; over several nodes the slower of that and the ports of a node's cards.

        **Source**: NVIDIA nccl-tests doc/PERFORMANCE.md (bus bandwidth).
        """
        inside = min(cards, self.node)
        table = self.gathering if gathers else self.within
        own = table[0] if inside <= 2 else table[1] if inside <= 4 else table[2]
        if cards <= self.node:
            return own
        ports = self.network_bytes_per_s * NETWORK_SHARE * min(inside, self.node)
        return min(own, ports) if inside > 1 else ports

    def ring_seconds(self, cards: int, wire_bytes: float, *, gathers: bool = False) -> float:
        """Return the time of a ring over `cards` in which each card sends `wire_bytes`.

        **Formula**: bytes ÷ bus bandwidth + (g − 1) · hop, with the network's hop between nodes.
        """
        if cards < 2:
            return 0.0
        return wire_bytes / self.bus_bytes_per_s(cards, gathers=gathers) + self.latency_seconds(cards)

    def latency_seconds(self, cards: int) -> float:
        """Return the latency of the hops of one ring over `cards`."""
        nodes = -(-cards // self.node)
        return (cards - nodes) * _HOPS[self.kind] + (nodes - 1 and nodes) * _NETWORK_HOP

    def tree_seconds(self, cards: int) -> float:
        """Return the latency of one all-reduce: a ring within a node, a tree up and down between nodes."""
        nodes = -(-cards // self.node)
        between = 2 * ceil(log2(nodes)) * _NETWORK_HOP if nodes > 1 else 0.0
        return 2 * (min(cards, self.node) - 1) * _HOPS[self.kind] + between

    def point_bytes_per_s(self, cards_apart: int) -> float:
        """Return the bandwidth from one card to another that is `cards_apart` ranks away."""
        return self.within[0] if cards_apart < self.node else self.network_bytes_per_s * NETWORK_SHARE


@lru_cache(maxsize=512)
def links_of(gpu: Gpu, setting: TimeSetting) -> Links:
    """Return the links between cards of `gpu`, from `setting` or the defaults.

    Bridges between pairs are used only if `setting` has them.

    **Assumes** eight cards per node with one network port each, as in vendors' reference machines; workstations and
    consumer cards share one port of 10 Gbit/s.
    """
    kind = setting.link or default_link(gpu)
    name, within, gathering, source = _links_within_node(gpu, kind)
    node = setting.cards_per_node or _RACK.get(gpu.id, _NODE)
    network = setting.network_bytes_per_s or _network_port_bytes_per_s(gpu, node)
    return Links(kind, name, node, within, gathering, network, host_bytes_per_s(gpu), source)


def default_link(gpu: Gpu) -> CardLink:
    """Return the default link between cards of this kind in one machine."""
    text = gpu.interconnect or ""
    if text.startswith(("NVLink", "NVLink-C2C")) and "bridge" not in text:
        return "nvlink"
    return "xgmi" if text.startswith(("Infinity Fabric", "ICI", "24x", "NeuronLink", "scale-up")) else "pcie"


def _links_within_node(
    gpu: Gpu, kind: CardLink
) -> tuple[str, tuple[float, float, float], tuple[float, float, float], str]:
    if kind == "pcie":
        return _pcie_links(gpu)
    text = gpu.interconnect or ""
    generation = re.search(r"NVLink\d", text)
    name = generation[0] if generation else text.partition(";")[0].partition(" ")[0] or kind
    one_way = _one_way_bytes_per_s(text)
    if kind == "nvlink" and name in _MEASURED and "bridge" not in text:
        return name, _MEASURED[name], _GATHERED[name], _TABLES
    reached = (one_way or _DEFAULT_FABRIC) * _REACHED
    if kind == "nvlink-pair":
        _, beyond, _, _ = _pcie_links(gpu)
        return name, (reached, beyond[1], beyond[2]), (reached, beyond[1], beyond[2]), _SHARED
    return name, (reached, reached, reached), (reached, reached, reached), _SHARED


_DEFAULT_FABRIC: Final = 56.25e9
"""One way over the bridge of an RTX 3090: half of 112.5 GB/s (NVIDIA GA102 whitepaper)."""


def _one_way_bytes_per_s(text: str) -> float | None:
    """Return the bandwidth of a card's links in one direction; catalogs state the sum of both directions."""
    both = parse_link_bytes_per_s(text)
    return None if both is None else both / 2


def _pcie_links(gpu: Gpu) -> tuple[str, tuple[float, float, float], tuple[float, float, float], str]:
    generation, lanes = _pcie_generation_and_lanes(gpu)
    name = f"PCIe {generation}"
    table = _MEASURED.get(name)
    if table is not None and lanes == 16:
        return name, table, table, _TABLES
    one_way = _LANE_BYTES_PER_S[generation] * lanes
    first, second, third = (share * one_way for share in _PCIE_SHARES)
    shares = (first, second, third)
    return name, shares, shares, f"{_TABLES}; the shares that PCIe 5.0 reaches"


def _pcie_generation_and_lanes(gpu: Gpu) -> tuple[int, int]:
    """Return the generation and lanes of the card's PCIe link, 4.0 × 16 if the catalog has none."""
    found = re.search(r"PCIe (\d)\.\d x(\d+)", gpu.interconnect or "")
    return (int(found[1]), int(found[2])) if found else (4, 16)


def host_bytes_per_s(gpu: Gpu) -> float:
    """Return the bandwidth between a card and host memory."""
    chip = re.search(r"NVLink-C2C (\d+) GB/s", gpu.interconnect or "")
    if chip:
        return float(chip[1]) * 1e9 / 2 * _COPY_SHARE
    generation, lanes = _pcie_generation_and_lanes(gpu)
    return _LANE_BYTES_PER_S[generation] * lanes * _COPY_SHARE


def _network_port_bytes_per_s(gpu: Gpu, node: int) -> float:
    stacked = (gpu.memory_type or "").startswith("HBM")
    port = next((speed for name, speed in _PORTS if gpu.architecture == name), None)
    return port if port is not None and stacked else _DESK_PORT / min(node, _NODE)
