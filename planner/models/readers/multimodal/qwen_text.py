"""The language models of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, which differ from Qwen2 and Qwen3 in what they assume."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from planner.models.readers.blocks import AttentionStyle
from planner.models.readers.decoder.experts import QWEN_EXPERTS, ExpertFamily
from planner.models.readers.decoder.family import Family
from planner.models.readers.decoder.llama_like import HEAD_NORMED
from planner.models.readers.places import upper_layers
from planner.models.readers.registry import Reader

_QWEN2: Final = Family(attention=AttentionStyle(bias=True, places=upper_layers), kv_heads=8)
_QWEN3: Final = Family(attention=HEAD_NORMED, kv_heads=32, head_dim=128)
_QWEN3_EXPERTS: Final = ExpertFamily(
    attention=HEAD_NORMED,
    kv_heads=16,
    experts=replace(QWEN_EXPERTS, prefix="mlp.experts.", names=("gate_up_proj", "down_proj"), layout="transposed"),
)

READERS: Final[Mapping[str, Reader]] = {
    "qwen2_5_vl_text": _QWEN2.read,
    "qwen2_vl_text": _QWEN2.read,
    "qwen3_vl_moe_text": _QWEN3_EXPERTS.read,
    "qwen3_vl_text": _QWEN3.read,
}
