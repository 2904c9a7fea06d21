"""Slices of cards (MIG) in the window: the details of a card list them, and lists of cards find them."""

from planner.gui.catalog.describe import describe_gpu
from planner.gui.choices import card_choices
from planner.gui.widgets.popover import search_choices
from planner.gui.workspace import Workspace
from planner.plan.catalog import Catalog
from planner.plan.plan import ModelChoice, Plan
from planner.present.catalog.gpu_row import gpu_row_without_plan
from planner.workload.workload import Inference


def _slices(plan: Plan, gpu_id: str, catalog: Catalog) -> dict[str, str]:
    row = gpu_row_without_plan(catalog.hardware.gpu(gpu_id), catalog.hardware, {}, catalog.software)
    summary = describe_gpu(row, plan, catalog)
    return {
        detail.title: detail.text
        for group in summary.groups
        if group.title == "Slices (MIG)"
        for detail in group.details
    }


def test_details_of_a_card_say_on_which_slices_the_plan_fits(catalog: Catalog) -> None:
    plan = Plan(
        model=ModelChoice(id="Qwen/Qwen2.5-7B"), workload=Inference(context_length=4_096), gpu="rtx-4090", count=2
    )
    shown = _slices(plan, "h100-sxm5-80gb", catalog)

    assert shown["1g.10gb"].endswith("does not fit")
    assert shown["2g.20gb"].endswith("· fits")
    assert _slices(plan, "l40s", catalog) == {}


def test_a_plan_that_no_single_card_can_run_has_slices_without_verdicts(catalog: Catalog) -> None:
    plan = Plan(model=ModelChoice(id="nobody/nothing"), workload=Inference())

    assert _slices(plan, "a30", catalog)["4g.24gb"].endswith("at most 1")


def test_lists_of_cards_find_slices_by_profile_and_name_whole_cards_first(workspace: Workspace) -> None:
    choices = card_choices(workspace)

    assert [choice.title for choice in search_choices(choices, "h100 sxm 3g")] == ["H100 SXM5 80 GB MIG 3g.40gb"]
    assert "MIG" not in search_choices(choices, "a100")[0].title
