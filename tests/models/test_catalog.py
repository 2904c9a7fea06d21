"""Every model of the catalog, and how models are found by name."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from each_record import for_each

from planner.errors import AmbiguousNameError, CatalogError, NoFormulaError, SpecError
from planner.models.catalog import (
    ModelCatalog,
    ModelRecord,
    UnsupportedModel,
    load_models,
    normalize_name,
    resolve_model,
)
from planner.models.readers.config_json import read_config
from planner.paths import catalog_dir

CATALOG = load_models(catalog_dir() / "models")
RECORDS = {record.id: record for record in CATALOG.records}
SCALES = {"K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}

RECORD = {
    "id": "owner/Model-1B",
    "aliases": ["other/Model-1B-Chat"],
    "variants": {"owner/Model-1B-AWQ": "awq4-128", "owner/Model-1B-half": "fp16"},
    "family": "Model",
    "kind": "decoder",
    "config": {
        "model_type": "llama",
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "vocab_size": 8,
    },
    "parameters": 600,
    "sources": ["a test"],
    "verification": "other",
    "as_of": "2026-11-21",
}


def rounded(count: int, stated: str) -> bool:
    """Return whether `count`, rounded to the digits of a stated size such as 6.7B or 1550M, is that size."""
    match = re.match(r"([\d.]+)\s*([KMBT])", stated)
    assert match is not None
    number, scale = match[1], SCALES[match[2]]
    zeros = len(number) - len(number.rstrip("0")) if "." not in number else -len(number.partition(".")[2])
    return abs(count - float(number) * scale) <= 10**zeros * scale / 2


@for_each("record", CATALOG.records)
def test_the_count_is_exact_to_the_single_parameter(record: ModelRecord) -> None:
    built = CATALOG.model(record.id)
    assert built.parameters == record.parameters
    assert built.kind == record.kind
    assert built.model_type == record.config["model_type"]
    assert all(record.sources)
    assert record.as_of <= "2026-11-29"


@for_each("record", CATALOG.records)
def test_a_published_size_is_the_count_rounded_or_the_difference_is_explained(record: ModelRecord) -> None:
    if record.published is not None:
        explained = record.published.difference is not None
        assert explained != rounded(record.parameters, record.published.value)


def test_the_list_is_complete_and_names_are_unique() -> None:
    assert len(CATALOG.records) >= 340
    names = Counter(name for record in CATALOG.records for name in record.names)
    assert [name for name, count in names.items() if count > 1] == []
    aside = [name for model in CATALOG.not_built for name in model.names]
    assert set(aside).isdisjoint(names)
    assert len(set(aside)) == len(aside)
    assert sum(model.config is not None for model in CATALOG.not_built) >= 13


@for_each("model", CATALOG.not_built)
def test_a_model_without_a_formula_has_none_and_a_count_if_it_can_be_traced(model: UnsupportedModel) -> None:
    assert (model.config is None) == (model.parameters is None)
    if model.config is not None:
        with pytest.raises(NoFormulaError):
            read_config(model.config, model.id)


@pytest.mark.oracle
@for_each("model", [model for model in CATALOG.not_built if model.config is not None])
def test_a_traced_model_has_the_parameters_that_transformers_builds(model: UnsupportedModel) -> None:
    from model_types import parameters_on_meta  # imports PyTorch

    assert parameters_on_meta(model.id, model.config or {}) == model.parameters


@pytest.mark.parametrize("text", ["deepseek-ai/DeepSeek-V4-Flash", "DeepSeek V4 Flash", "wav2vec2", "resnet50"])
def test_a_model_that_is_traced_says_so_by_its_name(text: str) -> None:
    with pytest.raises(NoFormulaError, match="unknown to the formulas") as caught:
        resolve_model(CATALOG, text)
    (model,) = CATALOG.without_formula(text)
    assert caught.value.traceable == model.id


def test_the_beginning_of_two_names_without_a_formula_lists_both() -> None:
    with pytest.raises(AmbiguousNameError, match=r"DeepSeek-V4-Flash, deepseek-ai/DeepSeek-V4-Pro"):
        resolve_model(CATALOG, "deepseek v4")


def test_every_listed_model_says_its_name_and_context_without_being_built() -> None:
    catalog = load_models(catalog_dir() / "models")
    llama = catalog.record("meta-llama/Llama-3.1-8B")
    assert (llama.name, llama.context, llama.parameters) == ("Llama-3.1-8B", 131_072, 8_030_261_248)
    assert catalog.record("openai-community/gpt2").context == 1024
    assert catalog.record("google/vit-base-patch16-224").context is None
    assert catalog.record("meta-llama/Llama-3.2-11B-Vision").context == 131_072
    assert hash(llama) == hash(llama.id)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("llama 3.1 8b", "meta-llama/Llama-3.1-8B"),
        ("LLAMA_3.1-8B-instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("  gpt2 ", "openai-community/gpt2"),
        ("qwen3-8b-awq", "Qwen/Qwen3-8B-AWQ"),
        ("mistral-small-24b", "mistralai/Mistral-Small-24B-Instruct-2501"),
        ("mistralai/Mistral Small 24B", "mistralai/Mistral-Small-24B-Instruct-2501"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B"),
        ("qwen3:30b-a3b", "Qwen/Qwen3-30B-A3B"),
        ("gpt-oss:120b", "openai/gpt-oss-120b"),
        ("phi4", "microsoft/phi-4"),
        ("llama3:8b", "meta-llama/Meta-Llama-3-8B"),
        ("gemma3:27b", "google/gemma-3-27b-it"),
    ],
)
def test_names_are_found_whatever_their_case_and_separators(text: str, name: str) -> None:
    assert normalize_name(resolve_model(CATALOG, text)).endswith(normalize_name(name))


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("deepseek-r1:32b", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B"),
        ("SDXL", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("sd1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"),
    ],
)
def test_names_that_other_programs_gave_are_aliases(text: str, model: str) -> None:
    assert CATALOG.record(resolve_model(CATALOG, text)).id == model


@pytest.mark.parametrize(
    ("text", "reason", "hint"),
    [
        ("Lama-3.1-8B", "no model is called 'Lama-3.1-8B'", "meta-llama/Llama-3.1-8B"),
        ("mixtral", "no model is called", "mistralai/Mixtral-8x7B-v0.1"),
        ("mistral small", "no model is called", "mistralai/Mistral-Small-3.1-24B-Instruct-2503"),
        ("llama3-7b", "no model is called", "Close names: "),
        ("qwen25 32b", "no model is called", "Close names: Qwen/Qwen2.5-32B,"),
        ("zzzzzz", "no model is called", "gpu-planner models"),
        ("", "no model is called", "gpu-planner models"),
        ("mistral-7b", "no model is called", "mistralai/Mistral-7B-v0.1"),
        ("unsloth/llama3.1:8b", "no model is called", "gpu-planner models"),
        ("llama-70b", "no model is called", "Close names: "),
        ("someone/llama3.1-8b-gguf", "no model is called", "write 'llama3.1-8b'."),
        ("someone/other-9b", "no model is called", "hf:someone/other-9b reads it from the Hugging Face Hub."),
        ("phi4-q4_K_M", "no model is called", "write 'phi4' and --weights Q4_K_M"),
        ("nothing-q4_K_M", "no model is called", "gpu-planner models"),
        (
            "stable-diffusion-2-1",
            "stabilityai/stable-diffusion-2-1 cannot be built: a diffusion pipeline",
            "gpu-planner models",
        ),
    ],
)
def test_an_unknown_name_gets_a_reason_and_close_names(text: str, reason: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolve_model(CATALOG, text)
    assert reason in caught.value.message
    assert hint in caught.value.hint


def test_a_single_letter_or_number_is_no_part_of_a_close_name() -> None:
    with pytest.raises(SpecError) as caught:
        resolve_model(CATALOG, "7")
    assert "Close names" not in caught.value.hint


def test_a_variant_is_the_same_network_stored_otherwise() -> None:
    plain, awq = CATALOG.model("Qwen/Qwen3-8B"), CATALOG.model("Qwen/Qwen3-8B-AWQ")
    assert awq.parameters == plain.parameters
    assert (plain.quantization, awq.quantization) == (None, "awq4-128")
    assert "checkpoint's name" in awq.reader_notes[-1]
    assert CATALOG.model("Qwen/Qwen3-8B-AWQ") is awq


def write(folder: Path, *records: object) -> Path:
    (folder / "own.json").write_text(json.dumps(records), encoding="utf-8")
    return folder


def own_catalog(folder: Path, *records: object) -> ModelCatalog:
    return load_models(write(folder, *records))


def test_a_catalog_of_ones_own(tmp_path: Path) -> None:
    catalog = own_catalog(tmp_path, RECORD)
    assert catalog.not_built == ()
    assert catalog.model("other/Model-1B-Chat").parameters == 600
    assert catalog.model("owner/Model-1B-half").stored_dtype == "fp16"
    assert catalog.record("owner/Model-1B").context is None
    with pytest.raises(SpecError, match="no model has the id 'model-1b'"):
        catalog.model("model-1b")


def test_a_name_of_two_networks_lists_both(tmp_path: Path) -> None:
    catalog = own_catalog(tmp_path, RECORD, {**RECORD, "id": "fork/model_1b", "aliases": [], "variants": {}})
    with pytest.raises(AmbiguousNameError) as caught:
        resolve_model(catalog, "Model 1B")
    assert caught.value.candidates == ("fork/model_1b", "owner/Model-1B")
    assert resolve_model(catalog, "fork/model-1b") == "fork/model_1b"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"parameters": 0}, "parameters"),
        ({"sources": []}, "sources"),
        ({"as_of": "yesterday"}, "as_of"),
        ({"colour": "green"}, "colour"),
        ({"verification": "guessed"}, "verification"),
        ({"variants": {"owner/x": "q1"}}, "variants"),
    ],
)
def test_a_bad_record_is_named_with_its_field(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    with pytest.raises(CatalogError) as caught:
        own_catalog(tmp_path, {**RECORD, **changes})
    assert (caught.value.record, caught.value.field) == ("owner/Model-1B", field)


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="there are no JSON files here"):
        load_models(tmp_path)


UNKNOWN_FORMATS = [
    "moonshotai/Kimi-K2.5",
    "microsoft/bitnet-b1.58-2B-4T",
    "google/gemma-3-270m-it",
    "mistralai/Mistral-Large-Instruct-2407",
    "bigscience/T0_3B",
    "bigscience/T0pp",
    "bigscience/mt0-xxl",
    "microsoft/mpnet-base",
    "keeeeenw/MicroLlama",
    "togethercomputer/LLaMA-2-7B-32K",
    "mistralai/mathstral-7B-v0.1",
    "stabilityai/stable-code-3b",
    "stabilityai/stable-diffusion-3-medium-diffusers",
    "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS",
    "stabilityai/stable-diffusion-3.5-large",
    "stabilityai/stable-diffusion-3.5-medium",
    "ibm-granite/granite-4.0-h-tiny",
    "ibm-granite/granite-4.0-h-1b",
    "tiiuae/Falcon-H1-7B-Instruct",
    "tiiuae/Falcon-H1-3B-Instruct",
    "tencent/Hunyuan-7B-Instruct",
    "tencent/Hunyuan-4B-Instruct",
    "LiquidAI/LFM2-2.6B",
    *(f"facebook/dinov3-{size}-pretrain-lvd1689m" for size in ("vits16", "vits16plus", "vitb16", "vitl16")),
    *(f"facebook/dinov3-{size}-pretrain-lvd1689m" for size in ("vith16plus", "vit7b16")),
    "mistralai/Mistral-Small-4-119B-2603",
    "jinaai/jina-embeddings-v3-hf",
]
"""Models whose stored format no copy of their configuration or files confirms.

