"""kill -9 of all nodes at once in the middle of a load: what was acknowledged is there after the start, the sums are right."""

import threading
import unittest

import grpc

from cases import ClusterTest
from cluster import admin_pb2, kv_pb2, wait_until

ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)
ROUNDS = 3
ACKNOWLEDGED_BEFORE_KILL = 3000
RECORDS_PER_WRITER = 20_000
READY_SECONDS_MAX = 10.0  # loose: how fast it is belongs to benchmarks


class Writer(threading.Thread):
    """Puts records of its own over one session until that breaks; notes what was acknowledged."""

    def __init__(self, node, name):
        super().__init__()
        self.node = node
        self.name = name
        self.acknowledged = []
        self.refused = []

    def key(self, i):
        return f"{self.name}:{i}".encode()

    @staticmethod
    def value(key):
        return key * 7

    def run(self):
        room = threading.Semaphore(512)

        def batches():
            for begin in range(0, RECORDS_PER_WRITER, 16):
                for _ in range(16):
                    room.acquire()
                yield kv_pb2.SessionBatch(requests=[
                    kv_pb2.SessionRequest(id=i, timeout_ms=10_000,
                                          put=kv_pb2.PutRequest(key=self.key(i), value=self.value(self.key(i))))
                    for i in range(begin, begin + 16)])

        try:
            for message in self.node.kv.Session(batches(), timeout=60):
                for reply in message.replies:
                    (self.refused if reply.code else self.acknowledged).append(reply.id)
                    room.release()
        except grpc.RpcError:
            pass  # the node was killed: what is unanswered is unknown


class Crash(ClusterTest):
    def sums(self, node):
        reply = node.admin.Digests(admin_pb2.DigestsRequest(), timeout=10)
        return {(digest.keyspace, digest.begin, digest.end): digest.sum for digest in reply.digests}

    def sums_equal(self):
        first, *others = [self.sums(node) for node in self.nodes]
        return all(first.values()) and all(other == first for other in others)

    def test_all_killed_in_mid_load(self):
        written = []
        for number in range(ROUNDS):
            writers = [Writer(node, f"{number}-{node.index}") for node in self.nodes]
            for writer in writers:
                writer.start()
            wait_until("the load runs",
                       lambda: sum(len(writer.acknowledged) for writer in writers) > ACKNOWLEDGED_BEFORE_KILL)
            self.cluster.kill_all()
            for writer in writers:
                writer.join(30)
                self.assertFalse(writer.is_alive())
                self.assertEqual(writer.refused, [])
            self.assertLess(sum(len(writer.acknowledged) for writer in writers), 3 * RECORDS_PER_WRITER,
                            "the load ended before the kill")
            self.cluster.start()
            ready = [node.ready_seconds for node in self.nodes]
            print("ready again after", ", ".join(f"{seconds:.2f} s" for seconds in ready))
            self.assertLess(max(ready), READY_SECONDS_MAX)
            written += writers
            self.check(written)

    def check(self, written):
        acknowledged = [writer.key(i) for writer in written for i in writer.acknowledged]
        reader = self.nodes[len(written) % 3]
        replies = reader.session([{"get": kv_pb2.GetRequest(key=key)} for key in acknowledged])
        for key, reply in zip(acknowledged, replies):
            self.assertEqual((reply.code, [value.value for value in reply.get.values]), (0, [Writer.value(key)]), key)
        for node in self.nodes:
            verified = node.admin.NodeVerify(admin_pb2.NodeVerifyRequest(), timeout=30)
            self.assertEqual(verified.differences, 0)
            self.assertGreater(verified.rows, ACKNOWLEDGED_BEFORE_KILL // 3)
        # What was not acknowledged may be on some replicas only: reading it from all of them mends that.
        tried = [writer.key(i) for writer in written for i in range(max(writer.acknowledged, default=0) + 600)]
        for reply in self.nodes[0].session([{"get": kv_pb2.GetRequest(key=key, r=ALL)} for key in tried]):
            self.assertEqual(reply.code, 0, reply.message)
        wait_until("the sums of all replicas are equal", self.sums_equal, 10)
        for node in self.nodes:
            self.assertEqual(node.admin.NodeVerify(admin_pb2.NodeVerifyRequest(), timeout=30).differences, 0)

    def test_verify_on_the_command_line(self):
        self.nodes[0].put(b"k", b"v", w=ALL)
        result = self.cluster.cli("node", "verify", nodes=[self.nodes[0]])
        self.assert_exit(0, result)


if __name__ == "__main__":
    unittest.main()
