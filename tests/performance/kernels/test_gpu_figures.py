"""Physical figures of a card on which its kernels depend."""

import pytest

from planner.hardware.gpu import Gpu
from planner.performance.kernels.gpu_figures import combined_seconds, gpu_figures
from planner.plan.catalog import Catalog


def _gpu(catalog: Catalog, name: str) -> Gpu:
    return catalog.hardware.gpu(name)


def test_an_h100_has_132_multiprocessors_and_50_mb_of_cache(catalog: Catalog) -> None:
    card = gpu_figures(_gpu(catalog, "h100-sxm5-80gb"), "fp8")
    assert card is not None
    assert (card.multiprocessors, card.cache_bytes) == (132, 50e6)
    assert (card.bytes_per_s, card.ops_per_s, card.link_bytes_per_s) == (3.35e12, 1979e12, 450e9)


def test_the_cache_of_a_card_with_gddr_grows_with_its_bus(catalog: Catalog) -> None:
    card = gpu_figures(_gpu(catalog, "l40s"))
    assert card is not None
    assert card.cache_bytes == 384 * 250e3
    assert card.multiprocessors == 142


def test_an_a100_has_64_cores_in_each_multiprocessor(catalog: Catalog) -> None:
    card = gpu_figures(_gpu(catalog, "a100-sxm4-80gb"))
    assert card is not None
    assert card.multiprocessors == 6_912 / 64


def test_a_card_without_a_count_of_cores_has_those_of_its_chip(catalog: Catalog) -> None:
    chip = _gpu(catalog, "gb200-186gb")
    card = gpu_figures(chip)
    assert chip.shader_cores is None
    assert card is not None
    assert card.multiprocessors == 148


def test_a_card_without_a_clock_has_that_of_its_chip(catalog: Catalog) -> None:
    cards = [gpu_figures(_gpu(catalog, name)) for name in ("a100-sxm4-80gb", "gb200-186gb")]
    assert [card and card.clock_hz for card in cards] == [1.41e9, 1.965e9]
    unknown = gpu_figures(_gpu(catalog, "l40s").evolve(boost_clock_hz=None))
    assert unknown is not None
    assert unknown.clock_hz == 1.9e9


def test_a_multiprocessor_reads_64_bytes_from_the_cache_in_a_cycle(catalog: Catalog) -> None:
    card = gpu_figures(_gpu(catalog, "a100-sxm4-80gb"))
    assert card is not None
    assert card.port_bytes_per_s == pytest.approx(90.24e9)
    assert card.cycles_seconds(2.82) == pytest.approx(2e-6)


def test_a_cut_down_card_has_fewer_of_them(catalog: Catalog) -> None:
    card = gpu_figures(_gpu(catalog, "h20-96gb"))
    assert card is not None
    assert card.multiprocessors == 78


def test_work_that_does_not_overlap_adds_up() -> None:
    assert combined_seconds(0, 1.0, 2.0, 3.0) == 6.0
    assert combined_seconds(1, 3.0, 4.0) == 5.0


def test_a_compute_unit_of_amd_has_64_cores(catalog: Catalog) -> None:
    gpu = next(gpu for gpu in catalog.hardware.gpus if gpu.vendor == "AMD" and gpu.shader_cores and gpu.rate("fp16"))
    card = gpu_figures(gpu)
    assert card is not None
    assert card.multiprocessors == gpu.shader_cores / gpu.device_count / 64


def test_a_card_without_bandwidth_has_no_figures(catalog: Catalog) -> None:
    assert gpu_figures(_gpu(catalog, "l40s").evolve(bandwidth_bytes_per_s=None)) is None


def test_a_slice_has_its_share_of_multiprocessors_and_cache(catalog: Catalog) -> None:
    slices = {name: gpu_figures(_gpu(catalog, name)) for name in ("h100-sxm5-80gb-mig-1g.10gb", "h20-96gb-mig-7g.96gb")}
    eighth, whole = slices.values()
    assert eighth is not None
    assert whole is not None
    assert (eighth.multiprocessors, eighth.cache_bytes, eighth.bytes_per_s) == (16, 50e6 / 8, 3.35e12 / 8)
    assert whole.multiprocessors == 78
