"""A node that must not serve says why in one sentence, quickly, and touches nothing."""

import os
import shutil
import socket
import subprocess
import tempfile
import unittest

from cases import ClusterTest
from cluster import ENVIRONMENT, GYRED, Node, free_ports, run

SECONDS_MAX = 5.0


class Startup(ClusterTest):
    """The cluster of the class is where data directories come from; `self.node` is a stranger to it."""

    def setUp(self):
        super().setUp()
        elsewhere = self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        self.node = Node(os.path.join(elsewhere, "node"), 1, free_ports(3))
        self.addCleanup(self.node.close)
        self.write()

    def write(self, **settings):
        self.node.write_config(1, [], settings)

    def start(self, *flags, environment=None):
        return run([GYRED, "--config", self.node.config, *flags], seconds=SECONDS_MAX + 5,
                   environment={**ENVIRONMENT, **(environment or {})})

    def assert_refused(self, code, words, result):
        """One sentence on stderr (what was logged before it does not count), and a quick end."""
        self.assertEqual(result.code, code, result)
        self.assertEqual(result.stdout, b"", result)
        said = [line for line in result.stderr.splitlines() if line.startswith("gyred: ")]
        self.assertEqual(len(said), 1, result)
        self.assertEqual(result.stderr.splitlines()[-1], said[0], result)
        for word in words:
            self.assertIn(word, said[0])
        self.assertLess(result.seconds, SECONDS_MAX)

    def refuse_file(self, text, *words):
        with open(self.node.config, "w", encoding="utf-8") as file:
            file.write(text)
        self.assert_refused(2, [self.node.config, *words], self.start())
        self.assertFalse(os.path.exists(self.node.data_dir))

    def test_unknown_settings(self):
        self.refuse_file("[node]\n\nzzone = 'a'\n", ":3:", "node.zzone", "did you mean node.zone?")
        self.refuse_file("[nodes]\nzone = 'a'\n", ":2:", "nodes.zone")
        self.refuse_file("\n[nothing]\n", ":2:", "[nothing]")
        self.refuse_file("zone = 'a'\n", ":1:", "zone", "[section]")
        self.write()
        self.assert_refused(2, ["--node.zzone"], self.start("--node.zzone=a"))
        self.assert_refused(2, ["GYRE_NODE_ZZONE"], self.start(environment={"GYRE_NODE_ZZONE": "a"}))
        self.assert_refused(2, ["nonsense"], self.start("nonsense"))

    def test_bad_values(self):
        self.refuse_file("[listen]\nclient = 'nowhere'\n", ":2:", "listen.client", "HOST:PORT", "nowhere")
        self.refuse_file("[listen]\nclient = '127.0.0.1:70000'\n", ":2:", "listen.client")
        self.refuse_file("[limits]\nvalue_bytes = '1 PB'\n", ":2:", "limits.value_bytes", "1 PB")
        self.refuse_file("[limits]\nvalue_bytes = '9MiB'\n", ":2:", "limits.value_bytes", "8MiB")
        self.refuse_file("[limits]\nsiblings = 0\n", ":2:", "limits.siblings", "1 to 1024")
        self.refuse_file("[limits]\nsiblings = '5'\n", ":2:", "limits.siblings", "without quotes")
        self.refuse_file("[storage]\ndurability = 'none'\n", ":2:", "storage.durability", "disk", "memory")
        self.refuse_file("[cluster]\nbootstrap_expect = -1\n", ":2:", "cluster.bootstrap_expect")
        self.refuse_file("[cluster]\nseeds = 'a:1'\n", ":2:", "cluster.seeds", "list")
        self.refuse_file("[listen]\nclient = '127.0.0.1:7000'\npeer = '127.0.0.1:7000'\n", "listen.peer", "listen.client")
        self.refuse_file("[node\n", ":1")
        self.refuse_file("[node]\nzone = 'a'\nzone = 'b'\n", ":3")
        os.remove(self.node.config)
        self.assert_refused(2, [self.node.config, "cannot be opened"], self.start())
        os.mkdir(self.node.config)
        self.assert_refused(2, [self.node.config], self.start())

    def test_port_in_use(self):
        for name in ("client", "peer", "http"):
            with self.subTest(name), socket.socket() as taken:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("127.0.0.1", getattr(self.node, f"{name}_port")))
                taken.listen()
                self.assert_refused(1, [f"127.0.0.1:{getattr(self.node, name + '_port')}", "in use"], self.start())
        self.write(listen={"client": "192.0.2.1:7400"}, security={"allow_insecure": True})
        self.assert_refused(1, ["192.0.2.1:7400"], self.start())

    def test_beyond_loopback_without_tls(self):
        for name in ("client", "peer"):
            for address in ("192.0.2.1:7400", "[2001:db8::1]:7400", "host.example:7400"):
                self.write(listen={name: address})
                self.assert_refused(2, [self.node.config, f"listen.{name} is {address}", "security.allow_insecure = true",
                                        "security.certificate"], self.start())
        self.write(listen={"client": "0.0.0.0:7400", "advertise_client": "host.example:7400"})
        self.assert_refused(2, ["listen.client is 0.0.0.0:7400", "security.allow_insecure = true"], self.start())
        self.assertFalse(os.path.exists(self.node.data_dir))

    def test_half_of_tls(self):
        self.write(security={"ca": "ca.pem", "key": "key.pem"})
        self.assert_refused(2, ["security.certificate is not"], self.start())
        self.write(security={"permissions": ["shop carts read", "shop carts reed"]})
        self.assert_refused(2, ["security.permissions", '"shop carts reed" is no permission'], self.start())
        self.write(security={"ca": "/absent/ca.pem", "certificate": "/absent/node.pem", "key": "/absent/key.pem"})
        self.assert_refused(1, ["/absent/ca.pem cannot be read"], self.start())

    def test_locked_directory(self):
        running = self.nodes[0]
        self.write(node={"data_dir": running.data_dir})
        self.assert_refused(1, [running.data_dir, "in use", f"process {running.process.pid}"], self.start())
        running.put(b"still", b"served")

    def copy_of(self, node):
        shutil.copytree(node.data_dir, self.node.data_dir)

    def test_store_of_another_node(self):
        self.nodes[0].stop()
        self.copy_of(self.nodes[0])
        shutil.copy(os.path.join(self.nodes[1].data_dir, "identity"), self.node.data_dir)
        self.assert_refused(1, ["another node", "put back"], self.start())

    def test_store_without_identity(self):
        self.nodes[0].stop()
        self.copy_of(self.nodes[0])
        os.remove(os.path.join(self.node.data_dir, "identity"))
        self.assert_refused(1, [self.node.data_dir, "no identity", "put back"], self.start())

    def test_store_of_another_cluster(self):
        self.nodes[0].stop()
        self.copy_of(self.nodes[0])
        path = os.path.join(self.node.data_dir, "identity")
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if not line.startswith("cluster")]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines + ['cluster = "00000000000000aa"\n'])
        self.assert_refused(1, ["cluster 00000000000000aa", "put back"], self.start())

    def test_garbled_identity(self):
        self.nodes[0].stop()
        path = os.path.join(self.node.data_dir, "identity")
        for content in (b"", b"node", b"node = 5\n", b'node = "xyz"\n', b'node = "0000000000000000"\n', b"\xff\xfe\x00",
                        b'node = "00000000000000aa"\nnode = "00000000000000ab"\n', b'who = "00000000000000aa"\n',
                        b'cluster = "00000000000000aa"\n', bytes(range(256)) * 100):
            with self.subTest(content[:40]):
                shutil.rmtree(self.node.data_dir, ignore_errors=True)
                self.copy_of(self.nodes[0])
                with open(path, "wb") as file:
                    file.write(content)
                self.assert_refused(1, [path, "garbled", "put back"], self.start())
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), content)

    def test_directory_that_cannot_be_written(self):
        with open(self.node.data_dir, "w", encoding="utf-8"):
            pass
        self.assert_refused(1, [self.node.data_dir], self.start())
        self.write(node={"data_dir": self.node.data_dir + "/below/a/file"})
        self.assert_refused(1, [self.node.data_dir], self.start())
        self.write(node={"data_dir": "/proc/gyre"})
        self.assert_refused(1, ["/proc/gyre"], self.start())

    def test_read_only_disk(self):
        self.nodes[0].stop()
        self.copy_of(self.nodes[0])
        mounted = subprocess.run(["mount", "--bind", "-o", "ro", self.node.data_dir, self.node.data_dir],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("needs root to mount: " + mounted.stderr.decode())
        try:
            self.assert_refused(1, [self.node.data_dir, "Read-only"], self.start())
        finally:
            subprocess.run(["umount", self.node.data_dir], check=True)

    def test_damaged_store(self):
        self.nodes[0].stop()
        self.copy_of(self.nodes[0])
        store = os.path.join(self.node.data_dir, "store")
        for name in os.listdir(store):
            if name.startswith("MANIFEST"):
                with open(os.path.join(store, name), "r+b") as file:
                    file.write(b"garbled" * 10)
        self.assert_refused(1, [store], self.start())

    def test_what_is_right_starts(self):
        self.node.start()
        self.node.wait_ready()
        self.node.put(b"k", b"v")
        self.node.stop()
        result = self.start("--print-config", environment={"GYRE_NODE_ZONE": "z"})
        self.assertEqual(result.code, 0)
        self.assertIn(b"GYRE_NODE_ZONE", result.stdout)


if __name__ == "__main__":
    unittest.main()
