"""The commands of `gpu-planner`: the name of each, its module, and a line of help."""

from typing import Final, NamedTuple


class CliCommand(NamedTuple):
    """A command: its module with `run(arguments) -> int`, which is imported only when needed, and its help."""

    module: str
    about: str


COMMANDS: Final = {
    "fit": CliCommand("planner.cli.fit", "check whether a model fits a GPU, and show what uses the memory"),
    "recommend": CliCommand("planner.cli.recommend", "recommend hardware for a job within a budget and a deadline"),
    "cost": CliCommand("planner.cli.cost", "estimate how long a job takes, and whether to rent or to buy"),
    "serve-plan": CliCommand(
        "planner.cli.serve_plan.command", "find the hardware that serves requests within latency targets"
    ),
    "launch": CliCommand("planner.cli.launch", "write the files that run a plan with another program"),
    "verify": CliCommand("planner.cli.verify", "compare a plan's estimates with measurements on the real GPUs"),
    "report": CliCommand("planner.cli.report_file", "write a report on a plan, a comparison, a recording or a trace"),
    "trace": CliCommand(
        "planner.cli.trace.command", "measure the exact peak memory of a PyTorch module, without a GPU"
    ),
    "gpus": CliCommand("planner.cli.gpus.command", "search, compare and show accelerators"),
    "models": CliCommand("planner.cli.models", "search and show models"),
    "prices": CliCommand("planner.cli.prices", "list rental prices with their dates, and fetch new ones on request"),
    "monitor": CliCommand("planner.cli.monitor.command", "monitor the GPUs of this machine"),
    "fleet": CliCommand("planner.cli.fleet", "show the GPUs of many machines, the worst first, from Prometheus"),
    "schema": CliCommand("planner.cli.automation.schema", "print the JSON schema of a command's output or of a file"),
    "completion": CliCommand("planner.cli.automation.completion", "print the completion for bash, zsh or fish"),
    "man": CliCommand("planner.cli.automation.manual_page", "print the manual page"),
}
