"""Slices of cards (MIG): NVIDIA's profiles and placements, and the cards that they are."""

import pytest

from planner.errors import AmbiguousNameError, SpecError
from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Provenance
from planner.hardware.mig import MigProfile, MigTable, place_slices, slice_card, split_profile
from planner.hardware.names import resolve_gpu
from planner.hardware.own import OwnHardware, make_card_change, with_own_hardware
from planner.paths import catalog_dir
from planner.units import GIB, MIB

pytestmark = pytest.mark.unit

SOURCE = Provenance(basis="published", certainty="confirmed", source="a table", as_of="2026-11-28")
WHOLE = MigProfile(
    name="1g.5gb", compute_slices=1, memory_slices=1, starts=(0,), most=1, memory_bytes=5 * GIB, multiprocessors=14
)


@pytest.fixture(scope="module")
def hardware() -> HardwareCatalog:
    return load_hardware(catalog_dir())


@pytest.fixture(scope="module")
def h100(hardware: HardwareCatalog) -> MigTable:
    table = hardware.mig_table(hardware.gpu("h100-sxm5-80gb"))
    assert table is not None
    return table


def test_every_card_with_mig_has_its_profiles_or_is_known_to_have_none_published(hardware: HardwareCatalog) -> None:
    divided = {gpu.id for gpu in hardware.gpus if gpu.mig}
    listed = {name for table in hardware.mig for name in table.gpus}

    assert listed <= divided
    # NVIDIA's guide lists neither the RTX PRO 5000 with 72 GB nor sizes of Thor's slices.
    assert divided - listed == {"rtx-pro-5000-blackwell-72gb", "jetson-t4000-64gb", "jetson-t5000-128gb"}


@pytest.mark.parametrize(
    ("card", "profiles"),
    [
        ("a30", {"1g.6gb": 4, "1g.6gb+me": 1, "2g.12gb": 2, "2g.12gb+me": 1, "4g.24gb": 1}),
        (
            "a100-sxm4-40gb",
            {"1g.5gb": 7, "1g.5gb+me": 1, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
        ),
        (
            "h200-sxm-141gb",
            {"1g.18gb": 7, "1g.18gb+me": 1, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
        ),
        (
            "b200-sxm-180gb",
            {"1g.23gb": 7, "1g.23gb+me": 1, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
        ),
    ],
)
def test_profiles_are_those_of_nvidias_guide(hardware: HardwareCatalog, card: str, profiles: dict[str, int]) -> None:
    table = hardware.mig_table(hardware.gpu(card))

    assert table is not None
    assert {each.name: each.most for each in table.profiles} == profiles


def test_slices_of_one_kind_fill_a_card_and_one_more_does_not_fit(hardware: HardwareCatalog) -> None:
    for table in hardware.mig:
        for profile in table.profiles:
            assert len(place_slices(table, [profile.name] * profile.most)) == profile.most
            with pytest.raises(SpecError, match="at most"):
                place_slices(table, [profile.name] * (profile.most + 1))


@pytest.mark.parametrize(
    ("names", "placed"),
    [
        # nvidia-smi mig -cgi 19,14,9 places the largest where the others do not need to be.
        (["1g.10gb", "2g.20gb", "3g.40gb", "1g.10gb"], ["2g.20gb@0", "1g.10gb@2", "1g.10gb@3", "3g.40gb@4"]),
        (["4g.40gb", "3g.40gb"], ["4g.40gb@0", "3g.40gb@4"]),
        (["3g.40gb", "3g.40gb"], ["3g.40gb@0", "3g.40gb@4"]),
        (["2g.20gb", "2g.20gb", "2g.20gb", "1g.10gb"], ["2g.20gb@0", "2g.20gb@2", "2g.20gb@4", "1g.10gb@6"]),
        (["4g.40gb", "1g.20gb", "1g.20gb"], ["4g.40gb@0", "1g.20gb@4", "1g.20gb@6"]),
        (["7g.80gb"], ["7g.80gb@0"]),
    ],
)
def test_slices_are_placed(h100: MigTable, names: list[str], placed: list[str]) -> None:
    assert [f"{each.profile}@{each.start}" for each in place_slices(h100, names)] == placed


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["3g.40gb", "3g.40gb", "1g.10gb"], "they take 9 memory slices, and the card has 8"),
        (["4g.40gb", "3g.40gb", "1g.10gb"], "they take 9 memory slices, and the card has 8"),
        (["7g.80gb", "1g.10gb"], "they take 9 memory slices, and the card has 8"),
        # Eight memory slices, but a slice with one starts at 6 at most, so that they cannot fill both ends.
        (["4g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"], "they overlap wherever they are placed"),
        (["4g.40gb", "1g.10gb", "1g.10gb", "1g.10gb", "1g.10gb"], "they overlap wherever they are placed"),
        (["1g.10gb"] * 8, "a card has at most 7 of 1g.10gb, not 8"),
        (["5g.60gb"], "the card has no MIG profile '5g.60gb'"),
    ],
)
def test_impossible_combinations_are_refused_with_the_rule(h100: MigTable, names: list[str], reason: str) -> None:
    with pytest.raises(SpecError) as refused:
        place_slices(h100, names)

    assert refused.value.reason.startswith(reason)


