"""What follows from the power at the wall, by hand."""

import pytest

from planner.hardware.power import CIRCUITS, least_circuit, wall_figures


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
    assert least_circuit(watts) is CIRCUITS[circuit]
    assert CIRCUITS[circuit].needed(watts) == needed


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
