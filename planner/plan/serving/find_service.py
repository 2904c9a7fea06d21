"""Search for the hardware of a service: the fewest dollars, GPUs or watts with which its targets hold."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from math import ceil
from statistics import fmean
from typing import Final, NamedTuple

from planner.base import Stop
from planner.cost.demand import HOURS_PER_MONTH, Demand
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.memory.fit import CardFit
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.performance.inference.service import saturated_throughput
from planner.plan.catalog import Catalog
from planner.plan.cost import linked_cards
from planner.plan.evaluate import Evaluation, architecture_of, evaluate
from planner.plan.plan import Plan
from planner.plan.recommend.acquisition import NO_OFFER, CapableCards, Market, own_options, rent_options
from planner.plan.recommend.option import ExcludedCount, HardwareOption, Wish
from planner.plan.recommend.variants import PlanVariant
from planner.plan.serving.answer import (
    SHOWN_OPTIONS,
    OptionInputs,
    ServingAnswer,
    ServingOption,
    ServingWish,
    find_consequences,
)
from planner.plan.serving.service_simulation import deploy_evaluated, served_plan, with_replicas, with_room_for
from planner.plan.sharing import SharedFit, sharing_schemes, tensor_domain
from planner.serving.deployment import Deployment, ServingSetup
from planner.serving.requests import draw_requests
from planner.serving.result import ServingSimulation
from planner.serving.simulate import simulate_traffic
from planner.serving.targets import Targets
from planner.serving.traffic import ConcurrentClients, Traffic, share_of_traffic
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

DEFAULT_SEARCH_REQUESTS: Final = 800
"""Requests of each simulation of a search; the option that is found is simulated with more."""
_MOST_FINAL_REQUESTS: Final = 8_000
_FINAL_REQUESTS: Final = 5
"""Halves of the requests of a search's simulations with which an option is simulated; one for each replica if more."""
_SLACK: Final = 1.3
"""Factor by which a replica may answer more than the formula for equal requests says, before a simulation tells."""
_NO_FIT: Final = "does-not-fit"
_NO_REPLICAS: Final = "misses its targets even with the most GPUs"
_TOO_DEAR: Final = "cannot beat the best option"
_OVER_BUDGET: Final = "over the budget"
_NO_POWER: Final = "its power is unknown"
_STOPPED: Final = "the search was stopped"
_STEP_TOKENS: Final = "max_num_batched_tokens"
_SAMPLE: Final = 500
_DOUBTFUL_OPTIONS: Final = 3
"""Options in doubt that are looked for beside a better founded one: those that need least."""
_UNSHARED: Final = "its software cannot share the model between so many GPUs"


class Configuration(NamedTuple):
    """GPUs of one replica with the settings to try, and what one replica costs, by the wish's objective.

    `doubt` tells whether its speed was never measured on such GPUs, and whether its price is old.
    """

    plan: Plan
    evaluation: Evaluation
    deployment: Deployment
    changes: tuple[str, ...]
    amount_per_replica: float
    doubt: tuple[bool, bool]
    least_replicas: int

    @property
    def least_amount(self) -> float:
        """Return what the configuration needs at least."""
        return self.amount_per_replica * self.least_replicas


class _SearchInputs(NamedTuple):
    """The plan and traffic of a search, its targets, and the market of its GPUs."""

    plan: Plan
    architecture: Architecture
    traffic: Traffic
    targets: Targets
    wish: ServingWish
    setup: ServingSetup
    market: Market
    requests: int
    seed: int
    stop: Stop

    def holds(self, found: ServingSimulation) -> bool:
        """Return whether a simulation meets the targets, at the upper ends of their ranges if the wish says so."""
        return found.holds and (not self.wish.surely or all(target.surely for target in found.targets))


