"""`gpu-planner fleet`: the GPUs of many machines, the worst first, from Prometheus or from exporters."""

import argparse
import os
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from planner.cli.parser import Parser, number_type, row_limit
from planner.cli.table import column_table, terminal_width, wrap
from planner.cli.user_catalog import user_catalog
from planner.errors import SpecError
from planner.fleet.cards import missing_evidence
from planner.fleet.connection import SECRET_VARIABLE, FleetConnection, SignIn
from planner.fleet.costs import FleetPrices
from planner.fleet.fleet import Fleet, read_fleet
from planner.monitor.diagnosis.verdict import verdict_object
from planner.monitor.readings.reading import Reading
from planner.numbers import AMOUNT
from planner.present.fleet import (
    FLEET_COLUMNS,
    FleetRow,
    energy_line,
    fleet_headline,
    fleet_rows,
    matching_rows,
    server_line,
    worst_first,
)

_DESCRIPTION: Final = """\
Show the GPUs of many machines, the worst first: silent ones, errors, warnings, idle ones. URL is the address of
Prometheus or of a server with the same API (Thanos, Mimir, VictoriaMetrics, a data source of Grafana), with any prefix;
or the address of an exporter's metrics, or a file of them."""
_EXAMPLES: Final = f"""\
examples:
  gpu-planner fleet http://prometheus:9090
  gpu-planner fleet https://mimir.example.org/prometheus --tenant team-a --secret file:token.txt
  gpu-planner fleet https://prometheus.example.org --user reader --secret env:PROMETHEUS_PASSWORD --ca ca.pem
  gpu-planner fleet http://prometheus:9090 --host 'gpu-node-1*' --worst 20
  gpu-planner fleet http://node1:9400/metrics http://node2:9400/metrics
  gpu-planner fleet http://prometheus:9090 --json

Without --secret, the password or token is read from the environment variable {SECRET_VARIABLE} if --user or --token is
given. Exporters: dcgm-exporter, nvidia_gpu_exporter, AMD device-metrics-exporter, Intel XPU Manager, all-smi,
nvitop-exporter, node_exporter, and `gpu-planner monitor --serve`."""
_USUAL_ROWS: Final = 40


def run(argv: list[str]) -> int:
    """Run `gpu-planner fleet` and return the exit code."""
    arguments = make_parser().parse_args(argv)
    fleet = read_fleet([_connection(url, arguments) for url in arguments.urls], os.environ)
    prices = FleetPrices(user_catalog(), date.today())
    rows = worst_first(matching_rows(fleet_rows(fleet), hosts=arguments.host or ()))
    if arguments.host and not rows:
        hosts = ", ".join(fleet.host_names[:8])
        raise SpecError("--host", f"no host fits {' '.join(arguments.host)}", f"Hosts are: {hosts}.")
    if arguments.json:
        shown = rows[: arguments.worst or len(rows)]
        print(to_json(_fleet_object(fleet, shown, prices, arguments.tariff), indent=2).decode())
    else:
        _print_fleet(fleet, rows, prices, arguments)
    return 0


def make_parser() -> Parser:
    """Return the parser of the command's options."""
    parser = Parser("gpu-planner fleet", _DESCRIPTION, _EXAMPLES)
    parser.add_argument_group("where the readings come from").add_argument(
        "urls", metavar="URL", nargs="+", help="Prometheus, an exporter's metrics, or a file of them"
    )
    shown = parser.add_argument_group("what is shown")
    shown.add_argument("--worst", metavar="N", type=row_limit, help=f"show the N worst GPUs [{_USUAL_ROWS}]")
    shown.add_argument("--host", metavar="PATTERN", action="append", help="only hosts of this name; * and ? match any")
    shown.add_argument(
        "--tariff", metavar="USD", type=number_type(AMOUNT, 0, 10), help="price of a kWh, for the cost of electricity"
    )
    access = parser.add_argument_group("signing in")
    access.add_argument("--user", metavar="NAME", help="sign in with a name and a password")
    access.add_argument("--token", action="store_true", help="sign in with a token (Authorization: Bearer)")
    access.add_argument("--secret", metavar="WHERE", help="the password or token: env:NAME, file:PATH or keyring")
    access.add_argument("--tenant", metavar="ID", help="tenant of Mimir or Cortex (X-Scope-OrgID)")
    access.add_argument("--ca", metavar="FILE", type=Path, help="certificates of your own authority, in PEM")
    parser.add_general_options()
    return parser


