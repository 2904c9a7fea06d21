"""What is to be done: a run, a service, or hours of a day."""

from typing import Final

from planner.cost.job import DailyHours, Job, Run
from planner.cost.terms import CostTerms
from planner.gui.cost.questions import DEFAULT_JOBS, MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import RadioField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.workspace import Workspace
from planner.present import format as fmt

_KINDS: Final = (("run", "a run"), ("service", "a service"), ("daily-hours", "hours a day"))
_UNITS: Final = (
    ("tokens", "tokens"),
    ("samples", "samples"),
    ("epochs", "epochs"),
    ("steps", "steps"),
    ("hours", "hours"),
)
_OF_KIND: Final = {
    "run": (
        *("amount", "unit", "dataset_samples", "repeats_per_year", "checkpoint_seconds", "restart_seconds"),
        *("evaluation_fraction", "checkpoint_gb", "dataset_gb", "egress_gb"),
    ),
    "service": ("requests_per_day", "prompt_tokens", "output_tokens", "peak_factor", "model_gb", "egress_gb_per_month"),
    "daily-hours": ("hours_per_day", "days_per_week", "stored_gb"),
}


class JobQuestions(MoneyQuestions):
    """The questions of the job's kind; a kind that is chosen again has the answers that it had."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._jobs: dict[str, Job] = dict(DEFAULT_JOBS)
        first, form, more = LabelledForm(theme), LabelledForm(theme), LabelledForm(theme)
        self.kind = RadioField(theme, _KINDS)
        first.add("The job is", self.kind, lambda: "daily-hours", "What the cards are paid for.", wide=True)
        self.kind.edited.connect(self._choose)
        self.ask_number(form, "job.amount", "&Amount", (1e-3, 1e18), "How much the run works through: 50 M, 1.5 B, 3.")
        self.ask_choice(form, "job.unit", "of", _UNITS, "What the amount counts.")
        self.ask_number(
            form,
            "job.dataset_samples",
            "Samples an epoch",
            (1, 1e15),
            "How many samples the data set has.",
            "unknown",
        )
        self.ask_number(form, "job.repeats_per_year", "Runs a year", (0.01, 1e6), "How often it is done.", "once")
        self.ask_number(form, "job.requests_per_day", "Re&quests a day", (1, 1e12), "On average.")
        self.ask_number(form, "job.prompt_tokens", "Prompt, tokens", (0, 1e8), "Of a request, on average.")
        self.ask_number(form, "job.output_tokens", "Answer, tokens", (1, 1e8), "Of a request, on average.")
        self.ask_number(
            form, "job.peak_factor", "Peak over average", (1, 1_000), "The busiest moment over the average."
        )
        self.ask_number(form, "job.hours_per_day", "Hours &a day", (0.01, 24), "That the cards are in use.")
        self.ask_number(form, "job.days_per_week", "Days a week", (0.1, 7), "That they are in use.")
        self._ask_more(more)
        self._layout.addWidget(first)
        self.add_form(form)
        self.add_section("Beside the work", more, _beside, opened=False)
        self.speed = SpeedQuestions(workspace, theme)
        self.place_section(self.speed, self.speed.form, "Speed")

    def refresh(self) -> None:
        """Show the plan's job."""
        job = self.terms.job
        self._jobs[job.kind] = job
        self.kind.set_value(job.kind)
        self.speed.refresh()
        super().refresh()

    def has_meaning(self, path: str) -> bool:
        """Return whether the job's kind has such a field, and an epoch a size."""
        job, name = self.terms.job, path.removeprefix("job.")
        if name == "dataset_samples":
            return isinstance(job, Run) and job.unit == "epochs"
        return name in _OF_KIND[job.kind]

    def _ask_more(self, form: LabelledForm) -> None:
        gigabytes = (0.0, 1e9)
        self.ask_number(
            form, "job.evaluation_fraction", "Evaluation, %", (0, 1_000), "Of the training time.", scale=0.01
        )
        self.ask_number(form, "job.checkpoint_seconds", "A checkpoint, s", (0, 86_400), "While nothing else runs.")
        self.ask_number(form, "job.restart_seconds", "A restart, s", (0, 86_400), "Until it runs again after a stop.")
        self.ask_number(form, "job.checkpoint_gb", "Checkpoints, GB", gigabytes, "All that are kept.")
        self.ask_number(form, "job.dataset_gb", "Data set, GB", gigabytes, "Stored as long as the run takes.")
        self.ask_number(form, "job.egress_gb", "Taken out, GB", gigabytes, "Out of the cloud, each time.")
        self.ask_number(form, "job.model_gb", "Model, GB", gigabytes, "Stored all the time.")
        self.ask_number(form, "job.egress_gb_per_month", "Sent out, GB a month", gigabytes, "Out of the cloud.")
        self.ask_number(form, "job.stored_gb", "Stored, GB", gigabytes, "All the time.")

    def _choose(self, kind: object) -> None:
        with self.workspace.step():
            self.workspace.apply("kind of job", cost=self.terms.evolve(job=self._jobs[str(kind)]))


def job_phrase(job: Job) -> str:
    """Return the job in a few words: `50,000,000 tokens`, `8 hours a day`."""
    if isinstance(job, Run):
        return f"{fmt.plain(job.amount)} {job.unit}"
    if isinstance(job, DailyHours):
        return f"{fmt.plain(job.hours_per_day)} hours a day"
    return f"{fmt.plain(job.requests_per_day)} requests a day"


def _beside(terms: CostTerms) -> str:
    job = terms.job
    stored = sum(getattr(job, name, 0.0) for name in ("checkpoint_gb", "dataset_gb", "model_gb", "stored_gb"))
    return f"{fmt.plain(stored)} GB stored" if stored else "nothing stored"
