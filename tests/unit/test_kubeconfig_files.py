"""Bounded reading, atomic writing."""

from __future__ import annotations

import os
import stat
import threading

import pytest

from kubeauthn._io import files
from kubeauthn._io.files import Problem, read_bounded, read_or_problem, read_text_or_problem, write_atomically
from kubeauthn.errors import EnvironmentFailure


def test_reads_up_to_the_limit(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 1000)
    assert read_bounded(str(path), 1000) == b"x" * 1000
    assert read_or_problem(str(path), 999) == Problem("is larger than 999 bytes")
    with pytest.raises(EnvironmentFailure, match="f: is larger than 999 bytes"):
        read_bounded(str(path), 999)


def test_what_cannot_be_read(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert read_or_problem(str(tmp_path), 10) == Problem("is a directory")
    assert read_or_problem(str(tmp_path / "a"), 10) == Problem("is a loop of symbolic links")
    assert read_or_problem(str(tmp_path / "dangling"), 10) == Problem("no such file or directory", missing=True)
    assert read_or_problem(str(tmp_path / "file" / "x"), 10) == Problem("not a directory")
    assert read_or_problem("a\0b", 10) == Problem("is not a possible path")
    assert read_or_problem("x" * 5000, 10) == Problem("file name too long")
    assert read_or_problem("/dev/zero", 10) == Problem("is neither a regular file nor a pipe")
    with pytest.raises(EnvironmentFailure) as caught:
        read_bounded("a\0b", 10)
    assert "\0" not in str(caught.value)


def test_dev_null_is_empty():
    assert read_bounded(os.devnull, 10) == b""


def test_a_pipe_is_read_to_its_end(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def write():
        with open(path, "wb") as stream:
            stream.write(b"first ")
            stream.flush()
            stream.write(b"second")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert read_bounded(str(path), 100) == b"first second"
    finally:
        writer.join(10)


def test_a_pipe_that_nobody_writes_does_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIPE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "pipe")
    problem = read_or_problem(str(tmp_path / "pipe"), 100)
    assert isinstance(problem, Problem)
    assert "is a pipe that was silent" in problem.reason


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbfa: \xc3\xa9", "a: é"),
        (b"a: 1", "a: 1"),
        ("a: 1".encode("utf-16"), Problem("is UTF-16, not UTF-8: save it again as UTF-8")),
        (b"a: 1\nb: \xff", Problem("is not UTF-8 (line 2)")),
    ],
    ids=["byte order mark", "plain", "utf-16", "not utf-8"],
)
def test_text(tmp_path, content, expected):
    (tmp_path / "f").write_bytes(content)
    assert read_text_or_problem(str(tmp_path / "f"), 100) == expected


def test_a_new_file_is_for_its_owner_only(tmp_path):
    write_atomically(str(tmp_path / "f"), b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_links_are_followed(tmp_path):
    real = tmp_path / "elsewhere" / "real"
    real.parent.mkdir()
    real.write_text("old")
    (tmp_path / "link").symlink_to(real)
    write_atomically(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink()
    assert real.read_bytes() == b"new"


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "a")
    for path, message in (
        (tmp_path / "no" / "f", "no such file or directory"),
        (tmp_path, "is not a regular file"),
        (tmp_path / "a", "is a loop of symbolic links"),
    ):
        with pytest.raises(EnvironmentFailure, match=message):
            write_atomically(str(path), b"new")
    assert os.listdir(tmp_path) == ["a"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def no_space(*arguments):
        raise OSError(28, "No space left on device")

    path = tmp_path / "f"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", no_space)
    with pytest.raises(EnvironmentFailure, match="f: no space left on device"):
        write_atomically(str(path), b"new secret")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]
