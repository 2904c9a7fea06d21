"""Presets and training files of other programs as text: the starting points of plans."""

from typing import TYPE_CHECKING, Final

from planner.hardware.catalog import HardwareCatalog
from planner.present import format as fmt
from planner.present.plan.settings import setting_title
from planner.workload.recipes.recipe import NEUTRAL, Recipe

if TYPE_CHECKING:  # presets are not loaded by commands without one
    from planner.plan.recipes import Preset

ANY_MODEL = "any model"


def preset_detail(preset: "Preset", hardware: HardwareCatalog) -> str:
    """Return the model of a preset and its cards, if it names some: `llama-65b · 1 × RTX A6000`."""
    subject = preset.model.rpartition("/")[2] if preset.model else ANY_MODEL
    if preset.gpu is None:
        return subject
    return f"{subject} · {fmt.count_of(preset.count, hardware.gpu(preset.gpu).name)}"


def preset_notes(preset: "Preset") -> tuple[str, ...]:
    """Return sentences on a preset and how it differs from its sources; the last sentence introduces the sources."""
    return (f"{preset.title}: {preset.summary}", *preset.notes, f"Sources, read on {fmt.date(preset.as_of)}:")


_FEW: Final = 8


def recipe_summary(recipe: Recipe, name: str) -> tuple[str, ...]:
    """Return short sentences on which keys of the training file `name` were read, assumed, not counted or ignored."""
    read = tuple(dict.fromkeys(f"{entry.key} {entry.value}" for entry in recipe.read))
    assumed = tuple(dict.fromkeys(f"{entry.key} {entry.value}" for entry in recipe.assumed))
    missing = tuple(f"{entry.key} ({entry.reason})" for entry in recipe.not_estimated)
    others = len(recipe.ignored) - len(missing)
    sentences = (
        f"Read from {name} ({recipe.title}): {_first_words_text(read)}." if read else f"Nothing was read from {name}.",
        f"Defaults of {recipe.title}: {_first_words_text(assumed)}." if assumed else "",
        f"Not counted: {_first_words_text(missing)}." if missing else "",
        f"Ignored: {others:,} {'key' if others == 1 else 'keys'} without effect on memory." if others else "",
    )
    return tuple(sentence for sentence in sentences if sentence)


def recipe_details(recipe: Recipe, name: str) -> tuple[str, ...]:
    """Return one line per key of the training file `name`: the setting that it determined, or why it was ignored."""
    return (
        f"Read from {name} ({recipe.title}):",
        *(f"    {entry.key}: {entry.value} → {setting_title(entry.field)}" for entry in recipe.read),
        *(("Defaults:",) if recipe.assumed else ()),
        *(f"    {entry.key}: {entry.value} → {setting_title(entry.field)}" for entry in recipe.assumed),
        *(("Ignored:",) if recipe.ignored else ()),
        *(f"    {entry.key}: {entry.reason}" for entry in recipe.ignored if entry.reason != NEUTRAL),
        *(f"    {entry.key}: {NEUTRAL}" for entry in recipe.ignored if entry.reason == NEUTRAL),
    )


def _first_words_text(words: tuple[str, ...]) -> str:
    """Return the first few of `words`, and how many more there are."""
    more = len(words) - _FEW
    return ", ".join(words[:_FEW]) + (f" and {more:,} more" if more > 0 else "")
