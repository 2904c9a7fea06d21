"""The answer of the Memory tab: its gauge, or its sentence, and its facts."""

from memory_results import result

from planner.gui.memory.tab import AnswerPanel
from planner.present.format import THIN
from planner.present.memory.view import memory_view

NARROW = "\N{NARROW NO-BREAK SPACE}"


def test_the_headline_is_the_gauge_and_the_facts_stand_below(theme, qtbot):
    answer = AnswerPanel(theme)
    qtbot.addWidget(answer)
    tight = result().evolve(verdict="tight", fit_probability=0.74)
    answer.set_view(memory_view(tight, "RTX 4090"), "tight")
    assert answer.headline.replace(NARROW, " ") == "Tight: 18.0 of 24.0 GiB · 74 % sure it fits"
    assert answer._facts.text().startswith("On 1 × RTX 4090 · ")
    assert " counted exactly" in answer._note_lines.text()
    spoken = answer.accessibleName().replace(THIN, " ")
    assert spoken.startswith("Tight on 1 × RTX 4090: needs ")
    assert ", 74 % sure it fits." in spoken
    answer.set_view(memory_view(tight.evolve(verdict="fits", fit_probability=0.96), "RTX 4090"), "fits")
    assert answer.headline.replace(NARROW, " ") == "Fits: 18.0 of 24.0 GiB · 96 % sure"


def test_what_a_card_cannot_run_is_not_sure_or_unsure(theme, qtbot):
    answer = AnswerPanel(theme)
    qtbot.addWidget(answer)
    answer.set_view(memory_view(result().evolve(unsupported=("no kernels",)), "RTX 4090"), None)
    assert answer.accessibleName() == answer.headline == "Not supported on RTX 4090: no kernels."
    answer.set_outdated(True)
