"""Who may talk to a cluster, and the files that say so: certificates, tokens, kubeconfigs."""

import base64
import secrets
from dataclasses import dataclass
from pathlib import Path

import trustme
import yaml


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets of one throwaway cluster, in files of their own, and its administrator's token."""

    authority: Path
    """The certificate that every client trusts."""
    certificate: Path
    certificate_key: Path
    account_key: Path
    """Signs the tokens of service accounts."""
    tokens: Path
    """The static tokens that the API server accepts."""
    admin_token: str

    @classmethod
    def create(cls, folder: Path) -> "Credentials":
        """Make new secrets and write them into a folder."""
        authority = trustme.CA()
        server = authority.issue_cert("127.0.0.1", "localhost")
        credentials = cls(
            authority=folder / "ca.crt",
            certificate=folder / "apiserver.crt",
            certificate_key=folder / "apiserver.key",
            account_key=folder / "service-accounts.key",
            tokens=folder / "tokens.csv",
            admin_token=secrets.token_hex(16),
        )
        authority.cert_pem.write_to_path(credentials.authority)
        server.cert_chain_pems[0].write_to_path(credentials.certificate)
        server.private_key_pem.write_to_path(credentials.certificate_key)
        trustme.CA().private_key_pem.write_to_path(credentials.account_key)
        credentials.tokens.write_text(f"{credentials.admin_token},admin,admin,system:masters\n")
        return credentials


def write_kubeconfig(path: Path, server: str, authority: Path, token: str, namespace: str = "default") -> Path:
    """Write a kubeconfig that needs no other file, readable by its owner only, and return its path."""
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(authority.read_bytes()).decode(),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user", "namespace": namespace}}],
        "current-context": "real",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content))
    return path
