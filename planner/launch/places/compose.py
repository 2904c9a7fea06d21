"""Docker Compose: a service with the GPUs of the plan.

**Source**: docs.docker.com/compose/how-tos/gpu-support. Compose replaces `$` in values, so that it is written twice.
"""

from collections.abc import Mapping
from typing import Any, Final

from planner.launch.settings import Job, LaunchFacts, LaunchFile, LaunchPlace, PlacedJob
from planner.launch.text import Commented, commented_words, container_script, yaml_text

_FOLDER: Final = "/work"
_UNEXPRESSED: Final = {"gpu": "the service runs on the GPUs of its machine"}


def _write(facts: LaunchFacts, job: Job) -> tuple[LaunchFile, ...]:
    service: dict[str, Any] = {"image": Commented(job.image, job.requirement)}
    if job.port is not None:
        service["entrypoint"] = [_escaped(word) for word in (*job.container_start, *job.start[1:])]
        words = [*commented_words(job), "--host", "0.0.0.0", "--port", str(job.port)]
        service["command"] = [_escaped(word) for word in words]
        service["ports"] = [f"{job.port}:{job.port}"]
    else:
        service["entrypoint"] = ["bash", "-c", _escaped(container_script(job))]
    service["working_dir"] = _FOLDER
    service["volumes"] = [Commented(f"./:{_FOLDER}", "the files of this folder, such as weights and settings")]
    service["ipc"] = Commented("host", "processes share memory")
    device = {
        "driver": "nvidia",
        "count": Commented(facts.cards_per_node, "GPUs of the plan"),
        "capabilities": ["gpu"],
    }
    service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return (LaunchFile(name="compose.yaml", text=yaml_text({"services": {"plan": service}})),)


def _escaped(word: Commented | str) -> Commented | str:
    if isinstance(word, Commented):
        return Commented(_escaped(word.value), word.comment)
    return str(word).replace("$", "$$")


def _read(document: Mapping[str, Any]) -> PlacedJob | None:
    if "services" not in document:
        return None
    service = next(iter(document["services"].values()))
    given = (word for key in ("entrypoint", "command") for word in service.get(key) or ())
    words = tuple(word.replace("$$", "$") if isinstance(word, str) else word for word in given)
    devices = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", ({},))
    count = devices[0].get("count")
    cards = count if isinstance(count, int) else None
    if words[:2] == ("bash", "-c"):
        return PlacedJob(script=words[2], cards=cards)
    return PlacedJob(words=words, cards=cards)


COMPOSE: Final = LaunchPlace("compose", "Docker Compose", "Compose 2.30", _write, _read, unexpressed=_UNEXPRESSED)