def plan_serving(
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    targets: Targets,
    today: date,
    wish: ServingWish | None = None,
    setup: ServingSetup | None = None,
    *,
    requests: int = DEFAULT_SEARCH_REQUESTS,
    seed: int = 0,
    stop: Stop = lambda: False,
) -> Iterator[ServingAnswer]:
    """Yield the state of a search for hardware on which `plan`'s model answers `traffic` within `targets`.

    The state is yielded after each configuration: a kind of GPU, a number of GPUs for each replica, and settings. The
    last one is complete, unless `stop` returned true. The number of replicas is the least with which the targets hold
    in a simulation of the share of one replica; the option is then simulated as a whole. A plan without a program is
    served by vLLM. A configuration is left out without a simulation if it needs more than the best one even if its
    replicas answer as many requests as the formula of a saturated service allows, and 30 % more. Those in doubt, whose
    speed was never measured on such GPUs or whose price is old, come last and leave out no others; beside a better
    founded option only the three of them that need least are looked for.

    Raises:
        SpecError: If the plan trains, names a model that the catalog does not have, or asks for what its program does
            not do, if the wish names an unknown GPU, or if the traffic has no rate.
    """
    wish, setup = wish or ServingWish(), setup or ServingSetup()
    _check_search(plan, catalog, traffic, wish, setup)
    workload = served_plan(plan).workload
    bare = plan.evolve(gpu=None, count=1, workload=workload.evolve(gpus=(), parallel={}))
    limits = Wish(having=wish.having, modes=wish.modes, vendors=wish.vendors, counts=wish.cards_per_replica)
    inputs = _SearchInputs(
        with_room_for(bare, traffic, requests, seed),
        architecture_of(plan, catalog),
        traffic,
        targets,
        wish,
        setup,
        Market(plan, catalog, limits, today, Counter()),
        requests,
        seed,
        stop,
    )
    state = _State(wish, inputs.market.left_out)
    yield state.answer(0, 1)
    done = 0
    for configuration, left in _in_order(inputs):
        if stop():
            return
        state.add(inputs, configuration)
        done += 1
        yield state.answer(done, done + left)
    if stop():
        return
    state.finish(inputs)
    yield state.answer(max(done, 1), max(done, 1))


def _check_search(plan: Plan, catalog: Catalog, traffic: Traffic, wish: ServingWish, setup: ServingSetup) -> None:
    """Reject what no search can answer: training, traffic without a rate, a disaggregation, an unknown GPU."""
    if not isinstance(plan.workload, Inference):
        raise SpecError("workload.task", "a service needs a plan for inference, and this plan trains")
    if traffic.requests_per_second is None and not isinstance(traffic.arrivals, ConcurrentClients):
        raise SpecError("traffic.arrivals", "all requests arrive at once, so that there is no rate to plan for")
    if setup.disaggregation is not None:
        raise SpecError(
            "setup.disaggregation", "a search finds the number of replicas itself", "Simulate a plan with them instead."
        )
    for gpu_id in wish.gpus:
        catalog.hardware.gpu(gpu_id)  # an id that nobody knows is a mistake, and no reason to find nothing


def _in_order(inputs: _SearchInputs) -> Iterator[tuple[Configuration, int]]:
    """Yield each configuration, those in doubt after all others, with the number that follow at least."""
    variants = list(_variants(inputs))
    doubtful: list[Configuration] = []
    for place, variant in enumerate(variants, 1):
        found = sorted(_configurations(inputs, *variant), key=_by_amount)
        sure = [each for each in found if not any(each.doubt)]
        doubtful += [each for each in found if any(each.doubt)]
        for index, configuration in enumerate(sure, 1):
            yield configuration, len(sure) - index + len(doubtful) + len(variants) - place
    for index, configuration in enumerate(sorted(doubtful, key=_by_amount), 1):
        yield configuration, len(doubtful) - index


def _by_amount(configuration: Configuration) -> tuple[tuple[bool, bool], float, str]:
    return configuration.doubt, configuration.least_amount, configuration.plan.gpu or ""


