"""Power and cooling of builds, by hand, and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.power import (
    CIRCUITS,
    DEFAULT_CIRCUIT,
    HOST_WATTS,
    Build,
    BuildCards,
    efficiency,
    machine_figures,
    power_and_cooling,
    smallest_circuit,
    supply_watts,
    wall_figures,
    wall_watts,
)
from planner.paths import catalog_dir

GPUS = load_hardware(catalog_dir())


def _build(count: int, gpu_id: str, circuit: str = "120V-15A", host_watts: float = HOST_WATTS) -> Build:
    return Build((BuildCards(GPUS.gpu(gpu_id), count),), host_watts, circuit=CIRCUITS[circuit])


def test_two_cards_of_600_watts_are_too_much_for_one_15_ampere_circuit() -> None:
    needs = power_and_cooling(_build(2, "rtx-5090"))
    assert needs.value("cards") == 1150
    assert needs.value("load") == 1600
    assert needs.value("spikes") == 3900  # 3 × 1150 + 450
    assert needs.value("supply") == 1950
    assert needs.value("wall") == pytest.approx(1600 / 0.87)
    assert needs.value("current") == pytest.approx(1600 / 0.87 / 120)
    assert needs.value("circuits") == 2
    assert needs.value("heat") == pytest.approx(1600 / 0.87 * 3.412)
    assert needs.value("airflow") == pytest.approx(1600 / 0.87 * 3.412 / (1.085 * 20))
    assert needs.value("airflow-metric") == pytest.approx((needs.value("airflow") or 0) * 1.699)
    assert needs.value("slots") == 4
    assert needs.warnings == (
        "2 × GeForce RTX 5090 draw 1,839 W from the wall; one 15 A at 120 V circuit supplies 1,440 W continuously: "
        "use 2 circuits, or a power limit of 401 W on each GPU.",
    )
    assert needs.connectors == (
        "GeForce RTX 5090: for each GPU 4 or more 8-pin plugs, or one 16-pin plug (12V-2x6), each on its own cable.",
    )


def test_the_power_limit_that_it_names_fits(hardware: HardwareCatalog) -> None:
    cards = (BuildCards(hardware.gpu("rtx-5090"), 2, limit_watts=401),)
    needs = power_and_cooling(Build(cards, circuit=CIRCUITS["120V-15A"]))
    assert needs.warnings == ()
    assert needs.value("circuits") == 1


def test_two_3090s_hang_on_one_european_outlet() -> None:
    needs = power_and_cooling(_build(2, "rtx-3090", circuit="230V-16A"))
    assert (needs.value("circuits"), needs.warnings) == (1, ())
    assert needs.value("wall") == pytest.approx(1150 / 0.89)


def test_a_card_that_takes_as_much_as_its_host_needs_no_more_for_its_spikes() -> None:
    steps = {step.key: step for step in power_and_cooling(_build(1, "rtx-4090")).steps}
    assert [steps[key].value for key in ("cards", "load", "spikes", "supply")] == [450, 900, 1800, 900]
    assert steps["supply"].title == "Minimum ATX 3 supply"
    assert steps["supply"].formula == "max(900, 1,800 ÷ 2), rounded up to 50 W"
    assert "its rating for hours and twice its rating" in steps["supply"].source


def test_a_supply_at_half_load_is_more_efficient() -> None:
    build = _build(1, "rtx-5090", host_watts=10.0)
    assert supply_watts(575, 10) == 900  # (3 × 575 + 10) ÷ 2 = 867.5
    assert efficiency(build, 575) == 0.87
    assert efficiency(_build(1, "rtx-5090", host_watts=0.0), 575) == 0.87
    assert efficiency(_build(1, "rtx-5090", host_watts=0.0), 20) == 0.90  # 20 W of a supply of 50 W


def test_modules_have_no_atx_supply_and_no_slots() -> None:
    needs = power_and_cooling(_build(8, "h100-sxm5-80gb", circuit="240V-30A"))
    assert (needs.value("spikes"), needs.value("supply"), needs.value("slots")) == (None, None, None)
    assert needs.value("cards") == 5600
    powered = "H100 SXM5 80 GB: powered by its baseboard or system, not by cables from the power supply."
    assert needs.connectors == (powered,)
    assert needs.warnings[-1] == (
        "H100 SXM5 80 GB: not a slot card; sold with a baseboard or system. "
        "The host's 450 W is for a PC; a server draws more."
    )


def test_no_power_limit_helps_where_the_host_alone_is_too_much() -> None:
    needs = power_and_cooling(_build(1, "rtx-4090", host_watts=2_000.0))
    assert "power limit" not in needs.warnings[0]


def test_no_limit_below_half_of_the_power_is_named() -> None:
    (warning, *_) = power_and_cooling(_build(8, "h100-sxm5-80gb")).warnings
    assert warning.endswith("5 circuits.")


def test_a_machine_without_a_known_power_has_no_figures(hardware: HardwareCatalog) -> None:
    system = hardware.system("dgx-h100").evolve(max_power_watts=None)
    assert machine_figures(system, DEFAULT_CIRCUIT) == ()


def test_boards_have_seven_slots_and_servers_fans() -> None:
    needs = power_and_cooling(_build(4, "tesla-p40", circuit="240V-30A"))
    assert needs.warnings == (
        "The cards occupy 8 slots, but an ATX board has 7: use risers or narrower cards.",
        "Tesla P40: most data-center cards have no fans and need a server's airflow.",
    )


def test_small_cards_need_no_cable() -> None:
    assert power_and_cooling(_build(1, "l4")).connectors == ("L4: none; the slot supplies 75 W.",)


def test_what_is_not_known_stays_unknown() -> None:
    card = GPUS.gpu("rtx-4090").evolve(board_power_watts=None)
    build = Build((BuildCards(card, 1),))
    needs = power_and_cooling(build)
    assert {step.value for step in needs.steps} == {None}
    assert needs.warnings[0] == f"The board power of {card.name} is unknown."
    assert wall_watts(build) is None
    assert needs.connectors == ()


@given(count=st.integers(1, 8), host=st.floats(0, 2_000), circuit=st.sampled_from(sorted(CIRCUITS)))
def test_more_always_needs_more(count: int, host: float, circuit: str) -> None:
    one, more = (_build(number, "rtx-4090", circuit=circuit, host_watts=host) for number in (count, count + 1))
    for key in ("cards", "load", "supply", "heat"):
        assert (power_and_cooling(more).value(key) or 0) >= (power_and_cooling(one).value(key) or 0)
    wall = power_and_cooling(one).value("wall") or 0
    assert wall >= count * 450 + host
    assert (power_and_cooling(one).value("circuits") or 0) * CIRCUITS[circuit].continuous_watts >= wall


@pytest.mark.parametrize(
    ("watts", "circuit", "needed"),
    [
        (240, "120V-15A", 1),
        (1_440, "120V-15A", 1),
        (1_500, "120V-20A", 1),
        (2_300, "230V-13A", 1),
        (6_500, "240V-30A", 2),
        (132_000, "240V-30A", 23),
    ],
)
def test_the_smallest_circuit_that_carries_it_or_several_of_the_largest(
    watts: float, circuit: str, needed: int
) -> None:
    assert smallest_circuit(watts) is CIRCUITS[circuit]
    assert CIRCUITS[circuit].needed_circuits(watts) == needed


def test_a_machine_of_6500_watts() -> None:
    steps = {step.key: step for step in wall_figures(CIRCUITS["240V-30A"], 6_500, "as sold", "its guide")}
    assert (steps["wall"].value, steps["wall"].formula, steps["wall"].source) == (6_500, "as sold", "its guide")
    assert steps["current"].value == pytest.approx(27.08, abs=0.01)
    assert steps["circuits"].formula == "6,500 ÷ (240 × 30 × 0.8), rounded up"
    assert steps["heat"].value == pytest.approx(22_178)
    assert steps["airflow"].value == pytest.approx(22_178 / (1.085 * 20))
    assert steps["airflow-metric"].value == pytest.approx(22_178 / (1.085 * 20) * 1.699)


def test_warmer_air_takes_less_of_it() -> None:
    cool, warm = (wall_figures(CIRCUITS["230V-16A"], 1_000, "", "", degrees)[4].value for degrees in (20.0, 30.0))
    assert cool is not None
    assert warm is not None
    assert warm == pytest.approx(cool * 2 / 3)
