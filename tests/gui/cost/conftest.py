"""The cost tab around a plan that is trained, on a fixed day."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from planner.cost.rent_or_buy import decision, uncertainty
from planner.cost.rent_or_buy.case import RentOrBuyCase
from planner.gui.cost import tab as tab_module
from planner.gui.cost.tab import CostTab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace
from planner.workload.training import Training

TODAY = date(2026, 11, 22)


def _kept(simulated: Callable[..., Any]) -> Callable[..., Any]:
    results: dict[str, Any] = {}

    def result(case: RentOrBuyCase, **options: Any) -> Any:
        key = repr(case)
        if results.get(key) is None:  # not yet, or given up
            results[key] = simulated(case, **options)
        return results[key]

    return result


@pytest.fixture(scope="session", autouse=True)
def drawn_once() -> Iterator[None]:
    """Draw the samples of equal cases once: most tests start with the same plan."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tab_module, "simulate", _kept(uncertainty.simulate))
        patch.setattr(decision, "owning_cheaper_fraction", _kept(uncertainty.owning_cheaper_fraction))
        yield


@pytest.fixture
def tab(
    qtbot: QtBot,
    workspace: Workspace,
    theme: Theme,
    tasks: TaskRunner,
) -> CostTab:
    """The tab at the size that it has in the smallest window, with its draws drawn."""
    workspace.apply("work", workload=Training(method="qlora", activation_checkpointing="full"))
    workspace.undo_stack.clear()
    made = CostTab(workspace, theme, tasks, lambda: TODAY)
    for _part in made.prepare():
        pass
    qtbot.addWidget(made)
    made.resize(1157, 706)
    made.show()
    qtbot.waitUntil(lambda: made.drawn)
    return made
