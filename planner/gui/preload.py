"""Loads, when it is imported, the modules of the core that the first frame of the window needs; before Qt."""

import gc
import os
from importlib import import_module
from typing import Final

_CORE: Final = (
    "planner.fleet.connection",
    "planner.glossary",
    "planner.hardware.power",
    "planner.models.load",
    "planner.models.readers.decoder.llama_like",
    "planner.monitor.settings",
    "planner.plan.editing",
    "planner.plan.evaluate",
    "planner.plan.memory_curve",
    "planner.plan.files",
    "planner.plan.merging",
    "planner.plan.timing",
    "planner.performance.inference.estimate",
    "planner.memory.software.transformers",
    "planner.present.plan.phrase",
    "planner.present.plan.settings",
    "planner.present.cost.prices",
    "planner.present.memory.solved",
    "planner.present.catalog.column_sets",
    "planner.present.columns",
    "planner.present.cost.time",
    "planner.trace.user_code",
)
"""Only the modules that the first frame needs; the rest is imported where it is first used."""

# No pydantic plugin is used here, and searching for them reads the metadata of every installed package.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
_collected = gc.isenabled()
gc.disable()
# Before Qt: PySide6 reads the source of every module that is imported after it.
for _module in _CORE:
    import_module(_module)
# These modules live until the end: repeated garbage collection among them takes a tenth of the start.
gc.freeze()
if _collected:
    gc.enable()
