"""What `manage.py serve` refuses: one line, before anything starts."""

from __future__ import annotations

import re
import socket
from dataclasses import replace

import pytest

from inference import memory
from inference.models import ApiKey
from inference.options import Options
from inference.serve import CannotStart, checks, database, model_files

from .served import free_port, refused


def test_a_port_in_use_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--data-dir", str(tmp_path), "--port", str(port))
    assert line == f"port {port} on 127.0.0.1 is in use; stop what uses it, or choose another with --port"


def test_a_missing_model_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), "--model", "/no.gguf")
    assert line == "there is no model file /no.gguf; give one with --model, or leave --model out"


def test_a_corrupt_model_is_refused(tmp_path):
    with model_files.resolve(Options()).open("rb") as whole:
        (tmp_path / "half.gguf").write_bytes(whole.read(50_000_000))
    flags = ["--data-dir", str(tmp_path), "--port", str(free_port()), "--model", str(tmp_path / "half.gguf")]
    assert (
        refused(*flags) == f"the model {tmp_path / 'half.gguf'} is corrupt (its end is missing); get it again"
    )


def test_memory_is_counted_for_the_cache_types_and_for_each_exact_slot(monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 30)
    model = model_files.resolve(Options())
    plain = Options(ctx_size=20_000, gpu_layers=0)
    checks.memory(plain, model)
    with pytest.raises(CannotStart, match="lower --ctx-size to"):
        checks.memory(replace(plain, exact=True), model)
    checks.memory(replace(plain, exact=True, cache_type_k="q4_0", cache_type_v="q4_0"), model)
    with pytest.raises(CannotStart):
        checks.memory(replace(plain, ctx_size=40_000), model)
    checks.memory(replace(plain, ctx_size=40_000, cache_type_k="q8_0", cache_type_v="q8_0"), model)


def test_too_little_memory_is_refused_with_the_size_that_would_fit(tmp_path):
    line = refused(
        "--data-dir", str(tmp_path), "--port", str(free_port()), "--ctx-size", "2000000000", "-ngl", "0"
    )
    assert re.search(r"too little memory: .* MiB are free; lower --ctx-size to \d+ or less$", line)


def test_a_host_that_others_reach_needs_a_key(tmp_path):
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), "--host", "0.0.0.0")
    assert line.startswith("0.0.0.0 can be reached by others and no API key exists; give one with --api-key")


def test_an_unknown_flag_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path / "new"), "--mdoel", "x", code=2)
    assert line == "unknown flag --mdoel, did you mean --model?"
    assert not (tmp_path / "new").exists()


def test_a_bad_value_is_refused():
    assert refused("--port", "80000", code=2) == "--port: 80000 is too big, the most is 65535"


def test_a_data_directory_that_cannot_be_made_is_refused():
    assert refused("--data-dir", "/proc/berth", code=2).startswith("--data-dir: cannot make /proc/berth: ")


def test_a_data_directory_that_cannot_be_written_is_refused():
    assert refused("--data-dir", "/proc", code=2).startswith("cannot use the data directory /proc: ")


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("DATABASE_URL", "secret", "DATABASE_URL cannot be used: it is postgres://"),
        ("EMAIL_URL", "secret", "EMAIL_URL cannot be used: it is smtp://"),
        ("PUBLIC_URL", "chat.example.org", "PUBLIC_URL: chat.example.org is no address such as https://"),
        ("PUBLIC_URL", "https://a:x", "PUBLIC_URL: https://a:x is no address such as https://"),
        ("CSRF_TRUSTED_ORIGINS", "https://a.org,b.org", "CSRF_TRUSTED_ORIGINS: b.org is no address"),
        ("CSRF_TRUSTED_ORIGINS", "https://a.org/b", "CSRF_TRUSTED_ORIGINS: https://a.org/b is more than"),
        ("TRUSTED_PROXIES", "10.0.0.1/8", "TRUSTED_PROXIES: 10.0.0.1/8 has host bits set"),
        ("TRUSTED_PROXIES", "proxy", "TRUSTED_PROXIES: 'proxy' does not appear to be"),
    ],
)
def test_a_variable_that_is_wrong_is_refused(tmp_path, name, value, line):
    said = refused("--data-dir", str(tmp_path), code=2, **{name: value})
    assert said.startswith(line)
    assert "secret" not in said


def test_redis_that_does_not_answer_is_refused(tmp_path):
    url = f"redis://127.0.0.1:{free_port()}/0"
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), REDIS_URL=url)
    assert line.startswith("Redis does not answer: ")
    assert line.endswith("; check REDIS_URL")


@pytest.mark.django_db(transaction=True)
def test_a_key_of_the_admin_counts_until_it_is_revoked():
    assert not database.has_api_key()
    row, _ = ApiKey.objects.create_key("a program")
    assert database.has_api_key()
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=row.created_at)
    assert not database.has_api_key()


def test_free_memory_is_known_here():
    assert (memory.free() or 0) > 0
