"""The cluster in which Taintkeeper is killed: its pods and budgets, and what happens to its nodes meanwhile."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import yaml

from bench.load import in_parallel
from demo.clock import timestamp
from testbed.client import Kube, Object, until

NAMESPACE = "crash"
NODES = 10
PODS = 300
GUARDED, SCARCE = 20, 10
"""How many pods stand behind a budget that allows nothing at first, and behind one that allows a few."""
SCARCE_ALLOWED = 3
LINGER_SECONDS = 10
"""How long some pods take to end: somebody else may lead by then."""
KEYS = ("maintenance", "upgrade")
MANIFESTS = Path(__file__).parents[2] / "manifests"
RBAC = MANIFESTS / "base" / "rbac.yaml"
OVERLAY = MANIFESTS / "overlays" / "full" / "kustomization.yaml"

Do = Callable[[Kube], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that is done so many seconds after the beginning."""

    at: float
    who: str
    what: str
    do: Do


def happenings(horizon: float) -> list[Happening]:
    """Return what happens to nodes and budgets in a story of so many seconds, in order."""
    first, second = KEYS
    some = [
        *(_taint(0.0, node, first) for node in (1, 2, 3)),
        *(_taint(0.0, node, second, timed=False) for node in (4, 5, 6)),
        *(_taint(0.0, node, first) for node in (7, 8, 10)),
        *(_taint(0.4 * horizon, node, *KEYS) for node in (7, 8)),
        _taint(0.5 * horizon, 9, first, timed=False),
        _taint(0.6 * horizon, 10),
        Happening(0.7 * horizon, "budget guarded", "opened", partial(_open, "guarded")),
        Happening(0.85 * horizon, "budget scarce", "opened", partial(_open, "scarce")),
    ]
    return sorted(some, key=lambda each: each.at)


def _taint(at: float, node: int, *keys: str, timed: bool = True) -> Happening:
    name = f"node-{node}"
    what = f"tainted: {', '.join(keys)}{'' if timed else ', and nobody says when'}" if keys else "not tainted any more"
    return Happening(at, name, what, partial(_set_taints, name, keys, timed))


async def _set_taints(name: str, keys: tuple[str, ...], timed: bool, kube: Kube) -> None:
    added = {"timeAdded": timestamp()} if timed else {}
    before = {each["key"]: each for each in (await kube.get("nodes", "", name))["spec"].get("taints", [])}
    taints = [before.get(key, {"key": key, "effect": "NoExecute", **added}) for key in keys]
    await kube.patch("nodes", "", name, {"spec": {"taints": taints}})


async def _open(name: str, kube: Kube) -> None:
    await kube.patch("poddisruptionbudgets", NAMESPACE, name, {"spec": {"minAvailable": 0}})


def pods(random: Random, horizon: float) -> list[Object]:
    """Return the pods: on all nodes in turn, with all kinds of tolerations, grace periods and budgets."""
    apps = ["guarded"] * GUARDED + ["scarce"] * SCARCE + ["free"] * (PODS - GUARDED - SCARCE)
    random.shuffle(apps)
    return [
        _pod(f"pod-{number}", f"node-{number % NODES + 1}", app, random, horizon) for number, app in enumerate(apps)
    ]


def _pod(name: str, node: str, app: str, random: Random, horizon: float) -> Object:
    tolerations = random.choices([_none, _timed, _mixed, _for_ever], weights=[2, 6, 1, 1])[0](random, 0.9 * horizon)
    return pod(name, node, app, tolerations, linger=random.choice([0, 0, 0, LINGER_SECONDS]))


def _none(_random: Random, _most: float) -> list[Object]:
    return []


def _timed(random: Random, most: float) -> list[Object]:
    return [_toleration(key, random.uniform(0.0, most)) for key in KEYS]


def _mixed(random: Random, most: float) -> list[Object]:
    return [_toleration(KEYS[0], random.uniform(0.0, most)), _toleration(KEYS[1])]


def _for_ever(_random: Random, _most: float) -> list[Object]:
    return [_toleration(key) for key in KEYS]


def _toleration(key: str, seconds: float | None = None) -> Object:
    timed = {} if seconds is None else {"tolerationSeconds": int(seconds)}
    return {"key": key, "operator": "Exists", "effect": "NoExecute", **timed}


def short_lived(name: str, node: str, random: Random) -> Object:
    """Return a pod by the name of one that is gone: it comes to a node that is tainted already."""
    return pod(name, node, "again", [_toleration(key, random.uniform(2.0, 9.0)) for key in KEYS], linger=0)


def has_to_leave(pod: Object, taints: list[Object]) -> bool:
    """Return whether a taint has a pod leave, sooner or later."""
    for_ever = {each["key"] for each in pod["spec"]["tolerations"] if "tolerationSeconds" not in each}
    return any(taint["effect"] == "NoExecute" and taint["key"] not in for_ever for taint in taints)


def pod(name: str, node: str, app: str, tolerations: list[Object], *, linger: int) -> Object:
    """Return a pod that takes so many seconds to end when it is told to."""
    metadata = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {"app": app},
        "annotations": {"pod-delete.stage.kwok.x-k8s.io/delay": f"{linger}s"} if linger else {},
    }
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "image": "none"}],
        "terminationGracePeriodSeconds": 30 if linger else 1,
        "tolerations": tolerations,
    }
    return {"metadata": metadata, "spec": spec}


async def fill(kube: Kube, wanted: list[Object]) -> None:
    """Make the budgets and the pods, and wait until all of them run and the budgets know it.

    Raises:
        TimeoutError: they do not within a minute.
    """
    for app, least in (("guarded", GUARDED), ("scarce", SCARCE - SCARCE_ALLOWED)):
        spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": least}
        await kube.create("poddisruptionbudgets", {"metadata": {"name": app, "namespace": NAMESPACE}, "spec": spec})
    await in_parallel(partial(kube.create, "pods", each) for each in wanted)
    await until(partial(_settled, kube), 60.0)


async def _settled(kube: Kube) -> bool:
    if await kube.list("pods", NAMESPACE, fieldSelector="status.phase!=Running"):
        return False
    budgets = {each["metadata"]["name"]: each for each in await kube.list("poddisruptionbudgets", NAMESPACE)}
    return [budgets[app]["status"].get("currentHealthy") for app in ("guarded", "scarce")] == [GUARDED, SCARCE]


async def permit(kube: Kube) -> None:
    """Give every service account of the namespace the rights that the overlay of all controllers gives, and no more."""
    await kube.create("namespaces", {"metadata": {"name": NAMESPACE}})
    group = {"kind": "Group", "name": f"system:serviceaccounts:{NAMESPACE}", "apiGroup": "rbac.authorization.k8s.io"}
    for role in yaml.safe_load_all(RBAC.read_text()):
        kind = role["kind"]
        if not kind.endswith("Role"):
            continue
        metadata = {"name": "taintkeeper"} | ({"namespace": NAMESPACE} if kind == "Role" else {})
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "taintkeeper"}
        rules = [*role["rules"], *(_rules_of_overlay() if kind == "ClusterRole" else ())]
        await kube.create(f"{kind.lower()}s", {"metadata": metadata, "rules": rules})
        await kube.create(f"{kind.lower()}bindings", {"metadata": metadata, "roleRef": reference, "subjects": [group]})


def _rules_of_overlay() -> list[Object]:
    patches = yaml.safe_load(OVERLAY.read_text())["patches"]
    texts = [each["patch"] for each in patches if each["target"]["kind"] == "ClusterRole"]
    return [operation["value"] for text in texts for operation in yaml.safe_load(text)]
