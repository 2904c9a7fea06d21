"""The form for the job: a run, a service, or daily hours."""

from typing import Final

from planner.cost.terms import DEFAULT_JOBS, CostTerms, Job, Run, Service
from planner.gui.cost.questions import MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, RadioField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.workspace import Workspace
from planner.plan.serving.job_traffic import job_targets, job_with_preset
from planner.present import format as fmt
from planner.present.serving.traffic import targets_summary
from planner.serving.traffic import load_traffic_presets

_KINDS: Final = (("run", "a run"), ("service", "a service"), ("daily-hours", "hours per day"))
_UNITS: Final = (
    ("tokens", "tokens"),
    ("samples", "samples"),
    ("epochs", "epochs"),
    ("steps", "steps"),
    ("hours", "hours"),
)
_SIDES: Final = ((None, "the cheaper"), ("rent", "rent"), ("buy", "own"))
_FIELDS_BY_KIND: Final = {
    "run": (
        *("amount", "unit", "dataset_samples", "repeats_per_year", "checkpoint_seconds", "restart_seconds"),
        *("evaluation_fraction", "checkpoint_gb", "dataset_gb", "egress_gb"),
    ),
    "service": (
        *("requests_per_day", "prompt_tokens", "output_tokens", "peak_factor", "model_gb", "egress_gb_per_month"),
        *("traffic_preset", "burstiness", "latency_percentile", "ttft_seconds", "tpot_seconds", "e2e_seconds"),
    ),
    "daily-hours": ("hours_per_day", "days_per_week", "stored_gb"),
}


