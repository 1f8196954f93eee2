"""What a node missed while it was away is handed to it when it is back, by who held it meanwhile."""

import json
import unittest

import grpc

from cases import ClusterTest
from cluster import kv_pb2, wait_until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
ONE = kv_pb2.Replicas(name=kv_pb2.Replicas.ONE)
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
KEYS = 2000


class HandoffTest(ClusterTest):
    def put_many(self, node, prefix):
        for i in range(KEYS):
            node.put(b"%s-%d" % (prefix, i), b"value-%d" % i)

    def assert_held_alone(self, node, prefix):
        """With R=1 a replica asks itself alone, and so repairs nothing."""
        for i in range(KEYS):
            self.assertEqual(node.values(b"%s-%d" % (prefix, i), r=ONE), [b"value-%d" % i])

    def held(self):
        return sum(node.metric("gyre_hints_held") for node in self.nodes if node.running())

    def wait_delivered(self):
        result = self.cluster.cli("-o", "json", "cluster", "hints", "--wait", seconds=60)
        self.assert_exit(0, result)
        self.assertEqual(sum(pair["hints"] for pair in json.loads(result.stdout)), 0)

    def cluster_status(self):
        result = self.cluster.cli("-o", "json", "cluster", "status")
        self.assert_exit(0, result)
        return json.loads(result.stdout)


class ThreeNodes(HandoffTest):
    def test_a_node_that_was_away_is_handed_what_it_missed(self):
        self.nodes[2].kill()
        self.put_many(self.nodes[0], b"missed")
        wait_until("each key is owed once", lambda: self.held() == KEYS)
        self.assert_status(UNAVAILABLE, ["3 of 3 replicas"], self.nodes[0].put, b"missed-0", b"x", w=ALL)
        wait_until("the status tells who is owed",
                   lambda: sum(node["hints_owed"] for node in self.cluster_status()["nodes"]) == KEYS)
        self.assertFalse(self.cluster_status()["converged"])
        self.nodes[2].start()
        self.cluster.wait_connected()
        self.wait_delivered()
        self.assertEqual(self.held(), 0)
        self.assertEqual(sum(node.metric("gyre_hints_held_bytes") for node in self.nodes), 0)
        self.assert_held_alone(self.nodes[2], b"missed")
        wait_until("the status is converged", lambda: self.cluster_status()["converged"], seconds=30)

    def test_hints_survive_the_death_of_their_holder(self):
        self.nodes[2].kill()
        self.put_many(self.nodes[0], b"survives")
        self.nodes[0].kill()
        self.nodes[1].kill()
        self.cluster.start()
        self.cluster.wait_connected()
        self.wait_delivered()
        self.assert_held_alone(self.nodes[2], b"survives")

    def test_keys_are_owed_once_however_often_they_are_written(self):
        self.nodes[2].kill()
        for i in range(20):
            self.nodes[0].put(b"one key", b"value-%d" % i)
        self.assertLessEqual(self.held(), 2, "at most one at each coordinator")
        self.nodes[2].start()
        self.cluster.wait_connected()
        self.wait_delivered()
        self.assertEqual(self.nodes[2].values(b"one key", r=ONE), [b"value-19"])


