"""The answer of the Memory tab: its sentence and its confidence."""

from memory_results import result

from planner.gui.memory.answer import AnswerPanel
from planner.present.format import THIN
from planner.present.memory.view import memory_view


def test_the_answer_says_how_sure_it_is(theme, qtbot):
    answer = AnswerPanel(theme)
    qtbot.addWidget(answer)
    tight = result().evolve(verdict="tight", fit_probability=0.74)
    answer.set_view(memory_view(tight, "RTX 4090"), "tight")
    assert "with a probability of about 3 in 4" in answer.sentence
    spoken = answer.accessibleName().replace(THIN, " ")
    assert "Counted exactly " in spoken
    assert "Chance that it fits" not in spoken
    answer.set_view(memory_view(tight.evolve(verdict="fits", fit_probability=0.96), "RTX 4090"), "fits")
    assert answer.accessibleName().endswith("Probability that it fits: about 19 in 20.")


def test_what_a_card_cannot_run_is_not_sure_or_unsure(theme, qtbot):
    answer = AnswerPanel(theme)
    qtbot.addWidget(answer)
    answer.set_view(memory_view(result().evolve(unsupported=("no kernels",)), "RTX 4090"), None)
    assert answer.accessibleName() == answer.sentence == "Not supported on RTX 4090: no kernels."
    answer.set_outdated(True)
