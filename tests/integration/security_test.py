"""With TLS nobody does what its certificate does not say: every call of every service, by everybody whom it refuses."""

import glob
import os
import shutil
import tempfile
import unittest

import grpc
from google.protobuf import descriptor_pb2

from cases import ClusterTest
from cluster import (CALL_SECONDS, GYRE, GYRED, Node, admin_pb2, free_ports, kv_pb2, kv_pb2_grpc, open_channel, peer_pb2,
                     run, wait_until)
from secured import Authority, SecuredCluster

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
DENIED = grpc.StatusCode.PERMISSION_DENIED
MODULES = {"kv.proto": kv_pb2, "admin.proto": admin_pb2, "peer.proto": peer_pb2}
PERMISSIONS = ["shop default read+write", "reports * read+scan"]


def every_call():
    """(service, path, streams) of each call that the protocol has."""
    for module in MODULES.values():
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        for service in file.service:
            for method in service.method:
                yield (service.name, f"/{file.package}.{service.name}/{method.name}",
                       method.client_streaming and method.server_streaming)


def call(channel, path, streams, timeout=CALL_SECONDS):
    """Makes the call with an empty request."""
    if streams:
        return list(channel.stream_stream(path)(iter([b""]), timeout=timeout))
    return channel.unary_unary(path)(b"", timeout=timeout)


class SecureTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(SecuredCluster(cls.NODES, cls.SETTINGS, PERMISSIONS))
        cls.nodes = cls.cluster.nodes
        cls.authority = cls.cluster.authority
        cls.others = Authority()
        cls.addClassCleanup(cls.others.close)

    def channel(self, port, credentials):
        channel = open_channel(port, credentials)
        self.addCleanup(channel.close)
        return channel

    def as_client(self, name):
        return kv_pb2_grpc.KvStub(
            self.channel(self.nodes[0].client_port, self.authority.credentials(self.authority.user("client", name))))


