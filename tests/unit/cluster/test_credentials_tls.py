"""Whom we trust, and how we prove who we are, against a real TLS server."""

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from taintkeeper.cluster.client import ApiClient, Call, UnreachableError
from taintkeeper.cluster.credentials import Credentials, Kubeconfig, ServiceAccount
from tests.unit.cluster.http_server import Served, serving
from tests.unit.cluster.kubeconfigs import ExecPlugin, kubeconfig

GET = Call("GET", "/api/v1/nodes", "list", "nodes")
AUTHORITY, STRANGER = trustme.CA(), trustme.CA()
CLIENT = AUTHORITY.issue_cert("taintkeeper")
CHAIN = b"".join(part.bytes() for part in CLIENT.cert_chain_pems)
KEY = CLIENT.private_key_pem.bytes()


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def content_of(path: Any) -> bytes:
    return Path(path).read_bytes()


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


async def test_a_service_account_trusts_the_clusters_authority_and_sends_its_token(
    api: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    AUTHORITY.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("s3cret")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(api.port))
    await ask(ServiceAccount(tmp_path))
    assert api.authorizations() == ["Bearer s3cret"]


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
    info = found.for_kopf()
    assert (info.server, info.token, info.scheme, info.insecure) == (api.url, None, None, False)
    for given_path, name in (
        (info.ca_path, "certificate-authority"),
        (info.certificate_path, "client-certificate"),
        (info.private_key_path, "client-key"),
    ):
        assert content_of(given_path) == parts[name]


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
    assert api.authorizations() == []


async def test_verification_can_be_switched_off_as_for_kubectl(api: Served, tmp_path: Path) -> None:
    insecure: dict[str, Any] = {"insecure-skip-tls-verify": True}
    path = kubeconfig(tmp_path / "config", server=api.url, user={"token": "s3cret"}, **insecure)
    found = Kubeconfig(str(path), None)
    await ask(found)
    assert api.authorizations() == ["Bearer s3cret"]
    assert found.for_kopf().insecure


def test_plain_http_needs_no_context(tmp_path: Path) -> None:
    assert Kubeconfig(str(kubeconfig(tmp_path / "config", server="http://127.0.0.1:8001")), None).ssl_context() is None
