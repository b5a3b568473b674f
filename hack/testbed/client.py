"""A small client for tests and the demo: JSON in, JSON out.

It shares nothing with the operator, so that neither vouches for the other.
"""

import asyncio
import base64
import inspect
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec
import yaml

Object = dict[str, Any]

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

PREFIXES = {
    "nodes": "/api/v1",
    "pods": "/api/v1",
    "events": "/api/v1",
    "namespaces": "/api/v1",
    "persistentvolumes": "/api/v1",
    "serviceaccounts": "/api/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "daemonsets": "/apis/apps/v1",
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "nodetaintrules": "/apis/taintkeeper.io/v1alpha1",
    "evictionpolicies": "/apis/taintkeeper.io/v1alpha1",
    "clusterroles": "/apis/rbac.authorization.k8s.io/v1",
    "clusterrolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
}
"""Where each resource is served."""


class ApiError(Exception):
    """The API answered with something other than success."""

    def __init__(self, status: int, body: Any) -> None:
        message = body.get("message", "") if isinstance(body, dict) else str(body)
        super().__init__(f"{status}: {message}")
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the API: the body is decoded JSON, or text if it is no JSON."""

    status: int
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a kubeconfig's current context says about reaching its server."""

    server: str
    token: str
    tls: ssl.SSLContext | None

    @classmethod
    def load(cls, kubeconfig: Path) -> Self:
        """Read a kubeconfig.

        Raises:
            OSError: a file cannot be read.
            KeyError: the file is no kubeconfig with a current context.
        """
        content = yaml.safe_load(kubeconfig.read_text())
        context = _named(content, "contexts", content["current-context"])["context"]
        cluster = _named(content, "clusters", context["cluster"])["cluster"]
        user = _named(content, "users", context["user"])["user"]
        token = user.get("token", "")
        if path := user.get("tokenFile"):
            token = Path(path).read_text().strip()
        return cls(cluster["server"].rstrip("/"), token, _tls(cluster, user))


def _named(content: Object, section: str, name: str) -> Object:
    found: Object = next(each for each in content[section] if each["name"] == name)
    return found


def _tls(cluster: Object, user: Object) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https:"):
        return None
    authority = _content(cluster, "certificate-authority")
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate, key = _content(user, "client-certificate"), _content(user, "client-key")
    if certificate and key:
        with tempfile.NamedTemporaryFile() as file:  # ssl takes a client certificate from a file only
            file.write(certificate + b"\n" + key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


def _content(section: Object, name: str) -> bytes:
    if data := section.get(f"{name}-data"):
        return base64.b64decode(data)
    return Path(section[name]).read_bytes() if name in section else b""


POLL_SECONDS = 0.01


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 15.0) -> None:
    """Wait until a condition holds, looking a hundred times a second.

    Args:
        condition: a function, asynchronous or not, that says whether it does.
        seconds: how long to wait at most.

    Raises:
        TimeoutError: it did not come to hold in time.
    """
    async with asyncio.timeout(seconds):
        while True:
            holds = condition()
            if await holds if inspect.isawaitable(holds) else holds:
                return
            await asyncio.sleep(POLL_SECONDS)