class EveryCall(SecureTest):
    NODES = 1

    def setUp(self):
        super().setUp()
        self.node = self.nodes[0]
        self.ports = {"Kv": self.node.client_port, "Admin": self.node.client_port, "Peer": self.node.peer_port}

    def assert_refuses_all(self, status, words, credentials, services=("Kv", "Admin", "Peer")):
        made = 0
        channels = {port: self.channel(port, credentials) for port in set(self.ports.values())}
        for service, path, streams in every_call():
            if service not in services:
                continue
            with self.subTest(path):
                self.assert_status(status, words, call, channels[self.ports[service]], path, streams)
            made += 1
        self.assertGreaterEqual(made, 2)

    def test_the_protocol_is_known_whole(self):
        protos = glob.glob(os.path.join(os.path.dirname(__file__), "..", "..", "proto", "*.proto"))
        self.assertEqual({os.path.basename(proto) for proto in protos}, set(MODULES))
        services = [service for service, _, _ in every_call()]
        self.assertEqual(set(services), set(self.ports))
        self.assertGreaterEqual(len(services), 24)

    def test_nobody_is_served_without_encryption(self):
        self.assert_refuses_all(UNAVAILABLE, "", None)

    def test_nobody_is_served_without_a_certificate(self):
        self.assert_refuses_all(UNAVAILABLE, "", self.authority.credentials(None))

    def test_nobody_is_served_whom_another_authority_vouches_for(self):
        self.others.make("node", self.node.id, "127.0.0.1")
        for user in (self.others.user("admin", "root"), self.others.user("client", "shop"), f"node-{self.node.id}"):
            self.assert_refuses_all(UNAVAILABLE, "", self.others.credentials(user, trusting=self.authority))

    def test_nobody_is_served_whose_certificate_expired(self):
        stranger = "00000000000000aa"
        self.authority.make("node", stranger, "127.0.0.1", "--days", "-1")
        for user in (self.authority.user("admin", "late", "--days", "-1"), self.authority.user("client", "late", "--days", "-1"),
                     f"node-{stranger}"):
            self.assert_refuses_all(UNAVAILABLE, "", self.authority.credentials(user))

    def test_each_role_is_refused_the_others_services(self):
        before = self.node.metric("gyre_calls_denied_total")
        client = self.authority.credentials(self.authority.user("client", "shop"))
        admin = self.authority.credentials(self.authority.user("admin", "root"))
        node = self.authority.credentials(f"node-{self.node.id}")
        self.assert_refuses_all(DENIED, "client shop may not call", client, ("Admin", "Peer"))
        self.assert_refuses_all(DENIED, "admin root may not call", admin, ("Peer",))
        self.assert_refuses_all(DENIED, f"node {self.node.id} may not call", node, ("Kv", "Admin"))
        calls = [service for service, _, _ in every_call()]
        refused = 2 * calls.count("Admin") + 2 * calls.count("Peer") + calls.count("Kv")
        self.assertEqual(self.node.metric("gyre_calls_denied_total") - before, refused)

    def test_a_certificate_without_a_role_is_nobodys(self):
        """One that the authority vouches for, as it may for other systems."""
        user = self.authority.user("client", "nameless")
        key, request = self.authority.path(user + "-key.pem"), self.authority.path("request.pem")
        for command in (
                ["openssl", "req", "-new", "-key", key, "-subj", "/CN=gyre:admin:root", "-out", request],
                ["openssl", "x509", "-req", "-in", request, "-CA", self.authority.path("ca.pem"), "-CAkey",
                 self.authority.path("ca-key.pem"), "-set_serial", "7", "-out", self.authority.path(user + ".pem")]):
            self.assertEqual(run(command).code, 0)
        self.assert_refuses_all(grpc.StatusCode.UNAUTHENTICATED, "no URI gyre:ROLE:NAME", self.authority.credentials(user))

    def test_there_is_no_reflection(self):
        channel = self.channel(self.node.client_port, self.node.credentials)
        for version in ("v1", "v1alpha"):
            path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
            self.assert_status((DENIED, grpc.StatusCode.UNIMPLEMENTED), "", call, channel, path, True)

    def test_calls_of_operators_are_logged(self):
        self.node.admin.ClusterStatus(admin_pb2.ClusterStatusRequest(), timeout=CALL_SECONDS)
        self.assertIn("admin root calls /gyre.v1.Admin/ClusterStatus", self.node.log())
        self.assert_status(grpc.StatusCode.NOT_FOUND, "", self.node.admin.DropKeyspace,
                           admin_pb2.DropKeyspaceRequest(name="not-there"), timeout=CALL_SECONDS)
        self.assertIn("admin root calls /gyre.v1.Admin/DropKeyspace", self.node.log())
        self.assertRegex(self.node.log(), r'admin root at ipv4:127\.0\.0\.1:\d+: DropKeyspaceRequest name: "not-there"')


