"""Plans: what they say is true, what is refused, and how commands end."""

import json
import os
import unittest

from cases import ClusterTest
from cluster import Cluster, Node, admin_pb2, free_ports, kv_pb2, wait_until

CALL_SECONDS = 10.0


def add_node(cluster):
    """One more node, which announces itself and owns nothing."""
    node = Node(os.path.join(cluster.directory, "spare"), len(cluster.nodes) + 1, free_ports(3))
    node.write_config(len(cluster.nodes), [other.peer_address for other in cluster.nodes], {"node": {"zone": "z"}})
    node.start()
    node.wait_ready()
    return node


def id_of(node):
    return node.topology().answered_by


class Plans(ClusterTest):
    @classmethod
    def setUpClass(cls):
        """Each test has a cluster of its own, as it changes who the members are."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(3))
        self.nodes = self.cluster.nodes

    def spare(self):
        node = add_node(self.cluster)
        self.addCleanup(node.close)
        new = id_of(node)
        for other in self.nodes:
            wait_until(f"node {other.index} knows the spare one", lambda other=other: any(
                n.id == new and n.state == kv_pb2.Node.UP for n in other.topology().nodes))
        return new

    def plan(self, *arguments, out=None, code=0, nodes=None):
        words = ["--out", out] if out else []
        result = self.cluster.cli("-o", "json", "cluster", "plan", *arguments, *words, nodes=nodes)
        self.assert_exit(code, result)
        return json.loads(result.stdout) if code == 0 else result.stderr

    def apply(self, path, *arguments, code=0, words="", nodes=None):
        result = self.cluster.cli("-o", "json", "cluster", "apply", path, *arguments, nodes=nodes)
        self.assert_exit(code, result, words)
        return json.loads(result.stdout) if code == 0 else result.stderr

    def path(self, name):
        return os.path.join(self.cluster.directory, name)

    def test_estimates_are_close_whatever_was_written_before(self):
        new = self.spare()
        keys = [b"key-%06d" % number for number in range(6000)]
        for value in (b"a" * 200, b"b" * 100, b"c" * 100):  # overwritten: it is the last one that travels
            replies = self.nodes[0].session([{"put": kv_pb2.PutRequest(
                key=key, value=value, w=kv_pb2.Replicas(name=kv_pb2.Replicas.ALL))} for key in keys])
            self.assertTrue(all(reply.HasField("put") for reply in replies))
        dump = self.nodes[0].admin.NodeDump(admin_pb2.NodeDumpRequest(key=keys[0]), timeout=CALL_SECONDS)
        bytes_of_all = len(keys) * (12 + len(keys[0]) + len(dump.record))
        old = id_of(self.nodes[2])

        def check():
            def close():
                moves = self.plan("--replace", f"{old}={new}")["moves"]
                self.assertEqual([(move["from"], move["to"]) for move in moves], [(old, new)])
                return (abs(moves[0]["keys"] / len(keys) - 1) < .05
                        and abs(moves[0]["bytes"] / bytes_of_all - 1) < .05)
            wait_until("the plan is within 5 %", close)

        check()
        self.cluster.kill_all()
        self.cluster.start()
        check()

    def test_the_document(self):
        new = self.spare()
        path = self.path("plan.json")
        plan = self.plan("--add", new[:9], out=path)
        self.assertEqual(plan["changes"]["add"], [new])
        self.assertLessEqual({"base", "changes", "hash", "moves", "balance", "warnings"}, set(plan))
        self.assertEqual({move["to"] for move in plan["moves"]}, {new})
        self.assertEqual(set(plan["balance"]), {"before", "after"})
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file), plan)
        self.assertEqual(self.plan("--add", new, nodes=self.nodes[1:])["hash"], plan["hash"], "all compute the same")
        text = self.cluster.cli("cluster", "plan", "--add", new)
        self.assert_exit(0, text)
        self.assertIn(b"nothing is changed", text.stdout)

        # Applied, another one for the same layout is stale, and the same one is what was done already.
        stale = self.path("stale.json")
        self.plan("--zone", f"{id_of(self.nodes[0])}=y", out=stale)
        epoch = self.apply(path)["layout"]
        self.assertEqual(epoch, plan["base"]["version"] + 1)
        self.cluster.wait_epoch(epoch)
        self.apply(stale, code=1, words="plan again")

    def test_refusals(self):
        member = id_of(self.nodes[0])
        for arguments, words in [(["--add", member], "cannot be added"), (["--remove", "0123456789abcdef"], "no node"),
                                 (["--weight", f"{member}=0"], "1 to 1000"), (["--weight", f"{member}=nan"], "1 to 1000"),
                                 (["--keyspace-n", "none=2"], "no keyspace"), (["--tokens", f"{member}=5000"], "4096"),
                                 (["--weight", f"{member}=1"], "changes nothing"), ([], "--add")]:
            self.assertIn(words, self.plan(*arguments, code=2))
        path = self.path("plan.json")
        self.plan("--zone", f"{member}=x", out=path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for wrong in ("", text[:-5], "{}", text.replace('"x"', '"y"')):
            with open(path, "w", encoding="utf-8") as file:
                file.write(wrong)
            self.apply(path, code=2)
        result = self.cluster.cli("keyspace", "set", "default", "--n", "2")
        self.assert_exit(2, result, "cluster plan --keyspace-n")
        moves = self.cluster.cli("-o", "json", "cluster", "moves")
        self.assertEqual(json.loads(moves.stdout), [])
        self.assert_exit(1, self.cluster.cli("cluster", "moves", "abort"))

    def test_a_minority_changes_nothing_and_what_may_be_lost_is_shown(self):
        new = self.spare()
        first, gone = id_of(self.nodes[0]), id_of(self.nodes[2])
        zone, replace = self.path("zone.json"), self.path("replace.json")
        self.plan("--zone", f"{first}=x", out=zone)
        for node in self.nodes[1:]:
            node.kill()
        left = self.nodes[:1]
        wait_until("the others are seen down", lambda: all(
            n.state == kv_pb2.Node.DOWN for n in left[0].topology().nodes if n.member and n.id != first))
        plan = self.plan("--replace", f"{gone}={new}", out=replace, nodes=left)
        self.assertEqual(len(plan["loss"]), 1)
        self.assertIn(gone, plan["loss"][0])
        self.apply(replace, code=1, words="may lose data", nodes=left)
        self.apply(replace, "--force", code=5, nodes=left)
        self.apply(zone, code=5, nodes=left)


if __name__ == "__main__":
    unittest.main(verbosity=2)
