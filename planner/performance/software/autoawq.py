"""Speed of AutoAWQ: its fused layers decode as a compiled network does."""

from typing import Final

from planner.performance.software.transformers import COMPILED

ENGINE: Final = COMPILED
