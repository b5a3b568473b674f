"""Whether the API server streams the first list of a watch (KEP-3157): not before Kubernetes 1.34, unless asked to."""

from taintkeeper.cluster.client import ApiClient, Call, StatusError, UnreachableError

SILENCE_SECONDS = 10.0
PARAMS = {
    "watch": "true",
    "allowWatchBookmarks": "true",
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "timeoutSeconds": "1",
    # No node is to be sent: only whether they would be is of interest.
    "fieldSelector": "metadata.name=none",
}


async def streams_lists(client: ApiClient) -> bool:
    """Ask for a watch that begins with all objects; a server that does not answer is taken for one that refuses."""
    try:
        call = Call("GET", "/api/v1/nodes", "watch", "nodes", PARAMS)
        async with client.stream(call, silence_seconds=SILENCE_SECONDS):
            return True
    except (StatusError, UnreachableError):
        return False
