"""Options of a service and the state of a search."""

from served_traffic import plan_on

from planner.plan.serving.answer import ServingAnswer, ServingOption, ServingWish
from planner.serving.result import ServingSimulation

OPTION = ServingOption(
    plan=plan_on("l40s", 4),
    replicas=2,
    cards_per_replica=2,
    hardware=None,
    simulation=ServingSimulation(),
    watts=None,
)


def test_an_option_counts_its_cards_and_may_have_no_price():
    assert OPTION.cards == 4
    assert OPTION.usd_per_month is None


def test_an_answer_is_complete_when_all_was_tried():
    begun = ServingAnswer(wish=ServingWish(), done=0, total=2)
    assert (begun.best, begun.complete) == (None, False)
    ended = ServingAnswer(wish=ServingWish(), done=2, total=2, options=(OPTION,))
    assert (ended.best, ended.complete) == (OPTION, True)