def path_to(resource: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, an object or a subresource.

    Raises:
        KeyError: the resource is none of :data:`PREFIXES`.
    """
    parts = [PREFIXES[resource], *(("namespaces", namespace) if namespace else ()), resource, name, subresource]
    return "/".join(filter(None, parts))


class Kube:
    """A connection to an API server; an asynchronous context manager.

    Args:
        kubeconfig: the file that says where the server is and who we are.
    """

    def __init__(self, kubeconfig: Path) -> None:
        self._credentials = Credentials.load(kubeconfig)
        headers = {"Authorization": f"Bearer {self._credentials.token}"} if self._credentials.token else {}
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls or True, limit=64)
        timeout = aiohttp.ClientTimeout(total=60)
        self._session = aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and return the answer, whatever it is.

        Raises:
            aiohttp.ClientError: there was no answer.
            TimeoutError: there was none within a minute.
        """
        data = None if body is None else msgspec.json.encode(body)
        async with self._session.request(
            method,
            self._credentials.server + path,
            data=data,
            params=params,
            headers={"Content-Type": content_type},
        ) as response:
            return Answer(response.status, await _body(response), dict(response.headers))

    async def _checked(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        params: Mapping[str, str] | None = None,
    ) -> Any:
        answer = await self.request(method, path, body, content_type, params)
        if answer.status >= 300:
            raise ApiError(answer.status, answer.body)
        return answer.body

    async def get(self, resource: str, namespace: str, name: str, subresource: str = "") -> Object:
        """Return one object; the namespace is empty for cluster-scoped ones.

        Raises:
            ApiError: the API refused.
        """
        found: Object = await self._checked("GET", path_to(resource, namespace, name, subresource))
        return found

    async def list(self, resource: str, namespace: str = "", **params: str) -> list[Object]:
        """Return all objects of a resource, in all namespaces if none is given.

        Args:
            resource: the plural name.
            namespace: the namespace, empty for all.
            **params: parameters of the API such as ``labelSelector``.

        Raises:
            ApiError: the API refused.
        """
        items: list[Object] = (await self._checked("GET", path_to(resource, namespace), params=params))["items"]
        return items

    async def create(self, resource: str, body: Object) -> Object:
        """Create an object in the namespace that it names.

        Raises:
            ApiError: the API refused.
        """
        created: Object = await self._checked("POST", path_to(resource, body["metadata"].get("namespace", "")), body)
        return created

    async def patch(
        self, resource: str, namespace: str, name: str, patch: Any, content_type: str = MERGE, subresource: str = ""
    ) -> Object:
        """Patch an object and return it as it then is.

        Raises:
            ApiError: the API refused.
        """
        path = path_to(resource, namespace, name, subresource)
        patched: Object = await self._checked("PATCH", path, patch, content_type)
        return patched

    async def patch_status(
        self, resource: str, namespace: str, name: str, status: Object, content_type: str = STRATEGIC
    ) -> Object:
        """Patch an object's status and return the object; by default conditions merge by their type.

        Raises:
            ApiError: the API refused.
        """
        return await self.patch(resource, namespace, name, {"status": status}, content_type, "status")

    async def delete(self, resource: str, namespace: str, name: str, **options: Any) -> Object:
        """Delete an object and return the answer.

        Args:
            resource: the plural name.
            namespace: the namespace, empty for cluster-scoped objects.
            name: the name.
            **options: fields of ``DeleteOptions`` such as ``gracePeriodSeconds``.

        Raises:
            ApiError: the API refused.
        """
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        answer: Object = await self._checked("DELETE", path_to(resource, namespace, name), body)
        return answer

    async def evict(self, namespace: str, name: str, uid: str = "", **options: Any) -> Answer:
        """Ask for a pod's eviction and return the answer, a refusal as well.

        Args:
            namespace: the pod's namespace.
            name: the pod's name.
            uid: the UID that the pod must have, if it matters.
            **options: further fields of ``DeleteOptions``.
        """
        delete_options = {**({"preconditions": {"uid": uid}} if uid else {}), **options}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": delete_options,
        }
        return await self.request("POST", path_to("pods", namespace, name, "eviction"), body)

    @asynccontextmanager
    async def watch(self, path: str, **params: str) -> AsyncIterator[AsyncIterator[Object]]:
        """Open a watch on a collection and give its events as they come.

        Args:
            path: the path of the collection.
            **params: parameters of the API such as ``resourceVersion``.

        Raises:
            ApiError: the API refused.
        """
        url, timeout = self._credentials.server + path, aiohttp.ClientTimeout(total=None)
        async with self._session.get(url, params={"watch": "true", **params}, timeout=timeout) as response:
            if response.status >= 300:
                raise ApiError(response.status, await _body(response))
            yield _events(response)


async def _body(response: aiohttp.ClientResponse) -> Any:
    raw = await response.read()
    return msgspec.json.decode(raw) if response.content_type == "application/json" else raw.decode()


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Object]:
    pending = b""
    async for chunk in response.content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield msgspec.json.decode(line)
