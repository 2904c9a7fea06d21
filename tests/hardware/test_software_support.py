"""What software runs on a card: the facts of catalog/software, and that they agree with the cards' own rates."""

import json
from collections import Counter
from pathlib import Path

import pytest

from planner.errors import CatalogError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.software import (
    FEATURES,
    OTHER_MACHINES,
    SoftwareFact,
    about_other_machines,
    load_software,
    software_of,
)
from planner.paths import catalog_dir


@pytest.fixture(scope="module")
def facts() -> tuple[SoftwareFact, ...]:
    return load_software(catalog_dir() / "software")


def test_a_target_has_one_fact_of_each_feature(facts: tuple[SoftwareFact, ...]) -> None:
    told = Counter((fact.feature, target) for fact in facts for target in fact.targets)
    assert [pair for pair, count in told.items() if count > 1] == []


def test_every_target_is_that_of_a_card(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    targets = {gpu.compute_capability for gpu in hardware.gpus}
    assert {target for fact in facts for target in fact.targets} <= targets


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_formats_agree_with_the_rates_of_every_card(
    facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog, dtype: str
) -> None:
    for gpu in hardware.gpus:
        support = next(each.support for each in software_of(gpu, facts) if each.feature == dtype)
        if gpu.rate(dtype) is not None and gpu.compute_capability:
            assert support == "yes", gpu.id


def test_a_card_shows_what_concerns_it(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    shown = {
        gpu_id: {each.feature: each for each in software_of(hardware.gpu(gpu_id), facts)}
        for gpu_id in ("tesla-p100-pcie-16gb", "instinct-mi300x", "apple-m1", "a100-sxm4-80gb", "b100", "gb10")
    }
    p100 = shown["tesla-p100-pcie-16gb"]
    assert (p100["cuda"].versions, p100["driver"].versions) == ("from 8.0 to 12.x", "to R580")
    assert (p100["bf16"].support, p100["pytorch"].support, p100["pytorch"].newest) == ("no", "partly", "2.14")
    assert "rocm" not in p100
    mi300x = shown["instinct-mi300x"]
    assert {"cuda", "driver", "mig", "marlin", "flash-attention-3"}.isdisjoint(mi300x)
    assert (mi300x["rocm"].support, mi300x["rocm"].versions) == ("yes", "")
    assert (shown["a100-sxm4-80gb"]["mig"].support, p100["mig"].support) == ("yes", "no")
    assert shown["a100-sxm4-80gb"]["mig"].source
    assert shown["apple-m1"]["pytorch"].support is None
    assert shown["apple-m1"]["pytorch"].reason == "the card's compute capability or target is not known"
    assert shown["gb10"]["cuda"].reason == "no source that was read says it of this card"
    assert next(each.title for each in software_of(hardware.gpu("gb10"), facts)) == FEATURES["bf16"]


def test_what_is_not_in_the_table_has_one_sentence_each() -> None:
    assert list(OTHER_MACHINES) == ["TPU", "FPGA", "CPU"]
    assert all(text.endswith(".") and text.count(". ") == 0 for text in OTHER_MACHINES.values())


def test_a_search_for_what_is_not_in_the_table_is_answered() -> None:
    assert about_other_machines("Ryzen cpu") == OTHER_MACHINES["CPU"]
    assert about_other_machines("fpga").startswith("FPGAs are")
    assert about_other_machines("rtx 4090") == ""


def test_a_wrong_file_is_named_with_its_field(tmp_path: Path) -> None:
    record = {
        "id": "x",
        "feature": "bf17",
        "targets": ["8.0"],
        "support": "yes",
        "source": "made up",
        "as_of": "2026-01-01",
    }
    (tmp_path / "mine.json").write_text(json.dumps([record]))
    with pytest.raises(CatalogError, match=r"mine\.json · x · feature: there is no 'bf17'; choose bf16"):
        load_software(tmp_path)
