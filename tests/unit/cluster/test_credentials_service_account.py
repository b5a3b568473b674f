"""Credentials of a pod's service account."""

import time
from pathlib import Path

import pytest

from taintkeeper.cluster.credentials import ServiceAccount


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the kubelet mounts into a pod."""
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "port", "server"),
    [
        ("10.0.0.1", "443", "https://10.0.0.1:443"),
        ("fd00::1", "6443", "https://[fd00::1]:6443"),
        ("kubernetes.default.svc", None, "https://kubernetes.default.svc:443"),
    ],
)
def test_the_server_is_where_the_environment_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch, host: str, port: str | None, server: str
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    if port is None:
        monkeypatch.delenv("KUBERNETES_SERVICE_PORT")
    else:
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    assert ServiceAccount(folder).server == server


async def test_the_token_is_kept_for_a_while_and_then_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    account = ServiceAccount(folder)
    assert await account.authorization() == "Bearer first"
    (folder / "token").write_text("second")
    now += 59.0
    assert await account.authorization() == "Bearer first"
    now += 2.0
    assert await account.authorization() == "Bearer second"


async def test_a_token_that_was_refused_is_read_again_at_once(folder: Path) -> None:
    account = ServiceAccount(folder)
    assert await account.authorization() == "Bearer first"
    (folder / "token").write_text("second")
    account.expire()
    assert await account.authorization() == "Bearer second"


async def test_kopf_gets_the_same_facts_with_the_token_as_it_is_now(folder: Path) -> None:
    account = ServiceAccount(folder)
    await account.authorization()
    (folder / "token").write_text("second\n")
    info = account.for_kopf()
    assert (info.server, info.token, info.scheme) == ("https://10.0.0.1:443", "second", None)
