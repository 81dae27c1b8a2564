"""What the worker refuses before a byte is sent, and what it makes of the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.engine.llama import Model
from inference.engine.sequence import Sequence
from inference.messages import Accepted, GenerationRequest, Job, SamplingParams
from inference.worker.chat_template import ChatTemplate, TemplateFailure
from inference.worker.intake import Intake, Refused


@pytest.fixture(scope="module")
def intake(model: Model) -> Intake:
    return Intake(model, ChatTemplate(model.chat_template, bos=model.bos, eos=model.eos), n_ctx_seq=64)


ID = "0123456789abcdef0123456789abcdef"


def job(**fields: Any) -> Job:
    return Job(ID, "generate", GenerationRequest(**fields).to_dict(), "")


def taken(intake: Intake, **fields: Any) -> tuple[Accepted, Sequence]:
    """Of a request for one choice."""
    (only,) = intake.generations(job(**fields))
    return only


def reason(intake: Intake, **fields: Any) -> tuple[int, str, str]:
    with pytest.raises(Refused) as caught:
        intake.generations(job(**fields))
    failed = caught.value.failed
    return failed.status, failed.type, failed.message


def test_a_prompt_that_cannot_fit_the_context_is_refused_with_both_figures(intake: Intake) -> None:
    status, type_, message = reason(intake, prompt="word " * 100)
    assert (status, type_) == (400, "exceed_context_size_error")
    assert "64" in message


@pytest.mark.parametrize("unit", ["word ", "a", " ", "\n", "7", "漢", "<|im_start|>"])
def test_no_token_is_longer_than_the_longest(intake: Intake, unit: str) -> None:
    text = unit * 5000
    n = len(intake.model.tokenize(text, add_special=False, parse_special=True))
    assert len(text.encode()) <= n * intake.model.longest_piece


@pytest.mark.parametrize(
    "prompt", ["word " * 10**6, ("word ", "word " * 10**6), ((5,) * 64 + ("word " * 10**6,))]
)
def test_a_prompt_that_cannot_fit_is_not_tokenised_to_the_end(
    intake: Intake, prompt: Any, monkeypatch
) -> None:
    tokenised: list[str] = []
    tokenize = intake.model.tokenize

    def seen(text: str, **how: Any) -> list[int]:
        tokenised.append(text)
        return tokenize(text, **how)

    monkeypatch.setattr(intake.model, "tokenize", seen)
    status, type_, message = reason(intake, prompt=prompt)
    assert (status, type_) == (400, "exceed_context_size_error")
    assert "at least" in message
    assert sum(map(len, tokenised)) < 100


def test_a_prompt_that_leaves_room_for_one_token_is_taken(intake: Intake) -> None:
    _, seq = taken(intake, prompt=(5,) * 63)
    assert seq.n_prompt == 63
    assert reason(intake, prompt=(5,) * 64)[0] == 400


def test_an_empty_prompt_is_refused(intake: Intake) -> None:
    assert reason(intake, prompt="")[0] == 400


def test_a_token_outside_the_vocabulary_is_refused(intake: Intake) -> None:
    assert "not in the vocabulary" in reason(intake, prompt=(1, 10**7))[2]
    assert "not in the vocabulary" in reason(intake, prompt=(1, -1))[2]


def test_a_bias_outside_the_vocabulary_is_refused(intake: Intake) -> None:
    assert reason(intake, prompt="a", sampling=SamplingParams(logit_bias=((10**7, 1.0),)))[0] == 400


def test_text_and_tokens_can_be_mixed(intake: Intake, model: Model) -> None:
    _, seq = taken(intake, prompt=("Hello", 17, " there"))
    assert 17 in seq.tokens
    assert model.detokenize(seq.tokens).startswith("Hello")


def test_messages_go_through_the_models_template(intake: Intake, model: Model) -> None:
    _, seq = taken(intake, messages=({"role": "user", "content": "Hi"},))
    text = model.detokenize(seq.tokens)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_the_seed_that_is_used_is_told(intake: Intake) -> None:
    accepted, _ = taken(intake, prompt="a", sampling=SamplingParams(seed=5))
    assert accepted.seed == 5
    accepted, _ = taken(intake, prompt="a")
    assert accepted.seed >= 0


def test_siblings_are_sequences_of_their_own(intake: Intake, model: Model) -> None:
    request = {"prompts": ("Hello", (17, 18)), "n": 2, "sampling": SamplingParams(seed=5)}
    siblings = intake.generations(job(**request))
    assert [seq.id for _, seq in siblings] == [f"{ID[:-1]}{end}" for end in "fedc"]
    assert [accepted.seed for accepted, _ in siblings] == [5, 6, 5, 6]
    prompts = [seq.tokens for _, seq in siblings]
    assert prompts[0] == prompts[1] == taken(intake, prompt="Hello")[1].tokens
    assert prompts[2] == prompts[3] == [17, 18]
    prompts[0].append(1)
    assert prompts[0] != prompts[1]


def test_several_choices_without_a_seed_differ(intake: Intake) -> None:
    seeds = {accepted.seed for accepted, _ in intake.generations(job(prompt="Hello", n=8))}
    assert len(seeds) > 1


@pytest.mark.parametrize(
    ("bad", "type_", "why"),
    [
        ("word " * 100, "exceed_context_size_error", "context size of 64"),
        ("", "invalid_request_error", "is empty"),
        ((10**7,), "invalid_request_error", "not in the vocabulary"),
    ],
)
def test_one_bad_prompt_refuses_all_and_is_named(intake: Intake, bad: Any, type_: str, why: str) -> None:
    status, kind, message = reason(intake, prompts=("good", "good", bad, bad), n=2)
    assert (status, kind) == (400, type_)
    assert message.startswith("prompt 2: ")
    assert why in message


def test_what_is_wrong_with_all_names_no_prompt(intake: Intake) -> None:
    assert reason(intake, prompt="", n=2)[2] == "the prompt is empty: it has no tokens"
    bias = SamplingParams(logit_bias=((10**7, 1.0),))
    assert reason(intake, prompts=("a", "b"), sampling=bias)[2].startswith("logit_bias")


def test_a_template_that_refuses_gives_its_reason() -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", bos="", eos="")
    with pytest.raises(TemplateFailure, match="roles must alternate"):
        template.render([])


def test_a_prompt_with_the_date_is_the_same_when_the_job_is_read_again_later(model: Model) -> None:
    template = ChatTemplate("{{ strftime_now('%Y-%m-%d') }}", bos="", eos="")
    messages = ({"role": "user", "content": "x"},)
    old = replace(job(messages=messages), submitted_at=86_400.0 * 20_000)
    [(_, seq)] = Intake(model, template, 64).generations(old)
    assert "2024-10" in model.detokenize(seq.tokens)


def test_a_template_cannot_leave_its_sandbox() -> None:
    template = ChatTemplate("{{ ''.__class__.__mro__[1].__subclasses__() }}", bos="", eos="")
    with pytest.raises(TemplateFailure):
        template.render([])


def test_a_broken_template_is_named_at_once() -> None:
    with pytest.raises(TemplateFailure, match="broken"):
        ChatTemplate("{% if %}", bos="", eos="")


def test_tokens_and_text_convert_both_ways(intake: Intake) -> None:
    text = "Grüße, 世界!"
    tokens = intake.answer(Job("a", "tokenize", {"content": text}, "")).data["tokens"]
    assert intake.answer(Job("a", "detokenize", {"tokens": tokens}, "")).data["content"] == text
    pieces = intake.answer(Job("a", "tokenize", {"content": text, "with_pieces": True}, "")).data["tokens"]
    assert [p["id"] for p in pieces] == tokens


def test_a_sequence_has_its_requests_priority(intake: Intake) -> None:
    [(_, seq)] = intake.generations(job(prompt="a", priority=-1))
    assert seq.priority == -1


QUESTION = {"role": "user", "content": "Hi"}


def test_a_sequence_has_its_jobs_account_and_its_requests_wish_for_the_cache(intake: Intake) -> None:
    for wanted in (True, False):
        request = GenerationRequest(prompt="Hello", cache_prompt=wanted)
        job = Job(ID, "generate", request.to_dict(), "", account="user:1")
        [(_, seq)] = intake.generations(job)
        assert (seq.account, seq.use_cache) == ("user:1", wanted)


def test_an_answer_that_comes_last_is_left_open(intake: Intake, model: Model) -> None:
    messages = (QUESTION, {"role": "assistant", "content": "Hello, Ad"})
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello, Ad"
    assert model.detokenize(taken(intake, messages=messages)[1].tokens).endswith(prompt)
    asked = Job(ID, "apply_template", {"messages": list(messages)}, "")
    assert intake.answer(asked).data["prompt"].endswith(prompt)


def test_of_answers_only_the_last_can_be_left_open(intake: Intake) -> None:
    answer = {"role": "assistant", "content": "Hello"}
    assert "only one" in reason(intake, messages=(QUESTION, answer, answer))[2]


def test_what_calls_a_tool_is_not_left_open(intake: Intake, model: Model) -> None:
    called = {"role": "assistant", "content": "Wait", "tool_calls": [{"function": {"name": "look"}}]}
    text = model.detokenize(taken(intake, messages=(QUESTION, called))[1].tokens)
    assert text.endswith("Wait<|im_end|>\n<|im_start|>assistant\n")
