"""Whom we trust, and how we prove who we are, against a real TLS server."""

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp import web
from kopf._cogs.clients.auth import APIContext

from taintkeeper.cluster.client import ApiClient, Call, UnreachableError
from taintkeeper.cluster.credentials import Credentials, Kubeconfig, ServiceAccount
from tests.unit.cluster.http_server import Served, serving, tunnel
from tests.unit.cluster.kubeconfigs import ExecPlugin, kubeconfig

GET = Call("GET", "/api/v1/nodes", "list", "nodes")
AUTHORITY, STRANGER = trustme.CA(), trustme.CA()
CLIENT = AUTHORITY.issue_cert("taintkeeper")
CHAIN = b"".join(part.bytes() for part in CLIENT.cert_chain_pems)
KEY = CLIENT.private_key_pem.bytes()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def _who(request: web.Request) -> web.Response:
    assert request.transport is not None
    certificate = request.transport.get_extra_info("ssl_object").getpeercert()
    names = [name for _, name in certificate["subjectAltName"]] if certificate else []
    return web.json_response({"names": names})


@pytest.fixture
async def api() -> AsyncIterator[Served]:
    """A server with a certificate of the cluster's authority, that looks at certificates of clients."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    async with serving(_who, context) as served:
        yield served


async def ask(credentials: Credentials) -> bytes:
    client = ApiClient(credentials, observe=lambda *_: None, timeout_seconds=5.0)
    try:
        return (await client.send(GET)).body
    finally:
        await client.close()


async def ask_as_kopf(credentials: Credentials) -> bytes:
    """Ask with a session that Kopf makes for itself of what it is given."""
    info = credentials.for_kopf()
    context = APIContext(info)
    try:
        async with context.session.get(f"{info.server}/api/v1/nodes") as response:
            return await response.read()
    finally:
        await context.close()


async def test_a_service_account_trusts_the_clusters_authority_and_sends_its_token(
    api: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("s3cret")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    await ask(ServiceAccount(tmp_path))
    await ask_as_kopf(ServiceAccount(tmp_path))
    assert api.authorizations() == ["Bearer s3cret"] * 2


async def test_a_service_account_trusts_nobody_else(
    api: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    STRANGER.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("s3cret")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    with pytest.raises(UnreachableError, match=r"(?i)certificate"):
        await ask(ServiceAccount(tmp_path))
    assert api.authorizations() == []


@pytest.mark.parametrize("asking", [ask, ask_as_kopf], ids=["we", "Kopf"])
@pytest.mark.parametrize("name", [None, "k8s.internal"], ids=["by its address", "by the name given"])
async def test_the_servers_name_may_differ_from_its_address(
    tmp_path: Path, name: str | None, asking: Callable[[Credentials], Awaitable[bytes]]
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("k8s.internal").configure_cert(context)
    cluster = {"certificate-authority-data": encoded(AUTHORITY.cert_pem.bytes())}
    cluster |= {"tls-server-name": name} if name else {}
    async with serving(_who, context) as served:
        found = Kubeconfig(str(kubeconfig(tmp_path / "config", server=served.url, **cluster)), None)
        if name is None:
            with pytest.raises((UnreachableError, aiohttp.ClientError), match=r"(?i)certificate"):
                await asking(found)
        else:
            assert await asking(found) == b'{"names": []}'


@pytest.mark.parametrize("asking", [ask, ask_as_kopf], ids=["we", "Kopf"])
async def test_a_proxy_may_lead_to_the_server(
    api: Served, tmp_path: Path, asking: Callable[[Credentials], Awaitable[bytes]]
) -> None:
    async with tunnel(to=api.port) as proxy:
        cluster = {"certificate-authority-data": encoded(AUTHORITY.cert_pem.bytes()), "proxy-url": proxy.url}
        # Nothing listens at this address: only the proxy knows better.
        path = kubeconfig(tmp_path / "config", server="https://127.0.0.1:1", user={"token": "s3cret"}, **cluster)
        await asking(Kubeconfig(str(path), None))
    assert proxy.asked == ["CONNECT 127.0.0.1:1 HTTP/1.1"]
    assert api.authorizations() == ["Bearer s3cret"]


@pytest.mark.parametrize("inline", [False, True], ids=["in files", "in the kubeconfig"])
async def test_a_client_certificate_proves_who_we_are_to_us_and_to_kopf(
    api: Served, tmp_path: Path, inline: bool
) -> None:
    parts = {"certificate-authority": AUTHORITY.cert_pem.bytes(), "client-certificate": CHAIN, "client-key": KEY}
    for name, content in parts.items():
        (tmp_path / name).write_bytes(content)
    given = {f"{k}-data": encoded(v) for k, v in parts.items()} if inline else {k: k for k in parts}
    user = {name: value for name, value in given.items() if name.startswith("client")}
    cluster = {name: value for name, value in given.items() if name.startswith("certificate")}
    found = Kubeconfig(str(kubeconfig(tmp_path / "config", server=api.url, user=user, **cluster)), None)
    assert await ask(found) == b'{"names": ["taintkeeper"]}'
    assert api.authorizations() == [None]
    assert await ask_as_kopf(found) == b'{"names": ["taintkeeper"]}'
    assert api.authorizations() == [None, None]


async def test_an_exec_plugin_may_hand_out_a_certificate(api: Served, tmp_path: Path) -> None:
    plugin = ExecPlugin(tmp_path)
    plugin.hand_out(clientCertificateData=CHAIN.decode(), clientKeyData=KEY.decode())
    authority: dict[str, Any] = {"certificate-authority-data": encoded(AUTHORITY.cert_pem.bytes())}
    path = kubeconfig(tmp_path / "config", server=api.url, user=plugin.user, **authority)
    assert await ask(Kubeconfig(str(path), None)) == b'{"names": ["taintkeeper"]}'


async def test_a_stranger_is_not_trusted(api: Served, tmp_path: Path) -> None:
    authority: dict[str, Any] = {"certificate-authority-data": encoded(STRANGER.cert_pem.bytes())}
    path = kubeconfig(tmp_path / "config", server=api.url, user={"token": "s3cret"}, **authority)
    with pytest.raises(UnreachableError, match=r"(?i)certificate"):
        await ask(Kubeconfig(str(path), None))
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await ask_as_kopf(Kubeconfig(str(path), None))
    assert api.authorizations() == []


async def test_verification_can_be_switched_off_as_for_kubectl(api: Served, tmp_path: Path) -> None:
    insecure: dict[str, Any] = {"insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", server=api.url, user={"token": "s3cret"}, **insecure)
    found = Kubeconfig(str(path), None)
    await ask(found)
    await ask_as_kopf(found)
    assert api.authorizations() == ["Bearer s3cret"] * 2


def test_plain_http_needs_no_context(tmp_path: Path) -> None:
    assert Kubeconfig(str(kubeconfig(tmp_path / "config", server="http://127.0.0.1:8001")), None).ssl_context() is None
