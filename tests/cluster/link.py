"""A way to the API server that can be cut."""

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import urlsplit

import yaml


class Link:
    """Passes bytes on between an operator and the API server of a kubeconfig, until it is told not to."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self.kubeconfig = folder / "through-the-link.yaml"
        """The same kubeconfig, by way of this link."""
        self._config = yaml.safe_load(kubeconfig.read_text())
        self._address = urlsplit(self._config["clusters"][0]["cluster"]["server"])
        self._server: asyncio.Server | None = None
        self._port = 0
        self._streams: set[asyncio.StreamWriter] = set()

    async def open(self) -> "Link":
        """Let connections through, on the same port each time."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        cluster = self._config["clusters"][0]["cluster"]
        cluster["server"] = f"{self._address.scheme}://127.0.0.1:{self._port}"
        self.kubeconfig.write_text(yaml.safe_dump(self._config))
        return self

    async def cut(self) -> None:
        """Break every connection, and refuse new ones."""
        if self._server is not None:
            self._server.close()
        for stream in self._streams:
            stream.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._address.hostname, self._address.port)
        self._streams |= {writer, back}
        await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))
        self._streams -= {writer, back}


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