def _variants(inputs: _SearchInputs) -> Iterator[tuple[Plan, tuple[str, ...], int]]:
    """Yield the plan with each choice of settings and each number of GPUs for a replica, with what was changed."""
    wish, plan = inputs.wish, inputs.plan
    assert isinstance(plan.workload, Inference)
    for count in sorted(set(wish.cards_per_replica)):
        if count > wish.most_cards:
            continue
        for weights in dict.fromkeys((plan.workload.weights, *wish.weights)):
            for cache in dict.fromkeys((plan.workload.kv_cache, *wish.kv_caches)):
                for tokens in dict.fromkeys((None, *wish.step_tokens)):
                    changed = _with_settings(plan, weights, cache, tokens)
                    if changed is not None:
                        yield changed, _changes(plan, weights, cache, tokens), count


def _with_settings(plan: Plan, weights: str | None, cache: str, tokens: int | None) -> Plan | None:
    """Return `plan` with these settings, or None if its program does not have them."""
    workload = plan.workload
    assert isinstance(workload, Inference)
    try:
        changes: dict[str, object] = {"weights": weights, "kv_cache": cache}
        if tokens is not None:
            changes["engine"] = workload.engine.evolve(**{_STEP_TOKENS: tokens})
        return plan.evolve(workload=workload.evolve(**changes))
    except SpecError:
        return None


def _changes(plan: Plan, weights: str | None, cache: str, tokens: int | None) -> tuple[str, ...]:
    assert isinstance(plan.workload, Inference)
    found = []
    if weights is not None and weights != plan.workload.weights:
        found.append(f"weights in {weights}")
    if cache != plan.workload.kv_cache:
        found.append(f"KV cache in {cache}")
    if tokens is not None:
        found.append(f"{tokens:,} tokens per step")
    return tuple(found)


def _configurations(inputs: _SearchInputs, plan: Plan, changes: tuple[str, ...], count: int) -> Iterator[Configuration]:
    """Yield the configurations of `count` GPUs for each replica on which the plan fits and that can be had."""
    market, catalog = inputs.market, inputs.market.catalog
    evaluations: dict[str, Evaluation] = {}
    for gpu in _obtainable(inputs, count):
        if inputs.stop():
            return
        found = _evaluated(inputs, plan, gpu, count)
        if found is None:
            market.left_out[_UNSHARED] += 1
        elif found.memory.verdict != "fits":
            market.left_out["not-supported" if found.memory.unsupported else _NO_FIT] += 1
        else:
            evaluations[gpu.id] = found
    prices = _cheapest(market, evaluations, dict.fromkeys(evaluations, 1))
    for gpu_id, evaluation in evaluations.items():
        deployment = deploy_evaluated(evaluation, inputs.setup)
        if isinstance(deployment, str):
            market.left_out[deployment] += 1
            continue
        gpu = catalog.hardware.gpu(gpu_id)
        hardware = prices.get(gpu_id)
        amount = _objective_amount(inputs.wish, hardware, gpu, count)
        if amount is None:
            market.left_out[NO_OFFER if inputs.wish.objective == "usd" else _NO_POWER] += 1
            continue
        least = _least_replicas(deployment, inputs.traffic)
        doubt = _doubt(inputs.wish, hardware)
        yield Configuration(evaluation.plan, evaluation, deployment, changes, amount, doubt, least)


def _obtainable(inputs: _SearchInputs, count: int) -> Iterator[Gpu]:
    """Yield the GPUs of the wish that can be rented or bought."""
    wish, market = inputs.wish, inputs.market
    offered = (
        {card for offer in market.catalog.offers for card in offer.cards} if "rent" in wish.having else frozenset()
    )
    for gpu in market.catalog.hardware.gpus:
        if (wish.gpus and gpu.id not in wish.gpus) or (wish.vendors and gpu.vendor not in wish.vendors):
            continue
        obstacle = market.ownership_obstacle(gpu, count) if "own" in wish.having else NO_OFFER
        if gpu.id in offered or obstacle is None:
            yield gpu
        else:
            market.left_out[obstacle] += 1


