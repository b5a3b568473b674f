"""Since when budgets have held each pod, for those who ask how long the oldest has been waiting."""


class HeldPods:
    """Remembers pods by UID in the order in which they were first held."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def note(self, uid: str, now: float) -> bool:
        """Note that budgets hold this pod; return whether that is new."""
        new = uid not in self._since
        self._since.setdefault(uid, now)
        return new

    def forget(self, uid: str) -> None:
        """Note that budgets hold this pod no longer."""
        self._since.pop(uid, None)

    def oldest(self, now: float) -> float:
        """Return for how many seconds the pod that has been held longest has been held; zero without any."""
        return max(0.0, now - next(iter(self._since.values()), now))
