"""Published measurements of torchao's Llama script, which is gpt-fast with caches and masks of a chosen length."""

from memory_rows import Excluded, Row

from planner.dtypes import ELEMENT_BYTES
from planner.workload.software.gpt_fast import GptFastSettings
from planner.workload.workload import Inference

_PROMPT = 6


def gpt_fast_workload(row: Row) -> Inference | Excluded:
    """Return the row's run: a prompt of a few tokens, and a cache of the row's length."""
    if row.precision not in ELEMENT_BYTES:
        return Excluded("torchao's script keeps reserved what it quantised from")
    settings = GptFastSettings(
        kv_cache_quantization=row.kv_format == "int8" or None,
        linear_causal_mask="linear causal mask" in row.technique or None,
    )
    return Inference(
        profile="gpt-fast",
        weights=row.precision,
        compute=row.precision,
        kv_cache=row.precision,
        engine=settings,
        prompt_length=_PROMPT,
        context_length=int(row.length),
    )
