"""Launch settings of a plan: the files of a program in a place, with every field accounted for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from planner.errors import PlannerError, SpecError
from planner.hardware.mig import sliced_card_id
from planner.launch.places import PLACES
from planner.launch.settings import (
    FITTING_HINT,
    Job,
    Launcher,
    LaunchFacts,
    LaunchFile,
    LaunchPlace,
    LaunchSettings,
    Setting,
    UnexpressedField,
    WrittenSetting,
)
from planner.launch.software import LAUNCHERS, REFUSED
from planner.launch.text import command_line, config_text, job_words
from planner.memory.software import serving_memory
from planner.models.catalog import resolve_model
from planner.plan.catalog import Catalog
from planner.plan.evaluate import architecture_of, evaluate
from planner.plan.plan import Plan
from planner.storage import write_atomically
from planner.validation import close_names
from planner.workload.fields import fields_of
from planner.workload.rules import field_reader
from planner.workload.speculation import Speculation
from planner.workload.workload import Inference, Training

_CARDS_PER_NODE: Final = 8
_NO_SETTING: Final = "has no such setting"


def program_for(plan: Plan) -> str:
    """Return the launcher of a plan's own program, the first of those that run it.

    Raises:
        SpecError: If the plan names no program, or none that files are written for.
    """
    profile, task = plan.workload.profile, plan.workload.task
    found = (name for name, each in LAUNCHERS.items() if each.task == task and profile in each.profiles)
    name = next(found, None)
    if name is None:
        raise SpecError("profile", f"no files are written for the program of {plan.model.id}", "Name one: --profile.")
    return name


def launch_settings(plan: Plan, catalog: Catalog, program: str, on: str = "shell", ports_on: int = 0) -> LaunchSettings:
    """Return the files that run `plan` with `program` in the place `on`, and what they cannot express.

    A plan that leaves its program open is for this one. A server listens `ports_on` ports after its usual one.

    Raises:
        SpecError: If the program or the place is unknown or refused, the plan is for another program or names no
            GPU, or it does not fit as the program would share the memory.
    """
    launcher, place = _launcher(program), _place(on)
    facts = launch_facts(plan, catalog, launcher)
    job = launcher.write(facts)
    if ports_on and job.port is not None:
        port = Setting("--port", job.port + ports_on, "a port of its own beside the other servers")
        job = job._replace(port=job.port + ports_on, arguments=(*job.arguments, port))
    if facts.nodes > 1 and not (place.spans_nodes and job.rendezvous):
        who = place.title if job.rendezvous else launcher.title
        raise SpecError(
            "count",
            f"{facts.cards} GPUs are {facts.nodes} nodes, and no files are written for several nodes of {who}",
            "Use fewer GPUs; training on several nodes is written for Slurm, SkyPilot and dstack.",
        )
    if job.places and place.name not in job.places:
        written = ", ".join(job.places)
        raise SpecError(
            "on", f"no files are written for {launcher.title} in {place.title}", f"Choose one of {written}."
        )
    unexpressed = tuple(_unexpressed(facts, job, launcher, place))
    first, *others = place.write(facts, job)
    files = (_with_unexpressed(first, unexpressed), *others)
    configs = () if place.holds_configs else job.configs
    return LaunchSettings(
        program=launcher.name,
        title=launcher.title,
        version=job.requirement,
        place=place.name,
        plan=facts.evaluation.plan,
        command=command_line(job_words(job)),
        files=(*files, *(LaunchFile(name=config.name, text=config_text(config)) for config in configs)),
        settings=tuple(
            WrittenSetting(key=one.key, value=one.value, fields=one.fields, comment=one.comment) for one in job.settings
        ),
        not_expressed=unexpressed,
    )


def save_launch_files(settings: LaunchSettings, folder: Path) -> None:
    """Write the files of `settings` to `folder`; nothing is written if one of them exists with another content.

    Raises:
        PlannerError: If a file exists with another content, or the folder cannot be written to.
    """
    try:
        for file in settings.files:
            path = folder / file.name
            if path.exists() and path.read_bytes() != file.text.encode():
                hint = "Choose another folder; nothing was written."
                raise PlannerError(f"{path}: exists with another content", hint)
        folder.mkdir(parents=True, exist_ok=True)
        for file in settings.files:
            write_atomically(folder / file.name, file.text)
    except OSError as error:
        raise PlannerError(f"{folder}: cannot be written ({error.strerror})", "Choose another folder.") from error


def _check_model(plan: Plan, catalog: Catalog) -> None:
    """Refuse a plan whose model has a script of its own: a traced module, or an image pipeline that is trained."""
    if plan.model.trace is not None:
        raise SpecError("model", "a traced module has a script of its own", "Start that script.")
    model = architecture_of(plan, catalog)
    if isinstance(plan.workload, Training) and model is not None and model.kind == "diffusion":
        reason = "no files are written for the training of image pipelines"
        raise SpecError("model", reason, "Start the script for it in the examples of diffusers.")


def launch_facts(plan: Plan, catalog: Catalog, launcher: Launcher) -> LaunchFacts:
    """Return what is known of `plan` on its GPUs, with the settings that `launcher` uses.

    Raises:
        SpecError: If the plan is for another program or task, names no GPU or several kinds, was traced, or
            trains an image pipeline.
    """
    workload = plan.workload
    _check_model(plan, catalog)
    if workload.task != launcher.task:
        able = [each.name for each in LAUNCHERS.values() if each.task == workload.task]
        reason = f"the plan is for {workload.task}, but {launcher.title} is for {launcher.task}"
        raise SpecError("task", reason, f"For {workload.task}, choose one of {', '.join(able)}.")
    if workload.gpus or plan.gpu is None:
        reason = "launch settings are for GPUs of one kind" if workload.gpus else "the plan has no GPU"
        raise SpecError("gpu", reason, 'Name one kind, such as --gpu "2 x RTX 4090".')
    is_open = isinstance(workload, Inference) and workload.profile is None
    if not is_open and workload.profile not in launcher.profiles:
        raise SpecError(
            "profile",
            f"the plan is for {workload.profile}, which {launcher.title} does not run",
            f"Plan with --profile {' or '.join(launcher.profiles)}.",
        )
    if isinstance(workload, Training) and workload.alignment.method not in launcher.objectives:
        others = [each.name for each in LAUNCHERS.values() if workload.alignment.method in each.objectives]
        raise SpecError(
            "alignment.method",
            f"no files are written for {workload.alignment.method.upper()} in {launcher.title}",
            f"Write for {' or '.join(others)}.",
        )
    chosen = plan.evolve(workload=workload.evolve(profile=launcher.profiles[0])) if is_open else plan
    evaluation = evaluate(launcher.complete(chosen), catalog)
    if evaluation.memory.unsupported or evaluation.memory.verdict == "does-not-fit":
        reason = next(iter(evaluation.memory.unsupported), "the plan does not fit")
        raise SpecError("gpu", reason, FITTING_HINT)
    architecture, gpu = evaluation.architecture, evaluation.gpu
    assert architecture is not None
    assert gpu is not None
    filled = evaluation.workload
    if isinstance(filled, Inference):
        program = serving_memory(filled.profile, architecture)
        filled = filled.replaced(
            engine=program.settings_in_use(architecture, filled, gpu), speculation=_named_draft(filled, catalog)
        )
    per_node = min(plan.count, plan.timing.cards_per_node or _CARDS_PER_NODE)
    nodes, rest = divmod(plan.count, per_node)
    if rest:
        raise SpecError("count", f"{plan.count} GPUs are not whole nodes of {per_node}", "Change the number of GPUs.")
    offer = None if plan.cost.rent.offer is None else catalog.cost.offer(plan.cost.rent.offer)
    return LaunchFacts(evaluation, filled, architecture, gpu, nodes, per_node, offer)


def _named_draft(workload: Inference, catalog: Catalog) -> Speculation:
    """Return how `workload` drafts, with the id of the model that drafts, since programs know no alias."""
    own = workload.speculation
    if own.method != "model" or own.model is None:
        return own
    return own.replaced(model=resolve_model(catalog.models, own.model))


def _with_unexpressed(file: LaunchFile, rows: tuple[UnexpressedField, ...]) -> LaunchFile:
    lines = [f"# Not expressed: {row.field} = {row.value}: {row.reason}\n" for row in rows]
    return file.evolve(text="".join((file.text, *lines)))


def _launcher(name: str) -> Launcher:
    key = name.strip().lower()
    if key in REFUSED:
        raise SpecError("for", f"no files are written for {key}: {REFUSED[key]}", f"Written: {', '.join(LAUNCHERS)}.")
    if key not in LAUNCHERS:
        close = close_names(key, LAUNCHERS, 1)
        hint = f"{f'Did you mean {close[0]}? ' if close else ''}Choose one of {', '.join(LAUNCHERS)}."
        raise SpecError("for", f"no program is called {name[:40]!r}", hint)
    return LAUNCHERS[key]


def _place(name: str) -> LaunchPlace:
    key = name.strip().lower()
    if key not in PLACES:
        raise SpecError("on", f"no place is called {name[:40]!r}", f"Choose one of {', '.join(PLACES)}.")
    return PLACES[key]


def _unexpressed(facts: LaunchFacts, job: Job, launcher: Launcher, place: LaunchPlace) -> Iterator[UnexpressedField]:
    """Yield each field that the plan sets and that no setting expresses, with the reason."""
    written = {*job.expressed, *(field for setting in job.settings for field in setting.fields)}
    evaluation = facts.evaluation
    plan = evaluation.plan
    read, read_filled = field_reader(evaluation.resolved_workload), field_reader(facts.workload)
    for name, field in fields_of(launcher.task).items():
        is_own = name == "profile" and read(name) == launcher.profiles[0]
        is_named = name in job.named
        value = read_filled(name) if is_named else read(name)
        if (
            (value in (None, (), field.default) and not is_named)
            or is_own
            or name in written
            or name in ("parallel.sharing", "gpus")
        ):
            continue
        reason = job.unexpressed.get(name, f"{launcher.title} {_NO_SETTING}")
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield UnexpressedField(field=name, value=text, reason=reason)
    if facts.cards > 1 and "count" not in written:
        reason = job.unexpressed.get("count", "the number of GPUs follows from how they share the model")
        yield UnexpressedField(field="count", value=str(facts.cards), reason=reason)
    if "model" not in written:
        yield UnexpressedField(field="model", value=facts.model, reason=job.unexpressed["model"])
    card = sliced_card_id(facts.gpu.id) or facts.gpu.id
    if "gpu" in place.unexpressed or (place.card_names and card not in place.card_names):
        reason = place.unexpressed.get("gpu", f"its name in {place.title} is not known or ambiguous: name it there")
        yield UnexpressedField(field="gpu", value=facts.gpu.name, reason=reason)
    if plan.corrections:
        yield UnexpressedField(field="corrections", value="yes", reason="they belong to the estimate")