class JobQuestions(MoneyQuestions):
    """Form for the job; each kind of job (run, service, daily hours) keeps its values while another kind is chosen."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._jobs: dict[str, Job] = dict(DEFAULT_JOBS)
        first, form, latency, more = (LabelledForm(theme) for _ in range(4))
        self.kind = RadioField(theme, _KINDS)
        first.add(
            "Job", self.kind, lambda: "daily-hours", "The work that the cards are rented or bought for.", wide=True
        )
        self.kind.edited.connect(self._choose_job_kind)
        self.ask_number(
            form,
            "job.amount",
            "&Amount",
            (1e-3, 1e18),
            "Amount of work in the run, such as 50 M or 3, in the unit below.",
        )
        self.ask_choice(form, "job.unit", "Unit", _UNITS, "Unit of the amount of work.")
        hint = "Number of samples in one pass over the data set."
        self.ask_number(form, "job.dataset_samples", "Samples per epoch", (1, 1e15), hint, "unknown")
        self.ask_number(
            form,
            "job.repeats_per_year",
            "Runs per year",
            (0.01, 1e6),
            "How often the run is repeated each year.",
            "once",
        )
        self.ask_number(
            form, "job.requests_per_day", "Re&quests per day", (1, 1e12), "Average number of requests per day."
        )
        self.ask_number(form, "job.prompt_tokens", "Prompt, tokens", (0, 1e8), "Average prompt length per request.")
        self.ask_number(form, "job.output_tokens", "Output, tokens", (1, 1e8), "Average output length per request.")
        self.ask_number(form, "job.peak_factor", "Peak ÷ average", (1, 1_000), "Peak load divided by average load.")
        self.ask_number(
            form, "job.hours_per_day", "Hours per d&ay", (0.01, 24), "Hours per day in which the cards are in use."
        )
        self.ask_number(
            form, "job.days_per_week", "Days per week", (0.1, 7), "Days per week on which the cards are in use."
        )
        hint = "Years for which renting is compared with buying; bought cards are sold at their end."
        self.ask_number(form, "horizon_years", "For how long, years", (0.05, 30), hint)
        hint = "Which cost the plan shows: renting or owning. The answer always compares both."
        self.ask_choice(form, "chosen", "Rent or own", _SIDES, hint)
        self._add_storage_fields(more)
        self._layout.addWidget(first)
        self.add_form(form)
        self._add_latency_fields(latency)
        self.latency = self.add_section("Traffic and latency", latency, _latency_summary, opened=False)
        self.add_section("Storage and transfer", more, _storage_summary, opened=False)
        self.speed = SpeedQuestions(workspace, theme)
        self.place_section(self.speed, self.speed.form, "Speed")

    def refresh(self) -> None:
        """Show the plan's job."""
        job = self.terms.job
        self._jobs[job.kind] = job
        self.kind.set_value(job.kind)
        self.speed.refresh()
        self.latency.setVisible(isinstance(job, Service))
        super().refresh()

    def applies(self, path: str) -> bool:
        """Return whether the kind of job has the field at `path`; samples per epoch apply only to epochs."""
        job, name = self.terms.job, path.removeprefix("job.")
        if name == "dataset_samples":
            return isinstance(job, Run) and job.unit == "epochs"
        if name in ("prompt_tokens", "output_tokens") and isinstance(job, Service) and job.traffic_preset is not None:
            return False
        return name in ("horizon_years", "chosen") or name in _FIELDS_BY_KIND[job.kind]

    def _add_storage_fields(self, form: LabelledForm) -> None:
        gigabytes = (0.0, 1e9)
        hint = "Time for evaluation, as a share of the training time."
        self.ask_number(form, "job.evaluation_fraction", "Evaluation, %", (0, 1_000), hint, scale=0.01)
        hint = "Time to write a checkpoint, during which training pauses."
        self.ask_number(form, "job.checkpoint_seconds", "Checkpoint, s", (0, 86_400), hint)
        hint = "Time to resume after an interruption."
        self.ask_number(form, "job.restart_seconds", "Restart, s", (0, 86_400), hint)
        self.ask_number(
            form, "job.checkpoint_gb", "Checkpoints, GB", gigabytes, "Total size of all stored checkpoints."
        )
        self.ask_number(
            form,
            "job.dataset_gb",
            "Data set, GB",
            gigabytes,
            "Size of the data set, stored for the duration of the run.",
        )
        self.ask_number(
            form, "job.egress_gb", "Egress, GB", gigabytes, "Data transferred out of the cloud for each run."
        )
        self.ask_number(form, "job.model_gb", "Model, GB", gigabytes, "Size of the model, stored permanently.")
        self.ask_number(
            form, "job.egress_gb_per_month", "Egress, GB per month", gigabytes, "Data transferred out of the cloud."
        )
        self.ask_number(form, "job.stored_gb", "Stored, GB", gigabytes, "Size of all data stored permanently.")

    def _add_latency_fields(self, form: LabelledForm) -> None:
        titles = tuple((preset.id, preset.title) for preset in load_traffic_presets())
        hint = "The lengths above, or the published lengths, conversations and targets of a kind of service."
        self.traffic = ChoiceField(self.theme, ((None, "fixed lengths"), *titles))
        self.place_field(form, "job.traffic_preset", "Traffic", self.traffic, hint)
        self.traffic.edited.connect(self._choose_traffic)
        hint = "1: random (Poisson); below 1: bursts; above 1: more evenly spread."
        self.ask_number(form, "job.burstiness", "Burstiness of arrivals", (0.01, 100), hint)
        hint = "Longest time to the first token of an answer."
        self.ask_number(form, "job.ttft_seconds", "First token, s", (0.001, 1e6), hint, "no target")
        hint = "Longest mean time between the tokens of an answer."
        self.ask_number(form, "job.tpot_seconds", "Per token, ms", (0.01, 1e6), hint, "no target", scale=0.001)
        hint = "Longest time to the end of an answer."
        self.ask_number(form, "job.e2e_seconds", "End to end, s", (0.001, 1e6), hint, "no target")
        hint = "Percentage of the requests for which the latency targets must be met."
        percents = tuple((percent, f"p{percent:g}") for percent in (50.0, 90.0, 95.0, 99.0))
        self.ask_choice(form, "job.latency_percentile", "Percentile", percents, hint)

    def _choose_traffic(self, name: object) -> None:
        job = self.terms.job
        assert isinstance(job, Service)  # only services have the field
        preset = next((each for each in load_traffic_presets() if each.id == name), None)
        with self.workspace.step():
            self.workspace.apply("traffic", cost=self.terms.evolve(job=job_with_preset(job, preset)))

    def _choose_job_kind(self, kind: object) -> None:
        with self.workspace.step():
            self.workspace.apply("kind of job", cost=self.terms.evolve(job=self._jobs[str(kind)]))


def _latency_summary(terms: CostTerms) -> str:
    job = terms.job
    return targets_summary(job_targets(job)) if isinstance(job, Service) else ""


def _storage_summary(terms: CostTerms) -> str:
    job = terms.job
    stored = sum(getattr(job, name, 0.0) for name in ("checkpoint_gb", "dataset_gb", "model_gb", "stored_gb"))
    return f"{fmt.plain(stored)} GB stored" if stored else "nothing stored"