def _connection(url: str, arguments: argparse.Namespace) -> FleetConnection:
    if arguments.user and arguments.token:
        raise SpecError("--token", "cannot go with --user", "Sign in with one of them.")
    sign_in: SignIn = "basic" if arguments.user else "bearer" if arguments.token or arguments.secret else "none"
    return FleetConnection(
        url=url,
        sign_in=sign_in,
        user=arguments.user or "",
        secret=arguments.secret or f"env:{SECRET_VARIABLE}",
        tenant=arguments.tenant or "",
        ca_file=arguments.ca,
    )


def _print_fleet(fleet: Fleet, rows: tuple[FleetRow, ...], prices: FleetPrices, arguments: argparse.Namespace) -> None:
    width, costs = terminal_width(), prices.costs(fleet, arguments.tariff)
    print(wrap(fleet_headline(fleet, costs), width))
    if energy := energy_line(costs):
        print(wrap(energy, width))
    shown = rows[: arguments.worst or _USUAL_ROWS]
    if shown:
        print(f"\n{column_table(FLEET_COLUMNS, shown)}")
    if len(shown) < len(rows):
        print(f"and {len(rows) - len(shown):,} more; --worst N shows N GPUs")
    for cost in prices.serving(fleet):
        print(f"\n{wrap(server_line(cost), width)}", end="")
    if fleet.servers:
        print()
    hints = dict.fromkeys(missing_evidence(row.card) for row in rows)
    for note in filter(None, (*fleet.notes, *hints)):
        print(wrap(note, width, "note: "), file=sys.stderr)


def _fleet_object(
    fleet: Fleet, rows: tuple[FleetRow, ...], prices: FleetPrices, usd_per_kwh: float | None
) -> dict[str, Any]:
    costs = prices.costs(fleet, usd_per_kwh)
    return {
        "source": fleet.title,
        "at": _iso(fleet.at_seconds),
        "interval_seconds": fleet.interval_seconds,
        "notes": fleet.notes,
        "cards": [_card_object(row, prices) for row in rows],
        "hosts": {host: _values(readings) for host, readings in fleet.hosts.items()},
        "servers": [
            {
                **{name: value for name, value in cost.server._asdict().items() if name != "run"},
                "measured": cost.server.run,
                "cards": cost.cards,
                "usd_per_hour": cost.usd_per_hour,
                "usd_per_million_tokens": cost.usd_per_million_tokens,
            }
            for cost in prices.serving(fleet)
        ],
        "costs": {**costs._asdict(), "idle": len(costs.idle)},
    }


def _card_object(row: FleetRow, prices: FleetPrices) -> dict[str, Any]:
    card = row.card
    return {
        "key": card.key,
        "host": card.host,
        "exporter": card.exporter,
        "name": card.device.name,
        "index": card.device.index,
        "mig_parent": card.device.mig_parent,
        "is_silent": card.is_silent,
        "seen": _iso(card.seen_seconds),
        "xid": card.xid,
        "work": [work._asdict() for work in card.work],
        "readings": {name: card.value(name) for name in card.readings},
        "facts": _values(card.device.facts),
        "diagnosis": None if row.verdict is None else verdict_object(row.verdict),
        "not_exported": missing_evidence(card),
        "rent_usd_per_hour": prices.usd_per_hour(card.device)[0],
    }


def _values(readings: Mapping[str, Reading]) -> dict[str, float | None]:
    return {name: reading.value for name, reading in readings.items()}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
