"""Decoders that differ from Llama in a few switches."""

from collections.abc import Mapping
from typing import Final

from planner.models.readers.registry import Reader

READERS: Final[Mapping[str, Reader]] = {}
