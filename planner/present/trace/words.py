"""The plain words of traced runs: kinds of memory, and where and when something happened."""

import re
from typing import Final

from planner.memory.result import PhaseName
from planner.present import format as fmt
from planner.present.names import PHASE_MOMENTS
from planner.trace.recording import Category

CATEGORY_TITLES: Final[dict[Category, str]] = {
    "parameters": "Parameters",
    "adapters": "Adapters",
    "buffers": "Buffers",
    "inputs": "Inputs",
    "gradients": "Gradients",
    "optimizer_states": "Optimizer states",
    "activations": "Activations",
    "kv_cache": "KV cache",
    "communication": "Communication",
    "temporaries": "Temporary tensors",
}
_OPERATOR: Final = re.compile(r"aten(?:::|\.)(?P<name>\w+)(?:\.\w+)?")


def operator_name(operator: str) -> str:
    """Return the name of one of PyTorch's own operators alone, `mm` for `aten.mm.default`, and others as they are."""
    match = _OPERATOR.fullmatch(operator)
    return match["name"] if match else operator


def short_place(line: str) -> str:
    """Return `net.py:42` for a source line with its whole path, on any system."""
    return re.split(r"[/\\]", line)[-1]


def phase_moment(phase: PhaseName, step: int) -> str:
    """Return `in the forward pass of step 2`; recordings count steps and tokens from 0, people from 1."""
    if phase in ("load", "prefill"):
        return PHASE_MOMENTS[phase]
    return f"{PHASE_MOMENTS[phase]}{', at token' if phase == 'decode' else ' of step'} {fmt.integer(step + 1)}"


def reached(operator: str, module: str, line: str) -> str:
    """Return `mm in layers.3 (net.py:42)`, less what is not known."""
    by = " in ".join(part for part in (operator_name(operator), module) if part)
    return f"{by} ({short_place(line)})" if by and line else by or short_place(line)
