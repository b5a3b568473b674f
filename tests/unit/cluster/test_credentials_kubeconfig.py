"""Credentials from a kubeconfig, and what is said when it cannot be used."""

import asyncio
import base64
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from taintkeeper.cluster import credentials
from taintkeeper.cluster.credentials import CredentialsError, Kubeconfig, ServiceAccount, load_credentials
from tests.unit.cluster.kubeconfigs import ExecPlugin, kubeconfig


@pytest.fixture(autouse=True)
def no_other_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that is in no cluster and where nobody has a kubeconfig."""
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def test_a_token_is_sent_to_us_and_to_kopf(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", user={"token": "s3cret"})
    found = load_credentials(str(path), None)
    assert found.server == "https://k8s.example.com:6443"
    assert await found.authorization() == "Bearer s3cret"
    info = found.for_kopf()
    assert (info.server, info.scheme, info.token) == ("https://k8s.example.com:6443", "Bearer", "s3cret")


async def test_a_token_file_is_read_again_when_the_token_was_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user={"tokenFile": "token"})), None)
    assert await found.authorization() == "Bearer old"
    (tmp_path / "token").write_text("new")
    assert await found.authorization() == "Bearer old"
    found.expire()
    assert await found.authorization() == "Bearer new"


async def test_a_kubeconfig_is_read_again_when_its_token_was_refused(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", user={"token": "old"})
    found = Kubeconfig(str(path), None)
    kubeconfig(path, user={"token": "new"})
    assert await found.authorization() == "Bearer old"
    found.expire()
    assert await found.authorization() == "Bearer new"
    kubeconfig(path, user={})
    found.expire()
    assert await found.authorization() is None


def test_kopf_gets_the_token_as_it_is_now(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", user={"token": "old"})
    found = Kubeconfig(str(path), None)
    kubeconfig(path, user={"token": "new"})
    assert found.for_kopf().token == "new"


async def test_a_kubeconfig_that_can_no_longer_be_read_leaves_what_was_known(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", user={"token": "old"})
    found = Kubeconfig(str(path), None)
    path.write_text("apiVersion: v1\nkind: [half")
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        found.expire()
    assert await found.authorization() == "Bearer old"


async def test_an_exec_plugin_is_asked_for_a_token_and_again_when_it_was_refused(tmp_path: Path) -> None:
    plugin = ExecPlugin(tmp_path)
    plugin.hand_out(token="first")
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user=plugin.user)), None)
    assert [await found.authorization() for _ in range(3)] == ["Bearer first"] * 3
    assert plugin.runs == 1
    plugin.hand_out(token="second")
    found.expire()
    assert await found.authorization() == "Bearer second"
    assert plugin.runs == 2
    assert found.for_kopf().token == "second"


async def test_an_exec_plugins_token_that_expired_is_renewed_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "REFRESH_SECONDS", -1.0)
    plugin = ExecPlugin(tmp_path)
    plugin.hand_out(token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user=plugin.user)), None)
    plugin.hand_out(token="second", expirationTimestamp="2999-01-01T00:00:00Z")
    assert await found.authorization() == "Bearer second"
    plugin.hand_out(token="third")
    assert await found.authorization() == "Bearer second"


def test_an_exec_plugin_that_fails_is_told_with_what_it_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plugin = ExecPlugin(tmp_path)
    plugin.fail()
    path = kubeconfig(tmp_path / "config", user=plugin.user)
    with pytest.raises(CredentialsError) as caught:
        load_credentials(str(path), None)
    failed = "its exec plugin failed: process returned 1. no network"
    assert str(caught.value) == f"--kubeconfig: {str(path)!r} cannot be used: {failed}"
    assert caplog.messages == []


def test_an_exec_plugin_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}}
    path = kubeconfig(tmp_path / "config", user=user)
    with pytest.raises(CredentialsError, match=r"its exec plugin failed: .*no-such-plugin"):
        load_credentials(str(path), None)


async def test_an_exec_plugin_runs_once_for_all_who_wait_for_it(tmp_path: Path) -> None:
    plugin = ExecPlugin(tmp_path)
    plugin.hand_out(token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user=plugin.user)), None)
    plugin.hand_out(token="second", expirationTimestamp="2999-01-01T00:00:00Z")
    before = plugin.runs
    assert set(await asyncio.gather(*(found.authorization() for _ in range(8)))) == {"Bearer second"}
    assert plugin.runs - before == 1


async def test_an_exec_plugin_that_fails_later_is_told_each_time_until_it_works(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = ExecPlugin(tmp_path)
    plugin.hand_out(token="first", expirationTimestamp="2020-01-01T00:00:00Z")
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user=plugin.user)), None)
    plugin.fail()
    for _ in range(2):
        with pytest.raises(CredentialsError, match=r"its exec plugin failed: .*no network"):
            await found.authorization()
        with pytest.raises(CredentialsError, match=r"its exec plugin failed: .*no network"):
            found.expire()
        with pytest.raises(CredentialsError, match=r"its exec plugin failed: .*no network"):
            found.for_kopf()
    plugin.mend()
    plugin.hand_out(token="second")
    assert await found.authorization() == "Bearer second"
    logging.getLogger().error("everybody else's errors are logged as ever")
    assert caplog.messages == ["everybody else's errors are logged as ever"]


async def test_the_plugin_of_somebody_else_may_fail_at_the_same_time(caplog: pytest.LogCaptureFixture) -> None:
    record = logging.LogRecord("root", logging.ERROR, "/kubernetes/kube_config.py", 1, "exec: failed", None, None)
    with credentials._PluginErrors() as caught:
        other = threading.Thread(target=_log, args=(record,))
        other.start()
        other.join()
    assert (caught.errors, caplog.messages) == ([], ["exec: failed"])


def _log(record: logging.LogRecord) -> None:
    record.thread = threading.get_ident()
    logging.getLogger().handle(record)


async def test_a_proxy_of_the_environment_is_not_taken_for_one_of_the_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    path = kubeconfig(tmp_path / "config")
    assert Kubeconfig(str(path), None).proxy is None
    kubeconfig(path, **{"proxy-url": "http://127.0.0.1:2"})
    found = Kubeconfig(str(path), None)
    assert (found.proxy, found.for_kopf().proxy_url) == ("http://127.0.0.1:2", "http://127.0.0.1:2")


async def test_a_source_of_tokens_that_breaks_is_one_error_of_ours(tmp_path: Path) -> None:
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", user={"token": "old"})), None)

    def fail(_: Any) -> None:
        raise KeyError("id-token")

    found._configuration.refresh_api_key_hook = fail
    with pytest.raises(CredentialsError, match=r"--kubeconfig: .*config.* cannot be used: 'id-token'"):
        await found.authorization()


async def test_several_kubeconfigs_are_merged_and_missing_ones_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = kubeconfig(tmp_path / "one", name="one", user={"token": "1"}, server="https://one")
    two = kubeconfig(tmp_path / "two", name="two", user={"token": "2"}, server="https://two")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'missing'}:{one}:{two}")
    for context, token in (("one", "1"), ("two", "2")):
        found = load_credentials(None, context)
        assert (found.server, await found.authorization()) == (f"https://{context}", f"Bearer {token}")


@pytest.mark.parametrize("named_by", ["the flag", "the variable", "nothing"])
def test_the_kubeconfig_is_found_as_kubectl_finds_it(
    named_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    kubeconfig(home / "config", server="https://home")
    if named_by != "nothing":
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "variable", server="https://variable")))
    flag = kubeconfig(tmp_path / "flag", server="https://flag")
    found = load_credentials(str(flag) if named_by == "the flag" else None, None)
    assert found.server == {"the flag": "https://flag", "the variable": "https://variable"}.get(
        named_by, "https://home"
    )


@pytest.mark.parametrize("flag", [False, True], ids=["inside a pod", "with a flag inside a pod"])
def test_a_pods_service_account_is_used_unless_a_kubeconfig_is_named(
    flag: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("t")
    monkeypatch.setattr(credentials, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBECONFIG", "ignored inside a pod")
    path = str(kubeconfig(tmp_path / "config")) if flag else None
    assert isinstance(load_credentials(path, None), Kubeconfig if flag else ServiceAccount)


GARBAGE = base64.b64encode(b"garbage").decode()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(None, "it does not exist", id="missing"),
        pytest.param("", "empty", id="empty"),
        pytest.param("a: [", "expected", id="bad YAML"),
        pytest.param("just text", "", id="no mapping"),
        pytest.param("apiVersion: v1\nkind: Config\n", "current-context", id="nothing in it"),
        pytest.param({"user": {"client-certificate": "/missing"}}, "/missing", id="missing certificate"),
        pytest.param({"certificate-authority": "/missing"}, "/missing", id="missing authority"),
        pytest.param({"proxy-url": "socks5://127.0.0.1:1080"}, "proxy-url 'socks5://127.0.0.1:1080'", id="SOCKS proxy"),
        pytest.param({"proxy-url": "https://127.0.0.1:1080"}, "proxy-url 'https://127.0.0.1:1080'", id="HTTPS proxy"),
        pytest.param({"certificate-authority-data": "%%"}, "", id="authority that is not base64"),
        pytest.param({"certificate-authority-data": GARBAGE}, "", id="authority that is no certificate"),
        pytest.param(
            {"user": {"client-certificate-data": GARBAGE, "client-key-data": GARBAGE}}, "", id="no certificate"
        ),
    ],
)
@pytest.mark.parametrize("named_by", ["--kubeconfig", "KUBECONFIG"])
def test_a_kubeconfig_that_cannot_be_used_is_told_in_one_line_that_names_it(
    named_by: str, text: str | dict[str, Any] | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    if isinstance(text, dict):
        kubeconfig(path, **text)
    elif text is not None:
        path.write_text(text)
    if named_by == "KUBECONFIG":
        monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(CredentialsError) as caught:
        load_credentials(str(path) if named_by == "--kubeconfig" else None, None)
    message = str(caught.value)
    assert message.startswith(f"{named_by}: {str(path)!r} cannot be used: ")
    assert why in message
    assert "\n" not in message


def test_a_kubeconfig_that_nobody_named_is_told_by_where_it_was_looked_for() -> None:
    with pytest.raises(CredentialsError, match=r"^kubeconfig: '~/.kube/config' cannot be used: it does not exist$"):
        load_credentials(None, None)


def test_a_context_that_is_not_there_is_told_in_one_line_that_names_it(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config")
    with pytest.raises(CredentialsError, match=f"^--context: there is no context 'prod' in {path}$"):
        load_credentials(str(path), "prod")
