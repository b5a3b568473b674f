"""Discovery: which groups, versions and resources there are, as clients ask before they do anything else."""

from testbed.embedded.resources import PODS, SERVED, STORED, Kind, Object

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+embedded",
    "gitCommit": "0" * 40,
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "linux/amd64",
}
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
PLAIN_PATHS = {"/healthz", "/livez", "/readyz"}


def discover(path: str) -> Object | None:
    """Return the discovery document at a path, or None if there is none."""
    parts = path.strip("/").split("/")
    if path == "/version":
        return VERSION
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if path == "/apis":
        groups = dict.fromkeys(kind.group for kind in SERVED if kind.group)
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in groups]}
    if len(parts) == 2 and parts[0] == "apis" and any(kind.group == parts[1] for kind in SERVED):
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts[0] in {"api", "apis"} and len(parts) == (2 if parts[0] == "api" else 3):
        return _resources("/".join(parts[1:]))
    return None


def is_served_group(path: str) -> bool:
    """Return whether a path lies below a group and version that is served, whatever comes after them."""
    return any(path.startswith((f"/api/{kind.api_version}/", f"/apis/{kind.api_version}/")) for kind in SERVED)


def _group(name: str) -> Object:
    version = next(kind.version for kind in SERVED if kind.group == name)
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def _resources(api_version: str) -> Object | None:
    kinds = [kind for kind in SERVED if kind.api_version == api_version]
    if not kinds:
        return None
    resources = [resource for kind in kinds for resource in _resource(kind)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def _resource(kind: Kind) -> list[Object]:
    common: Object = {"namespaced": kind.namespaced, "kind": kind.kind}
    names: Object = {"name": kind.plural, "singularName": kind.kind.lower(), "shortNames": list(kind.short_names)}
    found = [{**names, **common, "verbs": VERBS if kind in STORED else ["create"]}]
    if kind.status:
        found.append(
            {"name": f"{kind.plural}/status", "singularName": "", **common, "verbs": ["get", "patch", "update"]}
        )
    if kind.scale:
        scale = {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]}
        found.append({"name": f"{kind.plural}/scale", "singularName": "", **common, **scale})
    if kind is PODS:
        eviction = {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}
        found.append({"name": "pods/eviction", "singularName": "", **common, **eviction})
        found.append({"name": "pods/binding", "singularName": "", **common, "kind": "Binding", "verbs": ["create"]})
    return found
