"""Reader of a model in a GGUF file, split or whole, with the exact size of its tensors."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from planner.dtypes import GGUF_FILE_TYPES
from planner.errors import ModelFileError
from planner.ggml import FILE_TYPE_NAMES
from planner.models.architecture import Architecture, StoredLayer
from planner.models.readers.config_json import read_config
from planner.models.readers.gguf.architectures import config_from_metadata
from planner.models.readers.gguf.header import MAX_TENSORS, GgufFile, GgufMetadata, GgufTensor, read_gguf
from planner.models.readers.safetensors import numbered_parts
from planner.models.readers.sources import open_local, quoted_text
from planner.models.readers.stored import NetworkPart, sum_stored

_LAYER: Final = re.compile(r"blk\.(\d{1,6})\.")
# As llama.cpp names routed experts in common/common.h, LLM_FFN_EXPS_REGEX.
_EXPERTS: Final = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
# Tensors that are not parameters of the network: rotary frequencies, the router's score correction, and the scales
# that llama.cpp stores with quantized tensors.
_NO_PARAMETERS: Final = re.compile(
    r"rope_(freqs|factors\w*)\.weight$|exp_probs_b(\.bias)?$|layer_output_scale\.weight$|\.(input_)?scale$"
)
_OTHER_KINDS: Final = {
    "adapter": "is an adapter, which needs its base model",
    "imatrix": "is an importance matrix, which is used only for quantization",
    "mmproj": "is an image or audio projector, which belongs to a language model",
    "vocab": "contains a vocabulary without a network",
}
_CHOOSE_MODEL: Final = "Choose the GGUF file of the language model itself."


def read_gguf_model(path: Path) -> Architecture:
    """Read the network in a GGUF file with the stored size of its tensors; `path` may be any part of a split file.

    Raises:
        ModelFileError: If a part is missing or unreadable, or it contains no language model or an unknown one.
    """
    parts = numbered_parts(path)
    files = [_read_header(part) for part in parts]
    whole = GgufFile(files[0].metadata, _joined_tensors(files, path))
    return architecture_of_gguf(whole, str(parts[0]))


def read_gguf_config(path: Path) -> Mapping[str, object]:
    """Read the metadata of a GGUF file as the configuration of a Hugging Face model.

    Raises:
        ModelFileError: As `read_gguf_model`.
    """
    first = numbered_parts(path)[0]
    return config_from_metadata(_network_metadata(_read_header(first), str(first)))


def architecture_of_gguf(file: GgufFile, place: str) -> Architecture:
    """Return the network that the header of a GGUF file describes; `place` names the file in errors.

    Raises:
        ModelFileError: If it contains no language model or an unknown one.
    """
    metadata = _network_metadata(file, place)
    architecture = read_config(config_from_metadata(metadata), place)
    counted = [tensor for tensor in file.tensors if not _is_beyond_layers(tensor, metadata.layers)]
    number = metadata.file_type
    name = FILE_TYPE_NAMES.get(number) if isinstance(number, int) else None
    notes = (*_extra_tensors_note(file.tensors, counted), *_size_note(architecture, counted))
    return architecture.evolve(
        container="gguf",
        stored=sum_stored(
            (_network_part(tensor.name), tensor.type, tensor.elements, tensor.bytes) for tensor in counted
        ),
        stored_layers=_stored_layers(counted, architecture.main.layer_count),
        quantization=name if name in GGUF_FILE_TYPES else None,
        reader_notes=(*architecture.reader_notes, *notes),
    )


def _network_metadata(file: GgufFile, place: str) -> GgufMetadata:
    metadata = GgufMetadata(file, place)
    kind = "mmproj" if metadata.architecture == "clip" else metadata.kind
    reason = _OTHER_KINDS.get(kind if file.tensors else "vocab")
    if reason is not None:
        raise ModelFileError(place, reason, _CHOOSE_MODEL)
    return metadata


def _read_header(path: Path) -> GgufFile:
    with open_local(path) as file:
        return read_gguf(file)


def _joined_tensors(files: list[GgufFile], path: Path) -> tuple[GgufTensor, ...]:
    """Return the tensors of all part files together; a tensor that occurs twice is an error."""
    found = {tensor.name: tensor for file in files for tensor in file.tensors}
    count = sum(len(file.tensors) for file in files)
    if len(found) != count or count > MAX_TENSORS:
        raise ModelFileError(
            path, "its parts contain a tensor twice, or too many tensors", "Download all parts of one model."
        )
    stated = files[0].metadata.get("split.tensors.count", count)
    if stated != count:
        raise ModelFileError(
            path, f"split.tensors.count is {stated}, and its parts hold {count:,}", "Download all parts of one model."
        )
    return tuple(found.values())


def _is_beyond_layers(tensor: GgufTensor, layers: int) -> bool:
    """Return whether `tensor` belongs to a multi-token prediction layer after the network's `layers`."""
    match = _LAYER.match(tensor.name)
    return match is not None and int(match[1]) >= layers


def _stored_layers(counted: list[GgufTensor], layers: int) -> tuple[StoredLayer, ...]:
    """Return the stored size of each of the network's layers, with that of its routed experts."""
    sizes = [[0, 0] for _ in range(layers)]
    for tensor in counted:
        match = _LAYER.match(tensor.name)
        if match is not None and int(match[1]) < layers:
            layer = sizes[int(match[1])]
            layer[0] += tensor.bytes
            layer[1] += tensor.bytes if _EXPERTS.search(tensor.name) else 0
    return tuple(StoredLayer(bytes=size, expert_bytes=experts) for size, experts in sizes)


def _network_part(name: str) -> NetworkPart:
    if _LAYER.match(name):
        return "layers"
    if name.startswith(("token_embd.", "position_embd.", "per_layer_token_embd.", "token_types.")):
        return "embedding"
    return "output" if name.startswith("output.") else "other"


def _extra_tensors_note(tensors: tuple[GgufTensor, ...], counted: list[GgufTensor]) -> Iterator[str]:
    extra = len(tensors) - len(counted)
    if extra:
        size = sum(tensor.bytes for tensor in tensors) - sum(tensor.bytes for tensor in counted)
        yield f"{extra:,} tensors of multi-token prediction layers, {size:,} bytes, are not counted"


def _size_note(architecture: Architecture, counted: list[GgufTensor]) -> Iterator[str]:
    held = sum(tensor.elements for tensor in counted if not _NO_PARAMETERS.search(tensor.name))
    if held != architecture.parameters:
        yield (
            f"the file holds {held:,} parameters, but {quoted_text(architecture.model_type)} with these sizes has "
            f"{architecture.parameters:,}: the bytes in the file are counted"
        )
