"""How each program of the control plane is called."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.real.api import Api
from testbed.real.build import bin_folder
from testbed.real.kubeconfig import Credentials
from testbed.real.nodes import MANAGED_LABEL, MANAGED_VALUE

STAGES = Path(__file__).parent / "stages.yaml"
AUDIT_POLICY = Path(__file__).parent / "audit.yaml"
LEASE_SECONDS = 40
"""How long a node's lease is good for, as with a real kubelet; it is renewed four times in that time."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of one cluster are."""

    folder: Path
    port: int
    """The API server's."""
    kubeconfig: Path
    credentials: Credentials

    @property
    def etcd(self) -> str:
        """Where etcd listens: a socket in the cluster's own folder needs no port that others could take."""
        return f"unix://{self.folder}/etcd.sock"

    @property
    def audit_log(self) -> Path:
        """Where the API server writes down who did what, a JSON object a line, if it is told to."""
        return self.folder / "audit.log"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://127.0.0.1:{self.port}"

    def api(self, timeout: float) -> Api:
        """Return a client of the administrator that waits this many seconds for an answer."""
        return Api(self.port, self.credentials.authority, self.credentials.admin_token, timeout)


def etcd(layout: Layout) -> list[str]:
    """Return the command of a single etcd that trades durability for speed."""
    # It must have URLs for its peers, of which there are none, and for its clients, who know the socket.
    nowhere = "http://127.0.0.1:1"
    return [
        str(bin_folder() / "etcd"),
        "--name=only",
        f"--data-dir={layout.folder}/etcd",
        f"--listen-client-urls={layout.etcd}",
        f"--advertise-client-urls={nowhere}",
        f"--listen-peer-urls=unix://{layout.folder}/peer.sock",
        f"--initial-advertise-peer-urls={nowhere}",
        f"--initial-cluster=only={nowhere}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(layout: Layout) -> list[str]:
    """Return the command of an API server with RBAC and the default admission plugins."""
    credentials = layout.credentials
    return [
        str(bin_folder() / "kube-apiserver"),
        f"--etcd-servers={layout.etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.port}",
        # There is no address to publish: nothing in this cluster has a network.
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/16",
        f"--tls-cert-file={credentials.certificate}",
        f"--tls-private-key-file={credentials.certificate_key}",
        f"--service-account-key-file={credentials.account_key}",
        f"--service-account-signing-key-file={credentials.account_key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--token-auth-file={credentials.tokens}",
        "--authorization-mode=Node,RBAC",
        # Pods can be made at once, before the controller manager has made the namespace's service account.
        "--disable-admission-plugins=ServiceAccount",
        "--allow-privileged",
    ]


def audit(layout: Layout) -> list[str]:
    """Return the flags with which an API server writes an audit log."""
    return [f"--audit-policy-file={AUDIT_POLICY}", f"--audit-log-path={layout.audit_log}", "--audit-log-maxsize=4096"]


def controller_manager(layout: Layout, controllers_off: Iterable[str]) -> list[str]:
    """Return the command of the controllers: all that run by default but these, at full speed."""
    return [
        str(bin_folder() / "kube-controller-manager"),
        f"--kubeconfig={layout.kubeconfig}",
        "--controllers=" + ",".join(["*", *(f"-{name}" for name in controllers_off)]),
        f"--service-account-private-key-file={layout.credentials.account_key}",
        f"--root-ca-file={layout.credentials.authority}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
    ]


def scheduler(layout: Layout) -> list[str]:
    """Return the command of the scheduler, at full speed."""
    return [
        str(bin_folder() / "kube-scheduler"),
        f"--kubeconfig={layout.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
    ]


def kwok(layout: Layout) -> list[str]:
    """Return the command of kwok, the kubelet of every node that carries the label."""
    return [
        str(bin_folder() / "kwok"),
        f"--kubeconfig={layout.kubeconfig}",
        f"--config={STAGES}",
        # Not its selector of annotations, which kwok evaluates itself: it would never notice that a node lost one.
        f"--manage-nodes-with-label-selector={MANAGED_LABEL}={MANAGED_VALUE}",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        "--cidr=10.64.0.0/10",
    ]
