"""The client of the tests: where it finds its server and how it proves who it is."""

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from testbed.client import ApiError, Credentials, Kube, path_to
from testbed.embedded import EmbeddedCluster


def kubeconfig(path: Path, cluster: dict[str, Any], user: dict[str, Any]) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def authority() -> trustme.CA:
    """A certificate authority of its own."""
    return trustme.CA()


def test_a_token_may_be_in_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")

    path = kubeconfig(tmp_path / "config", {"server": "http://127.0.0.1:1/"}, {"tokenFile": str(token)})

    credentials = Credentials.load(path)
    assert (credentials.server, credentials.token, credentials.tls) == ("http://127.0.0.1:1", "secret", None)


async def test_a_server_is_trusted_by_its_authority_and_sees_the_clients_certificate(
    tmp_path: Path, authority: trustme.CA
) -> None:
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(server_side)
    authority.configure_trust(server_side)
    server_side.verify_mode = ssl.CERT_REQUIRED
    own = authority.issue_cert("client@example.com")
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    (tmp_path / "cert.pem").write_bytes(own.cert_chain_pems[0].bytes())
    (tmp_path / "key.pem").write_bytes(own.private_key_pem.bytes())

    async def handle(_: web.BaseRequest) -> web.Response:
        return web.json_response({"ok": True})

    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_side).start()
    port = runner.addresses[0][1]
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(tmp_path / "ca.pem")}
    user = {"client-certificate": str(tmp_path / "cert.pem"), "client-key": str(tmp_path / "key.pem")}
    async with Kube(kubeconfig(tmp_path / "config", cluster, user)) as kube:
        answer = await kube.request("GET", "/")
    await runner.cleanup()

    assert answer.body == {"ok": True}


async def test_a_refusal_is_an_error_with_the_answer(embedded: EmbeddedCluster) -> None:
    async with Kube(embedded.kubeconfig) as kube:
        with pytest.raises(ApiError) as refused:
            await kube.get("nodes", "", "nobody")

    assert refused.value.status == 404
    assert refused.value.body["reason"] == "NotFound"
    assert str(refused.value) == '404: nodes "nobody" not found'


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("nodes",), "/api/v1/nodes"),
        (("nodes", "", "n", "status"), "/api/v1/nodes/n/status"),
        (("pods", "ns", "p", "eviction"), "/api/v1/namespaces/ns/pods/p/eviction"),
        (("leases", "ns"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases"),
    ],
)
def test_a_path_names_group_namespace_and_subresource(parts: tuple[str, ...], expected: str) -> None:
    assert path_to(*parts) == expected
