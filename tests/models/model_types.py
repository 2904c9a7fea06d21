"""The walk over transformers' own lists of model types: which are read by formulas, traced, or refused, and why."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import torch
import transformers
from transformers.models.auto import modeling_auto

from planner.errors import ModelFileError, NoFormulaError, TraceError
from planner.models.readers.config_json import read_config
from planner.models.readers.registry import readers
from planner.trace.request import Target, TraceRequest
from planner.trace.worker.hugging_face import build_network
from planner.trace.worker.job import record_trace

LISTS: Final = {
    "causal LM": ("CAUSAL_LM",),
    "image and text": ("IMAGE_TEXT_TO_TEXT",),
    "sequence to sequence": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "speech": ("SPEECH_SEQ_2_SEQ", "CTC"),
    "masked LM": ("MASKED_LM",),
    "image classification": ("IMAGE_CLASSIFICATION",),
}
"""transformers' lists by task: `MODEL_FOR_…_MAPPING_NAMES`."""

_LAYER_COUNTS: Final = frozenset(
    (
        *("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth"),
        *("num_encoder_layers", "num_decoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers"),
    )
)
_LAYERS: Final = 2
_SHOWN: Final = 160
_PARTLY_ROTATED: Final = {
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [8, 12, 12]}
    | {"partial_rotary_factor": 0.5}
}
_BY_LAYER_TYPE: Final = {
    "rope_parameters": {
        kind: {"rope_type": "default", "rope_theta": 1e4} for kind in ("full_attention", "sliding_attention")
    }
}
_STATED: Final[Mapping[str, Mapping[str, Any]]] = {
    "aya_vision": {"vision_config": {"num_attention_heads": 16}},
    "blip-2": {"image_token_index": 50265},
    "chameleon": {"vocabulary_map": {"<image>": 4}},
    "cohere_compass": {"text_config": _BY_LAYER_TYPE},
    "cohere_compass_text": _BY_LAYER_TYPE,
    "deepseek_v2": {"num_experts_per_tok": 6},
    "dots1": {"n_routed_experts": 8, "num_experts_per_tok": 2},
    "emu3": {"vocabulary_map": {"<image>": 4}, "text_config": {"pad_token_id": 0}},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "glm4_moe": {"head_dim": 128},
    "glm46v": {"text_config": _PARTLY_ROTATED},
    "glm4v": {"text_config": _PARTLY_ROTATED},
    "glm4v_moe": {"text_config": _PARTLY_ROTATED | {"head_dim": 128}},
    "glmga": {"text_config": _PARTLY_ROTATED},
    "instructblip": {"image_token_index": 50265},
    "lfm2_moe": {"num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "step3p7": {"text_config": {"sliding_window": 512}},
    "wav2vec2-bert": {"vocab_size": 32},
    "xmod": {"default_language": "en_XX"},
}
"""Fields that published configurations state and whose defaults describe no network that runs."""


class ListedType(NamedTuple):
    """A model type of one of transformers' lists, with the class that the list names."""

    task: str
    model_type: str
    network: str


def listed_types() -> Iterator[ListedType]:
    """Yield the model types of all lists."""
    for task, names in LISTS.items():
        for name in names:
            for model_type, network in getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING_NAMES").items():
                yield ListedType(task, model_type, network if isinstance(network, str) else network[0])


def outcome(listed: ListedType) -> str:
    """Return what becomes of a configuration of this type: `read`, `traced`, or `refused: ` with the reason.

    Both count the parameters of the network that transformers builds on the meta device.
    """
    if is_read(listed):
        return "read"
    try:
        traced_parameters(listed)
    except Exception as error:  # noqa: BLE001  # whatever a network raises ends a trace as an error with its message
        reason = error.reason if isinstance(error, TraceError) else str(error)
        return f"refused: {' '.join(reason.split())[:_SHOWN]}"
    return "traced"


def is_read(listed: ListedType) -> bool:
    """Return whether a formula covers the class that the list names."""
    if listed.model_type not in readers():
        return False
    try:
        read_config(_default_config(listed), listed.model_type)
    except ModelFileError as error:  # the defaults may lack a field that every file states
        return not isinstance(error, NoFormulaError)
    return True


def traced_parameters(listed: ListedType) -> int:
    """Trace a small network of this type, check its parameters by a network on the meta device, and return them.

    Where layers depend on each other, so that fewer of them are no network, it is the network of the defaults.
    """
    config = _default_config(listed)
    try:
        return _traced_parameters(_request(listed, _small(config)))
    except Exception:  # noqa: BLE001  # networks fail in many ways at sizes that do not fit together
        return _traced_parameters(_request(listed, config))


def _traced_parameters(request: TraceRequest) -> int:
    recording = record_trace(request, lambda *_: None)
    assert recording.parameters == _parameters_on_meta(request)
    return recording.parameters


def assert_reads_the_same(listed: ListedType) -> None:
    """Check that the reader counts the parameters that transformers builds from the class's own defaults."""
    config = _default_config(listed)
    found = read_config(config, listed.model_type)
    assert found.parameters == _parameters_on_meta(_request(listed, config))


def _request(listed: ListedType, config: Mapping[str, object]) -> TraceRequest:
    target = Target(kind="config", place=listed.model_type, config=json.dumps(config, default=str))
    return TraceRequest(target=target, batch=1, sequence_length=64, device="cpu", unknown_values="typical")


def parameters_on_meta(name: str, config: Mapping[str, object]) -> int:
    """Return the number of parameters of the network that transformers builds from a configuration."""
    target = Target(kind="config", place=name, config=json.dumps(config))
    return _parameters_on_meta(TraceRequest(target=target, batch=1, sequence_length=64, device="cpu"))


def _parameters_on_meta(request: TraceRequest) -> int:
    with torch.device("meta"):
        network = build_network(request, None)
    return sum(parameter.numel() for parameter in network.parameters())


def _default_config(listed: ListedType) -> dict[str, Any]:
    """Return the fields of the configuration class's defaults, with those that have none."""
    fields = transformers.CONFIG_MAPPING[listed.model_type]().to_dict()
    stated = _STATED.get(listed.model_type, {})
    if listed.network.startswith("Reformer"):
        stated = {"is_decoder": listed.task == "causal LM"}
    return {**_merged(fields, stated), "model_type": listed.model_type, "architectures": [listed.network]}


def _merged(fields: Mapping[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return `fields` with those that are `stated`, part by part."""
    parts = {
        name: _merged(fields[name], value) if isinstance(value, dict) and isinstance(fields.get(name), dict) else value
        for name, value in stated.items()
    }
    return {**fields, **parts}


def _small(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration with few layers in each of its stacks, of each kind at least one."""
    found = {name: _small(value) if isinstance(value, dict) else value for name, value in fields.items()}
    counts = [name for name in _LAYER_COUNTS if isinstance(found.get(name), int)]
    layers = max((found[name] for name in counts), default=0)
    lists = [name for name, value in found.items() if isinstance(value, list) and len(value) == layers > _LAYERS]
    kept = max((_first_of_each_kind(found[name]) for name in lists), default=_LAYERS)
    for name in counts:
        found[name] = min(found[name], kept)
    for name in lists:
        found[name] = found[name][:kept]
    if isinstance(found.get("per_layer_config"), dict):
        found["per_layer_config"] = {at: value for at, value in found["per_layer_config"].items() if int(at) < kept}
    return found


def _first_of_each_kind(kinds: list[Any]) -> int:
    """Return how many layers from the first on have one of each kind, at least two."""
    return max(_LAYERS, *(kinds.index(kind) + 1 for kind in kinds))
