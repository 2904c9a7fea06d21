"""Training and launch files, and recordings of traces, which no start of the window needs.

`documents` imports it when such a file is first opened or saved.
"""

from pathlib import Path

from planner.errors import PlannerError
from planner.launch.load import is_launch_file, load_launch_file
from planner.models.catalog import ModelCatalog
from planner.models.load import LoadedModel, load_model_file
from planner.paths import traces_dir
from planner.plan.plan import Plan
from planner.plan.recipes import load_recipe, plan_of_recipe, with_recipe
from planner.present.plan.starting_points import recipe_summary
from planner.trace.analysis.memory import facts_of
from planner.trace.files import find_recording, is_recording_file, load_recording, save_recording, store_recording
from planner.trace.recording import TracedFacts
from planner.workload.recipes.recipe import Recipe


def read_other_file(path: Path) -> LoadedModel | TracedFacts | Recipe:
    """Return the content of a file that is not a plan: a training or launch file, a recording, or a model.

    Raises:
        PlannerError: If the file cannot be read, or is of none of these kinds.
    """
    if is_launch_file(path):
        return load_recipe(path) if path.is_dir() else load_launch_file(path)
    if not is_recording_file(path):
        return load_model_file(path)
    recording = load_recording(path)
    store_recording(traces_dir(), recording)
    return facts_of(recording)


def plan_from_training_file(
    plan: Plan, recipe: Recipe, path: Path, models: ModelCatalog
) -> tuple[Plan, tuple[str, ...]]:
    """Return `plan` with the training file at `path`, with its model if known, and what was read of it."""
    unchanged: tuple[str, ...] = ()
    try:
        plan = plan_of_recipe(recipe, path, models)
    except PlannerError as error:
        unchanged = (f"The plan keeps its model: {error.message}.",)
    return with_recipe(plan, recipe), (*recipe_summary(recipe, path.name), *unchanged)


def copy_recording(digest: str, path: Path) -> None:
    """Copy the recording of the trace with this digest to `path`.

    Raises:
        PlannerError: If the recording is no longer on this computer, or the file cannot be written.
    """
    recording = find_recording(traces_dir(), digest)
    if recording is None:
        raise PlannerError("the recording of this trace is no longer on this computer", "Trace the module again.")
    save_recording(path, recording)
