"""How to reach the API server and who we are there: a service account inside a cluster, a kubeconfig outside."""

import asyncio
import logging
import os
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import kopf

from taintkeeper.cluster.tls import LiveConnection, LiveContext, TlsOptions

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REFRESH_SECONDS = 60.0
"""How long a token is used before it is read again: the kubelet rotates them well before they expire."""


class CredentialsError(Exception):
    """The kubeconfig cannot be used; the message names the flag or variable, its value and what is wrong."""


class Credentials(Protocol):
    """Where the API server is, and how to say who we are."""

    server: str
    """Its URL, without a slash at the end."""
    proxy: str | None
    """The URL of the HTTP proxy that leads there, None where it is reached directly."""

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return how to trust the server and prove ourselves; None for plain HTTP.

        Another one than before is for new connections alone: what those that are open prove was refused.
        """
        ...

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, None where a client certificate does."""
        ...

    def expire(self) -> None:
        """Have the next :meth:`authorization` read everything anew, since the server refused what we sent."""
        ...

    def for_kopf(self) -> kopf.ConnectionInfo:
        """Return the same for Kopf, which keeps a session of its own."""
        ...


def load_credentials(kubeconfig: str | None, context: str | None) -> Credentials:
    """Find the credentials as kubectl does: the flag, the pod's service account, ``KUBECONFIG``, ``~/.kube/config``.

    Raises :class:`CredentialsError` where what was named cannot be used.
    """
    inside = "KUBERNETES_SERVICE_HOST" in os.environ and (SERVICE_ACCOUNT / "token").exists()
    if inside and kubeconfig is None and context is None:
        return ServiceAccount()
    return Kubeconfig(kubeconfig, context)


class ServiceAccount:
    """The service account of the pod that we run in."""

    proxy: str | None = None

    def __init__(self, directory: Path = SERVICE_ACCOUNT) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._directory = directory
        self._tls = TlsOptions(authority=str(directory / "ca.crt"))
        self._context: LiveContext | None = None
        self._token = ""
        self._read_at = float("-inf")

    def ssl_context(self) -> ssl.SSLContext:
        """Trust the cluster's own authority, nothing else."""
        if self._context is None:
            self._context = LiveContext(self._tls)
        return self._context

    async def authorization(self) -> str:
        """Return the token, read from its file at most once a minute."""
        if time.monotonic() - self._read_at > REFRESH_SECONDS:
            self._token = (self._directory / "token").read_text().strip()
            self._read_at = time.monotonic()
        return f"Bearer {self._token}"

    def expire(self) -> None:
        """Read the token's file again next time."""
        self._read_at = float("-inf")

    def for_kopf(self) -> kopf.ConnectionInfo:
        """Return the connection with the token as it is now; Kopf asks again when it is refused."""
        token = (self._directory / "token").read_text().strip()
        return LiveConnection(server=self.server, token=token, tls=self._tls, stamps=self._tls.stamps())


class Kubeconfig:
    """A context of a kubeconfig, with whatever it uses: tokens, client certificates, exec plugins."""

    def __init__(self, path: str | None, context: str | None) -> None:
        self._path = path
        self._context = context
        self._header: str | None = None
        self._read_at = float("-inf")
        self._asking = asyncio.Lock()
        self._take(self._load())

    def _take(self, configuration: Any) -> None:
        self.server = str(configuration.host).rstrip("/")
        self.proxy = configuration.proxy
        self._configuration = configuration
        self._tls = _tls_of(configuration)
        self._ssl = LiveContext(self._tls) if self.server.startswith("https:") else None

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return a context with the authority and client certificate that the kubeconfig names."""
        return self._ssl

    async def authorization(self) -> str | None:
        """Return the token, asked for again once a minute; an exec plugin runs beside the event loop.

        It runs once for all requests that wait for it.
        """
        async with self._asking:
            if time.monotonic() - self._read_at > REFRESH_SECONDS:
                self._header = await asyncio.to_thread(self._ask)
                self._read_at = time.monotonic()
            return self._header

    def expire(self) -> None:
        """Read the kubeconfig again, and with it run the exec plugin again."""
        self._take(self._load())
        self._read_at = float("-inf")

    def for_kopf(self) -> kopf.ConnectionInfo:
        """Return the connection with the token as it is now; Kopf asks again when it is refused.

        Everything is read anew, since Kopf ends when it is given what was refused before.
        """
        self.expire()
        scheme, _, token = (self._ask() or "").partition(" ")
        return LiveConnection(
            server=self.server,
            scheme=scheme or None,
            token=token or None,
            proxy_url=self.proxy,
            tls=self._tls,
            stamps=self._tls.stamps(),
        )

    def _ask(self) -> str | None:
        with self._reading():
            # The second name is what the library said before its version 36.
            header = self._configuration.get_api_key_with_prefix("BearerToken", "authorization")
        return None if header is None else str(header)

    def _load(self) -> Any:
        if not any(Path(path).expanduser().exists() for path in self._where().split(os.pathsep)):
            raise self._unusable(FileNotFoundError("it does not exist"))
        # Imported here, since it costs 0.7 s and 46 MB that a pod with a service account need not pay.
        from kubernetes import client, config

        configuration = client.Configuration()
        # The library would take one from the environment; what counts here is the kubeconfig.
        configuration.proxy = None
        with self._reading():
            config.load_kube_config(self._where(), self._context, configuration, persist_config=False)
            _check_proxy(configuration.proxy)
            _tls_of(configuration).context()
        return configuration

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Make one error of ours of all that may go wrong: the library raises whatever its parsers and plugins do."""
        with _PluginErrors() as plugin:
            try:
                yield
            except Exception as error:
                raise self._unusable(error) from error
        if plugin.errors:
            raise self._unusable(RuntimeError(f"its exec plugin failed: {plugin.errors[0]}"))

    def _where(self) -> str:
        return self._path or os.environ.get("KUBECONFIG") or "~/.kube/config"

    def _unusable(self, error: Exception) -> CredentialsError:
        where = self._where()
        if self._context is not None and "context" in str(error):
            return CredentialsError(f"--context: there is no context {self._context!r} in {where}")
        name = "--kubeconfig" if self._path else "KUBECONFIG" if "KUBECONFIG" in os.environ else "kubeconfig"
        why = " ".join(str(error).split()) or type(error).__name__
        return CredentialsError(f"{name}: {where!r} cannot be used: {why}")


class _PluginErrors(logging.Filter):
    """Catches that an exec plugin failed, which the kubernetes library only logs, to go on without credentials."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []
        self._thread = threading.get_ident()

    def __enter__(self) -> "_PluginErrors":
        logging.getLogger().addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the error to ourselves; let everything else pass."""
        if record.module != "kube_config" or record.levelno < logging.ERROR or record.thread != self._thread:
            return True
        self.errors.append(record.getMessage().removeprefix("exec: "))
        return False


def _check_proxy(proxy: str | None) -> None:
    if proxy is not None and urlsplit(proxy).scheme != "http":
        raise ValueError(f"proxy-url {proxy!r} is no http:// URL, and no other kind of proxy is supported")


def _tls_of(configuration: Any) -> TlsOptions:
    return TlsOptions(
        authority=configuration.ssl_ca_cert,
        certificate=configuration.cert_file,
        key=configuration.key_file,
        verify=configuration.verify_ssl,
        server_name=configuration.tls_server_name,
    )