def _evaluated(inputs: _SearchInputs, plan: Plan, gpu: Gpu, count: int) -> Evaluation | None:
    """Return the plan evaluated on `count` GPUs that hold one copy together, None if its software cannot do that."""
    catalog, workload = inputs.market.catalog, plan.workload
    if count == 1:
        return evaluate(plan.evolve(gpu=gpu.id, count=1), catalog)
    domain = tensor_domain((gpu,), plan.timing)
    schemes = sharing_schemes(_filled(inputs, plan), inputs.architecture, count, domain)
    settled = {"sharing": "manual", "data": 1}
    parallels = [workload.parallel.evolve(**{**scheme.settings, **settled}) for scheme in schemes]
    whole = [parallel for parallel in parallels if parallel.model_shards == count]
    if not whole:
        return None
    return evaluate(plan.evolve(gpu=gpu.id, count=count, workload=workload.evolve(parallel=whole[-1])), catalog)


def _filled(inputs: _SearchInputs, plan: Plan) -> Inference:
    filled = with_defaults(plan.workload, inputs.architecture, 1)
    assert isinstance(filled, Inference)
    return filled


def _least_replicas(deployment: Deployment, traffic: Traffic) -> int:
    """Return the fewest replicas that can answer the traffic: at the rate of a saturated one, and 30 % more."""
    rate = traffic.requests_per_second
    if rate is None:
        return 1
    drawn = draw_requests(traffic, _SAMPLE, 0)
    prompt, answer = fmean(drawn.prompt), fmean(drawn.output)
    cached = prompt * _cached_share(traffic, prompt) if deployment.scheduling.caches_prefixes else 0.0
    held = deployment.scheduling.sequences
    if deployment.cache_tokens is not None:
        held = max(1, min(held, int(deployment.cache_tokens / (prompt + answer / 2))))
    most = saturated_throughput(deployment.served, held, max(1.0, prompt - cached), answer).requests_per_second
    return max(1, ceil(rate / (_SLACK * most)))


def _cached_share(traffic: Traffic, prompt: float) -> float:
    """Return the largest share of prompt tokens that a prefix cache can save."""
    if traffic.sessions is not None or (traffic.trace is not None and traffic.trace.beginnings):
        return 1 - 1 / prompt
    if traffic.prefixes is None:
        return 0.0
    return min(1 - 1 / prompt, traffic.prefixes.tokens * traffic.prefixes.share / prompt)


def _objective_amount(wish: ServingWish, hardware: HardwareOption | None, gpu: Gpu, cards: int) -> float | None:
    """Return what GPUs need by the wish's objective, None if that is unknown."""
    if wish.objective == "cards":
        return float(cards)
    if wish.objective == "watts":
        return None if gpu.drawn_watts is None else gpu.drawn_watts * cards
    return None if hardware is None else hardware.usd


def _cheapest(
    market: Market, evaluations: Mapping[str, Evaluation], replicas: Mapping[str, int]
) -> dict[str, HardwareOption]:
    """Return the cheapest way to have so many replicas of each kind of GPU for a month, day and night."""
    capable = {}
    for gpu_id, evaluation in evaluations.items():
        time, hours = evaluation.time, HOURS_PER_MONTH * replicas[gpu_id]
        if time is None or time.seconds is None:
            continue
        demand = Demand(
            period="month",
            groups=replicas[gpu_id],
            busy_hours=hours,
            low_busy_hours=hours,
            high_busy_hours=hours,
            rented_hours=hours,
            work_hours=hours,
            periods_per_year=12.0,
            always_on=True,
        )
        gpu = market.catalog.hardware.gpu(gpu_id)
        fit = SharedFit(evaluation.workload.parallel, _fit_of(evaluation.memory, gpu_id))
        capable[gpu_id] = CapableCards(gpu, PlanVariant(evaluation.plan), fit, time, demand, linked_cards(evaluation))
    quiet = market._replace(left_out=Counter())
    found: dict[str, HardwareOption] = {}
    for option in (*rent_options(quiet, capable), *own_options(quiet, capable)):
        known = found.get(option.gpu)
        if option.comparable and (known is None or (not option.current, option.usd) < (not known.current, known.usd)):
            found[option.gpu] = option
    return found


