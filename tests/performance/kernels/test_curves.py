"""Curves in the catalog, and the one that applies to a card."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.errors import CatalogError
from planner.performance.kernels import curves
from planner.performance.kernels.curves import ApplicableCurve, KernelCurve, KernelTime, find_curve
from planner.plan.catalog import Catalog


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A catalog folder without curves."""
    monkeypatch.setattr(curves, "catalog_dir", lambda: tmp_path)
    (tmp_path / "kernels").mkdir()
    curves.curves_of.cache_clear()
    find_curve.cache_clear()
    yield tmp_path / "kernels"
    curves.curves_of.cache_clear()
    find_curve.cache_clear()


def _write(folder: Path, name: str, *rows: list[object]) -> None:
    (folder / f"{name}.json").write_text(json.dumps({"curves": rows}))


def _row(engine: str = "vllm", sizes: tuple[int, ...] = (), rows: int = 100, name: str = "a") -> list[object]:
    return ["product", engine, "bf16", name, sizes, rows, 0.05, 0.25, [1.0]]


def test_the_cards_own_curve_comes_before_that_of_its_family(catalog: Catalog, folder: Path) -> None:
    h100, h200 = catalog.hardware.gpu("h100-sxm5-80gb"), catalog.hardware.gpu("h200-sxm-141gb")
    pcie = catalog.hardware.gpu("h100-pcie-80gb")
    _write(folder, h100.id, _row())
    _write(folder, "family-hopper-sxm", _row())
    _write(folder, "all-cards", _row())
    found = {gpu.id: find_curve(gpu, "product", "vllm", "bf16") for gpu in (h100, h200, pcie)}
    assert {name: curve and curve.origin for name, curve in found.items()} == {
        "h100-sxm5-80gb": "own table",
        "h200-sxm-141gb": "family",
        "h100-pcie-80gb": "family",
    }
    other = find_curve(catalog.hardware.gpu("l40s"), "product", "vllm", "bf16")
    assert other is not None
    assert other.origin == "all cards"


def test_cards_with_the_same_matrix_instructions_come_before_all_cards(catalog: Catalog, folder: Path) -> None:
    _write(folder, "warp-level-cards", _row())
    _write(folder, "all-cards", _row())
    names = ("rtx-3090", "a100-sxm4-80gb", "rtx-pro-6000-blackwell-server", "h100-sxm5-80gb", "b200-sxm-180gb")
    found = [find_curve(catalog.hardware.gpu(name), "product", "vllm", "bf16") for name in names]
    assert [each and each.origin for each in found] == ["same instructions"] * 3 + ["all cards"] * 2


def test_the_engine_of_another_card_comes_before_another_engine_of_the_card(catalog: Catalog, folder: Path) -> None:
    gpu = catalog.hardware.gpu("l40s")
    _write(folder, gpu.id, _row("sglang"))
    _write(folder, "all-cards", _row("vllm"))
    found = [find_curve(gpu, "product", name, "bf16") for name in ("vllm", "sglang", "llama.cpp")]
    assert [each and each.curve.engine for each in found] == ["vllm", "sglang", "sglang"]
    assert find_curve(gpu, "product", "vllm", "nvfp4") is None


def test_the_implementation_for_the_head_size_comes_before_the_one_with_more_rows(
    catalog: Catalog, folder: Path
) -> None:
    gpu = catalog.hardware.gpu("l40s")
    _write(folder, gpu.id, _row(sizes=(64,), rows=10, name="small"), _row(sizes=(128,), rows=90, name="usual"))
    assert [
        found and found.curve.implementation
        for found in (find_curve(gpu, "product", "vllm", "bf16", size) for size in (64, 128, 256))
    ] == ["small", "usual", "usual"]


def test_a_file_that_is_not_a_table_of_curves_is_named(catalog: Catalog, folder: Path) -> None:
    (folder / "l40s.json").write_text('{"curves": [["product"]]}')
    with pytest.raises(CatalogError, match=r"l40s\.json.*table of curves"):
        find_curve(catalog.hardware.gpu("l40s"), "product", "vllm", "bf16")


def test_nine_of_ten_measurements_lie_in_the_range_of_a_time() -> None:
    curve = KernelCurve("product", "vllm", "bf16", "a", (), 100, 0.05, 0.25, (1.0,))
    assert KernelTime.within(1.0, ApplicableCurve(curve, "family")) == KernelTime(1.0, 0.8, 1.25, "family")