class FiveNodes(HandoffTest):
    NODES = 5

    def holders(self, key):
        """The primaries of a key, and the others, by index."""
        result = self.cluster.cli("-o", "json", "locate", key)
        self.assert_exit(0, result)
        by_address = {node.address: node for node in self.nodes}
        located = json.loads(result.stdout)
        return ([by_address[node["address"]] for node in located["preference_list"]],
                [by_address[node["address"]] for node in located["fallbacks"]])

    def test_a_fallback_stands_in_for_a_dead_replica(self):
        primaries, fallbacks = self.holders("key")
        primaries[2].kill()
        alive = [node for node in self.nodes if node.running()]
        for node in alive:
            reply = wait_until("the death is noticed", lambda node=node: self.all_of("key", node))
            self.assertEqual((reply.acks, reply.fallbacks), (3, 1))
            self.assert_status(UNAVAILABLE, ["3 of 3 replicas"], node.put, b"key", b"x", w=ALL, strict=True)
            # A read of all is answered with the fallback's copy; only replicas count for a strict one.
            self.assertEqual(node.values(b"key", r=ALL), [b"value"])
            self.assert_status(UNAVAILABLE, ["3 of 3 replicas"], node.get, b"key", r=ALL, strict=True)
            # What nobody wrote since the death is on no fallback, which must not be taken for "not found".
        primaries[2].start()
        self.cluster.wait_connected()
        self.wait_delivered()
        self.assertEqual(primaries[2].values(b"key", r=ONE), [b"value"])

    def all_of(self, key, node):
        try:
            return node.put(key.encode(), b"value", w=ALL)
        except grpc.RpcError as error:
            self.assertIn(error.code(), (UNAVAILABLE, grpc.StatusCode.UNKNOWN))
            return None

    def test_F67_an_empty_fallback_does_not_count(self):
        primaries, _ = self.holders("old")
        self.nodes[0].put(b"old", b"value", w=ALL)
        primaries[0].kill()
        primaries[1].kill()
        survivor = primaries[2]
        others = [node for node in self.nodes if node.running()]
        for node in others:
            wait_until("the deaths are noticed", lambda node=node: self.down(node) == 2)
            self.assertEqual(node.values(b"old", r=ONE), [b"value"])
            self.assert_status(UNAVAILABLE, ["2 of 3 replicas"], node.get, b"old")
        # Written since, it is on two fallbacks, which hold it for the dead.
        self.assertEqual(survivor.put(b"old", b"new", w=ALL).fallbacks, 2)
        for node in others:
            self.assertEqual(node.values(b"old"), [b"new"])

    def test_without_any_replica_fallbacks_take_writes(self):
        primaries, fallbacks = self.holders("orphan")
        for node in primaries:
            node.kill()
        for node in fallbacks:
            wait_until("the deaths are noticed", lambda node=node: self.down(node) == 3)
        first = fallbacks[0].put(b"orphan", b"one")
        self.assertEqual((first.acks, first.fallbacks), (2, 2))
        second = fallbacks[1].put(b"orphan", b"two", context=first.context)
        self.assertEqual(second.fallbacks, 2)
        for node in fallbacks:
            self.assertEqual(node.values(b"orphan"), [b"two"])
        for node in primaries:
            node.start()
        self.cluster.wait_connected()
        self.wait_delivered()
        wait_until("all replicas have it",
                   lambda: all(node.values(b"orphan", r=ONE) == [b"two"] for node in primaries), seconds=30)

    def test_F65_a_strict_keyspace_counts_replicas_only(self):
        def change(*flags):
            result = self.cluster.cli("-o", "json", "keyspace", *flags)
            self.assert_exit(0, result)
            made = json.loads(result.stdout)
            self.cluster.wait_epoch(made["layout"])
            return made["strict"]

        self.assertTrue(change("create", "books", "--strict"))
        primaries, _ = self.holders("key")
        primaries[2].kill()
        alive = [node for node in self.nodes if node.running()]
        for node in alive:
            wait_until("the death is noticed", lambda node=node: self.not_up(node) == 1)
            self.assert_status(UNAVAILABLE, ["3 of 3 replicas"], node.put, b"key", b"x", keyspace="books", w=ALL)
            self.assert_status(UNAVAILABLE, ["3 of 3 replicas"], node.get, b"key", keyspace="books", r=ALL)
            reply = node.put(b"key", b"value", keyspace="books")
            self.assertEqual((reply.acks, reply.fallbacks), (2, 0))
        self.assertTrue(change("set", "books", "--ttl", "1h"), "what is not named stays")
        self.assertFalse(change("set", "books", "--sloppy"))
        for node in alive:
            reply = node.put(b"key", b"value", keyspace="books", w=ALL)
            self.assertEqual((reply.acks, reply.fallbacks), (3, 1))
        primaries[2].start()
        self.cluster.wait_connected()
        self.wait_delivered()
        self.cluster.drop_keyspace("books")

    def not_up(self, node):
        return sum(1 for other in node.topology().nodes if other.state != kv_pb2.Node.UP)

    def down(self, node):
        return sum(1 for other in node.topology().nodes if other.state == kv_pb2.Node.DOWN)


if __name__ == "__main__":
    unittest.main()
