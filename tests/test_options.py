"""The flags and variables of llama-server, as an operator gives them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from inference.options import (
    CACHE_TYPES,
    DEFAULT_DATA_DIR,
    FLAGS,
    VERSION,
    HelpWanted,
    OptionError,
    Options,
    parse,
)
from inference.options.ignored import NO_VALUE, ONE_VALUE, OPTIONAL_VALUE, TWO_VALUES


def refusal(*argv: str, **environ: str) -> str:
    with pytest.raises(OptionError) as caught:
        parse(argv, environ)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_flags_and_variables_the_defaults_hold():
    assert parse([], {}) == Options()
    assert Options().data_dir == DEFAULT_DATA_DIR
    assert (Options().host, Options().port) == ("127.0.0.1", 8000)


@pytest.mark.parametrize(
    ("argv", "field", "value"),
    [
        (["-m", "/x.gguf"], "model", "/x.gguf"),
        (["--model", "x.gguf"], "model", str(Path("x.gguf").absolute())),
        (["-a", "one,two"], "alias", "one"),
        (["--host", "::1"], "host", "::1"),
        (["--port=81"], "port", 81),
        (["--data-dir", "/d"], "data_dir", Path("/d")),
        (["-c", "512"], "ctx_size", 512),
        (["-np", "2"], "parallel", 2),
        (["-np", "-1"], "parallel", 4),
        (["-b", "64"], "batch_size", 64),
        (["-ub", "64"], "ubatch_size", 64),
        (["-t", "-1"], "threads", 0),
        (["-ngl", "all"], "gpu_layers", -1),
        (["-ngl", "12"], "gpu_layers", 12),
        (["-fa"], "flash_attn", "on"),
        (["-fa", "0"], "flash_attn", "off"),
        (["--flash-attn", "auto"], "flash_attn", "auto"),
        (["--predict", "7"], "n_predict", 7),
        (["--api-key", "a, b", "--api-key", "c"], "api_keys", ("a", "b", "c")),
        (["--temp", "0"], "temp", 0.0),
        (["-s", "-1"], "seed", -1),
        (["--no-slots"], "slots", False),
        (["--metrics"], "metrics", True),
        (["--sse-ping-interval", "-1"], "sse_ping_interval", -1.0),
        (["--preempt-ram", "16"], "preempt_ram", 16),
        (["--rotate-after", "0.5"], "rotate_after", 0.5),
        (["--context-shift"], "context_shift", True),
        (["--context-shift", "--no-context-shift"], "context_shift", False),
        (["--keep", "-1"], "keep", -1),
        (["-ctk", "q8_0"], "cache_type_k", "q8_0"),
        (["--cache-type-v", "q4_1"], "cache_type_v", "q4_1"),
        (["--exact"], "exact", True),
        (["--preempt-every", "8"], "preempt_every", 8),
        (["--allow-anonymous"], "allow_anonymous", True),
        (["--max-body", "2"], "max_body", 2),
        (["--max-choices", "1"], "max_choices", 1),
        (["--max-output", "-1"], "max_output", -1),
        (["--max-log", "9"], "max_log", 9),
        (["--max-queue", "0"], "max_queue", 0),
        (["--max-per-key", "2"], "max_per_key", 2),
        (["--max-per-user", "2"], "max_per_user", 2),
        (["--max-per-address", "2"], "max_per_address", 2),
        (["--log-lifetime", "3600"], "log_lifetime", 3600),
        (["--no-chat-titles"], "chat_titles", False),
        (["--no-chat-titles", "--chat-titles"], "chat_titles", True),
        (["-c", "16", "-c", "32"], "ctx_size", 32),
    ],
)
def test_a_flag_sets_its_field(argv, field, value):
    assert getattr(parse(argv, {}), field) == value


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("LLAMA_ARG_MODEL", "/x.gguf", "model", "/x.gguf"),
        ("LLAMA_ARG_CTX_SIZE", "512", "ctx_size", 512),
        ("LLAMA_ARG_N_PARALLEL", "2", "parallel", 2),
        ("LLAMA_ARG_N_PREDICT", "9", "n_predict", 9),
        ("LLAMA_ARG_HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("LLAMA_API_KEY", "a,b", "api_keys", ("a", "b")),
        ("LLAMA_ARG_ENDPOINT_SLOTS", "false", "slots", False),
        ("LLAMA_ARG_NO_ENDPOINT_SLOTS", "1", "slots", False),
        ("LLAMA_ARG_ENDPOINT_METRICS", "1", "metrics", True),
        ("LLAMA_ARG_PREEMPT_RAM", "1", "preempt_ram", 1),
        ("LLAMA_ARG_ROTATE_AFTER", "0", "rotate_after", 0.0),
        ("LLAMA_ARG_CONTEXT_SHIFT", "1", "context_shift", True),
        ("LLAMA_ARG_CACHE_TYPE_K", "bf16", "cache_type_k", "bf16"),
        ("LLAMA_ARG_CACHE_TYPE_V", "f32", "cache_type_v", "f32"),
        ("LLAMA_ARG_EXACT", "on", "exact", True),
        ("LLAMA_SERVER_PREEMPT_EVERY", "8", "preempt_every", 8),
        ("LLAMA_ARG_MAX_BODY", "2", "max_body", 2),
        ("LLAMA_ARG_MAX_CHOICES", "2", "max_choices", 2),
        ("LLAMA_ARG_MAX_OUTPUT", "2", "max_output", 2),
        ("LLAMA_ARG_MAX_LOG", "2", "max_log", 2),
        ("LLAMA_ARG_MAX_QUEUE", "2", "max_queue", 2),
        ("LLAMA_ARG_MAX_PER_KEY", "2", "max_per_key", 2),
        ("LLAMA_ARG_MAX_PER_USER", "2", "max_per_user", 2),
        ("LLAMA_ARG_MAX_PER_ADDRESS", "2", "max_per_address", 2),
        ("LLAMA_ARG_LOG_LIFETIME", "3600", "log_lifetime", 3600),
        ("BERTH_CHAT_TITLES", "off", "chat_titles", False),
        ("BERTH_DATA_DIR", "/d", "data_dir", Path("/d")),
        ("LLAMA_ARG_PORT", "", "port", 8000),
    ],
)
def test_a_variable_sets_its_field(variable, text, field, value):
    assert getattr(parse([], {variable: text}), field) == value


def test_a_flag_beats_its_variable():
    environ = {"LLAMA_ARG_PORT": "1", "LLAMA_API_KEY": "a", "LLAMA_ARG_NO_ENDPOINT_SLOTS": "1"}
    options = parse(["--port", "2", "--api-key", "b", "--slots"], environ)
    assert (options.port, options.api_keys, options.slots) == (2, ("b",), True)


def test_keys_of_a_file_join_the_others(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# programs\none\n\n two \n")
    assert parse(["--api-key", "zero", "--api-key-file", str(file)], {}).api_keys == ("zero", "one", "two")


def test_a_micro_batch_is_never_bigger_than_a_batch():
    assert parse(["-b", "100"], {}).ubatch_size == 100
    assert parse(["-b", "100", "-ub", "0"], {}).ubatch_size == 100


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--port", "x"], "--port: 'x' is not a whole number"),
        (["--port", "65536"], "--port: 65536 is too big, the most is 65535"),
        (["--port", "0"], "--port: 0 is too small, the least is 1"),
        (["--max-per-key", "0"], "--max-per-key: 0 would let nobody in; give 1 or more, or -1 for no limit"),
        (["--max-queue", "-2"], "--max-queue: -2 is too small, the least is -1"),
        (["--max-choices", "129"], "--max-choices: 129 is too big, the most is 128"),
        (["-ngl", "2147483648"],
         "-ngl/--gpu-layers/--n-gpu-layers: 2147483648 is too big, the most is 2147483647"),
        (["--log-lifetime", "60"], "--log-lifetime: 60 is too small, the least is 3600"),
        (["-c", "-1"], "-c/--ctx-size: -1 is too small, the least is 0"),
        (["-c", "15"], "-c/--ctx-size: 15 is too small, the least is 16 (or 0: all that it can)"),
        (["-b", "0"], "-b/--batch-size: 0 is too small, the least is 1"),
        (["-np", "0"], "-np/--parallel: 0 slots can serve nobody; give 1 or more"),
        (["--temp", "nan"], "--temp/--temperature: 'nan' is not a finite number"),
        (["--temp", "-0.5"], "--temp/--temperature: -0.5 is negative; 0 means greedy"),
        (["--sse-ping-interval", "0"], "--sse-ping-interval: 0 is neither seconds above 0 nor -1 (off)"),
        (["--rotate-after", "soon"], "--rotate-after: 'soon' is not a number"),
        (["--rotate-after", "-1"], "--rotate-after: -1 is negative; 0 means never"),
        (["--preempt-ram", "much"], "--preempt-ram: 'much' is not a whole number"),
        (["-ctk", "q9"], "-ctk/--cache-type-k: 'q9' is none of " + ", ".join(CACHE_TYPES)),
        (["--exact", "-fa", "on"], "--exact does without flash attention; leave --flash-attn on away"),
        (["--exact", "-ctv", "q8_0"],
         "--cache-type-v q8_0 needs flash attention, which --exact does without; leave one of the two away"),
        (["-fa", "off", "-ctv", "q4_0"],
         "--cache-type-v q4_0 needs flash attention, which --flash-attn off does without; "
         "leave one of the two away"),
        (["-fa", "maybe"], "-fa/--flash-attn: 'maybe' is neither on nor off"),
        (["--host", "a,b"], "--host: 'a,b' is not one address or host name to listen on"),
        (["--api-key", ","], "--api-key: the key is empty"),
        (["--api-key-file", "/nowhere"], "--api-key-file: cannot read '/nowhere': No such file or directory"),
        (["--model"], "-m/--model: expected one argument"),
        (["--ctx-sise", "9"], "unknown flag --ctx-sise, did you mean --ctx-size?"),
        (["--what"], "unknown flag --what; manage.py serve --help lists the flags"),
        (["-c4"], "unknown flag -c4, did you mean -c?"),
        (["model.gguf"], "unexpected argument 'model.gguf'; manage.py serve --help lists the flags"),
    ],
)  # fmt: skip
def test_a_bad_value_or_an_unknown_flag_is_one_line(argv, reason):
    assert refusal(*argv) == reason


def test_a_bad_variable_is_named():
    assert refusal(LLAMA_ARG_PORT="x") == "LLAMA_ARG_PORT: 'x' is not a whole number"


@pytest.mark.parametrize(
    ("names", "values"),
    [(NO_VALUE, []), (ONE_VALUE, ["1"]), (OPTIONAL_VALUE, ["on"]), (TWO_VALUES, ["1", "2"])],
)  # fmt: skip
def test_another_flag_of_llama_server_is_named_and_ignored(names, values, capsys):
    for name in names.split():
        assert parse([name, *values, "-c", "90"], {}) == Options(ctx_size=90)
        assert capsys.readouterr().err == f"{name} has no meaning here and is ignored\n"


def test_another_variable_of_llama_server_is_named_and_ignored(capsys):
    assert parse([], {"LLAMA_ARG_MLOCK": "1"}) == Options()
    assert capsys.readouterr().err == "LLAMA_ARG_MLOCK has no meaning here and is ignored\n"


def test_no_flag_is_both_used_and_ignored():
    used = {name for flag in FLAGS for name in flag.names.split()}
    assert not used & set(f"{NO_VALUE} {ONE_VALUE} {OPTIONAL_VALUE} {TWO_VALUES}".split())


def test_help_lists_every_flag_with_its_variable():
    with pytest.raises(HelpWanted) as caught:
        parse(["--help"], {})
    for flag in FLAGS:
        assert flag.names.split()[-1] in str(caught.value)
        assert flag.env in str(caught.value)


def test_the_version_is_the_project_s():
    with (DEFAULT_DATA_DIR.parent / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == VERSION


def test_options_survive_their_way_to_a_child():
    options = parse(["-c", "90", "--api-key", "a,b", "--data-dir", "/d", "--temp", "0.1"], {})
    assert Options.from_json(options.to_json()) == options


def test_a_process_reads_what_its_parent_left_for_it(monkeypatch):
    monkeypatch.setenv("BERTH_OPTIONS", Options(port=81).to_json())
    monkeypatch.setenv("LLAMA_ARG_PORT", "82")
    assert Options.from_env().port == 81
    monkeypatch.delenv("BERTH_OPTIONS")
    assert Options.from_env().port == 82


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_only_this_machine_reaches_a_loopback_host(host):
    assert Options(host=host).is_loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org"])
def test_others_reach_any_other_host(host):
    assert not Options(host=host).is_loopback
