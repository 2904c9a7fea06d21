"""Disaggregated serving: some replicas read prompts, others answer, and the KV cache goes from one to the other."""

from collections.abc import Callable

from planner.performance.inference.steps import StepTimes
from planner.serving.cluster import SimulatedRun, finish
from planner.serving.deployment import Deployment
from planner.serving.replica import Replica
from planner.serving.requests import NEVER, Requests

Stop = Callable[[], bool]


def run_disaggregated(
    deployment: Deployment, requests: Requests, times: StepTimes, watched: tuple[float, float], stop: Stop
) -> SimulatedRun | None:
    """Return the run of `requests` through replicas for prompts, then through others for answers; None if stopped.

    A prompt gives the first token where it was read; its cache is then sent, one request after the other from each
    replica, and the answer goes on with the cache received. Requests are handed out in turn.

    **Source**: vLLM's disaggregated prefill (NixlConnector) and the xPyD deployments of NVIDIA Dynamo.

    **Assumes** that the cache of a prompt is free as soon as it was sent, and that requests do not follow each other.
    """
    split = deployment.setup.disaggregation
    assert split is not None
    prompts = _first_tokens(requests)
    readers = [_reader(deployment, index, times, prompts, watched) for index in range(split.prefill_replicas)]
    for place, number in enumerate(requests.initial):
        readers[place % len(readers)].submit(number, requests.arrival[number])
    if not all(finish(reader, stop) for reader in readers):
        return None
    arrived = _sent(deployment, prompts, requests.output)
    answers = _rest(requests, prompts)
    writers = [
        _writer(deployment, split.prefill_replicas + index, times, answers, watched)
        for index in range(split.decode_replicas)
    ]
    for place, number in enumerate(sorted(arrived, key=lambda number: arrived[number])):
        writers[place % len(writers)].submit(number, arrived[number])
    if not all(finish(writer, stop) for writer in writers):
        return None
    _join(requests, prompts, answers)
    replicas = (*readers, *writers)
    return SimulatedRun(requests, replicas, max(replica.clock for replica in replicas))


def _first_tokens(requests: Requests) -> Requests:
    """Return the requests with answers of one token, which the replicas for prompts give."""
    found = Requests()
    for number in range(len(requests)):
        found.add(requests.arrival[number], requests.prompt[number], 1, requests.prefixes[number])
    return found


def _rest(requests: Requests, prompts: Requests) -> Requests:
    """Return the requests whose answers go on: their cache has the prompt, and their first token is known."""
    found = Requests()
    for number in range(len(requests)):
        found.add(NEVER, requests.prompt[number], requests.output[number])
        found.first[number] = prompts.first[number]
    return found


def _reader(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, watched: tuple[float, float]
) -> Replica:
    rules, blocks, over_http = deployment.scheduling, deployment.cache_blocks, deployment.setup.over_http
    return Replica(index, times, rules, blocks, requests, deployment.fixed_blocks, watched, over_http=over_http)


def _writer(
    deployment: Deployment, index: int, times: StepTimes, requests: Requests, watched: tuple[float, float]
) -> Replica:
    rules = deployment.scheduling.without_prefixes()
    received = Replica(index, times, rules, deployment.cache_blocks, requests, deployment.fixed_blocks, watched)
    received.receives_cache = True
    return received


def _sent(deployment: Deployment, prompts: Requests, whole: list[int]) -> dict[int, float]:
    """Return when the cache of each prompt whose answer goes on has arrived, sent one after the other by each replica.

    `whole` are the tokens of the answers.
    """
    free: dict[int, float] = {}
    arrived = {}
    for number in sorted(range(len(prompts)), key=lambda number: prompts.first[number]):
        if prompts.end[number] == NEVER or whole[number] == 1:
            continue
        begin = max(prompts.first[number], free.get(prompts.replica[number], 0.0))
        arrived[number] = free[prompts.replica[number]] = begin + deployment.transfer_seconds(prompts.prompt[number])
    return arrived


def _join(requests: Requests, prompts: Requests, answers: Requests) -> None:
    """Write the times of both parts of each request."""
    for number in range(len(requests)):
        requests.scheduled[number] = prompts.scheduled[number]
        requests.first[number], requests.cached[number] = prompts.first[number], prompts.cached[number]
        requests.replica[number] = prompts.replica[number]
        only_first = requests.output[number] == 1
        requests.end[number] = prompts.end[number] if only_first else answers.end[number]
