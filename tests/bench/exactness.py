"""Forced parks at every interval from 1 to 64, greedy and sampled: how many tokens differ. Takes minutes."""

from __future__ import annotations

from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import SamplingParams

INTERVALS = range(1, 65)
PROMPTS_EACH = 2  # of each interval, with both ways of sampling
N_TOKENS = 66
TOPICS = (
    "rain", "a lighthouse", "bread", "the moon", "a chess game", "an old train", "bees", "a lost letter",
    "glass", "winter", "a market", "the sea", "a clock",
)  # fmt: skip
TASKS = (
    "Explain {} to a child.",
    "Write a short story about {}.",
    "List five facts about {}.",
    "Why does {} matter?",
)
SAMPLINGS = (
    SamplingParams(temperature=0, ignore_eos=True),
    SamplingParams(temperature=0.9, top_p=0.95, repeat_penalty=1.1, seed=11, ignore_eos=True),
)


def report(model_path: str, n_threads: int) -> None:
    """Print how many parks there were and how many tokens came out otherwise than without."""
    model = Model(model_path)
    ctx = Context(model, n_ctx=512, n_seq_max=2, n_batch=512, n_threads=n_threads)
    prompts = [task.format(topic) for topic in TOPICS for task in TASKS]
    expected: dict[tuple[int, int], list[int]] = {}
    runs = parks = differ = 0
    for interval in INTERVALS:
        for i in range(PROMPTS_EACH):
            n = (interval * PROMPTS_EACH + i) % len(prompts)
            for s, sampling in enumerate(SAMPLINGS):
                if (n, s) not in expected:
                    expected[n, s] = _tokens(ctx, prompts[n], sampling, 0)[0]
                found, n_parks = _tokens(ctx, prompts[n], sampling, interval)
                runs, parks = runs + 1, parks + n_parks
                differ += sum(a != b for a, b in zip(found, expected[n, s], strict=True))
    used = len({n for n, _ in expected})
    print(f"{runs} runs over {used} prompts, {parks} parks: {differ} tokens differ", flush=True)


def _tokens(ctx: Context, prompt: str, sampling: SamplingParams, interval: int) -> tuple[list[int], int]:
    text = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    tokens = ctx.model.tokenize(text, add_special=True, parse_special=True)
    sampler = Sampler(ctx.model, sampling)
    sampler.accept_prompt(tokens)
    seq = Sequence("a", tokens, sampler, TextAssembler(()), N_TOKENS)
    engine = Engine(ctx, n_cells=512, n_slots=2, n_ctx_seq=512, preempt_every=interval)
    engine.add(seq)
    while not engine.idle:
        engine.step()
    return seq.tokens, seq.parks
