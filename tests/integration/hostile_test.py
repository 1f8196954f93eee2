"""Two thousand bad inputs at a node with TLS: it does not end, its memory stays bounded, and others are served."""

import random
import socket
import ssl
import statistics
import struct
import threading
import time
import unittest

import grpc

from cases import ClusterTest
from cluster import CALL_SECONDS, kv_pb2, kv_pb2_grpc, open_channel, wait_until
from secured import SecuredCluster

MIB = 1 << 20
NETWORK_BYTES = 128 * MIB
# Beside what connections may take on each of the two ports: the program, the store, and what 1,000 handshakes hold.
MEMORY_MAX = 2 * NETWORK_BYTES + 300 * MIB
IDLE = 1000
CALM_SECONDS = 0.02  # a p99 below which other work on the machine shows more than what is measured
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def frame(kind, flags, stream, payload=b"", length=None):
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Other(threading.Thread):
    """Another client: a get after the other, and how long each took."""

    def __init__(self, port, credentials):
        super().__init__()
        self.channel = open_channel(port, credentials)
        self.kv = kv_pb2_grpc.KvStub(self.channel)
        self.seconds, self.failures = [], []
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                values = self.kv.Get(kv_pb2.GetRequest(key=b"kept"), timeout=CALL_SECONDS).values
                if [each.value for each in values] != [b"v"]:
                    self.failures.append(f"read {values}")
            except grpc.RpcError as error:
                self.failures.append(f"{error.code()}: {error.details()}")
            self.seconds.append(time.monotonic() - begun)
        self.channel.close()