class WhoMayWhat(SecureTest):
    def test_a_cluster_works(self):
        for i, node in enumerate(self.nodes):
            node.put(b"key-%d" % i, b"value", w=kv_pb2.Replicas(count=3))
        for node in self.nodes:
            self.assertEqual(len(node.scan()), 3)
            self.assertIn("with TLS", node.log())
            self.assertGreater(node.metric("gyre_certificate_expiry_seconds"), 1.7e9)
            self.assertEqual(node.metric("gyre_certificate_reload_failures_total"), 0)

    def test_permissions_of_calls(self):
        put = kv_pb2.PutRequest(key=b"k", value=b"v")
        get = kv_pb2.GetRequest(key=b"k")
        shop, reports, stranger = self.as_client("shop"), self.as_client("reports"), self.as_client("stranger")
        shop.Put(put, timeout=CALL_SECONDS)
        for kv in (shop, reports):
            self.assertEqual(kv.Get(get, timeout=CALL_SECONDS).values[0].value, b"v")
        reports.Scan(kv_pb2.ScanRequest(), timeout=CALL_SECONDS)
        denied = [
            (shop.Delete, kv_pb2.DeleteRequest(key=b"k"), "delete in keyspace default"),
            (shop.Scan, kv_pb2.ScanRequest(), "scan in keyspace default"),
            (shop.Get, kv_pb2.GetRequest(key=b"k", keyspace="other"), "read in keyspace other"),
            (reports.Put, put, "write in keyspace default"),
            (reports.Delete, kv_pb2.DeleteRequest(key=b"k"), "delete in keyspace default"),
            (stranger.Put, put, "write in keyspace default"),
            (stranger.Get, get, "read in keyspace default"),
            (stranger.Scan, kv_pb2.ScanRequest(), "scan in keyspace default"),
            (stranger.Delete, kv_pb2.DeleteRequest(key=b"k"), "delete in keyspace default"),
        ]
        for method, request, words in denied:
            self.assert_status(DENIED, words, method, request, timeout=CALL_SECONDS)
        # Where a keyspace is not there, only who may read it hears so.
        self.assert_status(grpc.StatusCode.INVALID_ARGUMENT, "does not exist", reports.Get,
                           kv_pb2.GetRequest(key=b"k", keyspace="other"),
                           timeout=CALL_SECONDS)
        for kv in (shop, reports, stranger):
            kv.Topology(kv_pb2.TopologyRequest(), timeout=CALL_SECONDS)
        self.assertEqual(self.nodes[0].values(b"k"), [b"v"])

    def test_permissions_of_sessions(self):
        batch = kv_pb2.SessionBatch(requests=[
            kv_pb2.SessionRequest(id=1, put=kv_pb2.PutRequest(key=b"s", value=b"v")),
            kv_pb2.SessionRequest(id=2, delete=kv_pb2.DeleteRequest(key=b"s")),
            kv_pb2.SessionRequest(id=3, get=kv_pb2.GetRequest(key=b"s", keyspace="other")),
            kv_pb2.SessionRequest(id=4, scan=kv_pb2.ScanRequest()),
        ])
        codes = {}
        for replies in self.as_client("shop").Session(iter([batch]), timeout=CALL_SECONDS):
            codes.update({reply.id: reply.code for reply in replies.replies})
        denied = DENIED.value[0]
        self.assertEqual(codes, {1: 0, 2: denied, 3: denied, 4: denied})
        self.assertEqual(self.nodes[0].values(b"s"), [b"v"])

    def test_a_node_speaks_for_itself_only(self):
        """A certificate of node 2, on the peers' port of node 1."""
        speaker, other = self.nodes[1], self.nodes[2]
        topology = self.nodes[0].topology()
        channel = self.channel(self.nodes[0].peer_port, self.authority.credentials(f"node-{speaker.id}"))
        link = channel.stream_stream("/gyre.v1.Peer/Link", peer_pb2.Frame.SerializeToString, peer_pb2.LinkWelcome.FromString)
        tell = channel.unary_unary("/gyre.v1.Peer/Tell", peer_pb2.ControlMessage.SerializeToString,
                                   peer_pb2.ControlReceipt.FromString)

        def frame(node_id):
            return peer_pb2.Frame(cluster_id=topology.cluster_id, layout_epoch=1, format=1, **{"from": int(node_id, 16)})

        def message(node_id):
            return peer_pb2.ControlMessage(cluster_id=topology.cluster_id, format=1, from_address=speaker.peer_address,
                                           layout_wanted=peer_pb2.LayoutWanted(), **{"from": int(node_id, 16)})

        self.assertEqual(len(list(link(iter([frame(speaker.id)]), timeout=CALL_SECONDS))), 1)
        tell(message(speaker.id), timeout=CALL_SECONDS)
        words = f"the certificate is of node {speaker.id}, which says it is node {other.id}"
        self.assert_status(DENIED, words, lambda: list(link(iter([frame(other.id)]), timeout=CALL_SECONDS)))
        self.assert_status(DENIED, words, tell, message(other.id), timeout=CALL_SECONDS)

    def test_exit_codes(self):
        cli, user = self.cluster.cli, self.authority.user
        self.assert_exit(0, cli("put", "e", "v", user=user("client", "shop")))
        self.assert_exit(7, cli("delete", "e", user=user("client", "shop")), "no permission to delete")
        self.assert_json_error(7, cli("-o", "json", "get", "e", user=user("client", "stranger")), "PERMISSION_DENIED")
        self.assert_exit(7, cli("cluster", "status", user=user("client", "shop")), "may not call")
        self.assert_exit(0, cli("cluster", "status"))
        self.assert_exit(7, cli("get", "e", user=user("client", "gone", "--days", "-1")), "has expired")
        self.assert_exit(7, cli("get", "e", user=f"node-{self.nodes[0].id}"), "may not call")
        # Certificates of another authority: the nodes are not trusted; and where they are, they do not trust.
        flags = self.others.flags(self.others.user("admin", "root"))
        both = self.others.path("both.pem")
        with open(both, "wb") as file:
            file.write(self.others.read("ca.pem") + self.authority.read("ca.pem"))
        for command in (["get", "e"], ["put", "e", "v"], ["cluster", "status"]):
            endpoints = ["--endpoints", self.cluster.endpoints()]
            self.assert_exit(7, run([GYRE, *endpoints, *flags, *command]), "is not trusted")
            self.assert_exit(7, run([GYRE, *endpoints, "--ca", both, *flags[2:], *command]), "does not trust this client")
        self.assert_exit(5, self.cluster.cli_without_tls("get", "e"), "the client needs certificates")
        self.assert_exit(2, run([GYRE, "--ca", both, "get", "e"]), "all three")
        self.assert_exit(7, run([GYRE, "--ca", both, "--cert", "/absent", "--key", "/absent", "get", "e"]), "/absent cannot be read")
        environment = {"GYRE_CA": flags[1], "GYRE_CERT": flags[3], "GYRE_KEY": flags[5]}
        self.assert_exit(7, run([GYRE, "--endpoints", self.cluster.endpoints(), "get", "e"], environment=environment))


