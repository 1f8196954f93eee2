"""Clients in other languages, by the .proto files alone, against three nodes with TLS: Python's stubs, and Node."""

import json
import os
import shutil
import subprocess
import unittest

from cases import ClusterTest
from cluster import CALL_SECONDS, admin_pb2, kv_pb2, run, skip
from secured import SecuredCluster

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SOURCE = os.path.join(ROOT, "tests", "interop")
INSTALLED = os.path.join(os.environ["TEST_STUBS"], "..", "interop")
INSTALL_SECONDS = 120


def install():
    """What the lock file pins, in the build directory; once."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        skip("there is no Node here: apt-get install nodejs npm")
    os.makedirs(INSTALLED, exist_ok=True)
    lock = os.path.join(INSTALLED, "package-lock.json")
    with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as file:
        wanted = file.read()
    if os.path.exists(os.path.join(INSTALLED, "done")):
        with open(lock, encoding="utf-8") as file:
            if file.read() == wanted:
                return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(SOURCE, name), INSTALLED)
    command = ["npm", "ci", "--prefix", INSTALLED, "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        result = subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS, check=False)
        said = result.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        skip("the registry did not answer in time")
    if result.returncode != 0:
        skip("npm could not install: " + said[-500:])
    with open(os.path.join(INSTALLED, "done"), "w", encoding="utf-8"):
        pass


class Interop(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(SecuredCluster(3, permissions=["app default read+write+delete+scan"]))
        cls.nodes = cls.cluster.nodes
        cls.ids = sorted(node.id for node in cls.nodes)

    def assert_told(self, told):
        self.assertEqual(told["acks"], 3)
        self.assertEqual(told["got"], ["milk"])
        self.assertEqual(told["siblings"], ["bread", "eggs"])
        self.assertEqual(told["resolved"], ["bread,eggs"])
        self.assertEqual(told["deleted"], [])
        self.assertEqual(told["nodes"], [[node_id, "UP"] for node_id in self.ids])

    def test_node(self):
        authority, user = self.cluster.authority, self.cluster.admin
        for node in self.nodes:
            result = run(["node", os.path.join(SOURCE, "client.js"), node.address, ROOT, authority.path("ca.pem"),
                          authority.path(user + ".pem"), authority.path(user + "-key.pem"),
                          os.path.join(INSTALLED, "node_modules")], seconds=60)
            self.assertEqual(result.code, 0, result)
            told = json.loads(result.stdout)
            self.assert_told(told)
            self.assertEqual(told["session"], [["1", 0], ["2", 0]])
            self.assertEqual(told["bytes"], "0100ff")
            self.assertEqual(told["scanned"], ["node-js/1", "node-js/2", "node-js/cart"])
            self.assertEqual(told["left"], ["node-js/1", "node-js/2"])
            # What it wrote is what others read.
            self.assertEqual(node.values(b"node-js/1"), [b"\x01\x00\xff"])

    def test_python(self):
        for node in self.nodes:
            key = b"python/cart"

            def texts(reply):
                return sorted(value.value.decode() for value in reply.values)

            told = {}
            first = node.put(key, b"milk", w=kv_pb2.Replicas(name=kv_pb2.Replicas.ALL))
            told["acks"] = first.acks
            told["got"] = texts(node.get(key, r=kv_pb2.Replicas(name=kv_pb2.Replicas.QUORUM)))
            for value in (b"bread", b"eggs"):
                node.put(key, value, context=first.context)
            siblings = node.get(key)
            told["siblings"] = texts(siblings)
            node.put(key, b"bread,eggs", context=siblings.context)
            told["resolved"] = texts(node.get(key))
            self.assertEqual([row.key for row in node.scan(prefix=b"python/")], [key])
            node.delete(key, context=node.get(key).context)
            told["deleted"] = texts(node.get(key))
            self.assertEqual(node.scan(prefix=b"python/"), [])
            status = node.admin.ClusterStatus(admin_pb2.ClusterStatusRequest(), timeout=CALL_SECONDS)
            told["nodes"] = [[each.id, kv_pb2.Node.State.Name(each.state)] for each in status.topology.nodes]
            self.assert_told(told)


if __name__ == "__main__":
    install()
    unittest.main()
