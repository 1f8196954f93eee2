"""deploy/local: a cluster on one machine, as people and scripts start, break and stop it."""

import json
import os
import shlex
import tempfile
import unittest

from cluster import GYRE, GYRED, free_ports, run, skip, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCAL = os.path.join(ROOT, "deploy", "local")


def free_block():
    """A port from which on a local cluster of four finds all its ports free."""
    wanted = {10 * node + offset for node in range(4) for offset in range(3)}
    ports = free_ports(200)
    return next(port for port in ports if {port + offset for offset in wanted} <= set(ports))


class Local(unittest.TestCase):
    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        self.directory = os.path.join(directory, "local")
        self.port = free_block()
        self.addCleanup(lambda: os.path.isdir(self.directory) and self.local("down"))

    def local(self, *arguments, code=0):
        result = run([LOCAL, *arguments, "--dir", self.directory], seconds=120)
        self.assertEqual(result.code, code, result)
        return result.stdout.decode() if code == 0 else result.stderr

    def up(self, *arguments):
        return self.local("up", "--port", str(self.port), *arguments)

    def states(self):
        """The last word or two of each line of the status, without the pid."""
        return [line.split(maxsplit=3)[3].split(" (")[0] for line in self.local("status").splitlines()]

    def gyre(self, *arguments):
        endpoints = ",".join(f"127.0.0.1:{self.port + 10 * node}" for node in range(3))
        result = run([GYRE, "--endpoints", endpoints, *arguments])
        self.assertEqual(result.code, 0, result)
        return result.stdout

    def path(self, node, *names):
        return os.path.join(self.directory, f"node-{node}", *names)

    def test_a_life(self):
        self.assertIn(f"Gyre serves at 127.0.0.1:{self.port},", self.up())
        for node in (1, 2, 3):
            for name in ("data/store", "data/identity", "gyred.log", "gyred.pid", "gyred.toml"):
                self.assertTrue(os.path.exists(self.path(node, name)), name)
        self.assertEqual(self.states(), ["serving"] * 3)
        self.assertIn("runs already: 3 nodes", self.up())
        self.gyre("put", "cart", "milk", "-w", "all")

        self.local("kill", "2")
        self.assertEqual(self.states(), ["serving", "stopped", "serving"])
        self.gyre("put", "cart", "bread")
        self.local("start", "2")
        self.assertEqual(self.states(), ["serving"] * 3)

        self.local("pause", "3")
        self.assertEqual(self.states(), ["serving", "serving", "paused"])
        self.local("resume", "3")
        wait_until("it serves again", lambda: self.states() == ["serving"] * 3)

        # What is wiped is gone, and what a node is called is kept unless that is asked for.
        self.assertIn("runs", self.local("wipe", "2", code=1))
        self.local("stop", "2")
        self.local("wipe", "2")
        self.assertFalse(os.path.exists(self.path(2, "data/store")))
        self.assertTrue(os.path.exists(self.path(2, "data/identity")))
        self.local("start", "2")
        self.assertEqual(self.states(), ["serving"] * 3)
        self.assertEqual(self.gyre("get", "cart"), b"bread")

        self.local("down")
        self.assertEqual(self.states(), ["stopped"] * 3)
        self.local("down")
        self.up()
        self.assertEqual(self.gyre("get", "cart"), b"bread")
        self.local("down")
        self.local("wipe", "1", "--identity")
        self.assertFalse(os.path.exists(self.path(1, "data/identity")))

    def test_with_certificates(self):
        """Everything does what it does without them; who has none is refused."""
        said = self.up("--tls")
        tried = [shlex.split(line) for line in said.splitlines() if line.strip().startswith("build/gyre ")]
        self.assertEqual([command[-2:] for command in tried], [["cart", "milk"], ["get", "cart"], ["cluster", "status"]])
        for command in tried:
            for flag, file in (("--ca", "ca"), ("--cert", "admin-local"), ("--key", "admin-local-key")):
                self.assertEqual(command[command.index(flag) + 1], os.path.join(self.directory, "certs", file + ".pem"))
            self.assertEqual(run([GYRE, *command[1:]]).code, 0, command)
        flags = tried[0][1:-3]
        self.assertEqual(self.states(), ["serving"] * 3)
        self.assertEqual(run([GYRE, "--endpoints", f"127.0.0.1:{self.port}", "get", "cart"]).code, 5)

        self.assertIn("runs already", self.up("--tls"))
        self.local("kill", "2")
        self.local("start", "2")
        self.assertEqual(self.states(), ["serving"] * 3)
        plan = [line.strip() for line in self.local("add", "--zone", "b").splitlines() if " cluster plan " in line]
        self.assertEqual(len(plan), 1)
        planned = run([GYRE, *shlex.split(plan[0])[1:-2]])  # without --out
        self.assertEqual(planned.code, 0, planned)
        # Who becomes somebody else is certified anew.
        self.local("stop", "4")
        self.local("wipe", "4", "--identity")
        self.local("start", "4")
        status = [GYRE, "-o", "json", *flags, "cluster", "status"]
        wait_until("it is heard of again", lambda: "up" in [
            node["state"] for node in json.loads(run(status).stdout)["nodes"] if node["address"] == f"127.0.0.1:{self.port + 30}"])

        self.local("down")
        self.assertEqual(self.states(), ["stopped"] * 4)
        self.up()  # it stays what it was made as
        self.assertEqual(run([GYRE, *flags, "get", "cart"]).stdout, b"milk")

    def test_what_cannot_be_done_is_said(self):
        self.assertIn("there is no cluster", self.local("status", code=1))
        self.assertIn("there is no command", self.local("upp", code=2))
        self.assertIn("--nodes must be a number", self.local("up", "--nodes", "many", code=2))
        self.assertIn("--nodes must be from 1 to 64", self.local("up", "--nodes", "0", code=2))
        self.assertIn("takes the number of one node", self.local("kill", code=2))
        self.up()
        self.assertIn("there is no node 4", self.local("kill", "4", code=1))
        self.assertIn("was made with 3 nodes", self.local("up", "--nodes", "4", code=1))
        self.assertIn("was made without TLS", self.local("up", "--tls", code=1))
        self.assertIn("has port", self.local("up", "--port", str(self.port + 1), code=1))
        self.local("stop", "1")
        self.assertIn("is not running", self.local("kill", "1", code=1))


if __name__ == "__main__":
    if os.path.realpath(GYRED) != os.path.realpath(os.path.join(ROOT, "build", "gyred")):
        skip("deploy/local runs what is in build/, and the tests here run " + GYRED)
    unittest.main()
