"""The trace of a script as a command for a shell."""

from collections.abc import Iterator
from pathlib import PurePath

from planner.hardware.gpu import Gpu
from planner.trace.launcher import command_words, join_words
from planner.trace.notation import assumed_values_text
from planner.trace.request import Target, TraceRequest


def shell_command(request: TraceRequest, card: Gpu | None) -> str:
    """Return the command that traces the script of `request` for `card` in its working folder."""
    target = _from_its_folder(request.target)
    words = ("gpu-planner", "trace", *_options(request, card), *_target_words(target))
    folder = f"cd {join_words((target.folder,))} && " if target.folder else ""
    return f"{folder}{join_words(words)}"


def command_text(target: Target) -> str:
    """Return the command that runs a script in its working folder."""
    return join_words(command_words(_from_its_folder(target)))


def _options(request: TraceRequest, card: Gpu | None) -> Iterator[str]:
    """Yield the options of the trace that differ from their defaults, and the card."""
    if card is not None:
        yield from ("--gpu", card.id)
    if request.device != "cuda":
        yield from ("--device", request.device)
    if request.steps != TraceRequest.model_fields["steps"].default:
        yield from ("--steps", str(request.steps))
    for assumed in request.assume:
        yield from ("--assume", assumed_values_text((assumed,)))


def _target_words(target: Target) -> tuple[str, ...]:
    """Return the script with its arguments: after `--`, as a whole if it has a launcher."""
    if target.launcher:
        return ("--", *command_words(target))
    named = ("-m", target.place) if target.kind == "program" else (target.place,)
    return (*named, *(("--", *target.command_arguments) if target.command_arguments else ()))


def _from_its_folder(target: Target) -> Target:
    """Return the target with a script's path as seen from its working folder, if the script is in it."""
    place = PurePath(target.place)
    if not target.folder or not place.is_relative_to(target.folder):
        return target
    return target.evolve(place=str(place.relative_to(target.folder)))
