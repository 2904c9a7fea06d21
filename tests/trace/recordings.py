"""Recordings written by hand: allocations in words, columns from the builder."""

from collections.abc import Iterable

from hypothesis import strategies as st

from planner.trace.recording import (
    CATEGORIES,
    Allocations,
    Category,
    Environment,
    ModuleInfo,
    RecordedPhase,
    TraceDifference,
    TraceRecording,
)
from planner.trace.request import Target, TraceRequest


class Recorder:
    """Builds a recording: `make` returns a handle, `free` takes it, `begin` opens a phase."""

    def __init__(self) -> None:
        self.time = 0
        self.rows: list[dict[str, int]] = []
        self.names: dict[str, list[str]] = {"operator": [], "module": [], "line": [], "shape": []}
        self.spans: list[RecordedPhase] = []

    def begin(self, name: str, step: int = 0) -> None:
        """Open a phase, which ends where the next begins."""
        self._end()
        self.spans.append(RecordedPhase(name=name, step=step, start=self.time, end=self.time))

    def make(
        self,
        size: int,
        category: Category = "temporaries",
        operator: str = "aten.empty",
        module: str = "",
        line: str = "net.py:1",
        shape: str = "",
    ) -> int:
        """Allocate `size` bytes and return the allocation's number."""
        names = {"operator": operator, "module": module, "line": line, "shape": shape}
        places = {kind: self._place(kind, name) for kind, name in names.items()}
        self.rows.append(
            {"bytes": size, "made": self.time, "freed": -1, "category": CATEGORIES.index(category), **places}
        )
        self.time += 1
        return len(self.rows) - 1

    def free(self, *numbers: int) -> None:
        """Free allocations, one after the other."""
        for number in numbers:
            self.rows[number]["freed"] = self.time
            self.time += 1

    def recording(
        self,
        request: TraceRequest | None = None,
        modules: Iterable[ModuleInfo] = (),
        differences: tuple[TraceDifference, ...] = (),
        tested: bool = True,
        notes: tuple[str, ...] = (),
    ) -> TraceRecording:
        """Return what was recorded."""
        if not self.spans:
            self.begin("forward")
            self.spans[0] = self.spans[0].evolve(start=0)
        self._end()
        modules = tuple(modules) or (ModuleInfo(path="", class_name="Net", parameters=0, trainable=0),)
        return TraceRecording(
            request=request or training(),
            environment=Environment(planner="0.1.0", python="3.11.7", torch="2.13.0", transformers=None, tested=tested),
            modules=modules,
            parameters=sum(module.parameters for module in modules),
            trainable_parameters=sum(module.trainable for module in modules),
            allocations=Allocations(
                **{name: tuple(row[name] for row in self.rows) for name in Allocations.model_fields}
            ),
            operators=tuple(self.names["operator"]),
            module_paths=tuple(self.names["module"]),
            lines=tuple(self.names["line"]),
            shapes=tuple(self.names["shape"]),
            spans=tuple(self.spans),
            differences=differences,
            notes=notes,
            flops=1_000_000,
            seconds=0.5,
        )

    def _place(self, kind: str, name: str) -> int:
        names = self.names[kind]
        if name not in names:
            names.append(name)
        return names.index(name)

    def _end(self) -> None:
        if self.spans:
            self.spans[-1] = self.spans[-1].evolve(end=self.time)


def training(**changes: object) -> TraceRequest:
    """Return the request of a small network of one's own, trained for two steps."""
    target = Target(kind="file", place="net.py", name="Net")
    return TraceRequest.model_validate({"target": target, "task": "training", **changes})


def two_steps(size: int = 1 << 20, request: TraceRequest | None = None) -> TraceRecording:
    """Return two training steps of two layers whose weights have `size` bytes each, with Adam's states.

    The peak is in the backward pass of the second: weights 2, states 4, inputs 1, activations 2, gradients 1 and a
    temporary 1, in units of `size`.
    """
    recorder = Recorder()
    recorder.begin("load")
    layers = ("layers.0", "layers.1")
    for layer in layers:
        recorder.make(size, "parameters", "aten.empty", layer, "net.py:10", f"{layer}.weight")
    recorder.make(size, "inputs", "aten.rand", "", "net.py:30", "8x128")
    states: list[int] = []
    for step in (0, 1):
        _step(recorder, layers, size, step, states)
    modules = [
        ModuleInfo(path="", class_name="Net", parameters=0, trainable=0),
        ModuleInfo(path="layers", class_name="Sequential", parameters=0, trainable=0),
        *(ModuleInfo(path=layer, class_name="Linear", parameters=size // 4, trainable=size // 4) for layer in layers),
    ]
    return recorder.recording(request, modules)


def _step(recorder: Recorder, layers: tuple[str, ...], size: int, step: int, states: list[int]) -> None:
    recorder.begin("forward", step)
    kept = [recorder.make(size, "activations", "aten.addmm", layer, "net.py:20", "8x128") for layer in layers]
    recorder.begin("loss", step)
    loss = recorder.make(4, "temporaries", "aten.mse_loss", "", "net.py:40")
    recorder.begin("backward", step)
    gradients = []
    for layer, activation in zip(reversed(layers), reversed(kept), strict=True):
        scratch = recorder.make(size, "temporaries", "aten.mm", layer, "net.py:20", "8x128")
        gradients.append(recorder.make(size, "gradients", "aten.mm", layer, "net.py:20", "128x128"))
        recorder.free(scratch, activation)
    recorder.free(loss)
    recorder.begin("step", step)
    if not states:
        states += [
            recorder.make(size, "optimizer_states", "aten.zeros_like", layer, "", "128x128")
            for layer in layers
            for _ in range(2)
        ]
    recorder.free(*gradients)


@st.composite
def any_recordings(draw: st.DrawFn, most: int = 60) -> TraceRecording:
    """Any order of allocations and frees, in any phases."""
    recorder = Recorder()
    recorder.begin("load")
    alive: list[int] = []
    for _ in range(draw(st.integers(0, most))):
        choice = draw(st.integers(0, 9))
        if choice == 0:
            recorder.begin(draw(st.sampled_from(["forward", "loss", "backward", "step"])), draw(st.integers(0, 2)))
        elif choice < 4 and alive:
            recorder.free(alive.pop(draw(st.integers(0, len(alive) - 1))))
        else:
            size, category = draw(st.integers(0, 1 << 24)), draw(st.sampled_from(CATEGORIES))
            module, operator = draw(st.sampled_from(["", "a", "a.b", "a.c"])), draw(st.sampled_from(["mm", "add"]))
            alive.append(recorder.make(size, category, operator, module))
    return recorder.recording()