Of Kimi K2.5 and BitNet it is known, but no format of the program describes it: experts alone in 4 bits, and packed
weights of three values.
"""


def test_every_model_states_its_stored_format_with_a_source_or_is_known_not_to():
    unknown = set()
    for record in CATALOG.records:
        sourced = any(source.startswith("stored format: ") for source in record.sources)
        text = record.config.get("text_config")
        stated = {*record.config, *(text if isinstance(text, dict) else ())}
        assert sourced or not {"torch_dtype", "quantization_config"} & set(record.config), record.id
        assert not sourced or {"torch_dtype", "dtype", "quantization_config"} & stated, record.id
        if not CATALOG.model(record.id).states_format:
            unknown.add(record.id)
    assert unknown == set(UNKNOWN_FORMATS)


def test_chat_models_of_gemma_2_are_stored_in_half_the_bytes_of_the_base_models():
    base, chat = CATALOG.model("google/gemma-2-9b"), CATALOG.model("google/gemma-2-9b-it")
    assert (base.stored_as, chat.stored_as) == ("fp32", "bf16")


def test_every_name_is_found_where_files_are_parsed_on_demand():
    on_demand = load_models(catalog_dir() / "models", on_demand=True)
    names = [name for record in CATALOG.records for name in record.names]
    assert [on_demand.record(name) for name in names] == [CATALOG.record(name) for name in names]
    spelled = [normalize_name(name.rpartition("/")[2]) for name in names[::7]]
    assert [on_demand.names_written_as(name) for name in spelled] == [
        CATALOG.names_as_written[name] for name in spelled
    ]
