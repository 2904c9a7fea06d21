"""Services of `gpu-planner monitor` for other programs: Prometheus' exposition, rules and dashboard, and alerts."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from planner.cli.parser import Parser, number_type
from planner.cli.user_catalog import user_catalog
from planner.errors import MissingPackageError, PlannerError
from planner.installation import extra_command
from planner.monitor.alerts import AlertWatch
from planner.monitor.diagnosis.verdict import Verdict
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device
from planner.monitor.settings import AlertRules, AlertTargets
from planner.monitor.supervisor.supervisor import Update
from planner.numbers import AMOUNT
from planner.present.monitor.alert_options import ALERT_OPTIONS, AlertOption
from planner.present.monitor.events import alert_object

if TYPE_CHECKING:
    from planner.monitor.alert_delivery import AlertDelivery
    from planner.monitor.exposition.server import Exposition
    from planner.plan.evaluate import Evaluation

TOKEN_VARIABLE: Final = "GPU_PLANNER_METRICS_TOKEN"
ExportKind = Literal["rules", "dashboard"]
_HELP_HINT: Final = "Try: gpu-planner monitor --help"
# Prometheus seldom scrapes node_exporter more often.
_TEXTFILE_SECONDS: Final = 5.0
_MODES: Final = ("once", "doctor", "replay", "summary", "log")
_MOST_TOKEN_BYTES: Final = 8_192


def add_service_options(parser: Parser) -> None:
    """Add the options of `monitor` that serve other programs."""
    group = parser.add_details(
        "Prometheus and alerts", "See docs/remote.md. Secrets come from environment variables or files."
    )
    group.add_argument(
        "--serve", metavar="[HOST:]PORT", help="serve the readings to Prometheus; without HOST, to this machine only"
    )
    group.add_argument("--certificate", metavar="FILE", type=Path, help="certificate for --serve, in PEM: serve by TLS")
    group.add_argument("--key", metavar="FILE", type=Path, help="the certificate's key, unless that file contains it")
    group.add_argument(
        "--token-file",
        metavar="FILE",
        type=Path,
        help=f"bearer token that --serve requires; otherwise that in {TOKEN_VARIABLE}, or none",
    )
    group.add_argument(
        "--textfile", metavar="FILE.prom", type=Path, help="write the readings for node_exporter's textfile collector"
    )
    group.add_argument(
        "--alert-command", metavar="COMMAND", help="run COMMAND at each alert, with the alert as JSON on its input"
    )
    group.add_argument("--alert-webhook", metavar="URL", help="send each alert as JSON to URL by POST")
    for option in ALERT_OPTIONS:
        usual = getattr(AlertRules(), option.field)
        group.add_argument(
            f"--alert-{option.name}",
            metavar=f"{option.unit or 'on'}|off",
            type=_alert_value(option),
            help=f"{option.hint[0].lower()}{option.hint[1:]} [{_alert_text(option, usual)}]",
        )
    group.add_argument(
        "--alert-after",
        metavar="SECONDS",
        type=number_type(AMOUNT, 0, 3600),
        help=f"alert once a temperature or memory has stayed so high for SECONDS [{AlertRules().hold_seconds:g}]",
    )
    group.add_argument(
        "--prometheus-rules",
        dest="export_kind",
        action="store_const",
        const="rules",
        help="print Prometheus' alerting rules for what --serve exposes",
    )
    group.add_argument(
        "--grafana-dashboard",
        dest="export_kind",
        action="store_const",
        const="dashboard",
        help="print a Grafana dashboard of what --serve exposes, as JSON",
    )
    group.add_argument(
        "--wire", action="store_true", help="what `monitor ssh://HOST` starts on HOST; not for the terminal"
    )


def check_service_options(arguments: argparse.Namespace) -> None:
    """Check that the options for other programs can be combined with the rest.

    Raises:
        PlannerError: If an option lacks another, or cannot be combined with one.
    """
    given = {
        f"--{name.replace('_', '-')}": getattr(arguments, name)
        for name in ("serve", "textfile", "alert_command", "alert_webhook")
    }
    mode = next((name for name in _MODES if getattr(arguments, name)), None)
    for option, value in given.items():
        if value is not None and mode is not None:
            raise PlannerError(f"{option} and --{'import' if mode == 'log' else mode} cannot be combined", _HELP_HINT)
    companions = {
        "--certificate": (arguments.certificate, arguments.serve, "--serve PORT"),
        "--token-file": (arguments.token_file, arguments.serve, "--serve PORT"),
        "--key": (arguments.key, arguments.certificate, "--certificate FILE"),
        **{
            f"--alert-{name}": (value, arguments.alert_command or arguments.alert_webhook, "--alert-command COMMAND")
            for name, value in _alert_settings(arguments).items()
        },
    }
    for option, (value, companion, name) in companions.items():
        if value is not None and companion is None:
            raise PlannerError(f"{option} needs {name}", _HELP_HINT)
    if arguments.textfile is not None and arguments.textfile.suffix != ".prom":
        raise PlannerError(f"--textfile: {arguments.textfile} must end in .prom", "node_exporter reads no other file.")


def _alert_value(option: AlertOption) -> Callable[[str], Any]:
    """Return a function for argparse that parses a threshold or `off`, or `on` or `off`."""
    if option.unit:
        return number_type(option.kind, 1, option.most / option.scale, "off")

    def parse(text: str) -> str:
        if text not in ("on", "off"):
            raise argparse.ArgumentTypeError(f"{text!r} is neither on nor off")
        return text

    return parse


def _alert_text(option: AlertOption, value: float | None) -> str:
    return "off" if not value else f"{value / option.scale:g}" if option.unit else "on"


def _alert_settings(arguments: argparse.Namespace) -> dict[str, float | str]:
    """Return what the options say of alerts, by their names."""
    names = (*(option.name for option in ALERT_OPTIONS), "after")
    given = {name: getattr(arguments, f"alert_{name.replace('-', '_')}") for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _alert_rules(arguments: argparse.Namespace) -> AlertRules:
    given = _alert_settings(arguments)
    changes: dict[str, object] = {"hold_seconds": given["after"]} if "after" in given else {}
    for option in ALERT_OPTIONS:
        value = given.get(option.name)
        if isinstance(value, str):
            changes[option.field] = value == "on" if not option.unit else None
        elif value is not None:
            changes[option.field] = value * option.scale
    return AlertRules(is_on=True).evolve(**changes)


def print_export(kind: ExportKind) -> int:
    """Print the rules or the dashboard, and return the exit code."""
    from planner.present.monitor.prometheus import alerting_rules, grafana_dashboard

    print(alerting_rules() if kind == "rules" else grafana_dashboard(), end="")
    return 0


class Services:
    """Serves, writes and alerts while a live run goes on, as its command line says."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments, self._stack = arguments, ExitStack()
        self._is_silent = Services.is_silent(arguments)
        self.exposition: Exposition | None = None
        self._delivery: AlertDelivery | None = None
        self._watch = AlertWatch(_alert_rules(arguments))
        self._write_at = float("-inf")
        self._evaluation: Evaluation | None = None
        self._devices: tuple[Device, ...] = ()
        self._has_failed = False

    @staticmethod
    def is_silent(arguments: argparse.Namespace) -> bool:
        """Return whether nothing is shown: a service prints no pages into a log."""
        is_service = any((arguments.serve, arguments.textfile, arguments.alert_command, arguments.alert_webhook))
        return is_service and not arguments.json and not sys.stdout.isatty()

    @staticmethod
    def goes_on_without_cards(arguments: argparse.Namespace) -> bool:
        """Return whether a machine without cards is no error, because its fault is exposed like a reading."""
        return arguments.serve is not None or arguments.textfile is not None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def note(self, history: History, update: Update, verdicts: Callable[[History], Mapping[str, Verdict]]) -> None:
        """Take over the history after `update`."""
        if self.exposition is not None:
            self._expose(self.exposition, history, verdicts)
        if self._delivery is not None:
            for alert in self._watch.note(update, history.latest):
                wall = history.latest.wall_seconds if alert.fault is None else alert.fault.since_seconds
                ready = alert_object(alert, history.inventory.machine, time() if wall is None else wall)
                self._delivery.send(ready)
                self._say(f"{ready['title']}. {ready['advice']}")

    def _start(self, stack: ExitStack) -> None:
        arguments = self._arguments
        if arguments.serve is not None or arguments.textfile is not None:
            self.exposition = _new_exposition()
            stack.callback(self._remove_textfile)
        if self.exposition is not None and arguments.plan is not None:
            self._evaluation = _evaluation(arguments.plan)
        if self.exposition is not None and arguments.serve is not None:
            self._serve(self.exposition, stack)
        if arguments.alert_command is not None or arguments.alert_webhook is not None:
            from planner.monitor.alert_delivery import AlertDelivery

            targets = AlertTargets(command=arguments.alert_command or "", webhook=arguments.alert_webhook or "")
            self._delivery = stack.enter_context(AlertDelivery(targets, _print_line))

    def _serve(self, exposition: "Exposition", stack: ExitStack) -> None:
        from planner.monitor.exposition.server import ListenAddress, MetricsServer

        arguments = self._arguments
        address = ListenAddress.parse(arguments.serve)
        token = _token(arguments.token_file)
        server = stack.enter_context(MetricsServer(exposition, address, token, arguments.certificate, arguments.key))
        _print_line(f"Serving {server.url}")
        if address.is_public and not token:
            _print_line(f"Everyone who can reach this port can read it; set {TOKEN_VARIABLE} to require a token.")

    def _expose(
        self, exposition: "Exposition", history: History, verdicts: Callable[[History], Mapping[str, Verdict]]
    ) -> None:
        exposition.note_verdicts(verdicts(history))
        if self._evaluation is not None and history.inventory.devices != self._devices:
            from planner.present.monitor.plan_on_cards import compare_plan_with_cards, match_cards

            self._devices = history.inventory.devices
            matches = match_cards(user_catalog().hardware, self._devices)
            predictions = compare_plan_with_cards(self._evaluation, matches, history.latest).expected
            exposition.note_predictions(predictions)
        if self._arguments.textfile is not None and history.end is not None and monotonic() >= self._write_at:
            self._write_textfile(exposition)

    def _write_textfile(self, exposition: "Exposition") -> None:
        from planner.monitor.exposition.server import write_textfile

        is_first = self._write_at == float("-inf")
        self._write_at = monotonic() + _TEXTFILE_SECONDS
        try:
            write_textfile(exposition, self._arguments.textfile)
        except OSError as error:
            if is_first:
                raise
            # A disk that is full for a while must not end the run.
            if not self._has_failed:
                _print_line(f"{self._arguments.textfile}: {error.strerror or error}")
            self._has_failed = True
        else:
            self._has_failed = False

    def _remove_textfile(self) -> None:
        """Remove the file, whose readings would otherwise stand still for ever."""
        if self._arguments.textfile is not None:
            self._arguments.textfile.unlink(missing_ok=True)

    def _say(self, line: str) -> None:
        """Print a line for the log of a service; a terminal shows the same on its page."""
        if self._is_silent:
            _print_line(line)


def _new_exposition() -> "Exposition":
    try:
        from planner.monitor.exposition.server import Exposition
    except ImportError as error:
        raise MissingPackageError(
            "the exposition for Prometheus needs the package prometheus-client", f"Run: {extra_command('metrics')}"
        ) from error
    return Exposition()


def _evaluation(path: Path) -> "Evaluation":
    from planner.plan.evaluate import evaluate
    from planner.plan.files import load_plan

    return evaluate(load_plan(path), user_catalog())


def _token(path: Path | None) -> str:
    if path is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    with path.open("rb") as stream:
        token = stream.read(_MOST_TOKEN_BYTES).decode("latin-1").strip()
    if not token:
        raise PlannerError(f"--token-file: {path} is empty", "Write the token into it.")
    return token


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
