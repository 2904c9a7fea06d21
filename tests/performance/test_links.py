"""What connects cards, and how long rings over it take."""

import pytest

from planner.hardware.gpu import Gpu
from planner.performance.links import default_link, links_of
from planner.performance.setting import TimeSetting
from planner.plan.catalog import Catalog

PLAIN = TimeSetting()


@pytest.fixture(scope="session")
def cards(catalog: Catalog) -> dict[str, Gpu]:
    return {gpu.id: gpu for gpu in catalog.hardware.gpus}


def test_nvlink_reaches_what_was_measured(cards: dict[str, Gpu]) -> None:
    links = links_of(cards["h100-sxm5-80gb"], PLAIN)
    assert [links.bus_bytes_per_s(number) for number in (2, 4, 8)] == [318e9, 350e9, 445e9]
    assert links.bus_bytes_per_s(8, gathers=True) == 335e9
    assert links.name == "NVLink4"


def test_more_nodes_share_their_ports(cards: dict[str, Gpu]) -> None:
    links = links_of(cards["a100-sxm4-80gb"], PLAIN)
    assert links.bus_bytes_per_s(16) == pytest.approx(8 * 25e9 * 0.6)
    one_each = links_of(cards["a100-sxm4-80gb"], TimeSetting(cards_per_node=1))
    assert one_each.bus_bytes_per_s(16) == pytest.approx(25e9 * 0.6)


def test_the_network_is_what_the_person_says(cards: dict[str, Gpu]) -> None:
    links = links_of(cards["a100-sxm4-80gb"], TimeSetting(network_bytes_per_s=1e9, cards_per_node=4))
    assert links.bus_bytes_per_s(8) == pytest.approx(4e9 * 0.6)
    assert links.point_to_point_bytes_per_s(4) == pytest.approx(0.6e9)
    assert links.point_to_point_bytes_per_s(1) == 193e9


def test_a_rack_is_one_node(cards: dict[str, Gpu]) -> None:
    assert links_of(cards["gb200-186gb"], PLAIN).cards_per_node == 72
    assert links_of(cards["b200-sxm-180gb"], PLAIN).cards_per_node == 8


def test_consumer_cards_use_pcie_and_one_port_together(cards: dict[str, Gpu]) -> None:
    links = links_of(cards["rtx-4090"], PLAIN)
    assert (links.kind, links.name) == ("pcie", "PCIe 4")
    assert links.bus_bytes_per_s(2) == 20e9
    assert links.network_bytes_per_s == 1.25e9 / 8


def test_fewer_lanes_carry_less(cards: dict[str, Gpu]) -> None:
    narrow, wide = links_of(cards["rtx-4060"], PLAIN), links_of(cards["rtx-4090"], PLAIN)
    assert narrow.bus_bytes_per_s(2) == pytest.approx(8 * 1.969e9 * 0.63)
    assert narrow.host_bytes_per_s == wide.host_bytes_per_s / 2


def test_a_bridge_joins_pairs_where_somebody_says_so(cards: dict[str, Gpu]) -> None:
    bridged = links_of(cards["rtx-3090"], TimeSetting(link="nvlink-pair"))
    plain = links_of(cards["rtx-3090"], PLAIN)
    assert bridged.bus_bytes_per_s(2) == pytest.approx(56.25e9 * 222 / 300)
    assert bridged.bus_bytes_per_s(4) == plain.bus_bytes_per_s(4)
    assert plain.kind == "pcie"


def test_links_without_measurements_reach_the_share_that_others_do(cards: dict[str, Gpu]) -> None:
    assert links_of(cards["tesla-v100-sxm2-32gb"], PLAIN).bus_bytes_per_s(8) == pytest.approx(150e9 * 222 / 300)
    assert links_of(cards["instinct-mi300x"], PLAIN).bus_bytes_per_s(8) == pytest.approx(448e9 * 222 / 300)
    nvlink = links_of(cards["rtx-4090"], TimeSetting(link="nvlink"))
    assert nvlink.bus_bytes_per_s(2) == pytest.approx(56.25e9 * 222 / 300)


def test_what_usually_connects_cards(cards: dict[str, Gpu]) -> None:
    usual = {
        name: default_link(cards[name]) for name in ("h100-sxm5-80gb", "h100-pcie-80gb", "instinct-mi300x", "gaudi2")
    }
    assert usual == {"h100-sxm5-80gb": "nvlink", "h100-pcie-80gb": "pcie", "instinct-mi300x": "xgmi", "gaudi2": "xgmi"}


def test_a_superchip_reads_its_host_over_its_own_link(cards: dict[str, Gpu]) -> None:
    assert links_of(cards["gb200-186gb"], PLAIN).host_bytes_per_s == pytest.approx(450e9 * 0.8)


def test_a_ring_takes_its_bytes_and_its_hops(cards: dict[str, Gpu]) -> None:
    links = links_of(cards["h100-sxm5-80gb"], PLAIN)
    assert links.ring_seconds(1, 1e9) == 0
    assert links.ring_seconds(8, 445e9) == pytest.approx(1 + 7 * 3e-6)
    assert links.ring_latency_seconds(16) == pytest.approx(14 * 3e-6 + 2 * 10e-6)
    assert links.all_reduce_latency_seconds(8) == pytest.approx(14 * 3e-6)
    assert links.all_reduce_latency_seconds(64) == pytest.approx(14 * 3e-6 + 6 * 10e-6)


def test_cards_of_unknown_links_are_taken_as_pcie_4(cards: dict[str, Gpu]) -> None:
    bare = cards["rtx-4090"].evolve(interconnect=None)
    assert links_of(bare, PLAIN).name == "PCIe 4"


def test_the_chips_of_a_pod_are_linked_without_a_network(cards: dict[str, Gpu]) -> None:
    pod = links_of(cards["tpu-v6e"], PLAIN)
    assert pod.cards_per_node == 256
    assert pod.bus_bytes_per_s(256) == pytest.approx(400e9 * 222 / 300)  # 800 GB/s in both directions
    assert pod.bus_bytes_per_s(257) == pytest.approx(1.25e9 / 8 * 0.6 * 256)