class Strangers(SecureTest):
    NODES = 1

    def setUp(self):
        super().setUp()
        elsewhere = self.enterContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        self.stranger = Node(os.path.join(elsewhere, "node"), 2, free_ports(3))
        self.addCleanup(self.stranger.close)
        self.seeds = [self.nodes[0].peer_address]
        self.stranger.write_config(1, self.seeds, {})
        self.stranger.id = self.cluster.identity_of(self.stranger)

    def write(self, authority, node_id):
        security = {"ca": authority.path("ca.pem"), "certificate": authority.path(f"node-{node_id}.pem"),
                    "key": authority.path(f"node-{node_id}-key.pem")}
        self.stranger.write_config(1, self.seeds, {"security": security})

    def refused(self, words):
        result = run([GYRED, "--config", self.stranger.config])
        self.assert_exit(1, result, words)

    def test_the_certificate_of_another_node_does_not_start(self):
        self.write(self.authority, self.nodes[0].id)
        self.refused(f"is of node {self.nodes[0].id}, and this is node {self.stranger.id}")
        self.write(self.authority, self.stranger.id)
        self.refused("cannot be read")
        self.authority.make("node", self.stranger.id, "127.0.0.1", "--days", "-1")
        self.refused("has expired")
        self.authority.make("node", self.stranger.id, "127.0.0.1")
        shutil.copy(self.cluster.key_of(self.nodes[0]), self.authority.path(f"node-{self.stranger.id}-key.pem"))
        self.refused("does not belong to the certificate")

    def test_a_node_of_another_authority_is_not_heard(self):
        self.others.make("node", self.stranger.id, "127.0.0.1")
        self.write(self.others, self.stranger.id)
        self.stranger.start()
        self.stranger.wait_ready()  # forms a cluster of its own, as it is told to
        self.assertEqual([node.id for node in self.nodes[0].topology().nodes], [self.nodes[0].id])

    def test_a_node_of_the_same_authority_is_heard(self):
        self.authority.make("node", self.stranger.id, "127.0.0.1")
        self.write(self.authority, self.stranger.id)
        self.stranger.write_config(2, self.seeds, {"security": {
            "ca": self.authority.path("ca.pem"), "certificate": self.authority.path(f"node-{self.stranger.id}.pem"),
            "key": self.authority.path(f"node-{self.stranger.id}-key.pem")}})
        self.stranger.start()
        wait_until("it is heard of",
                   lambda: {node.id for node in self.nodes[0].topology().nodes} == {self.nodes[0].id, self.stranger.id})


if __name__ == "__main__":
    unittest.main()
