"""Speed of gpt-fast, whose decoding step PyTorch compiles."""

from typing import Final

from planner.performance.software.transformers import COMPILED

ENGINE: Final = COMPILED
