"""What is out of bounds is refused with a sentence that names it, and changes nothing; what is just within works."""

import json
import random
import unittest

import grpc

from cases import ClusterTest
from cluster import admin_pb2, kv_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
KEY_BYTES = 4096
VALUE_BYTES = 1 << 20
METHODS = {"put": "Put", "get": "Get", "delete": "Delete", "scan": "Scan"}
BAD_COUNTS = [
    kv_pb2.Replicas(count=0),
    kv_pb2.Replicas(count=-1),
    kv_pb2.Replicas(count=4),
    kv_pb2.Replicas(count=2**31),
    kv_pb2.Replicas(count=2**32 + 2),  # 2 in 32 bits
    kv_pb2.Replicas(count=2**63 - 1),
    kv_pb2.Replicas(count=-(2**63)),
    kv_pb2.Replicas(name=kv_pb2.Replicas.UNSPECIFIED),
    kv_pb2.Replicas(name=99),
    kv_pb2.Replicas(),
]
ALL = kv_pb2.Replicas(name=kv_pb2.Replicas.ALL)


class LimitsOfCalls(ClusterTest):
    def ask(self, call, request, node=0):
        """Makes a call on its own and in a session; both must answer alike. (code, message or reply)."""
        answers = []
        for _ in range(2):
            code, answer = self.status(getattr(self.nodes[node].kv, METHODS[call]), request, timeout=10)
            answers.append((0 if code is None else code.value[0], answer))
            if len(answers) == 1:
                reply = self.nodes[node].session([{call: request}])[0]
                answers.append((reply.code, reply.message if reply.code else getattr(reply, call)))
                break
        self.assertEqual(answers[0][0], answers[1][0], answers)
        return answers[0]

    def refuse(self, call, words, request, code=INVALID):
        """Refused by every node, and with no trace."""
        for node in range(len(self.nodes)):
            answered, message = self.ask(call, request, node)
            self.assertEqual(answered, code.value[0], message)
            for word in [words] if isinstance(words, str) else words:
                self.assertIn(word, message)

    def test_F75_key_sizes(self):
        for call, make in (("put", kv_pb2.PutRequest), ("get", kv_pb2.GetRequest), ("delete", kv_pb2.DeleteRequest)):
            self.refuse(call, "key", make(key=b""))
            self.refuse(call, ["key", "4097"], make(key=b"k" * (KEY_BYTES + 1)))
            self.refuse(call, ["key", "1000000"], make(key=b"k" * 1_000_000))
        for size in (1, KEY_BYTES - 1, KEY_BYTES):
            key = b"k" * size
            self.assertEqual(self.nodes[0].put(key, b"v", w=ALL).acks, 3)
            for node in self.nodes:
                self.assertEqual(node.values(key, r=ALL), [b"v"])
            self.assertIn(key, [row.key for row in self.nodes[2].scan(prefix=key, keys_only=True)])
            self.nodes[1].delete(key, w=ALL)
            self.assertEqual(self.nodes[0].values(key), [])

    def test_F75_value_sizes(self):
        for size in (0, 1, VALUE_BYTES - 1, VALUE_BYTES):
            value = b"\x00\xff" * (size // 2) + b"\n" * (size % 2)
            for coordinator in self.nodes:
                coordinator.put(b"value", value, w=ALL)
                for node in self.nodes:
                    self.assertEqual(node.values(b"value", r=ALL), [value])
            self.assertEqual([v.value for row in self.nodes[0].scan(prefix=b"value") for v in row.values], [value])
        self.refuse("put", ["value", str(VALUE_BYTES + 1), str(VALUE_BYTES), "limits.value_bytes"],
                    kv_pb2.PutRequest(key=b"value", value=b"x" * (VALUE_BYTES + 1)))
        self.assert_status((INVALID, EXHAUSTED), "", self.nodes[0].put, b"value", b"x" * (20 << 20))
        self.assertEqual(self.nodes[0].values(b"value"), [value])

    def test_every_byte(self):
        strange = [bytes([i]) for i in range(256)]
        strange += [b"\x00\x00", b"\x00\xff", b"\xff\x00", b"\xff\xff", b"a\x00b", b"a\x00", b"a\xff", b"\x00" * 100,
                    b"\xff" * KEY_BYTES, "caf\u00e9".encode(), b"../..", b"--", b"\r\n"]
        prefix = b"every\x00"
        keys = strange + [prefix + key for key in strange if len(key) < 300]
        puts = [{"put": kv_pb2.PutRequest(key=key, value=key + b"\x00\xff", w=ALL)} for key in keys]
        self.assertEqual({reply.code for reply in self.nodes[0].session(puts)}, {0})
        for node in self.nodes:
            for key, reply in zip(keys, node.session([{"get": kv_pb2.GetRequest(key=key)} for key in keys])):
                self.assertEqual([value.value for value in reply.get.values], [key + b"\x00\xff"])
            scanned = [row.key for row in node.scan(limit=7)]
            self.assertEqual(sorted(set(scanned)), sorted(scanned))
            self.assertLessEqual(set(keys), set(scanned))
            for wanted in (b"\x00", b"\xff", prefix, b"a\x00"):
                rows = [row.key for row in node.scan(prefix=wanted, keys_only=True)]
                self.assertEqual(sorted(rows), sorted(key for key in scanned if key.startswith(wanted)))
        for reply in self.nodes[1].session([{"delete": kv_pb2.DeleteRequest(key=key, w=ALL)} for key in keys]):
            self.assertEqual(reply.code, 0, reply.message)
        self.assertEqual([row.key for row in self.nodes[2].scan() if row.key in keys], [])

    def test_replica_counts(self):
        before = self.nodes[0].put(b"counts", b"kept")
        for count in BAD_COUNTS:
            with self.subTest(count=str(count)):
                self.refuse("put", "w ", kv_pb2.PutRequest(key=b"counts", value=b"lost", w=count))
                self.refuse("delete", "w ", kv_pb2.DeleteRequest(key=b"counts", w=count))
                self.refuse("get", "r ", kv_pb2.GetRequest(key=b"counts", r=count))
                self.refuse("scan", "r ", kv_pb2.ScanRequest(r=count))
        for node in self.nodes:
            reply = node.get(b"counts", r=ALL)
            self.assertEqual([value.value for value in reply.values], [b"kept"])
            self.assertEqual(len(reply.context), len(before.context))
        for count in (kv_pb2.Replicas(count=1), kv_pb2.Replicas(count=3), ALL):
            self.assertEqual(self.ask("put", kv_pb2.PutRequest(key=b"counts", value=b"kept", w=count))[0], 0)
            self.assertEqual(self.ask("get", kv_pb2.GetRequest(key=b"counts", r=count))[0], 0)

    def test_unknown_keyspace(self):
        for name in ("nowhere", "Default", "default ", "a" * 10_000, "\u0000"):
            self.refuse("put", "keyspace", kv_pb2.PutRequest(keyspace=name, key=b"k", value=b"v"))
            self.refuse("get", "keyspace", kv_pb2.GetRequest(keyspace=name, key=b"k"))
            self.refuse("delete", "keyspace", kv_pb2.DeleteRequest(keyspace=name, key=b"k"))
            self.refuse("scan", "keyspace", kv_pb2.ScanRequest(keyspace=name))

    def test_contexts(self):
        context = self.nodes[0].put(b"context", b"kept").context
        other_key = self.nodes[0].put(b"another key", b"v").context
        self.nodes[0].admin.CreateKeyspace(
            admin_pb2.CreateKeyspaceRequest(keyspace=kv_pb2.Keyspace(name="contexts", n=3)), timeout=10)
        other_keyspace = self.nodes[0].put(b"context", b"v", keyspace="contexts").context
        rng = random.Random(7)
        garbled = [b"", b"\x00", b"x", context[:-1], context[1:], context + b"\x00", context * 2, rng.randbytes(100),
                   b"\x01" * 100_000, other_key, other_keyspace]
        for i in range(len(context) * 8):
            flipped = bytearray(context)
            flipped[i // 8] ^= 1 << i % 8
            garbled.append(bytes(flipped))
        requests = [kv_pb2.PutRequest(key=b"context", value=b"lost", context=c) for c in garbled]
        for reply in self.nodes[0].session([{"put": request} for request in requests]):
            self.assertEqual(reply.code, INVALID.value[0], reply.message)
            self.assertIn("context", reply.message)
        for c in garbled[:11]:
            self.refuse("delete", "context", kv_pb2.DeleteRequest(key=b"context", context=c))
        self.assertEqual(self.nodes[1].values(b"context", r=ALL), [b"kept"])

    def test_times_to_live(self):
        self.nodes[0].put(b"ttl", b"kept")
        century = 100 * 365 * 24 * 3600 * 1000
        for ttl in (0, -1, 1, 999, century + 1, 2**63 - 1, -(2**63)):
            self.refuse("put", ["ttl", str(ttl)], kv_pb2.PutRequest(key=b"ttl", value=b"lost", ttl_ms=ttl))
        self.assertEqual(self.nodes[0].values(b"ttl", r=ALL), [b"kept"])
        self.nodes[0].put(b"ttl", b"long", ttl_ms=century, w=ALL)
        self.assertGreater(self.nodes[1].get(b"ttl").values[0].expires_at_ms, century)
        self.nodes[0].put(b"ttl", b"short", ttl_ms=1000, w=ALL)
        self.assertNotEqual(self.nodes[1].get(b"ttl").values[:1], [])

    def test_write_ids(self):
        for size in (1, 15, 17, 1000):
            self.refuse("put", ["write_id", str(size)], kv_pb2.PutRequest(key=b"id", value=b"v", write_id=b"i" * size))
        self.refuse("put", "write_id", kv_pb2.PutRequest(key=b"id", value=b"v", retry=True))
        self.assertEqual(self.nodes[0].values(b"id"), [])

    def test_scans(self):
        for limit in (1001, 2**31, 2**32 - 1):
            self.refuse("scan", ["limit", str(limit)], kv_pb2.ScanRequest(limit=limit))
        rng = random.Random(7)
        for cursor in (b"x", b"\xff" * 12, b"\xff" * 100, b"\x00" * 12, b"\x00" * 11, rng.randbytes(40), b"c" * 100_000):
            self.refuse("scan", "cursor", kv_pb2.ScanRequest(cursor=cursor))
        # A cursor that no scan returned but that names a place of the ring is a place to go on from.
        behind_all = b"\x00\x00\x00\x01" + b"\xff" * 8 + b"\xff" * KEY_BYTES
        self.assertEqual(self.ask("scan", kv_pb2.ScanRequest(cursor=behind_all)), (0, kv_pb2.ScanReply(
            layout_epoch=self.nodes[0].topology().layout_epoch)))
        self.assertEqual(self.nodes[0].scan(prefix=b"p" * 100_000), [])

    def test_sessions(self):
        self.assertEqual(self.nodes[0].session([]), [])
        for reply in self.nodes[0].session([{}] * 3):
            self.assertEqual(reply.code, INVALID.value[0])
            self.assertIn("call", reply.message)
        messages = list(self.nodes[0].kv.Session(iter([kv_pb2.SessionBatch()] * 10), timeout=10))
        self.assertEqual(messages, [])
        # Ids are the client's: that two are equal is its own affair.
        twins = kv_pb2.SessionBatch(requests=[kv_pb2.SessionRequest(id=5, get=kv_pb2.GetRequest(key=b"k"))] * 2)
        replies = [reply for message in self.nodes[0].kv.Session(iter([twins]), timeout=10) for reply in message.replies]
        self.assertEqual([(reply.id, reply.code) for reply in replies], [(5, 0), (5, 0)])

    def test_garbled_requests(self):
        rng = random.Random(7)
        channel = self.nodes[0].channel(self.nodes[0].client_port)
        for method in ("Kv/Put", "Kv/Get", "Kv/Delete", "Kv/Scan", "Kv/NoSuchMethod", "Admin/Locate", "Admin/NodeDump"):
            call = channel.unary_unary("/gyre.v1." + method)
            for _ in range(20):
                code, _ = self.status(call, b"\x0a\xff" + rng.randbytes(rng.randrange(1, 200)), timeout=10)
                self.assertNotIn(code, (None, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED))
        self.nodes[0].check_running()
        self.nodes[0].put(b"still", b"here")

    def test_siblings_limit(self):
        empty = self.nodes[0].get(b"crowd").context
        for i in range(32):
            self.nodes[0].put(b"crowd", b"%02d" % i, context=empty, w=ALL)
        everyone = [b"%02d" % i for i in range(32)]
        self.assert_status(EXHAUSTED, ["32", "limits.siblings"], self.nodes[0].put, b"crowd", b"one more", context=empty)
        reply = self.nodes[1].get(b"crowd", r=ALL)
        self.assertEqual(sorted(value.value for value in reply.values), everyone)
        self.nodes[2].put(b"crowd", b"all in one", context=reply.context, w=ALL)
        self.assertEqual(self.nodes[0].values(b"crowd", r=ALL), [b"all in one"])

    def test_record_limit(self):
        empty = self.nodes[0].get(b"heavy").context
        for i in range(3):
            self.nodes[0].put(b"heavy", bytes([i]) * VALUE_BYTES, context=empty, w=ALL)
        self.assert_status(EXHAUSTED, "limits.record_bytes", self.nodes[0].put, b"heavy", b"x" * VALUE_BYTES, context=empty)
        reply = self.nodes[1].get(b"heavy", r=ALL)
        self.assertEqual(len(reply.values), 3)
        self.nodes[2].put(b"heavy", b"light", context=reply.context, w=ALL)
        self.assertEqual(self.nodes[0].values(b"heavy", r=ALL), [b"light"])

    def test_keyspaces(self):
        def create(**fields):
            return self.nodes[0].admin.CreateKeyspace(
                admin_pb2.CreateKeyspaceRequest(keyspace=kv_pb2.Keyspace(**fields)), timeout=10)

        for fields, word in (({"name": "", "n": 3}, "name"), ({"name": "a" * 65, "n": 3}, "name"),
                             ({"name": "a/b", "n": 3}, "name"), ({"name": "a", "n": 9}, "n"), ({"name": "a", "n": 2**32 - 1}, "n"),
                             ({"name": "a", "n": 2, "w": kv_pb2.Replicas(count=3)}, "w"),
                             ({"name": "a", "n": 2, "r": kv_pb2.Replicas(count=2**31)}, "r"),
                             ({"name": "a", "n": 2, "conflict": "coin"}, "conflict"),
                             ({"name": "a", "n": 2, "ttl_ms": 2**64 - 1}, "ttl")):
            self.assert_status(INVALID, word, create, **fields)
        self.assert_status(grpc.StatusCode.ALREADY_EXISTS, "default", create, name="default", n=3)
        self.assertEqual({k.name for k in self.nodes[0].topology().keyspaces} - {"contexts"}, {"default"})


class LimitsOfTheCommandLine(ClusterTest):
    def refuse(self, words, *arguments, stdin=b""):
        self.assert_exit(2, self.cluster.cli(*arguments, stdin=stdin), words)
        self.assert_json_error(2, self.cluster.cli("-o", "json", *arguments, stdin=stdin), words)

    def test_keys_and_values(self):
        self.refuse("key", "put", "", "v")
        self.refuse("key", "get", "")
        self.refuse("key", "put", "k" * (KEY_BYTES + 1), "v")
        self.assert_exit(0, self.cluster.cli("put", "k" * KEY_BYTES, "v"))
        self.assertEqual(self.cluster.cli("get", "k" * KEY_BYTES).stdout, b"v")
        for size in (0, VALUE_BYTES - 1, VALUE_BYTES):
            self.assert_exit(0, self.cluster.cli("put", "v", "-", stdin=b"\x00" * size))
            self.assertEqual(self.cluster.cli("get", "v").stdout, b"\x00" * size)
        self.refuse("value", "put", "v", "-", stdin=b"\x01" * (VALUE_BYTES + 1))
        self.assertEqual(self.cluster.cli("get", "v").stdout, b"\x00" * VALUE_BYTES)

    def test_counts_contexts_and_times(self):
        self.assert_exit(0, self.cluster.cli("put", "c", "kept"))
        for count in ("0", "-1", "4", "2147483648", "99999999999999999999", "x"):
            self.refuse("", "put", "c", "lost", "-w", count)
            self.refuse("", "delete", "c", "-w", count)
            self.refuse("", "get", "c", "-r", count)
        for context in ("x", "AAAA", "!"):
            self.refuse("context", "put", "c", "lost", "--context", context)
        for ttl in ("0s", "-1s", "soon", "99999999999999999999s", "1000000d"):
            self.refuse("", "put", "c", "lost", "--ttl", ttl)
        for flag in ("-w", "--context", "--ttl"):
            self.refuse(f"{flag}: must not be empty", "put", "c", "lost", flag, "")
        for flag in ("-w", "--context"):
            self.refuse(f"{flag}: must not be empty", "delete", "c", flag, "")
        self.refuse("-r: must not be empty", "get", "c", "-r", "")
        self.refuse("nowhere", "-k", "nowhere", "get", "c")
        self.assertEqual(self.cluster.cli("get", "c").stdout, b"kept")

    def test_usage(self):
        for arguments in ([], ["nonsense"], ["put"], ["get"], ["get", "a", "b"], ["--timeout", "x", "get", "k"],
                          ["-o", "xml", "get", "k"], ["get", "--nonsense", "k"]):
            self.assert_exit(2, self.cluster.cli(*arguments))
        self.assert_exit(3, self.cluster.cli("get", "nothing here"))
        missing = self.cluster.cli("-o", "json", "get", "nothing here")
        self.assertEqual((missing.code, json.loads(missing.stdout)["found"]), (3, False))
        self.assert_exit(0, self.cluster.cli("delete", "nothing here"))
        self.assert_exit(0, self.cluster.cli("put", "--", "-w", "-r"))
        self.assertEqual(self.cluster.cli("get", "--", "-w").stdout, b"-r")

    def test_garbled_imports(self):
        for lines in (b"nonsense\n", b"[]\n", b"{}\n", b'{"key":"k"}\n', b'{"key":1,"value":"v"}\n',
                      b'{"key_base64":"!","value":"v"}\n', b'{"key":"k","value":"v"\n', b"\xff\xfe\n"):
            result = self.cluster.cli("import", "-", stdin=lines)
            self.assertNotEqual(result.code, 0, (lines, result))
        self.assert_exit(3, self.cluster.cli("get", "k"))


if __name__ == "__main__":
    unittest.main()
