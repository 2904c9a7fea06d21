"""The dialog about prices around a server on this machine."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest
from price_server import PriceServer, running
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from planner.cost.price_feeds import gpu_price_feed as price_feed
from planner.cost.price_feeds import gpuhunt
from planner.cost.price_feeds.download import Fetcher
from planner.cost.price_feeds.registry import PriceSource
from planner.cost.price_feeds.store import PriceStore
from planner.gui.cost.prices_dialog import PricesDialog
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme
from planner.gui.workspace import Workspace

NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.fixture
def prices() -> Iterator[PriceServer]:
    """Run a server for the length of a test."""
    with running() as served:
        yield served


@pytest.fixture
def store(tmp_path) -> PriceStore:
    """A folder without prices."""
    return PriceStore(tmp_path / "prices")


@pytest.fixture
def owner(qtbot: QtBot) -> QWidget:
    """The window that the dialog belongs to."""
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def dialog(
    workspace: Workspace, theme: Theme, tasks: TaskRunner, prices: PriceServer, store: PriceStore, owner: QWidget
) -> PricesDialog:
    """The dialog, open, with two sources on the server."""
    sources = (
        PriceSource("aws", "gpuhunt: AWS", prices.host, partial(gpuhunt.fetch_gpuhunt, key="aws", base=prices.base)),
        PriceSource("feed", "the feed", prices.host, partial(price_feed.fetch_price_feed, url=f"{prices.base}/feed")),
    )

    def fetcher(_hosts, stop):
        return Fetcher(frozenset({prices.host}), stop, frozenset({"http"}), answer_seconds=5)

    made = PricesDialog(workspace, theme, tasks, owner, store, sources, fetcher, lambda: NOW)
    made.show()
    return made
