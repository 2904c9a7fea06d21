"""The window. The only package that imports PySide6 or pyqtgraph."""

from importlib import import_module

_CORE = (
    "planner.memory.engines.settings",
    "planner.monitor.alerts",
    "planner.monitor.settings",
    "planner.models.load",
    "planner.models.readers.assemble",
    "planner.models.readers.config_json",
    "planner.plan.catalog",
    "planner.plan.explore",
    "planner.plan.advice.advise",
    "planner.plan.files",
    "planner.present.advice",
    "planner.present.gpus",
    "planner.present.plan",
    "planner.present.solved",
    "planner.present.comparison",
    "planner.plan.answers.draft",
    "planner.plan.recipes.preset",
    "planner.plan.answers.settle",
    "planner.present.preset",
    "planner.present.settled",
    "planner.present.versus",
    "planner.present.trace",
    "planner.plan.answers.degrees",
    "planner.plan.trace_request",
    "planner.trace.arguments",
    "planner.trace.candidates",
    "planner.trace.child.messages",
    "planner.trace.consent",
    "planner.trace.analysis.conclude",
    "planner.trace.files",
    "planner.trace.shapes",
    "planner.trace.sizes",
)

# Ahead of Qt: PySide6 reads the source of every module that is imported after it.
for _module in _CORE:
    import_module(_module)
