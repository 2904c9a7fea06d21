"""What software runs on a card: the facts of catalog/software, and that they agree with the cards' own rates."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from planner.errors import CatalogError
from planner.hardware.catalog import HardwareCatalog
from planner.hardware.software_support import (
    FEATURES,
    FeatureSupport,
    SoftwareFact,
    software_of,
    software_target,
    unsupported_formats,
)
from planner.paths import catalog_dir
from planner.records import read_records

_FIRST_DRIVERS: Final = {"10.0": 410, "11.0": 450, "11.8": 520, "12.8": 570, "12.9": 575, "13": 580}
"""The driver branch that came with a CUDA toolkit. **Source** CUDA release notes, toolkit and driver versions."""


@pytest.fixture(scope="module")
def facts() -> tuple[SoftwareFact, ...]:
    return read_records(catalog_dir() / "software", SoftwareFact)


def test_a_target_has_one_fact_of_each_feature(facts: tuple[SoftwareFact, ...]) -> None:
    told = Counter((fact.feature, target) for fact in facts for target in fact.targets)
    assert [pair for pair, count in told.items() if count > 1] == []


def test_every_target_is_that_of_a_card(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    targets = {software_target(gpu) for gpu in hardware.gpus}
    assert {target for fact in facts for target in fact.targets} <= targets


def test_a_fact_has_an_id_of_its_own(facts: tuple[SoftwareFact, ...]) -> None:
    assert [name for name, count in Counter(fact.id for fact in facts).items() if count > 1] == []


def test_every_amd_card_has_an_exact_target(hardware: HardwareCatalog) -> None:
    cards = [gpu for gpu in hardware.gpus if gpu.vendor == "AMD" and not gpu.preliminary]
    assert [gpu.id for gpu in cards if not re.fullmatch(r"gfx[0-9a-f]{3,4}", gpu.compute_capability or "")] == []


def test_a_format_with_a_rate_is_not_lacking(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    lacking = unsupported_formats(facts)
    for gpu in hardware.gpus:
        assert [dtype for dtype in lacking.get(software_target(gpu), {}) if gpu.rate(dtype)] == [], gpu.id


def test_lacking_formats_are_those_of_the_chip(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    lacking = unsupported_formats(facts)
    told = {
        "tesla-k80": {"tf32", "fp16", "bf16", "fp8", "int8", "fp4"},
        "tesla-p100-pcie-16gb": {"tf32", "bf16", "fp8", "int8", "fp4"},
        "tesla-t4": {"tf32", "bf16", "fp8", "fp4"},
        "instinct-mi250x": {"tf32", "fp8", "fp4"},
        "instinct-mi300a": {"fp4"},
        "instinct-mi355x": {"tf32"},
        "radeon-rx-9070-xt": {"tf32", "fp4"},
        "tpu-v5e": {"fp8"},
        "trainium2": {"fp64", "int8", "fp4"},
        "apple-m4": {"fp64"},
        "arc-a770-16gb": {"tf32", "fp8", "fp4"},
    }
    assert {card: set(lacking[software_target(hardware.gpu(card))]) for card in told} == told
    assert software_target(hardware.gpu("gb200-186gb")) not in lacking


def _number(version: str) -> int:
    return int(version.removeprefix("R"))


def test_drivers_agree_with_the_first_cuda(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    """No driver that is told of a card is older than the one of the first CUDA that knows it, nor than its first."""
    checked = set()
    for gpu in hardware.gpus:
        told = {each.feature: each for each in software_of(gpu, facts)}
        cuda, driver = told.get("cuda"), told.get("driver")
        if cuda is None or cuda.oldest not in _FIRST_DRIVERS:
            continue
        named = {_number(found) for each in told.values() for found in _drivers_in(each)}
        assert min(named, default=_FIRST_DRIVERS[cuda.oldest]) >= _FIRST_DRIVERS[cuda.oldest], gpu.id
        if driver is not None and driver.oldest:
            assert min(named) >= _number(driver.oldest) >= _FIRST_DRIVERS[cuda.oldest], gpu.id
            checked.add(gpu.compute_capability)
    assert checked == {"10.0", "10.3", "12.0"}


def _drivers_in(support: FeatureSupport) -> list[str]:
    versions = [support.oldest, support.newest] if support.feature == "driver" else []
    return [*(each for each in versions if each), *re.findall(r"\b(?:R|driver )(\d{3})\b", support.reason)]


@pytest.mark.parametrize("dtype", ["bf16", "fp8", "fp4"])
def test_formats_agree_with_the_rates_of_every_card(
    facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog, dtype: str
) -> None:
    for gpu in hardware.gpus:
        support = next(each.support for each in software_of(gpu, facts) if each.feature == dtype)
        if gpu.rate(dtype) is not None:
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
    assert (shown["apple-m1"]["pytorch"].support, shown["apple-m1"]["pytorch"].versions) == ("yes", "from 1.12")
    assert shown["gb10"]["driver"].reason == "none of the sources states the support for this GPU"
    assert next(each.title for each in software_of(hardware.gpu("gb10"), facts)) == FEATURES["bf16"]


def test_the_first_cuda_is_that_of_the_very_chip(facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog) -> None:
    """Chips of one architecture came with different toolkits: the compilers before them do not know their targets."""
    first = {
        "a100-sxm4-80gb": "11.0",
        "rtx-3090": "11.1",
        "jetson-agx-orin-64gb": "11.4",
        "b200-sxm-180gb": "12.8",
        "rtx-5090": "12.8",
        "b300-sxm-288gb": "12.9",
        "gb10": "12.9",
        "jetson-t5000-128gb": "13",
    }
    told = {gpu_id: {each.feature: each for each in software_of(hardware.gpu(gpu_id), facts)} for gpu_id in first}
    assert {gpu_id: each["cuda"].oldest for gpu_id, each in told.items()} == first


def test_a_published_rate_says_that_a_card_has_the_format(
    facts: tuple[SoftwareFact, ...], hardware: HardwareCatalog
) -> None:
    trainium = hardware.gpu("trainium3")
    told = {each.feature: each for each in software_of(trainium, facts)}
    rate = trainium.provenance_of("rate.fp4")
    assert (told["fp4"].support, told["fp4"].reason) == ("yes", "a rate is published for this format")
    assert (told["fp4"].source, told["fp4"].as_of) == (rate.source, rate.as_of)
    gaudi = {each.feature: each for each in software_of(hardware.gpu("gaudi3"), facts)}
    assert (gaudi["bf16"].support, gaudi["fp8"].support, gaudi["fp4"].support) == ("yes", "yes", None)


def test_a_rate_that_was_worked_out_says_nothing_of_the_chip(hardware: HardwareCatalog) -> None:
    card = hardware.gpu("radeon-rx-7900-xtx")
    assert card.provenance_of("rate.bf16").basis == "derived"
    assert next(each.support for each in software_of(card, ()) if each.feature == "bf16") is None


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
        read_records(tmp_path, SoftwareFact)