def _fit_of(memory: MemoryResult, gpu_id: str) -> CardFit:
    return CardFit(
        gpu_id,
        memory.verdict,
        memory.total_bytes,
        memory.capacity_bytes,
        memory.free_bytes,
        memory.unsupported,
        memory.fit_probability,
    )


class _State:
    """The options that a search has found so far."""

    def __init__(self, wish: ServingWish, left_out: Counter[str]) -> None:
        self._wish, self._left_out = wish, left_out
        self._options: list[ServingOption] = []
        self._nearest: ServingOption | None = None

    def answer(self, done: int, total: int) -> ServingAnswer:
        """Return the state as an answer."""
        return ServingAnswer(
            wish=self._wish,
            done=done,
            total=total,
            options=tuple(self._options[:SHOWN_OPTIONS]),
            left_out=tuple(
                ExcludedCount(reason=reason, count=count) for reason, count in self._left_out.most_common() if count
            ),
            nearest=None if self._options else self._nearest,
        )

    def add(self, inputs: _SearchInputs, configuration: Configuration) -> None:
        """Try a configuration, and keep it if it meets the targets."""
        most = self._most_amount(configuration.doubt)
        option, obstacle = _try_configuration(inputs, configuration, most, names_nearest=not self._options)
        if option is None or obstacle:
            self._left_out[obstacle] += 1
            if option and (self._nearest is None or _worst_miss(option) < _worst_miss(self._nearest)):
                self._nearest = option
        elif inputs.wish.budget_usd is not None and (option.usd_per_month or 0.0) > inputs.wish.budget_usd:
            self._left_out[_OVER_BUDGET] += 1
        else:
            self._options.append(option)
            self._options.sort(key=lambda each: _rank(inputs.wish, each))

    def _most_amount(self, doubt: tuple[bool, bool]) -> float:
        """Return the most that an option of such a `doubt` may need to be shown."""
        if not self._options or doubt < (least := _doubt(self._wish, self._options[0].hardware)):
            return float("inf")
        needed = [(_doubt(self._wish, each.hardware), _option_amount(self._wish, each)) for each in self._options]
        beside = sorted([amount for other, amount in needed if least < other]) if least < doubt else []
        return min([needed[0][1], *beside[_DOUBTFUL_OPTIONS - 1 : _DOUBTFUL_OPTIONS]])

    def finish(self, inputs: _SearchInputs) -> None:
        """Find out what would change the best option."""
        if self._options:
            best = self._options[0]
            asked = OptionInputs(
                best,
                inputs.market.catalog,
                inputs.traffic,
                inputs.targets,
                inputs.setup,
                2 * inputs.requests,
                inputs.seed,
                inputs.stop,
            )
            self._options[0] = best.evolve(consequences=tuple(find_consequences(asked)))


def _rank(wish: ServingWish, option: ServingOption) -> tuple[tuple[bool, bool], float, int, str]:
    """Return the sort key: GPUs of measured families at current prices first, then what an option needs least of."""
    return _doubt(wish, option.hardware), _option_amount(wish, option), option.cards, option.plan.gpu or ""


def _doubt(wish: ServingWish, had: HardwareOption | None) -> tuple[bool, bool]:
    """Return whether the speed was never measured on such GPUs, and whether a price that matters is old or unknown."""
    return had is not None and had.basis == "unmeasured", wish.objective == "usd" and (had is None or not had.current)