def test_only_one_slice_has_the_media_engines(hardware: HardwareCatalog) -> None:
    table = hardware.mig_table(hardware.gpu("a30"))

    assert table is not None
    with pytest.raises(SpecError, match="only one slice of a card has its media engines"):
        place_slices(table, ["1g.6gb+me", "2g.12gb+me"])


def test_a_slice_is_a_card_with_its_share(hardware: HardwareCatalog) -> None:
    half = resolve_gpu(hardware, "H100 SXM 3g.40gb")
    usable = hardware.usable_memory(half)

    assert half == hardware.gpu("h100-sxm5-80gb-mig-3g.40gb")
    assert half.name == "H100 SXM5 80 GB MIG 3g.40gb"
    assert half.memory_label == "40 GB"
    assert (usable.bytes, usable.certainty) == (40_448 * MIB, "measured") if usable else False
    assert half.bandwidth_bytes_per_s == 3.35e12 / 2
    assert half.shader_cores == 60 * 128
    assert half.ops_per_s("bf16") == pytest.approx(989.5e12 * 60 / 132)
    assert half.l2_cache_bytes == 25 * MIB
    assert half.interconnect == "PCIe 5.0 x16"
    assert half.mig is False
    assert "formula" in half.provenance_of("bandwidth_bytes_per_s").model_dump()
    assert half not in hardware.gpus


def test_assumed_memory_of_a_slice_says_so(hardware: HardwareCatalog) -> None:
    half = hardware.usable_memory(hardware.gpu("h200-sxm-141gb-mig-3g.71gb"))

    assert half is not None
    assert half.certainty == "assumed"
    assert 67 < half.bytes / GIB < 71


def test_a_slice_of_a_card_without_figures_has_none() -> None:
    card = load_hardware(catalog_dir()).gpu("a30")
    bare = card.evolve(
        bandwidth_bytes_per_s=None, board_power_watts=None, shader_cores=None, interconnect=None, power_limit_watts=None
    )
    table = MigTable(id="t", gpus=("a30",), memory_slices=4, multiprocessors=56, profiles=(WHOLE,), provenance=SOURCE)
    part = slice_card(bare, table, WHOLE)

    assert (part.bandwidth_bytes_per_s, part.board_power_watts, part.shader_cores, part.interconnect) == (None,) * 4


def test_a_power_limit_is_shared_as_the_power() -> None:
    own = OwnHardware(changes=(make_card_change("a30", "2026-11-28", {"power_limit_watts": 120.0}),))
    hardware = with_own_hardware(load_hardware(catalog_dir()), own)

    assert hardware.gpu("a30-mig-1g.6gb").drawn_watts == 30


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("H100 80GB 3g.40gb", ("H100 80GB", "3g.40gb")),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", ("NVIDIA A100-SXM4-80GB", "1g.10gb")),
        ("A30:1G.6GB+ME", ("A30", "1g.6gb+me")),
        ("RTX PRO 6000 Blackwell Server mig-1g.24gb-me", ("RTX PRO 6000 Blackwell Server", "1g.24gb-me")),
        ("H100 80GB", None),
        ("3g.40gb", None),
    ],
)
def test_a_name_is_split_into_card_and_profile(text: str, split: tuple[str, str] | None) -> None:
    assert split_profile(text) == split


def test_a_profile_of_several_cards_is_ambiguous_and_an_unknown_one_refused(hardware: HardwareCatalog) -> None:
    with pytest.raises(AmbiguousNameError) as several:
        resolve_gpu(hardware, "A100 3g.20gb")
    assert several.value.candidates == ("a100-pcie-40gb-mig-3g.20gb", "a100-sxm4-40gb-mig-3g.20gb")
    with pytest.raises(SpecError, match="no slice of L40S"):
        resolve_gpu(hardware, "L40S 1g.6gb")
    with pytest.raises(SpecError, match="no GPU has the id"):
        resolve_gpu(hardware, "a30-mig-9g.9gb")


def test_a_profile_that_does_not_fit_on_its_card_is_refused() -> None:
    with pytest.raises(SpecError, match="does not fit on the card"):
        MigTable(
            id="t",
            gpus=("a30",),
            memory_slices=4,
            multiprocessors=56,
            profiles=(WHOLE.evolve(starts=(4,)),),
            provenance=SOURCE,
        )


def test_a_catalog_folder_without_slices_has_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("catalog")
    for name in ("gpus", "systems"):
        (folder / name).symlink_to(catalog_dir() / name)
    plain = load_hardware(folder)

    assert plain.mig == ()
    assert plain.slices(plain.gpu("a30")) == ()
