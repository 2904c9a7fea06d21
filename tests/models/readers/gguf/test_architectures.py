"""The metadata that llama.cpp's converter writes for a configuration reads as the configuration itself does."""

import pytest
from gguf_cases import BASE, CASES, KEYS

from planner.errors import ModelFileError
from planner.models.readers.config_json import read_config
from planner.models.readers.gguf.architectures import GGUF_ARCHITECTURES
from planner.models.readers.gguf.header import GgufFile, GgufTensor
from planner.models.readers.gguf.model import architecture_of_gguf


def head(
    architecture: str, keys: dict[str, object], tensors: tuple[str, ...], without: tuple[str, ...] = ()
) -> GgufFile:
    """The head of a file of these keys: lists as they are read, a token embedding and an output among its tensors."""
    stated = {name: value for name, value in (KEYS | keys).items() if name not in without}
    metadata = {"general.architecture": architecture} | {
        f"{architecture}.{name}": value for name, value in stated.items()
    }
    found = {name: tuple(value) if isinstance(value, list) else value for name, value in metadata.items()}
    shapes = {"per_layer_token_embd.weight": (32, 128), "blk.0.ffn_down.weight": (96, 64)}
    names = {"output.weight": (64, 128)} | {name: shapes.get(name, (64,)) for name in tensors}
    kept = {"token_embd.weight": (64, 128)} | {name: shape for name, shape in names.items() if name not in without}
    return GgufFile(found, tuple(GgufTensor(name, "F32", shape, 1, 4) for name, shape in kept.items()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.architecture}-{case.model_type}")
def test_metadata_reads_like_the_configuration(case):
    found = architecture_of_gguf(head(case.architecture, case.keys, case.tensors, case.without), "x.gguf")
    expected = read_config(BASE | {"model_type": case.model_type} | case.config, "config.json")
    assert found.model_type == case.model_type
    assert found.stacks == expected.stacks
    assert found.head == expected.head
    assert (found.parameters, found.tied_head, found.max_context) == (
        expected.parameters,
        expected.tied_head,
        expected.max_context,
    )


def test_every_architecture_has_a_case():
    assert {case.architecture for case in CASES} == set(GGUF_ARCHITECTURES)


@pytest.mark.parametrize(
    ("architecture", "keys", "reason"),
    [
        ("mamba", {"ssm.inner_size": 100}, "must be a multiple of embedding_length, 64"),
        ("deepseek2", {"rope.dimension_count": 8, "attention.key_length": 8}, "must be more than rope.dimension_count"),
    ],
)
def test_sizes_that_contradict_each_other_are_refused(architecture, keys, reason):
    with pytest.raises(ModelFileError, match=reason):
        architecture_of_gguf(head(architecture, keys, ()), "x.gguf")


def test_layers_of_kinds_that_do_not_fit_their_number_are_refused():
    keys = {"attention.sliding_window_pattern": [1, 0], "attention.key_length": 32, "attention.key_length_swa": 16}
    with pytest.raises(ModelFileError, match="layer_types has 2 entries for 4 layers"):
        architecture_of_gguf(head("gemma4", keys | {"attention.head_count_kv": [2, 2, 1]}, ()), "x.gguf")


def test_no_experts_are_a_dense_network() -> None:
    dense, counted = (architecture_of_gguf(head("llama", keys, ()), "x.gguf") for keys in ({}, {"expert_count": 0}))
    assert counted.stacks == dense.stacks
