"""The few API calls that the testbed makes for itself, blocking, one connection each."""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

MERGE_PATCH = "application/merge-patch+json"


class ApiError(Exception):
    """The API server answered with a failure.

    Args:
        status: the HTTP status.
        message: the body as it was sent.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """The API server on a port of this machine, as one user, who waits this many seconds for an answer."""

    def __init__(self, port: int, authority: Path, token: str, timeout: float) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(authority))
        self._token = token
        self._timeout = timeout

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Send one request and return the answer: decoded if it is JSON, text otherwise.

        Raises:
            ApiError: the answer is no success.
            OSError: there was no answer.
        """
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=self._timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ApiError(response.status, text)
        return json.loads(text) if response.headers.get_content_type() == "application/json" else text
