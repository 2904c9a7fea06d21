"""Published measurements of LitGPT's generation, on one card and over several, as workloads of the estimator."""

import re
from typing import Final

from memory_rows import Excluded, Row

from planner.workload.parallel import Parallel
from planner.workload.workload import Inference

_FORMATS: Final = {"bf16": "bf16", "nf4 (bnb)": "nf4", "fp4 (bnb)": "nf4", "nf4 double-quant (bnb)": "nf4-dq"}
_GENERATED: Final = 50
"""The script's default of `max_new_tokens`."""
_PROMPT: Final = 5
"""Tokens of the script's default prompt, "What food do llamas eat?"."""


def litgpt_workload(row: Row) -> Inference | Excluded:
    """Return the row's run: a prompt of a few tokens, layers in sequence or divided matrices over several cards."""
    scheme = _FORMATS.get(row.precision)
    if scheme is None:
        return Excluded(f"weight format {row.precision!r}")
    found = re.search(r"gen=(\d+)", row.other)
    shared = {"tensor": row.cards} if "generate_tp" in row.technique else {"pipeline": row.cards}
    return Inference(
        profile="litgpt",
        weights=scheme,
        compute="bf16",
        prompt_length=_PROMPT,
        context_length=_PROMPT + (int(found[1]) if found else _GENERATED),
        parallel=Parallel.model_validate(shared),
    )
