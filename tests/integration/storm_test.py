"""Everybody comes back at once, or somebody is told to end in the middle of a change: calls are answered, nothing hangs."""

import os
import random
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import Cluster, kv_pb2, kv_pb2_grpc, wait_until
from moving import Load, add_node, id_of, plan, wait_converged, wait_known

CLIENTS = 500
CALL_SECONDS = 5.0
RECOVERED_SECONDS = 30.0
ROUNDS = int(os.environ.get("STORM_ROUNDS", "4"))  # the case has 50


class Storm(ClusterTest):
    def test_G87_500_clients_lose_their_node_and_come_back_at_once(self):
        node = self.nodes[0]
        node.put(b"key", b"value")
        # Each with a connection of its own, which it makes again with the back-off that gRPC has.
        channels = [grpc.insecure_channel(node.address, [("grpc.use_local_subchannel_pool", 1)])
                    for _ in range(CLIENTS)]
        self.addCleanup(lambda: [channel.close() for channel in channels])
        stubs = [kv_pb2_grpc.KvStub(channel) for channel in channels]

        def ask_all(wait):
            """How many of the clients got the value."""
            begun = time.monotonic()
            calls = [stub.Get.future(kv_pb2.GetRequest(key=b"key"), timeout=CALL_SECONDS, wait_for_ready=wait)
                     for stub in stubs]
            codes = [call.code() for call in calls]  # waits for it
            self.assertLess(time.monotonic() - begun, CALL_SECONDS + 5, "a call outlived its deadline")
            self.assertLessEqual(set(codes), {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE,
                                              grpc.StatusCode.DEADLINE_EXCEEDED})
            return codes.count(grpc.StatusCode.OK)

        self.assertEqual(ask_all(wait=True), CLIENTS)
        node.kill()
        self.assertEqual(ask_all(wait=False), 0)
        node.start()
        node.wait_ready()
        wait_until("all clients are served again", lambda: ask_all(wait=True) == CLIENTS, RECOVERED_SECONDS)
        self.cluster.wait_connected()


class Endings(ClusterTest):
    @classmethod
    def setUpClass(cls):
        """The test has a cluster of its own, as it changes who the members are."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(3))
        self.nodes = self.cluster.nodes

    def test_G91_a_node_ends_at_any_moment_of_a_join_under_load(self):
        chance = random.Random(91)
        keys = [b"key-%d" % number for number in range(2000)]
        self.nodes[0].session([{"put": kv_pb2.PutRequest(key=key, value=b"v" * 200)} for key in keys])
        spare = add_node(self.cluster)
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "rate", "200000"))
        _, path = plan(self.cluster, "--add", id_of(spare))
        with Load(self.nodes[:2], strict=True) as load:  # these are asked, and do not end
            self.assert_exit(0, self.cluster.cli("cluster", "apply", path))
            for round_ in range(ROUNDS):
                victim = spare if round_ % 2 == 0 else self.nodes[2]
                time.sleep(chance.random())  # somewhere in the middle
                victim.stop(seconds=10)  # which asserts that it ends, and well
                victim.start()
                victim.wait_ready()
                wait_known(self.cluster, [victim])
        self.assertEqual(load.wrong, [])
        self.assert_exit(0, self.cluster.cli("cluster", "moves", "rate", "100000000"))
        wait_converged(self.cluster)
        for key in load.acked:
            load.check(spare, key)
        self.assertEqual(load.wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
