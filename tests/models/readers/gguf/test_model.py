"""Models in GGUF files: exact bytes, split files, and files that hold no model."""

import pytest
from gguf_cases import KEYS
from made_files import gguf_bytes, tiny_gguf, write_gguf

from planner.errors import ModelFileError
from planner.models.readers.gguf import model as gguf_model
from planner.models.readers.gguf.header import GgufFile, GgufTensor
from planner.models.readers.gguf.model import architecture_of_gguf
from planner.models.readers.model_file import read_model_config, read_model_file


def _split(tmp_path, stated=21):
    metadata, tensors = tiny_gguf()
    names = list(tensors)
    halves = [dict.fromkeys(names[:10]), dict.fromkeys(names[10:])]
    heads = [metadata | {"split.tensors.count": stated}, {"split.no": 1}]
    paths = []
    for number, (head, half) in enumerate(zip(heads, halves, strict=True), start=1):
        path = tmp_path / f"tiny-{number:05}-of-00002.gguf"
        path.write_bytes(gguf_bytes(head, {name: tensors[name] for name in half}))
        paths.append(path)
    return paths


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


def test_layers_that_predict_further_tokens_are_not_counted():
    keys = {"block_count": 5, "nextn_predict_layers": 1}
    file = head("llama", keys, ("blk.3.attn_norm.weight", "blk.4.nextn.eh_proj.weight", "rope_freqs.weight"))
    found = architecture_of_gguf(file, "x.gguf")
    assert found.main.layer_count == 4
    assert found.stored_bytes == 4 * 4
    assert found.reader_notes[0] == "1 tensors of multi-token prediction layers, 4 bytes, are not counted"
    assert found.reader_notes[1].startswith("the file holds 3 parameters, but 'llama' with these sizes has ")


def test_each_layer_has_its_size_and_that_of_its_experts():
    names = (
        "blk.0.attn_norm.weight",
        "blk.1.ffn_up_exps.weight",
        "blk.1.ffn_gate_up_chexps.bias",
        "blk.9.attn_k.weight",
    )
    found = architecture_of_gguf(head("llama", {"block_count": 2}, names), "x.gguf")
    assert [(layer.bytes, layer.expert_bytes) for layer in found.stored_layers] == [(4, 0), (8, 8)]


@pytest.mark.parametrize(
    ("kind", "number", "quantization", "stored_as"),
    [
        ("Q4_K", 15, "Q4_K_M", "Q4_K_M"),
        ("F16", 1, "F16", "F16"),
        ("IQ2_XXS", 19, None, "stored"),
        ("Q4_K", 12345, None, "stored"),
        ("Q4_K", "Q4", None, "stored"),
        ("BF16", None, None, "stored"),
    ],
)
def test_the_file_type_names_the_mixture_of_formats(kind, number, quantization, stored_as):
    file = head("llama", {}, ())
    tensors = (*file.tensors, GgufTensor("blk.0.attn_q.weight", kind, (64, 64), 1, 7))
    metadata = {**file.metadata, "general.file_type": number} if number is not None else file.metadata
    found = architecture_of_gguf(GgufFile(metadata, tensors), "x.gguf")
    assert (found.quantization, found.stored_as) == (quantization, stored_as)


def test_a_vocabulary_alone_is_no_model(tmp_path):
    file = tmp_path / "ggml-vocab.gguf"
    file.write_bytes(gguf_bytes(tiny_gguf()[0], {}))
    with pytest.raises(ModelFileError, match="contains a vocabulary without a network"):
        read_model_file(file)


def test_stored_bytes_are_exact(tmp_path):
    found = read_model_file(write_gguf(tmp_path / "tiny-Q8_0.gguf"))
    assert found.reader_notes == ()
    assert (found.model_type, found.container, found.quantization, found.stored_as) == ("llama", "gguf", "Q8_0", "Q8_0")
    projections = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64)
    assert {(part.place, part.format): part.bytes for part in found.stored} == {
        ("embedding", "Q8_0"): 128 * 64 * 34 // 32,
        ("layers", "F32"): 2 * 2 * 64 * 4,
        ("layers", "Q8_0"): projections * 34 // 32,
        ("other", "F32"): 64 * 4,
        ("output", "Q8_0"): 128 * 64 * 34 // 32,
    }
    assert (found.vocabulary, found.max_context, found.tied_head) == (128, 512, False)
    assert read_model_config(tmp_path / "tiny-Q8_0.gguf")["hidden_size"] == 64
    assert read_model_file(tmp_path) == found


def test_a_split_file_is_one_model_whichever_part_is_named(tmp_path):
    first, second = _split(tmp_path)
    whole = read_model_file(write_gguf(tmp_path / "whole.gguf"))
    assert read_model_file(first) == read_model_file(second) == whole
    assert read_model_config(second)["num_hidden_layers"] == 2
    (tmp_path / "whole.gguf").unlink()
    assert read_model_file(tmp_path) == whole
    second.unlink()
    with pytest.raises(ModelFileError, match=r"of 2 files .*00002-of-00002.gguf' is missing"):
        read_model_file(first)


def test_parts_of_different_models_are_refused(tmp_path, monkeypatch):
    first, second = _split(tmp_path, stated=22)
    with pytest.raises(ModelFileError, match=r"split.tensors.count is 22, and its parts hold 21"):
        read_model_file(first)
    second.write_bytes(first.read_bytes())
    with pytest.raises(ModelFileError, match="its parts contain a tensor twice"):
        read_model_file(first)
    monkeypatch.setattr(gguf_model, "MAX_TENSORS", 3)
    with pytest.raises(ModelFileError, match="or too many"):
        read_model_file(write_gguf(tmp_path / "whole.gguf"))