def _option_amount(wish: ServingWish, option: ServingOption) -> float:
    found = {"usd": option.usd_per_month, "cards": float(option.cards), "watts": option.watts}[wish.objective]
    return float("inf") if found is None else found


def _worst_miss(option: ServingOption) -> float:
    """Return the largest factor by which an option misses a target."""
    factors = [target.seconds / target.target.seconds for target in option.simulation.targets]
    return max(factors, default=1.0) * (2.0 if option.simulation.saturated else 1.0)


def _try_configuration(
    inputs: _SearchInputs, configuration: Configuration, most_amount: float, *, names_nearest: bool
) -> tuple[ServingOption | None, str]:
    """Return the option with the fewest replicas that meets the targets, and what is in its way, if anything.

    If the most replicas do not meet the targets, they are simulated as an option only with `names_nearest`.
    """
    most = inputs.wish.most_cards // configuration.evaluation.plan.count
    affordable = most if most_amount == float("inf") else min(most, int(most_amount / configuration.amount_per_replica))
    obstacle = _TOO_DEAR if affordable < most else _NO_REPLICAS
    low = configuration.least_replicas
    if low > affordable:
        return None, obstacle
    step, tried = 1, low
    last_failed = low - 1
    while not _share_holds(inputs, configuration, tried):
        last_failed = tried
        if tried >= affordable:
            return (_option(inputs, configuration, tried) if names_nearest else None), obstacle
        tried = min(affordable, tried + step)
        step *= 2
    while tried - last_failed > 1:
        middle = (tried + last_failed) // 2
        if _share_holds(inputs, configuration, middle):
            tried = middle
        else:
            last_failed = middle
    option = _option(inputs, configuration, tried)
    # The whole service has more requests than the share of one replica, whose percentiles scatter more.
    while not inputs.holds(option.simulation) and tried < affordable:
        tried += max(1, tried // 20)
        option = _option(inputs, configuration, tried)
    return option, "" if inputs.holds(option.simulation) else obstacle


def _share_holds(inputs: _SearchInputs, configuration: Configuration, replicas: int) -> bool:
    """Return whether one of so many replicas meets the targets with its share of the traffic."""
    found = simulate_traffic(
        configuration.deployment._replace(replicas=1),
        share_of_traffic(inputs.traffic, replicas),
        inputs.targets,
        requests=inputs.requests,
        seed=inputs.seed,
        ranges=inputs.wish.surely,
        detail=False,
        stop=inputs.stop,
    )
    return found is not None and inputs.holds(found)


def _option(inputs: _SearchInputs, configuration: Configuration, replicas: int) -> ServingOption:
    """Return the option of so many replicas, with the simulation of all of them."""
    evaluation, market = configuration.evaluation, inputs.market
    gpu_id = evaluation.plan.gpu
    assert gpu_id is not None
    number = min(_MOST_FINAL_REQUESTS, max(_FINAL_REQUESTS, replicas) * inputs.requests // 2)
    simulation = simulate_traffic(
        configuration.deployment._replace(replicas=replicas),
        inputs.traffic,
        inputs.targets,
        requests=number,
        seed=inputs.seed,
        stop=inputs.stop,
    )
    gpu = market.catalog.hardware.gpu(gpu_id)
    cards = replicas * evaluation.plan.count
    power = gpu.drawn_watts
    return ServingOption(
        plan=with_replicas(evaluation.plan, replicas),
        replicas=replicas,
        cards_per_replica=evaluation.plan.count,
        hardware=_cheapest(market, {gpu_id: evaluation}, {gpu_id: replicas}).get(gpu_id),
        simulation=simulation or ServingSimulation(unsupported=_STOPPED),
        watts=None if power is None else power * cards,
        changes=configuration.changes,
    )
