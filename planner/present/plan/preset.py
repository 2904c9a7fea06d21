"""Recipes to start from, in words."""

from planner.hardware.catalog import HardwareCatalog
from planner.plan.recipes.preset import Preset
from planner.present import format as fmt

ANY_MODEL = "any model"


def preset_detail(preset: Preset, hardware: HardwareCatalog) -> str:
    """Return `llama-65b · 1 × RTX A6000`: what it runs, and on which cards where it names some."""
    subject = preset.model.rpartition("/")[2] if preset.model else ANY_MODEL
    if preset.gpu is None:
        return subject
    return f"{subject} · {fmt.count_of(preset.count, hardware.gpu(preset.gpu).name)}"


def preset_notes(preset: Preset) -> tuple[str, ...]:
    """Return sentences on what it is and where it differs from its sources, which follow the last one."""
    return (f"{preset.title}: {preset.summary}", *preset.notes, f"Sources, read on {fmt.date(preset.as_of)}:")
