"""Training of vision-language models on images: formulas against traces of networks and options drawn at random.

    python benchmarks/image_training_accuracy.py [--cases N] [--first N] [--seed S] [--check] [--table]

Each case is a small network of one of eight families with one or two images in each sequence, trained whole, with a
frozen tower or projector, or with adapters; precision, attention, checkpoints, optimizer and lengths are drawn. The
estimated peak is put beside that of the trace of transformers' own network. `--check` ends with 1 if a peak is off by
more than 5 % or half of them by more than 1 %.
"""

import argparse
import json
import logging
import statistics
import sys
import tempfile
import warnings
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from formula_accuracy import recorded
from tables import add_table_option, write_table

from planner.memory.estimate import fullest_timeline, resolve_workload
from planner.models.architecture import image_patches, image_tokens
from planner.models.readers.config_json import read_config
from planner.plan.trace_request import training_fields
from planner.trace.analysis.memory import facts_of
from planner.trace.request import Target, TraceRequest
from planner.units import MIB
from planner.workload.training import Lora, Training

_MEDIAN, _WORST = 0.01, 0.05
_IMAGE: Final = 5
"""The token that stands for an image."""
_TORCH: Final = {"bf16": "bfloat16", "fp32": "float32"}
_PROJECTIONS: Final = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
_LAYERS: Final = 4
_TOWERS: Final = {True: ("*visual.p*", "*visual.blocks*"), False: ("*vision_tower*",)}
_PROJECTORS: Final = {True: ("*visual.merger*",), False: ("*multi_modal_projector*",)}
_MERGERS: Final = ("merger.mlp.0", "merger.mlp.2", "merger.linear_fc1", "merger.linear_fc2")
_PROJECTOR_LAYERS: Final = ("linear_1", "linear_2", "linear", "merging_layer", *_MERGERS)
_SOURCE: Final = """
import inspect, json, torch, transformers

ASKED = json.loads({asked!r})

def build():
    fields = ASKED["config"]
    config = transformers.CONFIG_MAPPING[fields["model_type"]].from_dict(fields)
    for part in (config, config.get_text_config()):
        part.use_cache = False
    network = transformers.AutoModelForImageTextToText._model_mapping[type(config)]
    dtype = getattr(torch, ASKED["dtype"])
    model = network._from_config(config, dtype=dtype, attn_implementation=ASKED["attention"])
    rows, length, images = ASKED["rows"], ASKED["length"], ASKED["rows"] * ASKED["images"]
    ids = torch.randint(10, config.get_text_config().vocab_size, (rows, length))
    ids[:, : ASKED["tokens"] * ASKED["images"]] = {image}
    height, width = ASKED["size"]
    inputs = {{"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone()}}
    if fields["model_type"].startswith("qwen"):
        side = fields["vision_config"]["patch_size"]
        inputs["pixel_values"] = torch.randn(images * ASKED["patches"], 3 * 2 * side**2).to(dtype)
        inputs["image_grid_thw"] = torch.tensor([[1, height // side, width // side]] * images)
        inputs["position_ids"] = torch.arange(length).expand(3, rows, length).contiguous()
    else:
        inputs["pixel_values"] = torch.randn(images, 3, height, width).to(dtype)
        inputs["token_type_ids"] = (ids == {image}).long()
        if fields["model_type"] == "mistral3":
            inputs["image_sizes"] = torch.tensor([[height, width]] * images)
    names = inspect.signature(model.forward).parameters
    if "token_type_ids" in inputs and "token_type_ids" not in names:
        inputs["mm_token_type_ids"] = inputs["token_type_ids"]
    return model, {{name: given for name, given in inputs.items() if name in names}}
"""


class Case(NamedTuple):
    """A network with what it is asked to do."""

    config: dict[str, Any]
    workload: Training


def _text(draw: Random, model_type: str) -> dict[str, Any]:
    heads, width = draw.choice((4, 8)), draw.choice((32, 64))
    return {
        "model_type": model_type,
        "hidden_size": heads * width,
        "head_dim": width,
        "intermediate_size": heads * width * draw.choice((2, 3, 4)),
        "num_hidden_layers": draw.randint(2, _LAYERS),
        "num_attention_heads": heads,
        "num_key_value_heads": draw.choice((2, 4)),
        "vocab_size": 64 * draw.randint(100, 500),
        **({"sliding_window": 256} if model_type == "gemma3_text" else {}),
        **dict(zip(("pad_token_id", "bos_token_id", "eos_token_id"), (0, 1, 2), strict=True)),
    }


