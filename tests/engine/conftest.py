"""The real model, loaded once, and engines over small pools of its KV cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from inference.engine import engine as engine_module
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import SamplingParams, Token

from . import tiny

KNIGHT = "Once upon a time there was a brave knight who"
FOX = "The quick brown fox jumps over the lazy dog and"
FISHER = "In a small village by the sea there lived a fisherman who"
BAKER = "Every morning before sunrise the old baker would"
GREEDY = SamplingParams(temperature=0, ignore_eos=True)


@pytest.fixture(scope="session")
def context(model: Model) -> Iterator[Context]:
    context = Context(model, n_ctx=1024, n_seq_max=4, n_batch=512)
    yield context
    context.close()


@pytest.fixture(scope="session")
def tiny_context(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Callable[..., Context]]:
    """tiny_context(kind="llama", cache_type="f16"): 1024 cells and 4 slots over a model of that kind."""
    folder = tmp_path_factory.mktemp("tiny")

    @cache
    def load(kind: tiny.Kind) -> Model:
        path = folder / f"{kind}.gguf"
        tiny.write(path, Path(model.path), kind)
        return Model(str(path))

    with ExitStack() as open_ones:

        @cache
        def make(kind: tiny.Kind = "llama", cache_type: str = "f16") -> Context:
            types = {"cache_type_k": cache_type, "cache_type_v": cache_type, "flash_attn": "on"}
            context = Context(load(kind), n_ctx=1024, n_seq_max=4, n_batch=256, n_threads=1, **types)  # type: ignore[arg-type]
            return open_ones.enter_context(closing(context))

        yield make


@pytest.fixture
def engine_over() -> Iterator[Callable[..., Engine]]:
    """engine_over(context, n_cells, n_slots=4, **kwargs); what it still holds at the end is released."""
    made: list[Engine] = []

    def make(context: Context, n_cells: int, n_slots: int = 4, **kwargs: Any) -> Engine:
        kwargs = {"n_ctx_seq": n_cells, **kwargs}
        made.append(Engine(context, n_cells=n_cells, n_slots=n_slots, **kwargs))
        return made[-1]

    yield make
    for engine in made:
        for seq in list(engine.everyone()):
            engine.cancel(seq.id)


@pytest.fixture
def make_engine(context: Context, engine_over: Callable[..., Engine]) -> Callable[..., Engine]:
    """make_engine(n_cells, n_slots=4, **kwargs) over the real model."""
    return partial(engine_over, context)


@pytest.fixture
def make_tiny_engine(
    tiny_context: Callable[..., Context], engine_over: Callable[..., Engine]
) -> Callable[..., Engine]:
    """make_tiny_engine(n_cells, n_slots=4, **kwargs): where any model will do."""
    return partial(engine_over, tiny_context())


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Context]:
    """In which a text depends on nothing but its request."""
    path = tmp_path_factory.mktemp("exact") / "tiny.gguf"
    tiny.write(path, Path(model.path))
    context = Context(Model(str(path)), n_ctx=256, n_seq_max=4, n_batch=256, n_threads=1, exact=True)
    yield context
    context.close()


@pytest.fixture
def one_piece_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step's share of copies is one piece."""
    monkeypatch.setattr(engine_module, "COPY_SHARE", 0)


E = TypeVar("E")


class Run:
    """Sequences added to an engine, and all that happened to them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.events: dict[str, list[Any]] = {}

    def add(
        self,
        prompt: str | list[int],
        n: int = -1,
        sampling: SamplingParams = GREEDY,
        stop: tuple[str, ...] = (),
    ) -> Sequence:
        model = self.engine.ctx.model
        tokens = (
            prompt
            if isinstance(prompt, list)
            else model.tokenize(prompt, add_special=True, parse_special=True)
        )
        sampler = Sampler(model, sampling)
        sampler.accept_prompt(tokens)
        seq = Sequence(str(len(self.events)), list(tokens), sampler, TextAssembler(stop), n)
        self.events[seq.id] = []
        self.engine.add(seq)
        return seq

    def step(self) -> None:
        for seq_id, event in self.engine.step():
            self.events[seq_id].append(event)

    def finish_one(self, *args: Any) -> Sequence:
        """Add one sequence and run until everything is over."""
        seq = self.add(*args)
        self.finish()
        return seq

    def finish(self) -> Run:
        for _ in range(20_000):
            if self.engine.idle:
                return self
            self.step()
        raise AssertionError("the engine does not come to an end")

    def of(self, seq: Sequence, kind: type[E]) -> list[E]:
        return [e for e in self.events[seq.id] if isinstance(e, kind)]

    def text(self, seq: Sequence) -> str:
        shown = "".join(e.text for e in self.events[seq.id] if isinstance(e, Token))
        return shown + str(self.events[seq.id][-1].text)

    def kinds(self, seq: Sequence) -> list[str]:
        return [e.kind for e in self.events[seq.id] if not isinstance(e, Token)]


@pytest.fixture
def run() -> Callable[[Engine], Run]:
    return Run
