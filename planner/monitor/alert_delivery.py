"""Delivery of alerts to a command and to a webhook, in a thread of its own, each alert once."""

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Self
from urllib.parse import urlsplit

from planner.errors import PlannerError
from planner.monitor.settings import AlertTargets
from planner.network import HttpClient

TOKEN_VARIABLE: Final = "GPU_PLANNER_ALERT_TOKEN"
"""Environment variable with the bearer token of the webhook, which is stored nowhere."""

_COMMAND_SECONDS: Final = 30.0
_ANSWER_SECONDS: Final = 10.0
_MOST_ANSWER_BYTES: Final = 1 << 20
_CLOSE_SECONDS: Final = 5.0


class AlertDelivery:
    """Delivers alerts to `targets`; `on_failure` is called from its thread with what failed, as a sentence."""

    def __init__(self, targets: AlertTargets, on_failure: Callable[[str], None]) -> None:
        self._targets, self._on_failure = targets, on_failure
        self._queue: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def send(self, alert: Mapping[str, Any]) -> None:
        """Deliver an alert, given as JSON values, without waiting for it."""
        if not (self._targets.command or self._targets.webhook):
            return
        if self._thread is None:
            self._thread = Thread(target=self._deliver_until_closed, name="alerts", daemon=True)
            self._thread.start()
        self._queue.put(alert)

    def close(self, seconds: float = _CLOSE_SECONDS) -> None:
        """Deliver what is left, and wait at most `seconds` for it."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(seconds)
            self._thread = None

    def _deliver_until_closed(self) -> None:
        while (alert := self._queue.get()) is not None:
            for deliver, target in ((run_command, self._targets.command), (post_to_webhook, self._targets.webhook)):
                try:
                    if target:
                        deliver(target, alert)
                except PlannerError as error:
                    self._on_failure(f"The alert “{alert['title']}” was not delivered: {error.message}.")


def run_command(command: str, alert: Mapping[str, Any]) -> None:
    """Run a command, without a shell, with the alert as JSON on standard input and as variables GPU_PLANNER_ALERT_….

    Raises:
        PlannerError: If it cannot be started, takes longer than 30 seconds or fails.
    """
    words = shlex.split(command)
    variables = {
        f"GPU_PLANNER_ALERT_{name.upper()}": str(value).replace("\0", "")
        for name, value in alert.items()
        if value is not None
    }
    # The command needs no token of the webhook.
    environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE} | variables
    try:
        done = subprocess.run(
            words,
            input=json.dumps(alert, ensure_ascii=False).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=_COMMAND_SECONDS,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as error:
        raise PlannerError(f"{words[0]} took longer than {_COMMAND_SECONDS:.0f} seconds") from error
    except OSError as error:
        raise PlannerError(f"{words[0]}: {error.strerror or error}") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise PlannerError(f"{words[0]} ended with {done.returncode}{f' ({said[-1][:200]})' if said else ''}")


def post_to_webhook(url: str, alert: Mapping[str, Any]) -> None:
    """Send an alert as JSON by POST, with the bearer token in GPU_PLANNER_ALERT_TOKEN if there is one.

    `text` holds title and advice, which chat services show.

    Raises:
        PlannerError: If the host cannot be reached, redirects to another, or does not accept it.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    client = HttpClient(headers, None, _MOST_ANSWER_BYTES, _ANSWER_SECONDS, 2 * _ANSWER_SECONDS)
    body = {**alert, "text": f"{alert['title']}. {alert['advice']}".strip()}
    reply = client.send(url, json.dumps(body, ensure_ascii=False).encode())
    if not 200 <= reply.status < 300:
        # The path of a webhook is often its secret.
        raise PlannerError(f"{urlsplit(url).hostname} answered with status {reply.status}")
