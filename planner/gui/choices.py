"""The catalog's models and cards as choices of searchable lists."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from planner.gui.widgets.search_list import Choice, search_choices
from planner.gui.widgets.status_icons import verdict_icon
from planner.gui.workspace import Workspace
from planner.models.load import HUB_PREFIX
from planner.plan.evaluate import fits_by_gpu
from planner.plan.plan import ModelChoice
from planner.present import format as fmt

SEARCH_MODELS: Final = "Search models, or owner/name on Hugging Face"
_MOST: Final = 1_000
_HUB_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")


def model_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all models in each published format, with parameters and context length."""
    return [
        Choice(
            name,
            name.rpartition("/")[2],
            model_detail(record.parameters, record.context, is_brief=True),
            words=" ".join((name, record.family, *record.aliases)),
        )
        for record in workspace.catalog.models.records
        for name in (record.id, *record.variants)
    ]


def hub_choice(workspace: Workspace, text: str) -> Choice | None:
    """Return the choice of a Hugging Face Hub model for a typed `owner/name`, or None for other text.

    A name that matches a model of the catalog means that model, unless it begins with `hf:`.
    """
    typed = text.strip()
    name = typed.removeprefix(HUB_PREFIX)
    is_unknown = _HUB_NAME.fullmatch(typed) and not search_choices(model_choices(workspace), typed)
    if not (typed.startswith(HUB_PREFIX) or is_unknown):
        return None
    return Choice(f"{HUB_PREFIX}{name}", f"Open {name} from Hugging Face", "needs a network")


def choose_model(workspace: Workspace, key: object) -> None:
    """Set the plan's model to a catalog model, or request a model from the Hugging Face Hub."""
    name = str(key)
    if name.startswith(HUB_PREFIX):
        workspace.navigator.hub_model_requested.emit(name)
    else:
        workspace.answer("model", {"model": ModelChoice(id=name)})


def card_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all cards, each with its memory and the plan's verdict, then of all slices (MIG)."""
    fits = fits_by_gpu(workspace.plan, workspace.catalog)
    hardware = workspace.catalog.hardware
    cards = [
        Choice(gpu.id, gpu.name, fmt.size(gpu.memory_bytes), verdict_icon(fits[gpu.id].verdict), " ".join(gpu.aliases))
        for gpu in hardware.gpus
    ]
    # Without verdicts, which the details of a card show for its slices: they are many, and few people use them.
    slices = [
        Choice(each.id, each.name, fmt.size(each.memory_bytes))
        for gpu in hardware.gpus
        for each in hardware.slices(gpu)
    ]
    return [*cards, *slices]


def hardware_choices(workspace: Workspace) -> list[Choice]:
    """Return the choices of all cards and then all systems, with keys such as `accelerators:rtx-4090`."""
    from planner.present.catalog.system_row import system_rows  # takes 25 ms, which the start does not wait for

    cards = [replace(choice, key=f"accelerators:{choice.key}") for choice in card_choices(workspace)]
    systems = system_rows(workspace.catalog.hardware)
    return [
        *cards,
        *(Choice(f"systems:{row.id}", row.system.name, row.accelerators or "", words=row.id) for row in systems),
    ]


def several_of(choices: Sequence[Choice], text: str) -> Choice | None:
    """Return the choice for text such as `2 x DGX H100`: two of the best match; None for text without a number."""
    from planner.hardware.names import parse_count  # as above

    number, name = parse_count(text)
    best = next(iter(search_choices(choices, name)), None)
    if best is None or number is None or not 1 <= number <= _MOST:
        return None
    detail = f"{best.detail} each" if best.detail and number > 1 else best.detail
    return replace(best, key=f"{best.key}@{number}", title=fmt.count_of(number, best.title), detail=detail, mark=None)


def selected_card_name(workspace: Workspace, gpu_id: object) -> str:
    """Return the name of the card `gpu_id`, or `No card` for None."""
    return "No card" if gpu_id is None else workspace.catalog.hardware.gpu(str(gpu_id)).name


def model_detail(parameters: int, context: int | None, *, is_brief: bool = False) -> str:
    """Return `8.03 B parameters · up to 131,072 tokens of context`, or briefly `8.03 B parameters · 131,072 tokens`."""
    size = f"{fmt.parameters(parameters)} parameters"
    if context is None:
        return size
    tokens = f"{fmt.integer(context)} tokens"
    return f"{size} · {tokens}" if is_brief else f"{size} · up to {tokens} of context"
