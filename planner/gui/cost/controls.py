"""The left column of the Cost tab: the form for renting, those for the job and owning, and the buttons."""

from collections.abc import Iterator
from functools import cached_property
from typing import Final, TypeVar

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.cost.estimate import CostEstimate
from planner.cost.terms import DEFAULT_JOBS, RENT_MODES, CostTerms, Job, Run, Service
from planner.gui.cost.buy import BuyQuestions
from planner.gui.cost.questions import YES_OR_NO, MoneyQuestions
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import push_button
from planner.gui.widgets.inputs.choice_field import ChoiceField, RadioField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.layout import (
    STRETCH,
    ScrollColumn,
    hairline,
    in_column,
    in_row,
    scrolled,
)
from planner.gui.widgets.speed_questions import SpeedQuestions
from planner.gui.workspace import Workspace
from planner.plan.serving.service_simulation import job_targets, job_with_preset
from planner.present import format as fmt
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.cost.summary import billing_phrase
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
            "Job", self.kind, lambda: "daily-hours", "The work that the GPUs are rented or bought for.", wide=True
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
            form,
            "job.requests_per_day",
            "Re&quests per day",
            (1, 1e12),
            "Average number of requests per day, or as in “50/s”; 1 request/s is 86,400 a day.",
        )
        self.ask_number(form, "job.prompt_tokens", "Prompt, tokens", (0, 1e8), "Average prompt length per request.")
        self.ask_number(form, "job.output_tokens", "Output, tokens", (1, 1e8), "Average output length per request.")
        self.ask_number(form, "job.peak_factor", "Peak ÷ average", (1, 1_000), "Peak load divided by average load.")
        self.ask_number(
            form, "job.hours_per_day", "Hours per d&ay", (0.01, 24), "Hours per day in which the GPUs are in use."
        )
        self.ask_number(
            form, "job.days_per_week", "Days per week", (0.1, 7), "Days per week on which the GPUs are in use."
        )
        hint = (
            "Years for which renting is compared with buying, or as in “3 months”; bought GPUs are sold at their end."
        )
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
        hint = "Lengths as entered above, or the published lengths, conversations and targets of a kind of service."
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


