"""Certificates and authorities that are replaced on disk while we run, against a real TLS server."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from kopf._cogs.clients.auth import APIContext

from taintkeeper.cluster.client import ApiClient, Call
from taintkeeper.cluster.credentials import Credentials, Kubeconfig, ServiceAccount
from tests.unit.cluster.http_server import Handler, Served, serving
from tests.unit.cluster.kubeconfigs import kubeconfig

GET = Call("GET", "/api/v1/nodes", "list", "nodes")
OLD, NEW = trustme.CA(), trustme.CA()
Ask = Callable[[], Awaitable[str]]


class Files:
    """The files of a client certificate and of the authority, and a kubeconfig that names them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trust(OLD)
        self.prove("old")

    def trust(self, authority: trustme.CA) -> None:
        """Replace the authority."""
        (self.folder / "ca.crt").write_bytes(authority.cert_pem.bytes())

    def prove(self, name: str, *, key: bool = True) -> None:
        """Replace the certificate, and its key as well unless that is to come later."""
        issued = OLD.issue_cert(name)
        (self.folder / "tls.crt").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
        if key:
            (self.folder / "tls.key").write_bytes(issued.private_key_pem.bytes())

    def kubeconfig(self, server: str) -> Kubeconfig:
        """Return credentials that rest on these files."""
        user, cluster = {"client-certificate": "tls.crt", "client-key": "tls.key"}, {"certificate-authority": "ca.crt"}
        return Kubeconfig(str(kubeconfig(self.folder / "config", server=server, user=user, **cluster)), None)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def who(request: web.Request) -> str:
    assert request.transport is not None
    certificate = request.transport.get_extra_info("ssl_object").getpeercert()
    return str(certificate["subjectAltName"][0][1])


async def once(request: web.Request) -> web.Response:
    """Say who asks, and close the connection."""
    response = web.Response(text=who(request))
    response.force_close()
    return response


@asynccontextmanager
async def api(handler: Handler, authority: trustme.CA = OLD) -> AsyncIterator[Served]:
    """A server with a certificate of this authority, that asks its clients for one of the old one."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    OLD.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    async with serving(handler, context) as served:
        yield served


@asynccontextmanager
async def our_session(credentials: Credentials) -> AsyncIterator[Ask]:
    client = ApiClient(credentials, observe=lambda *_: None, timeout_seconds=5.0)

    async def ask() -> str:
        return (await client.send(GET)).body.decode()

    try:
        yield ask
    finally:
        await client.close()


@asynccontextmanager
async def kopfs_session(credentials: Credentials) -> AsyncIterator[Ask]:
    info = credentials.for_kopf()
    context = APIContext(info)

    async def ask() -> str:
        async with context.session.get(f"{info.server}/api/v1/nodes") as response:
            return await response.text()

    try:
        yield ask
    finally:
        await context.close()


both_sessions = pytest.mark.parametrize("session", [our_session, kopfs_session], ids=["ours", "Kopf's"])


@both_sessions
async def test_a_new_connection_is_made_with_the_certificate_as_it_is_now(files: Files, session: Any) -> None:
    async with api(once) as served, session(files.kubeconfig(served.url)) as ask:
        assert await ask() == "old"
        files.prove("new")
        assert await ask() == "new"


@both_sessions
async def test_while_only_half_is_replaced_the_old_certificate_is_used(files: Files, session: Any) -> None:
    async with api(once) as served, session(files.kubeconfig(served.url)) as ask:
        files.prove("half", key=False)
        assert await ask() == "old"
        (files.folder / "tls.key").unlink()
        assert await ask() == "old"
        files.prove("new")
        assert await ask() == "new"


@both_sessions
async def test_a_new_authority_is_trusted_once_it_is_there(files: Files, session: Any) -> None:
    async with api(once, NEW) as served, session(files.kubeconfig(served.url)) as ask:
        with pytest.raises(Exception, match=r"(?i)certificate"):
            await ask()
        files.trust(NEW)
        assert await ask() == "old"


@both_sessions
async def test_an_old_authority_is_trusted_no_more(files: Files, session: Any) -> None:
    async with api(once) as served, session(files.kubeconfig(served.url)) as ask:
        assert await ask() == "old"
        files.trust(NEW)
        with pytest.raises(Exception, match=r"(?i)certificate"):
            await ask()


@both_sessions
async def test_a_service_account_follows_its_authority(
    files: Files, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def yes(_: web.Request) -> web.Response:
        return web.Response(text="yes")

    (files.folder / "token").write_text("t")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    NEW.issue_cert("127.0.0.1").configure_cert(context)
    async with serving(yes, context) as served:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(served.port))
        async with session(ServiceAccount(files.folder)) as ask:
            with pytest.raises(Exception, match=r"(?i)certificate"):
                await ask()
            files.trust(NEW)
            assert await ask() == "yes"


async def test_a_connection_whose_certificate_is_refused_is_not_used_again(files: Files) -> None:
    """The API server looks at the certificate for each request: one that expires is refused in the middle."""
    expired: set[str] = set()

    async def check(request: web.Request) -> web.Response:
        return web.Response(status=401 if who(request) in expired else 200, text=who(request))

    async with api(check) as served, our_session(files.kubeconfig(served.url)) as ask:
        assert await ask() == "old"
        files.prove("new")
        assert await ask() == "old"
        expired.add("old")
        assert await ask() == "new"
    assert len(served.requests) == 4


def test_kopf_can_tell_rotated_files_from_those_that_were_refused(files: Files) -> None:
    credentials = files.kubeconfig("https://127.0.0.1:1")
    before = credentials.for_kopf()
    assert credentials.for_kopf() == before
    files.prove("new")
    assert credentials.for_kopf() != before
