"""Clusters with mutual TLS: an authority, and certificates of nodes, operators and applications, by deploy/certs."""

import os
import shutil
import tempfile

import grpc

from cluster import ENVIRONMENT, GYRE, GYRED, Cluster, run

CERTS = os.path.join(os.path.dirname(__file__), "..", "..", "deploy", "certs")


class Authority:
    """A directory of deploy/certs."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="gyre-certs-")
        self.make("ca")

    def make(self, *arguments):
        result = run([CERTS, self.directory, *arguments])
        assert result.code == 0, result

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def user(self, role, name, *arguments):
        """The name of a certificate that is made now, if there is none."""
        user = f"{role}-{name}"
        if not os.path.exists(self.path(user + ".pem")):
            self.make(role, name, *arguments)
        return user

    def credentials(self, user=None, trusting=None):
        """What a channel of that user needs; of nobody, without a certificate. `trusting` another authority."""
        ca = (trusting or self).read("ca.pem")
        if user is None:
            return grpc.ssl_channel_credentials(ca)
        return grpc.ssl_channel_credentials(ca, self.read(user + "-key.pem"), self.read(user + ".pem"))

    def flags(self, user):
        """What `gyre` needs."""
        return ["--ca", self.path("ca.pem"), "--cert", self.path(user + ".pem"), "--key", self.path(user + "-key.pem")]

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)


class SecuredCluster(Cluster):
    """Its nodes' own stubs, and `cli`, speak as an operator."""

    def __init__(self, nodes=3, settings=None, permissions=()):
        super().__init__(nodes, settings)
        self.authority = Authority()
        self.admin = self.authority.user("admin", "root")
        seeds = [node.peer_address for node in self.nodes]
        for node in self.nodes:
            node.id = self.identity_of(node)
            self.authority.make("node", node.id, "127.0.0.1")
            node.credentials = self.authority.credentials(self.admin)
            security = {"ca": self.authority.path("ca.pem"), "certificate": self.certificate_of(node),
                        "key": self.key_of(node), "permissions": list(permissions)}
            node.write_config(nodes, seeds, {**(settings or {}), "security": security})

    @staticmethod
    def identity_of(node):
        result = run([GYRED, "--config", node.config, "--print-identity"])
        assert result.code == 0, result
        return result.stdout.decode().strip()

    def certificate_of(self, node):
        return self.authority.path(f"node-{node.id}.pem")

    def key_of(self, node):
        return self.authority.path(f"node-{node.id}-key.pem")

    def __exit__(self, kind, error, trace):
        try:
            super().__exit__(kind, error, trace)
        finally:
            self.authority.close()

    def cli(self, *arguments, stdin=b"", seconds=30.0, nodes=None, user=None):
        return super().cli(*self.authority.flags(user or self.admin), *arguments, stdin=stdin, seconds=seconds, nodes=nodes)

    def cli_without_tls(self, *arguments):
        return run([GYRE, "--endpoints", self.endpoints(), *arguments], environment=ENVIRONMENT)
