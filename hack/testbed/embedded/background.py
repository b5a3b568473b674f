"""An event loop in a thread of its own, and the way to have it do things from outside."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

ANSWER_SECONDS = 60.0
"""How long a caller waits for the loop; only a loop that is ending, or stuck, does not answer in time."""

Main = Callable[[Callable[[], None], asyncio.Event], Coroutine[Any, Any, None]]
"""What the loop runs: calls its first argument once it has started, and ends when its second is set."""


class BackgroundLoop:
    """Runs one coroutine in a thread. Every method may be called from any other thread.

    Args:
        name: the name of the thread.
        main: what to run.
    """

    def __init__(self, name: str, main: Main) -> None:
        self._main = main
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Start, and return once the coroutine says that it has started.

        Raises:
            Exception: what the coroutine failed with before that.
        """
        self._thread.start()
        self._started.result()

    def stop(self) -> None:
        """End the coroutine and the thread, if they run.

        Raises:
            Exception: what the coroutine failed with while it ran.
        """
        if self._thread.is_alive():
            self._started.result().call_soon_threadsafe(self._stop.set)
            self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            asyncio.run(self._run_main())
        except BaseException as error:
            if self._started.done():
                self._failure = error
            else:
                self._started.set_exception(error)

    async def _run_main(self) -> None:
        loop = asyncio.get_running_loop()
        await self._main(lambda: self._started.set_result(loop), self._stop)

    def call(self, work: Callable[[], T]) -> T:
        """Do something between two turns of the loop, or at once if it does not run, and return what that returns.

        Raises:
            TimeoutError: the loop did not get to it.
            Exception: what it failed with.
        """
        if not self._thread.is_alive():
            return work()
        answer: concurrent.futures.Future[T] = concurrent.futures.Future()

        def run() -> None:
            try:
                answer.set_result(work())
            except BaseException as error:
                answer.set_exception(error)

        self._started.result().call_soon_threadsafe(run)
        return answer.result(ANSWER_SECONDS)
