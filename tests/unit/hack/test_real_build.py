"""Building the real control plane: what is asked of the machine, and where the programs go."""

import re
from pathlib import Path

import pytest

from testbed.real import BuildError, can_build, is_built
from testbed.real.__main__ import main
from testbed.real.build import MODULES, bin_folder, build, check_prerequisites, kubernetes_version

Monkey = pytest.MonkeyPatch


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: Monkey) -> Path:
    """An empty cache, and a PATH with nothing in it but what the test puts there."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("TAINTKEEPER_CACHE", str(tmp_path / "cache"))
    return folder


def install_go(tools: Path, script: str) -> None:
    go = tools / "go"
    go.write_text(f"#!/bin/sh\n{script}\n")
    go.chmod(0o755)


def says(version: str) -> str:
    return f'if [ "$1" = env ]; then echo {version}; exit; fi'


def test_no_go_is_one_clear_line_and_exit_2(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build"]) == 2

    assert capsys.readouterr().err == (
        "error: the real cluster is built with Go >= 1.26.0, and there is no `go` in PATH\n"
    )
    assert not can_build()


@pytest.mark.parametrize("version", ["go1.25.9", "go1.9", "devel"])
def test_an_old_go_is_refused(tools: Path, version: str) -> None:
    install_go(tools, says(version))

    with pytest.raises(BuildError, match=re.escape(f"this is Go {version.removeprefix('go')}")):
        check_prerequisites()


@pytest.mark.parametrize("version", ["go1.26.0", "go1.26.8", "go1.30", "go2.0"])
def test_a_new_go_will_do(tools: Path, version: str) -> None:
    install_go(tools, says(version))

    assert can_build()


def test_what_is_built_is_not_built_again(tools: Path) -> None:
    # The last argument but one is the file to write.
    writes = 'while [ $# -gt 2 ]; do shift; done; echo program > "$1"'
    install_go(tools, f"{says('go1.26.0')}; {writes}")
    lines: list[str] = []
    build(lines.append)
    install_go(tools, "exit 1")

    assert is_built()
    build(lines.append)
    assert lines[-1].startswith("built already")
    assert {file.name for file in bin_folder().iterdir()} == {
        *("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"),
        ".lock",
    }


def test_a_failed_build_leaves_no_program(tools: Path) -> None:
    half = 'while [ $# -gt 2 ]; do shift; done; echo half > "$1"; exit 1'
    install_go(tools, f"{says('go1.26.0')}; {half}")

    with pytest.raises(BuildError, match="go build"):
        build(lambda _: None)
    assert not is_built()
    assert not (bin_folder() / "etcd").exists()


def test_the_cache_is_outside_the_repository_unless_told_otherwise(tmp_path: Path, monkeypatch: Monkey) -> None:
    monkeypatch.delenv("TAINTKEEPER_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert bin_folder().parents[1] == tmp_path / "taintkeeper"

    monkeypatch.setenv("TAINTKEEPER_CACHE", str(tmp_path / "other"))
    assert bin_folder().parents[1] == tmp_path / "other"


def test_every_staging_module_has_the_version_of_kubernetes() -> None:
    text = (MODULES / "kubernetes" / "go.mod").read_text()
    staging = re.findall(r"=> k8s\.io/\S+ (\S+)", text)

    assert set(staging) == {kubernetes_version().replace("v1.", "v0.", 1)}
