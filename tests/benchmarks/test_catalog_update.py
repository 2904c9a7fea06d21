"""A table of figures and a folder of configurations become records that the catalog reads."""

import csv
import json
import shutil
from pathlib import Path

import pytest

from planner.hardware.catalog import load_hardware
from planner.models.catalog import load_models
from planner.paths import catalog_dir

SOURCE = {"certainty": "single-source", "source": "a datasheet", "as_of": "2026-11-23"}
CARD = SOURCE | {
    "id": "rtx-9990",
    "name": "GeForce RTX 9990",
    "vendor": "NVIDIA",
    "segment": "consumer",
    "architecture": "Blackwell",
    "aliases": "NVIDIA GeForce RTX 9990|9990",
    "memory_gib": "24",
    "bandwidth_gb_per_s": "1792.5",
    "shader_cores": "10000",
    "boost_clock_mhz": "2500",
    "rates": "fp32 2*cores vector; fp16 200.5 tensor fp32",
    "l2_cache_mib": "1.25",
    "ecc": "yes",
    "notes": "one|two",
}
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def tool():
    """Return the tool's module; it is importable only from the folder of the benchmarks."""
    import catalog_update

    return catalog_update


@pytest.fixture
def catalog(tmp_path):
    """Return a catalog with a few of the real files."""
    for name in ("gpus/nvidia/blackwell.json", "systems/huawei.json", "gpus/huawei/da-vinci.json", "models/yi.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(catalog_dir() / name, tmp_path / name)
    return tmp_path


def table(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_every_file_is_written_as_it_is(tool):
    for path in (catalog_dir() / "gpus" / "apple" / "apple-gpu.json", catalog_dir() / "systems" / "nvidia.json"):
        text = path.read_text(encoding="utf-8")
        assert "[\n" + ",\n".join(map(tool.record_text, json.loads(text))) + "\n]\n" == text


def test_a_row_becomes_a_record_with_its_sources_and_leaves_the_others(tool, catalog, tmp_path, capsys):
    path = catalog / "gpus" / "nvidia" / "blackwell.json"
    before = path.read_text(encoding="utf-8")
    assert tool.main(["--catalog", str(catalog), "cards", str(table(tmp_path / "figures.csv", CARD))]) == 0
    assert "written  rtx-9990: gpus/nvidia/blackwell.json" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8").startswith(before.removesuffix("\n]\n"))
    gpu = load_hardware(catalog).gpu("rtx-9990")
    assert gpu.memory_bytes == 24 * 2**30
    assert (gpu.bandwidth_bytes_per_s, gpu.l2_cache_bytes, gpu.ecc) == (1.7925e12, 1_310_720, True)
    assert (gpu.ops_per_s("fp32"), gpu.ops_per_s("fp16")) == (5e13, 2.005e14)
    assert gpu.provenance_of("rate.fp32").formula == "2 FLOP × 10000 cores × 2.5 GHz (boost)"
    assert gpu.provenance_of("bandwidth_bytes_per_s").source == "a datasheet"
    assert gpu.notes == ("one", "two")


def test_a_record_is_replaced_in_its_place(tool, catalog, tmp_path):
    before = [gpu.id for gpu in load_hardware(catalog).gpus]
    tool.update_cards(table(tmp_path / "figures.csv", CARD | {"id": "b100", "name": "Other"}), catalog)
    assert [gpu.id for gpu in load_hardware(catalog).gpus] == before
    assert load_hardware(catalog).gpu("b100").name == "Other"


def test_a_new_architecture_gets_a_file(tool, catalog, tmp_path):
    other = CARD | {"vendor": "Moore Threads", "architecture": "MUSA 9", "segment": "datacenter"}
    assert tool.update_cards(table(tmp_path / "figures.csv", other), catalog) == [
        "written  rtx-9990: gpus/moore-threads/musa-9.json"
    ]


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"rates": "fp16 many tensor"}, "is not a rate, such as"),
        ({"colour": "red"}, "unknown column 'colour'"),
        ({"vendor": "Voodoo"}, "vendor"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused_with_the_reason(tool, catalog, tmp_path, capsys, cell, said):
    assert tool.main(["--catalog", str(catalog), "cards", str(table(tmp_path / "figures.csv", CARD | cell))]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("refused  rtx-9990: ")
    assert said in printed


def test_configurations_become_models_with_counts_and_their_format(tool, catalog, tmp_path, capsys):
    configs = tmp_path / "configs"
    (configs / "made" / "tiny").mkdir(parents=True)
    (configs / "made" / "tiny" / "config.json").write_text(json.dumps(TINY))
    quantized = TINY | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    (configs / "made--tiny-FP8_config.json").write_text(json.dumps(quantized))
    (configs / "made--odd_config.json").write_text(json.dumps(TINY | {"model_type": "unheard_of"}))
    (configs / "01-ai--Yi-6B_config.json").write_text(json.dumps(TINY))
    words = ["--catalog", str(catalog), "models", str(configs), "--file", "made.json", "--family", "Made"]
    assert tool.main([*words, "--source", "owner/repository@0123456:configs/", "--as-of", "2026-11-23"]) == 1
    printed = capsys.readouterr().out
    assert "known    01-ai/Yi-6B" in printed
    assert "refused  made/odd" in printed
    assert "variant  made/tiny-FP8: fp8-block128 of made/tiny" in printed
    record = load_models(catalog / "models").record("made/tiny-FP8")
    assert record.id == "made/tiny"
    assert record.parameters == 86_848
    assert record.sources[-1] == "stored format: owner/repository@0123456:configs/made/tiny/config.json"
