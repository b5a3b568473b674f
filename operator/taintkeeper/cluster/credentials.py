"""How to reach the API server and who we are there: a service account inside a cluster, a kubeconfig outside."""

import asyncio
import os
import ssl
import time
from pathlib import Path
from typing import Any, Protocol

import kopf

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REFRESH_SECONDS = 60.0
"""How long a token is used before it is read again: the kubelet rotates them well before they expire."""


class CredentialsError(Exception):
    """The kubeconfig cannot be used; the message names the flag or variable, its value and what is wrong."""


class Credentials(Protocol):
    """Where the API server is, and how to say who we are."""

    server: str
    """Its URL, without a slash at the end."""

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return how to trust the server and prove ourselves; None for plain HTTP."""
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

    def __init__(self, directory: Path = SERVICE_ACCOUNT) -> None:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        self.server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._directory = directory
        self._token = ""
        self._read_at = float("-inf")

    def ssl_context(self) -> ssl.SSLContext:
        """Trust the cluster's own authority, nothing else."""
        return ssl.create_default_context(cafile=str(self._directory / "ca.crt"))

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
        return kopf.ConnectionInfo(server=self.server, ca_path=str(self._directory / "ca.crt"), token=token)


class Kubeconfig:
    """A context of a kubeconfig, with whatever it uses: tokens, client certificates, exec plugins."""

    def __init__(self, path: str | None, context: str | None) -> None:
        self._path = path
        self._context = context
        self._configuration = self._load()
        self.server = str(self._configuration.host).rstrip("/")
        self._header: str | None = None
        self._read_at = float("-inf")

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return a context with the authority and client certificate that the kubeconfig names."""
        return _tls_of(self._configuration)

    async def authorization(self) -> str | None:
        """Return the token, asked for again once a minute; an exec plugin runs beside the event loop."""
        if time.monotonic() - self._read_at > REFRESH_SECONDS:
            self._header = await asyncio.to_thread(self._ask)
            self._read_at = time.monotonic()
        return self._header

    def expire(self) -> None:
        """Read the kubeconfig again, and with it run the exec plugin again."""
        self._configuration = self._load()
        self._read_at = float("-inf")

    def for_kopf(self) -> kopf.ConnectionInfo:
        """Return the connection with the token as it is now; Kopf asks again when it is refused.

        Everything is read anew, since Kopf ends when it is given what was refused before.
        """
        self.expire()
        configuration = self._configuration
        scheme, _, token = (self._ask() or "").partition(" ")
        return kopf.ConnectionInfo(
            server=self.server,
            ca_path=configuration.ssl_ca_cert,
            insecure=not configuration.verify_ssl,
            scheme=scheme or None,
            token=token or None,
            certificate_path=configuration.cert_file,
            private_key_path=configuration.key_file,
        )

    def _ask(self) -> str | None:
        try:
            # The second name is what the library said before its version 36.
            header = self._configuration.get_api_key_with_prefix("BearerToken", "authorization")
        except Exception as error:
            # Identity providers fail in as many ways as there are.
            raise self._unusable(error) from error
        return None if header is None else str(header)

    def _load(self) -> Any:
        # Imported here, since it costs 0.7 s and 46 MB that a pod with a service account need not pay.
        from kubernetes import client, config

        configuration = client.Configuration()
        try:
            config.load_kube_config(self._where(), self._context, configuration, persist_config=False)
            _tls_of(configuration)
        except Exception as error:
            # The library raises whatever its YAML parser and its dictionaries do.
            raise self._unusable(error) from error
        return configuration

    def _where(self) -> str:
        return self._path or os.environ.get("KUBECONFIG") or "~/.kube/config"

    def _unusable(self, error: Exception) -> CredentialsError:
        where = self._where()
        if self._context is not None and "context" in str(error):
            return CredentialsError(f"--context: there is no context {self._context!r} in {where}")
        name = "--kubeconfig" if self._path else "KUBECONFIG" if "KUBECONFIG" in os.environ else "kubeconfig"
        why = " ".join(str(error).split()) or type(error).__name__
        return CredentialsError(f"{name}: {where!r} cannot be used: {why}")


def _tls_of(configuration: Any) -> ssl.SSLContext | None:
    if not str(configuration.host).startswith("https:"):
        return None
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