class Hostile(ClusterTest):
    @classmethod
    def setUpClass(cls):
        settings = {"limits": {"network_bytes": "128MiB", "connections": 1500}}
        cls.cluster = cls.enterClassContext(SecuredCluster(1, settings, ["friend default read", "foe default write"]))
        cls.nodes = cls.cluster.nodes

    def setUp(self):
        super().setUp()
        self.node = self.nodes[0]
        self.authority = self.cluster.authority
        self.node.put(b"kept", b"v")
        self.rng = random.Random(7)
        self.inputs = 0
        self.memory = 0
        self.other = Other(self.node.client_port, self.authority.credentials(self.authority.user("client", "friend")))
        self.other.start()
        self.addCleanup(self.other.join, 60)
        self.addCleanup(self.other.over.set)
        wait_until("the other client is served", lambda: len(self.other.seconds) >= 50)
        self.calm = self.p99(self.other.seconds)
        foe = self.authority.user("client", "foe")
        self.tls = ssl.create_default_context(cafile=self.authority.path("ca.pem"))
        self.tls.load_cert_chain(self.authority.path(foe + ".pem"), self.authority.path(foe + "-key.pem"))
        self.tls.set_alpn_protocols(["h2"])
        self.foe = self.authority.credentials(foe)

    def tearDown(self):
        """Whatever a test threw at it."""
        self.node.check_running()
        begun = len(self.other.seconds)
        wait_until("the other client is still served", lambda: len(self.other.seconds) > begun + 20)
        self.assertEqual(self.other.failures, [])
        self.look()
        self.assertLess(self.memory, MEMORY_MAX)

    @staticmethod
    def p99(seconds):
        return statistics.quantiles(seconds, n=100)[98]

    def look(self):
        with open(f"/proc/{self.node.process.pid}/status", encoding="utf-8") as status:
            resident = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS:"))
        self.memory = max(self.memory, resident)

    def connect(self, port=None):
        return socket.create_connection(("127.0.0.1", port or self.node.client_port), timeout=10)

    def secure(self):
        return self.tls.wrap_socket(self.connect(), server_hostname="127.0.0.1")

    def throw(self, connection, *parts):
        """Sends it and reads what comes until the node closes, or has nothing to say for a moment."""
        self.inputs += 1
        if self.inputs % 50 == 0:
            self.look()
        with connection:
            try:
                for part in parts:
                    connection.sendall(part)
                connection.settimeout(0.02)
                while connection.recv(65536):
                    pass
            except (OSError, ssl.SSLError):
                pass  # reset, closed, or silent

    def test_malformed_http2(self):
        rng = self.rng
        get = b"\x82\x87\x84\x41\x01a"  # of a header block
        bad = [
            b"", PREFACE[:10], b"GET / HTTP/1.1\r\n\r\n", PREFACE, PREFACE + frame(4, 0, 1, b""),
            PREFACE + frame(4, 0, 0, b"\x00"), PREFACE + frame(4, 0, 0, b"\x00\x04\xff\xff\xff\xff"),
            PREFACE + SETTINGS + frame(0, 0, 0, b"data"), PREFACE + SETTINGS + frame(0, 0, 99, b"data"),
            PREFACE + SETTINGS + frame(0, 8, 1, b"\xff"), PREFACE + SETTINGS + frame(1, 4, 0, get),
            PREFACE + SETTINGS + frame(1, 4, 2, get), PREFACE + SETTINGS + frame(1, 0, 1, get) + frame(6, 0, 0, b"12345678"),
            PREFACE + SETTINGS + frame(1, 4, 1, b"\xff" * 100), PREFACE + SETTINGS + frame(1, 4, 1, b"\x80"),
            PREFACE + SETTINGS + frame(3, 0, 1, b"123"), PREFACE + SETTINGS + frame(6, 0, 0, b"1"),
            PREFACE + SETTINGS + frame(8, 0, 0, b"\x00\x00\x00\x00"), PREFACE + SETTINGS + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
            PREFACE + SETTINGS + frame(9, 0, 1, get), PREFACE + SETTINGS + frame(5, 4, 1, get),
            PREFACE + SETTINGS + frame(0, 0, 1, b"", length=0xffffff), PREFACE + SETTINGS + frame(0xee, 0xff, 1, b"x" * 100),
            PREFACE + SETTINGS * 2000, PREFACE + SETTINGS + frame(6, 0, 0, b"12345678") * 2000,
            PREFACE + SETTINGS + b"".join(frame(1, 5, 2 * i + 1, get) + frame(3, 0, 2 * i + 1, b"\x00\x00\x00\x08") for i in range(2000)),
        ]
        for number in range(600):
            noise = rng.randbytes(rng.randrange(200))
            self.throw(self.secure(), bad[number % len(bad)], noise if number >= len(bad) else b"")
        self.assertEqual(self.inputs, 600)

    def test_malformed_messages(self):
        channel = open_channel(self.node.client_port, self.foe)
        self.addCleanup(channel.close)
        put, session = channel.unary_unary("/gyre.v1.Kv/Put"), channel.stream_stream("/gyre.v1.Kv/Session")
        for number in range(600):
            self.inputs += 1
            if number % 2 == 0:
                code, _ = self.status(put, b"\x0a" + self.rng.randbytes(self.rng.randrange(300)), timeout=CALL_SECONDS)
                self.assertIsNotNone(code)
            else:
                self.status(lambda: list(session(iter([b"\xff" + self.rng.randbytes(100)]), timeout=CALL_SECONDS)))
        self.assertEqual(self.inputs, 600)

    def test_oversize_messages(self):
        """Each is longer than any message may be; a thread each, so that many are under way."""
        big = b"\x12" + b"\x00" * (33 * MIB)
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]

        def send():
            with grpc.secure_channel(f"127.0.0.1:{self.node.client_port}", self.foe, options) as channel:
                for _ in range(5):
                    code, _ = self.status(channel.unary_unary("/gyre.v1.Kv/Put"), big, timeout=60)
                    self.assertIn(code, (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE))

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.look()
            threads[0].join(0.05)

    def test_handshakes_that_do_not_end(self):
        hello = bytes.fromhex("16030100c8010000c40303")
        for number in range(600):
            self.throw(self.connect(), hello[:number % len(hello)], self.rng.randbytes(number % 64))
        half = []
        for number in range(200):
            self.inputs += 1
            half.append(self.connect(self.node.client_port if number % 2 else self.node.peer_port))
            half[-1].sendall(hello[:1 + number % (len(hello) - 1)])
        self.assertEqual(self.inputs, 800)
        # The node gives them up by itself, in its time for handshakes.
        for connection in half:
            with connection:
                connection.settimeout(30)
                try:
                    self.assertEqual(connection.recv(1), b"")
                except ConnectionResetError:
                    pass

    def test_slow_senders(self):
        request = PREFACE + SETTINGS + frame(1, 4, 1, b"\x82\x87\x84\x41\x01a")
        slow = [self.secure() for _ in range(100)]
        for i in range(len(request)):
            for connection in slow:
                try:
                    connection.sendall(request[i:i + 1])
                except OSError:
                    pass  # closed: it took too long
        for connection in slow:
            connection.close()

    def test_idle_connections(self):
        """A thousand that say nothing; and beyond the limit of connections, the newest are closed at once."""
        refused = self.node.metric("gyre_connections_refused_total")
        idle = [self.connect() for _ in range(IDLE)]
        try:
            self.look()
            begun = len(self.other.seconds)
            wait_until("the other client is served", lambda: len(self.other.seconds) > begun + 200)
            p99 = self.p99(self.other.seconds[begun:])
            print(f"p99 of the other client: calm {self.calm * 1000:.1f} ms, beside {IDLE} idle connections {p99 * 1000:.1f} ms")
            self.assertLess(p99, 3 * max(self.calm, CALM_SECONDS))
            self.assertEqual(self.node.metric("gyre_connections_refused_total"), refused)
            idle += [self.connect() for _ in range(700)]
            wait_until("those beyond the limit are refused",
                       lambda: self.node.metric("gyre_connections_refused_total") >= refused + 100)
        finally:
            for connection in idle:
                connection.close()

        def served_anew():
            with open_channel(self.node.client_port, self.foe) as channel:
                code, _ = self.status(kv_pb2_grpc.KvStub(channel).Put, kv_pb2.PutRequest(key=b"new", value=b"v"), timeout=2)
                return code is None

        wait_until("there is room again", served_anew)


if __name__ == "__main__":
    unittest.main()
