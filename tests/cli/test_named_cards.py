"""Cards as `--gpu` names them: one, several, or those of a system."""

import pytest

from planner.cli.user_catalog import named_cards, named_machines, named_system, rented_cards
from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.names import parse_count
from planner.plan.catalog import Catalog


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        ("RTX 4090", "rtx-4090", 1),
        ("2 x RTX 3090", "rtx-3090", 2),
        ("dgx-a100-640gb", "a100-sxm4-80gb", 8),
        ("DGX-2", "tesla-v100-sxm3-32gb", 16),
        ("DGX A100 640GB", "a100-sxm4-80gb", 8),
        ("2 x dgx-h100", "h100-sxm5-80gb", 16),
        ("2×RTX 4090", "rtx-4090", 2),
        ("2 × RTX 4090", "rtx-4090", 2),
        ("2xrtx-4090", "rtx-4090", 2),
        ("8Xdgx-h100", "h100-sxm5-80gb", 64),
        ("7900XTX", "radeon-rx-7900-xtx", 1),
        ("NVIDIA DGX H100", "h100-sxm5-80gb", 8),
        ("2 RTX 4090", "rtx-4090", 2),
        ("p5.48xlarge", "h100-sxm5-80gb", 8),
        ("2 x P4D.24xlarge", "a100-sxm4-40gb", 16),
    ],
)
def test_a_card_several_or_a_system(catalog: Catalog, text: str, gpu: str, count: int) -> None:
    (cards,) = named_cards([text], catalog)
    assert (cards.id, cards.count) == (gpu, count)


def test_an_unknown_machine_and_a_size_are_no_cards(catalog: Catalog) -> None:
    with pytest.raises(SpecError, match=r"no accelerator is called 'p99\.metal'"):
        named_cards(["p99.metal"], catalog)
    with pytest.raises(SpecError) as caught:
        named_cards(["24gb"], catalog)
    assert "memory_gib == 24" in caught.value.hint
    with pytest.raises(AmbiguousNameError, match="can mean 4"):
        named_cards(["8xH100"], catalog)


def test_a_machine_that_is_offered_with_different_cards_is_not_guessed(catalog: Catalog) -> None:
    by_name: dict[str, set[str | None]] = {}
    for offer in catalog.offers:
        by_name.setdefault(offer.instance, set()).add(offer.gpu)
    for name in (name for name, gpus in by_name.items() if len(gpus) > 1):
        assert rented_cards(name, catalog) is None


def test_names_of_systems_differ(catalog: Catalog) -> None:
    systems = catalog.hardware.systems
    for system in systems:
        assert named_system(system.id, catalog.hardware) is named_system(system.name, catalog.hardware) is system


def test_a_system_whose_cards_are_not_known_says_so(catalog: Catalog) -> None:
    with pytest.raises(SpecError, match="does not list the GPUs of DGX Station"):
        named_cards(["dgx-station-v100"], catalog)


def test_a_name_of_several_systems_lists_them(catalog: Catalog) -> None:
    with pytest.raises(AmbiguousNameError, match="dgx-a100-320gb, dgx-a100-640gb"):
        named_cards(["DGX A100"], catalog)
    with pytest.raises(AmbiguousNameError, match="dgx-a100-320gb, dgx-a100-640gb"):
        named_system("DGX A100", catalog.hardware)
    assert named_system("2 x dgx-h100", catalog.hardware) is None
    assert named_system("RTX 4090", catalog.hardware) is None


def test_machines_are_counted(catalog: Catalog) -> None:
    dgx = catalog.hardware.system("dgx-h100")
    assert named_machines("2x DGX H100", catalog.hardware, "--compare") == (2, dgx)
    assert named_machines("dgx-h100", catalog.hardware, "--compare") == (1, dgx)
    assert named_machines("2 x RTX 4090", catalog.hardware, "--compare") is None
    for number in ("0", "1001"):
        with pytest.raises(SpecError, match=f"--compare: {int(number):,} machines"):
            named_machines(f"{number} x dgx-h100", catalog.hardware, "--compare")


def test_no_card_is_no_number_of_cards(catalog: Catalog) -> None:
    with pytest.raises(SpecError, match="0 GPUs"):
        named_cards(["0 x RTX 4090"], catalog)


def test_no_name_of_the_catalog_begins_with_a_number_of_cards(catalog: Catalog) -> None:
    named = [name for gpu in catalog.hardware.gpus for name in (gpu.id, gpu.name, *gpu.aliases)]
    named += [name for system in catalog.hardware.systems for name in (system.id, system.name)]
    assert not [name for name in named if parse_count(name)[0] is not None]


def test_an_error_names_the_option_that_named_the_cards(catalog: Catalog) -> None:
    with pytest.raises(SpecError, match=r"^--build: 0 GPUs"):
        named_cards(["0xl4"], catalog, "--build")
