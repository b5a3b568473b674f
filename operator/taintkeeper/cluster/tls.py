"""TLS with files that change while we run: certificates and authorities are rotated on disk, and nobody tells us."""

import ssl
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import kopf

Stamp = tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """Whom to trust and how to prove who we are, as paths of PEM files.

    ``server_name`` is the name that the server's certificate must bear, where it is not the one in the URL.
    """

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    server_name: str | None = None

    def context(self) -> ssl.SSLContext:
        """Read the files; raises OSError where one is missing or is not what it should be."""
        context = ssl.create_default_context(cafile=self.authority)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)
        return context

    def stamps(self) -> tuple[Stamp, ...]:
        """Return what tells whether a file has been replaced or written to."""
        return tuple(_stamp(path) for path in (self.authority, self.certificate, self.key) if path)


def _stamp(path: str) -> Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


class LiveContext(ssl.SSLContext):
    """Makes every new connection with the files as they are then; whoever is given it may keep it for ever.

    While the files cannot be used (one is replaced already, the other not yet) it goes on with what it read last.
    """

    def __new__(cls, options: TlsOptions) -> "LiveContext":  # noqa: ARG004, D102 - Python's own wants a protocol here
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, options: TlsOptions) -> None:
        """Read the files; raises OSError where one is missing or is not what it should be."""
        self._files = options
        self._stamps = options.stamps()
        self._context = options.context()

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin a connection: the one way in which asyncio uses a context."""
        name = self._files.server_name or server_hostname
        return self._current().wrap_bio(incoming, outgoing, server_side, name, session)

    def _current(self) -> ssl.SSLContext:
        stamps = self._files.stamps()
        if stamps != self._stamps:
            with suppress(OSError):
                self._context = self._files.context()
                self._stamps = stamps
        return self._context


@dataclass(frozen=True, kw_only=True)
class LiveConnection(kopf.ConnectionInfo):
    """What Kopf connects with: its TLS follows the files as ours does.

    Kopf ends when it is given again what the server has refused; ``stamps`` makes the difference after a rotation.
    """

    tls: TlsOptions
    stamps: tuple[Stamp, ...]

    def as_ssl_context(self) -> ssl.SSLContext:
        """Return how to trust the server and prove ourselves; Kopf asks once for each session."""
        return LiveContext(self.tls)