_INCREMENTS: Final = ((1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day"), (2_592_000, "month of 30 days"))
_ONE_MACHINE: Final = ((None, "as needed"), *YES_OR_NO)
_CHEAPEST: Final = (None, "the cheapest")


class RentQuestions(MoneyQuestions):
    """The form for the rental type, the offer, and billing."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme)
        self._billing = ""
        form, bill = LabelledForm(theme), LabelledForm(theme)
        modes = tuple((mode, RENT_MODE_TITLES[mode]) for mode in RENT_MODES)
        self.ask_choice(form, "rent.mode", "&Rental type", modes, "On demand, spot, or reserved for 1 or 3 years.")
        hint = "The rented offer; double-click an offer in the table to use it instead of the cheapest."
        self.offer = self.ask_choice(form, "rent.offer", "Offer", (_CHEAPEST,), hint)
        hint = "Your own rental price, which replaces the offer's price."
        self.ask_number(form, "rent.usd_per_gpu_hour", "Price, $/GPU-hour", (0.001, 1_000), hint, "offer's price")
        hint = "Whether all GPUs must be in one machine (at most eight); “as needed”: only if they exchange data."
        self.ask_choice(form, "rent.one_machine", "In one machine", _ONE_MACHINE, hint)
        hint = "Whether to include offers that are older than twelve months."
        self.ask_choice(form, "rent.include_history", "Include old offers", YES_OR_NO, hint)
        path, hint = "rent.mean_hours_between_interruptions", "Mean time between interruptions of a spot machine."
        self.ask_number(form, path, "Interrupted after, h", (0.01, 1e6), hint, "GPU's typical interval")
        hint = "Unit of time that is billed, if the offer does not state one."
        self.ask_choice(bill, "rent.billing_increment_seconds", "Billing increment", _INCREMENTS, hint)
        hint = "Billed hours per job in which nothing runs."
        self.ask_number(bill, "rent.idle_billed_hours", "Idle hours", (0, 1e6), hint)
        hint = "Price of storage per GB and month."
        self.ask_number(bill, "rent.storage_usd_per_gb_month", "Storage, $/GB·month", (0, 10), hint, "typical price")
        hint = "Price per GB transferred out of the cloud."
        self.ask_number(bill, "rent.egress_usd_per_gb", "Egress, $/GB", (0, 10), hint, "provider's price")
        hint = "Expected change of rental prices per year; negative if they fall."
        self.ask_number(bill, "rent.price_drift_per_year", "Price trend, % per year", (-90, 300), hint, scale=0.01)
        self.add_section("Renting", form, _rental_mode_summary, opened=True)
        self.add_section("Billing", bill, self._billing_summary, opened=False)

    def show_billing(self, estimate: CostEstimate | None) -> None:
        """Show in the collapsed section what the rented offer bills, which may not be the chosen increment."""
        rent = None if estimate is None else estimate.result.rent
        self._billing = "" if rent is None else billing_phrase(rent)
        self.update_summaries()

    def refresh(self) -> None:
        """Show the plan's rental terms; the offers to choose from are the chosen one and the cheapest."""
        chosen = self.terms.rent.offer
        self.offer.set_options((_CHEAPEST,) if chosen is None else (_CHEAPEST, (chosen, chosen)))
        self.offer.set_value(chosen)
        super().refresh()

    def applies(self, path: str) -> bool:
        """Return whether the term at `path` has an effect: interruptions only for spot, one machine for many cards."""
        if path == "rent.mean_hours_between_interruptions":
            return self.terms.rent.mode == "spot"
        return path != "rent.one_machine" or self.workspace.plan.count > 1

    def _billing_summary(self, terms: CostTerms) -> str:
        drift = terms.rent.price_drift_per_year
        trend = f"{'rising' if drift > 0 else 'falling'} by {fmt.percent(abs(drift))} a year" if drift else "constant"
        return ", ".join(filter(None, (self._billing, f"prices {trend}")))


def _rental_mode_summary(terms: CostTerms) -> str:
    return RENT_MODE_TITLES[terms.rent.mode]


Asked = TypeVar("Asked", bound=MoneyQuestions)


class CostControls(QWidget):
    """Left column of the Cost tab: forms above buttons. The tab connects the buttons except Reset."""

    def __init__(self, workspace: Workspace, theme: Theme, width: int) -> None:
        super().__init__()
        self._workspace, self._theme = workspace, theme
        self._job_place, self._rent_place, self._buy_place = QVBoxLayout(), QVBoxLayout(), QVBoxLayout()
        self.recommend = push_button(
            "Ch&oose hardware…", "Compare all GPUs, their numbers and rental offers for this job."
        )
        self.prices = push_button("Prices…", "Show the age of the prices, fetch new ones, or add your own offers.")
        self.copy = push_button("Cop&y", "Copy or save the answer.")
        self._reset = push_button("Re&set", "Reset every field of this column to its default.")
        self.setFixedWidth(width)
        self._lay_out(theme)
        self._reset.clicked.connect(self.reset)

    # Created one by one while the window is idle: all of them at once would keep it waiting.

    @cached_property
    def job(self) -> JobQuestions:
        """Return the form for the job."""
        return self._placed(JobQuestions(self._workspace, self._theme), self._job_place)

    @cached_property
    def rent(self) -> RentQuestions:
        """Return the form for renting."""
        return self._placed(RentQuestions(self._workspace, self._theme), self._rent_place)

    @cached_property
    def buy(self) -> BuyQuestions:
        """Return the form for owning."""
        return self._placed(self._unplaced_buy, self._buy_place)

    @cached_property
    def _unplaced_buy(self) -> BuyQuestions:
        return BuyQuestions(self._workspace, self._theme)

    def prepare(self) -> Iterator[MoneyQuestions]:
        """Create the forms, one in each step; the longest is created in one step and placed in the next."""
        yield self.job
        yield self.rent
        yield self._unplaced_buy
        yield self.buy

    @property
    def questions(self) -> tuple[MoneyQuestions, ...]:
        """Return the forms for the job, renting and owning."""
        return self.job, self.rent, self.buy

    def refresh(self) -> None:
        """Show the plan's cost terms in the forms."""
        for questions in self.questions:
            questions.refresh()
        plan = self._workspace.plan
        self._reset.setEnabled(plan.cost != CostTerms() or plan.timing.measured is not None)

    def point_to(self, path: str, reason: str) -> None:
        """Show the `reason` for a missing answer below the field at `path`, such as `rent.offer`."""
        for questions in self.questions:
            if path in questions.paths:
                questions.field(path).show_problem(reason)

    def reveal(self, path: str) -> None:
        """Scroll to the field at `path`, which the form marks if it differs from its default."""
        field = next((each.field(path) for each in self.questions if path in each.paths), None)
        if field is not None:
            self.area.ensureWidgetVisible(field)

    @Slot()
    def reset(self) -> None:
        """Reset every field to its default in one undo step."""
        with self._workspace.step():
            timing = self._workspace.plan.timing.evolve(measured=None)
            self._workspace.apply("reset cost terms", cost=CostTerms(), timing=timing)

    def _lay_out(self, theme: Theme) -> None:
        column = in_column((self._scrolled_forms(theme), 1), hairline(Qt.Orientation.Horizontal), owner=self, spacing=0)
        buttons = in_row(
            self.recommend,
            self.prices,
            self._reset,
            self.copy,
            STRETCH,
            margins=(theme.spacing.medium, theme.spacing.small),
            spacing=theme.spacing.tiny,
        )
        column.addLayout(buttons)

    def _placed(self, questions: Asked, place: QVBoxLayout) -> Asked:
        place.addWidget(questions)
        return questions

    def _scrolled_forms(self, theme: Theme) -> ScrollColumn:
        body = QWidget()
        in_column(
            self._job_place,
            self._rent_place,
            self._buy_place,
            STRETCH,
            owner=body,
            margins=theme.spacing.medium,
            spacing=theme.spacing.small,
        )
        self.area = scrolled(body)
        return self.area
