"""Whatever comes to a node's ports from who is no peer, or from a peer gone mad: refused, counted, and served on."""

import os
import random
import socket
import unittest

import grpc

from cases import ClusterTest
from cluster import admin_pb2, kv_pb2, peer_pb2, wait_until

PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
INVALID = grpc.StatusCode.INVALID_ARGUMENT
REFUSED = "gyre_peer_messages_refused_total"
STRANGER = 0xABCDEF
FORMAT = 1


class PeerInput(ClusterTest):
    def setUp(self):
        super().setUp()
        self.node = self.nodes[0]
        topology = self.node.topology()
        self.cluster_id = topology.cluster_id
        self.self_id = int(topology.answered_by, 16)
        self.member = next(int(n.id, 16) for n in topology.nodes if int(n.id, 16) != self.self_id)
        self.node.put(b"kept", b"v", w=kv_pb2.Replicas(count=3))
        self.before = self.node.metric(REFUSED)
        self.topology_before = [node.topology() for node in self.nodes]

    def tearDown(self):
        """Nothing that a test sent moved anything."""
        for node, before in zip(self.nodes, self.topology_before):
            node.check_running()
            now = node.topology()
            self.assertEqual((now.cluster_id, now.layout_epoch, now.layout_digest),
                             (before.cluster_id, before.layout_epoch, before.layout_digest))
        for node in self.nodes:
            self.assertEqual(node.values(b"kept", r=kv_pb2.Replicas(count=3)), [b"v"])
        self.assertEqual([row.key for row in self.node.scan()], [b"kept"])

    def frame(self, messages=(), **fields):
        fields = {"cluster_id": self.cluster_id, "from": self.member, "layout_epoch": 1, "format": FORMAT, **fields}
        return peer_pb2.Frame(messages=messages, **fields)

    def row_key(self, key, keyspace=1):
        token = self.node.admin.Locate(admin_pb2.LocateRequest(key=key), timeout=10).token
        return keyspace.to_bytes(4, "big") + token.to_bytes(8, "big") + key

    def refused(self):
        return self.node.metric(REFUSED) - self.before

    def link(self, *frames):
        """What a node answers to these frames."""
        return list(self.node.peer.Link(iter(frames), timeout=10))

    def test_strangers_are_not_linked(self):
        for frame in (self.frame(cluster_id=self.cluster_id ^ 1), self.frame(cluster_id=0), self.frame(format=0),
                      self.frame(format=2), self.frame(format=2**32 - 1), self.frame(**{"from": STRANGER}),
                      self.frame(**{"from": 0}), self.frame(**{"from": self.self_id}), peer_pb2.Frame()):
            self.assert_status(PRECONDITION, "", self.link, frame)
        self.assertEqual(self.refused(), 9)
        self.assertEqual([welcome.node for welcome in self.link(self.frame())], [self.self_id])

    def test_a_link_speaks_for_whom_it_was_introduced(self):
        store = peer_pb2.PeerMessage(op=1, store=peer_pb2.StoreRow(row_key=self.row_key(b"key"), record=b"r"))
        for fields in ({"cluster_id": self.cluster_id ^ 1}, {"from": STRANGER}, {"from": self.self_id}):
            self.assert_status(PRECONDITION, "frame", self.link, self.frame(), self.frame([store], **fields))
        self.assertEqual(self.refused(), 3)

    def test_garbled_messages_of_a_member(self):
        message = peer_pb2.PeerMessage
        store = peer_pb2.StoreRow
        good = self.row_key(b"key")
        prefix = good[:12]
        page = peer_pb2.FetchPageReply(rows=[peer_pb2.Row(row_key=good), peer_pb2.Row(row_key=good)])
        garbled = [
            message(op=1),
            message(op=1, forward=peer_pb2.ForwardCall()),
            message(op=1, store=store(row_key=b"", record=b"r")),
            message(op=1, store=store(row_key=prefix, record=b"r")),
            message(op=1, store=store(row_key=b"k" * 100_000, record=b"r")),
            message(op=1, store=store(row_key=good, record=b"")),
            message(op=1, fetch=peer_pb2.FetchRow(row_key=b"")),
            message(op=1, fetch=peer_pb2.FetchRow(row_key=b"k" * 100_000)),
            message(op=1, fetch_page=peer_pb2.FetchPage(after=b"b", end=b"a")),
            message(op=1, fetch_page_reply=page),
            message(op=1, fetch_page_reply=peer_pb2.FetchPageReply(rows=[peer_pb2.Row(row_key=good)])),
            message(op=1, compare_rows_reply=peer_pb2.CompareRowsReply(rows=[peer_pb2.Row(row_key=good)])),
            message(op=1, compare_sums_reply=peer_pb2.CompareSumsReply(unequal=[1, 1])),
            message(op=1, compare_sums_reply=peer_pb2.CompareSumsReply(unequal=range(257))),
            message(op=1, compare_sums=peer_pb2.CompareSums(slices=[peer_pb2.Slice(keyspace_id=1)] * 257)),
            message(op=1, compare_rows=peer_pb2.CompareRows(after=b"b", end=b"a")),
            message(op=1, compare_rows=peer_pb2.CompareRows(after=b"", end=b"\xff", rows=[
                peer_pb2.RowDigest(row_key=each) for each in sorted(self.row_key(b"%d" % i) for i in range(1001))])),
            message(op=1, compare_rows=peer_pb2.CompareRows(after=b"", end=b"\xff", rows=[
                peer_pb2.RowDigest(row_key=good), peer_pb2.RowDigest(row_key=good)])),
            message(op=1, compare_rows_reply=peer_pb2.CompareRowsReply(wanted=[good] * 1001)),
            message(op=1, cut_state=peer_pb2.CutState(all=2**63)),
            message(op=1, cut_state=peer_pb2.CutState(wall_ms=2**48)),
        ]
        self.link(self.frame(), self.frame(garbled))
        wait_until("they are counted", lambda: self.refused() >= len(garbled))
        self.assertEqual(self.refused(), len(garbled))

    def test_well_formed_nonsense_of_a_member(self):
        """Records that are none, answers that nobody asked for, absurd numbers."""
        message = peer_pb2.PeerMessage
        rng = random.Random(7)
        odd = []
        for op in (0, 1, 2**63, 2**64 - 1):
            odd += [
                message(op=op, store=peer_pb2.StoreRow(row_key=self.row_key(b"key"), record=rng.randbytes(50))),
                message(op=op, store=peer_pb2.StoreRow(row_key=self.row_key(b"hint"), record=rng.randbytes(50), hint_for=STRANGER)),
                message(op=op, store_reply=peer_pb2.StoreReply(code=2**32 - 1)),
                message(op=op, fetch=peer_pb2.FetchRow(row_key=self.row_key(b"nothing", keyspace=99))),
                message(op=op, fetch_reply=peer_pb2.FetchReply(code=0, record=rng.randbytes(50))),
                message(op=op, fetch_reply=peer_pb2.FetchReply(code=2**32 - 1)),
                message(op=op, fetch_page=peer_pb2.FetchPage(after=b"", end=b"\xff", rows_max=2**32 - 1, bytes_max=2**32 - 1)),
                message(op=op, fetch_page=peer_pb2.FetchPage(after=b"", end=b"\xff" * 100_000, rows_max=0, bytes_max=0)),
                message(op=op, fetch_page_reply=peer_pb2.FetchPageReply(code=77)),
                message(op=op, forward_reply=peer_pb2.ForwardReply()),
                message(op=op, forward_reply=peer_pb2.ForwardReply(reply=kv_pb2.SessionReply(code=2**32 - 1, message="x"))),
                message(op=op, forward=peer_pb2.ForwardCall(timeout_ms=2**32 - 1, put=kv_pb2.PutRequest(key=b"", value=b"v"))),
                message(op=op, forward=peer_pb2.ForwardCall(timeout_ms=0, delete=kv_pb2.DeleteRequest(key=b"k" * 5000))),
            ]
        self.link(self.frame(), self.frame(odd, layout_epoch=2**64 - 1), self.frame(odd, layout_epoch=0))
        # Of each operation, on each link: two stores, the two calls, and the page that is too long to be one.
        wait_until("what is no late answer is counted", lambda: self.refused() >= 2 * 4 * 5)
        self.assertEqual(self.refused(), 2 * 4 * 5)
        self.node.put(b"kept", b"v", w=kv_pb2.Replicas(count=3))

    def test_forwarded_calls_with_contexts_that_are_wrong(self):
        context = self.node.get(b"kept").context
        calls = [
            {"put": kv_pb2.PutRequest(key=b"another", value=b"v", context=context)},
            {"put": kv_pb2.PutRequest(key=b"kept", value=b"v", context=context[:-1] + bytes([context[-1] ^ 1]))},
            {"put": kv_pb2.PutRequest(key=b"kept", value=b"v", context=b"c" * 100_000)},
            {"delete": kv_pb2.DeleteRequest(key=b"another", context=context)},
        ]
        messages = [peer_pb2.PeerMessage(op=1, forward=peer_pb2.ForwardCall(timeout_ms=1000, **call)) for call in calls]
        self.link(self.frame(), self.frame(messages))
        wait_until("they are counted", lambda: self.refused() >= len(calls))
        self.assertEqual(self.refused(), len(calls))

    def test_rows_of_what_does_not_exist(self):
        record = self.node.admin.NodeDump(admin_pb2.NodeDumpRequest(key=b"kept"), timeout=10).record
        strange = [self.row_key(b"no such keyspace", keyspace=99), self.row_key(b"kept")[:12] + b"token of another key"]
        messages = [peer_pb2.PeerMessage(op=1, store=peer_pb2.StoreRow(row_key=key, record=record)) for key in strange]
        self.link(self.frame(), self.frame(messages))
        wait_until("the impossible one is counted", lambda: self.refused() == 1)
        # tearDown scans: the node must not have taken the row of a key that could never be found.

    def control(self, **fields):
        fields = {"cluster_id": self.cluster_id, "from": STRANGER, "from_address": "127.0.0.1:1", "format": FORMAT, **fields}
        return peer_pb2.ControlMessage(**fields)

    def test_control_messages(self):
        def tell(message):
            self.node.peer.Tell(message, timeout=10)

        layout = peer_pb2.Layout(epoch=2**63, cluster_id=self.cluster_id)
        bad_keyspace = peer_pb2.Layout(epoch=9, cluster_id=self.cluster_id, keyspaces=[kv_pb2.Keyspace(name="x", n=99)])
        wanted = peer_pb2.LayoutWanted()
        refused = [
            peer_pb2.ControlMessage(),
            self.control(),
            self.control(format=0, layout_wanted=wanted),
            self.control(format=7, layout_wanted=wanted),
            self.control(**{"from": 0}, layout_wanted=wanted),
            self.control(layout=peer_pb2.LayoutPush(layout=bad_keyspace)),
        ]
        for message in refused:
            self.assert_status(INVALID, "", tell, message)
        self.assert_status(PRECONDITION, "cluster", tell, self.control(cluster_id=self.cluster_id ^ 1, layout_wanted=wanted))
        self.assertEqual(self.refused(), len(refused) + 1)
        # These are taken in and come to nothing.
        ballot = peer_pb2.Ballot(round=2**64 - 1, node=STRANGER)
        info = peer_pb2.NodeInfo(id=self.self_id, address="x" * 100_000, peer_address="y" * 100_000, generation=2**64 - 1)
        for fields in (
                {"layout_wanted": wanted}, {"from": self.self_id, "layout_wanted": wanted},
                {"layout": peer_pb2.LayoutPush(layout=layout)}, {"layout": peer_pb2.LayoutPush()},
                {"hello": peer_pb2.Hello()}, {"hello": peer_pb2.Hello(known=[info] * 10, bootstrap_expect=2**32 - 1)},
                {"promise": peer_pb2.FormationPromise(nodes=[info] * 10)},
                {"prepared": peer_pb2.Prepared(ballot=ballot, promised=True, highest=ballot)},
                {"accepted": peer_pb2.Accepted(ballot=ballot, accepted=True, highest=ballot)},
                {"accept": peer_pb2.Accept(base_epoch=2**64 - 1, ballot=ballot, layout=layout)},
                {"prepare": peer_pb2.Prepare(base_epoch=2**64 - 1, ballot=ballot)}):
            tell(self.control(**fields))
        self.cluster.create_keyspace("still-works", n=3)
        self.cluster.drop_keyspace("still-works")
        for i, node in enumerate(self.nodes):
            epoch = self.topology_before[i].layout_epoch
            wait_until("the layouts are known", lambda node=node, epoch=epoch: node.topology().layout_epoch == epoch + 2)
            self.topology_before[i] = node.topology()

    def test_garbled_bytes_in_calls(self):
        rng = random.Random(7)
        channel = self.node.channel(self.node.peer_port)
        for _ in range(50):
            code, _ = self.status(channel.unary_unary("/gyre.v1.Peer/Tell"), b"\x0a" + rng.randbytes(60), timeout=5)
            self.assertIsNotNone(code)
            code, _ = self.status(lambda: list(channel.stream_stream("/gyre.v1.Peer/Link")(iter([b"\xff" * 40]), timeout=5)))
            self.assertIsNotNone(code)
        code, _ = self.status(channel.unary_unary("/gyre.v1.Peer/Tell"), b"\x00" * (20 << 20), timeout=10)
        self.assertIsNotNone(code)
        # The peers' service is on the peers' port only, and the clients' on theirs.
        self.assert_status(grpc.StatusCode.UNIMPLEMENTED, "", channel.unary_unary("/gyre.v1.Kv/Get"), b"", timeout=5)
        clients = self.node.channel(self.node.client_port)
        self.assert_status(grpc.StatusCode.UNIMPLEMENTED, "", clients.unary_unary("/gyre.v1.Peer/Tell"), b"", timeout=5)

    def test_random_bytes_on_every_port(self):
        rng = random.Random(7)
        openings = [b"", b"\x00", b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
                    b"GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"POST /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n"]
        for port in (self.node.client_port, self.node.peer_port, self.node.http_port):
            for number in range(60):
                with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
                    try:
                        connection.sendall(openings[number % len(openings)] + rng.randbytes(rng.randrange(2000)))
                    except OSError:
                        pass  # closed before it had read everything
        self.assertEqual(self.node.http("/livez")[0], 200)
        for path in ("/" + "a" * 100_000, "/metrics?" + "a" * 10_000, "/../../etc/passwd", "/%00", "/nothing"):
            self.assertNotEqual(self.node.http(path)[0], 200 if "metrics" not in path else 0)

    def test_many_connections_that_say_nothing(self):
        descriptors = len(os.listdir(f"/proc/{self.node.process.pid}/fd"))
        idle = [socket.create_connection(("127.0.0.1", port), timeout=5)
                for port in (self.node.client_port, self.node.peer_port) for _ in range(200)]
        try:
            self.node.put(b"kept", b"v", w=kv_pb2.Replicas(count=3))
        finally:
            for connection in idle:
                connection.close()
        wait_until("they are closed again",
                   lambda: len(os.listdir(f"/proc/{self.node.process.pid}/fd")) < descriptors + 50)


if __name__ == "__main__":
    unittest.main()
