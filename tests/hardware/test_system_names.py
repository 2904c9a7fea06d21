"""Names of systems: what is left out is never guessed, and a card's name never means a whole machine."""

import pytest
from each_record import for_each

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import load_hardware
from planner.hardware.names import resolve_gpu, resolve_hardware, systems_named
from planner.hardware.system import System
from planner.paths import catalog_dir

HARDWARE = load_hardware(catalog_dir())


@for_each("system", HARDWARE.systems)
def test_every_id_and_name_means_its_system(system: System) -> None:
    for text in (system.id, system.name, system.name.upper(), f" {system.id} "):
        assert resolve_hardware(HARDWARE, text) is system


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("NVIDIA DGX H100", "dgx-h100"),
        ("dgx 2", "dgx-2"),
        ("DGX A100 640GB", "dgx-a100-640gb"),
        ("DGX A100 640", "dgx-a100-640gb"),
        ("hgx h100", "hgx-h100-8"),
        ("helios", "amd-helios-72"),
        ("v4 pod", "tpu-v4-pod"),
        ("H100 SXM", "h100-sxm5-80gb"),
        ("GB200", "gb200-186gb"),
        ("TPU v3", "tpu-v3"),
    ],
)
def test_a_part_that_only_one_has_is_enough(text: str, record: str) -> None:
    assert resolve_hardware(HARDWARE, text).id == record


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("DGX A100", ("dgx-a100-320gb", "dgx-a100-640gb")),
        ("DGX Station A100", ("dgx-station-a100-160gb", "dgx-station-a100-320gb")),
        ("DGX Station", ("dgx-station-v100", "dgx-station-a100-160gb", "dgx-station-a100-320gb", "dgx-station-gb300")),
        ("NVL72", ("gb200-nvl72", "gb300-nvl72", "vera-rubin-nvl72")),
        ("A100 80GB", ("a100-pcie-80gb", "a100-sxm4-80gb")),
    ],
)
def test_a_name_of_several_lists_them(text: str, ids: tuple[str, ...]) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        resolve_hardware(HARDWARE, text)
    assert caught.value.candidates == ids


@pytest.mark.parametrize("text", ["B300", "8", "72", "AMD DGX H100", "Voodoo 5", "", "RTX 409"])
def test_what_is_no_system_is_told_as_before(text: str) -> None:
    with pytest.raises(SpecError, match="no accelerator is called"):
        resolve_hardware(HARDWARE, text)


def test_where_only_a_card_will_do_the_hint_names_the_systems() -> None:
    with pytest.raises(SpecError) as caught:
        resolve_gpu(HARDWARE, "DGX A100")
    assert "dgx-a100-320gb, dgx-a100-640gb" in caught.value.hint
    assert "gpu-planner gpus --systems" in caught.value.hint
    assert systems_named(HARDWARE, "8") == ()