def _tower(draw: Random, model_type: str, **own: Any) -> dict[str, Any]:
    heads = draw.choice((4, 8))
    sizes = {"hidden_size": 64 * heads, "intermediate_size": 64 * heads * draw.choice((3, 4)), "patch_size": 14}
    image = {"num_hidden_layers": draw.randint(3, 5), "num_attention_heads": heads, "image_size": 224}
    return {"model_type": model_type, **sizes, **image, **own}


def _qwen(draw: Random, model_type: str) -> dict[str, Any]:
    text, heads = _text(draw, f"{model_type}_text"), draw.choice((4, 8))
    half, wide = text["head_dim"] // 2, 64 * heads
    first = half // 4
    sections = [first, (half - first) // 2, half - first - (half - first) // 2]
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": sections}
    vision = {"depth": draw.randint(3, 6), "hidden_size": wide, "out_hidden_size": text["hidden_size"]}
    vision |= {"num_heads": heads, "patch_size": 14, "intermediate_size": 3 * wide}
    if model_type == "qwen2_vl":
        vision |= {"embed_dim": wide, "hidden_size": text["hidden_size"]}
    elif model_type == "qwen2_5_vl":
        vision |= {"fullatt_block_indexes": [1], "window_size": 112}
    else:
        vision |= {"deepstack_visual_indexes": [], "num_position_embeddings": 2304}
    return {"text_config": text, "vision_config": vision, "image_token_id": _IMAGE, "video_token_id": 6}


def _network(draw: Random, model_type: str) -> dict[str, Any]:
    if model_type.startswith("qwen"):
        return {"model_type": model_type, **_qwen(draw, model_type)}
    text_type, vision_type = _PARTS[model_type]
    text = _text(draw, text_type)
    own: dict[str, Any] = {"vision_use_head": False} if vision_type == "siglip_vision_model" else {}
    own |= {"image_size": [224, 224], "patch_size": [14, 14]} if model_type == "internvl" else {}
    own |= {"head_dim": 64, "image_size": 448} if vision_type == "pixtral" else {}
    found = {
        "text_config": text,
        "vision_config": _tower(draw, vision_type, **own),
        "projection_dim": text["hidden_size"],
    }
    found |= {"image_token_index": _IMAGE, "image_token_id": _IMAGE, "mm_tokens_per_image": 64}
    return {"model_type": model_type, **found}


_PARTS: Final = {
    "llava": ("llama", "clip_vision_model"),
    "paligemma": ("gemma", "siglip_vision_model"),
    "gemma3": ("gemma3_text", "siglip_vision_model"),
    "internvl": ("qwen2", "internvl_vision"),
    "mistral3": ("mistral", "pixtral"),
}
FAMILIES: Final = (*_PARTS, "qwen2_vl", "qwen2_5_vl", "qwen3_vl")
"""Model types that are drawn in turn."""


def drawn_case(seed: str, number: int) -> Case:
    """Return the case of this number."""
    draw, model_type = Random(f"{seed}/{number}"), FAMILIES[number % len(FAMILIES)]
    config = _network(draw, model_type)
    method = draw.choice(("full", "full", "lora"))
    tower = read_config(config, model_type).stacks[0]
    unit = 2 * (tower.patch_side or 1)
    size = (unit * draw.randint(6, 16), unit * draw.randint(6, 16)) if tower.positions is None else None
    images = draw.choice((1, 1, 2))
    asked = Training(
        method=method,
        lora=Lora(rank=16, dropout=draw.choice((0.0, 0.1))) if method == "lora" else None,
        compute=draw.choice(("bf16", "amp-bf16", "fp32")),
        attention=draw.choice(("sdpa", "sdpa", "eager")),
        activation_checkpointing=draw.choice(("none", "none", "full")),
        optimizer=draw.choice(("sgd", "adamw")),
        micro_batch=draw.choice((1, 2, 4)),
        images=images,
        image_size=size,
        frozen_vision=draw.choice(("none", "none", "tower", "all")),
        sequence_length=images * image_tokens(tower, size) + draw.randint(16, 400),
    )
    return Case(config, asked)


def compared(case: Case) -> tuple[int, int]:
    """Return the estimated and the traced peak of `case` in bytes, without the parameters' loading."""
    architecture = read_config(case.config, case.config["model_type"])
    network, workload = resolve_workload(architecture, case.workload, 1)
    peak = max(one.total for one in fullest_timeline(network, workload).snapshots if one.name != "load")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.py"
        path.write_text(_SOURCE.format(asked=json.dumps(_asked(case, architecture, workload)), image=_IMAGE))
        fields = training_fields(workload.replaced(images=0), architecture, 1)
        own = {"batch": None, "sequence_length": None, "unknown_values": "typical"}
        request = TraceRequest.model_validate(
            {
                "target": Target(kind="file", place=str(path), name="build"),
                **fields,
                **own,
                **_frozen_fields(case, fields),
            }
        )
        facts = facts_of(recorded(request))
    return peak, max(one.bytes for one in facts.phases if one.name != "load")


def _asked(case: Case, architecture: Any, workload: Training) -> dict[str, Any]:
    tower, size = architecture.stacks[0], case.workload.image_size
    stated = case.config["vision_config"].get("image_size", 0)
    width, height = size or ((stated, stated) if isinstance(stated, int) else stated)
    return {
        "config": case.config,
        "attention": workload.attention,
        "dtype": _TORCH[workload.weights or "fp32"],
        "rows": workload.micro_batch,
        "length": workload.sequence_length,
        "images": workload.images,
        "tokens": image_tokens(tower, size),
        "patches": image_patches(tower, size),
        "size": (height, width),
    }


def _frozen_fields(case: Case, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what a trace freezes, or the layers of the language model that get adapters."""
    frozen, qwen = case.workload.frozen_vision, case.config["model_type"].startswith("qwen")
    if frozen == "none":
        return {}
    if case.workload.lora is not None:
        blocks = {name: "self_attn" if name[0] in "qkvo" else "mlp" for name in _PROJECTIONS}
        targets = [
            f"language_model.layers.{place}.{block}.{name}"
            for place in range(_LAYERS)
            for name, block in blocks.items()
        ]
        projector = () if frozen == "all" else _PROJECTOR_LAYERS
        return {"lora": {**fields["lora"], "targets": (*targets, *projector)}}
    return {"freeze": _TOWERS[qwen] + (_PROJECTORS[qwen] if frozen == "all" else ())}


def main() -> int:
    """Print each case, and the errors by family and by what is frozen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=4 * len(FAMILIES), help="how many are drawn")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", default="1", help="another seed draws other cases")
    parser.add_argument("--check", action="store_true", help="end with 1 if the aim is missed")
    add_table_option(parser)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    groups: dict[str, list[float]] = {"all": []}
    for number in range(arguments.first, arguments.first + arguments.cases):
        case = drawn_case(arguments.seed, number)
        asked, family = case.workload, case.config["model_type"]
        try:
            mine, traced = compared(case)
        except Exception as error:  # noqa: BLE001  # networks fail in many ways at sizes that do not fit together
            print(f"{number:4} not compared: {family}: {' '.join(str(error).split())[-160:]}", flush=True)
            continue
        frozen = f"frozen: {asked.frozen_vision}"
        options = (
            asked.compute,
            asked.attention,
            f"checkpointing {asked.activation_checkpointing}",
            asked.method,
            frozen,
        )
        print(
            f"{number:4} {mine / traced - 1:+7.2%} {family:11} {traced / MIB:8.1f} MiB {', '.join(options)}", flush=True
        )
        for name in ("all", family, asked.method, frozen):
            groups.setdefault(name, []).append(abs(mine / traced - 1))
    header = ["trained on images", "cases", "median error", "worst"]
    rows = [
        [name, str(len(found)), f"{statistics.median(found):.2%}", f"{max(found):.1%}"]
        for name, found in sorted(groups.items())
    ]
    for row in (header, *rows):
        print(f"{row[0]:28} {' '.join(f'{cell:>12}' for cell in row[1:])}")
    if arguments.table:
        write_table("accuracy", "image-training", header, rows)
    return int(arguments.check and (statistics.median(groups["all"]) > _MEDIAN or max(groups["all"]) > _WORST))


if __name__ == "__main__":
    sys.exit(main())
