"""Certificates are replaced under load, first the one file and then the other, and no request fails."""

import os
import shutil
import socket
import ssl
import threading
import unittest

from cluster import CALL_SECONDS, kv_pb2, kv_pb2_grpc, open_channel, wait_until
from secured import Authority, SecuredCluster

FAILURES = "gyre_certificate_reload_failures_total"


class Load(threading.Thread):
    """Writes and reads back; each call over a new connection, so that each takes part in a handshake, or all over one."""

    def __init__(self, nodes, credentials, name, each_its_own):
        super().__init__()
        self.nodes, self.credentials, self.each_its_own = nodes, credentials, each_its_own
        self.key = name.encode()
        self.calls, self.failures = 0, []
        self.over = threading.Event()
        self.channels = []

    def run(self):
        self.channels = [open_channel(node.client_port, self.credentials) for node in self.nodes]
        while not self.over.is_set():
            if self.each_its_own:
                self.close()
                self.channels = [open_channel(node.client_port, self.credentials) for node in self.nodes]
            try:
                for channel in self.channels:
                    value = b"%d" % self.calls
                    kv = kv_pb2_grpc.KvStub(channel)
                    context = kv.Get(kv_pb2.GetRequest(key=self.key), timeout=CALL_SECONDS).context
                    kv.Put(kv_pb2.PutRequest(key=self.key, value=value, context=context), timeout=CALL_SECONDS)
                    read = kv.Get(kv_pb2.GetRequest(key=self.key), timeout=CALL_SECONDS).values
                    if [each.value for each in read] != [value]:
                        self.failures.append(f"wrote {value!r}, read {read}")
                    self.calls += 1
            except Exception as error:  # whatever it is, it is no success
                self.failures.append(repr(error))
        self.close()

    def close(self):
        for channel in self.channels:
            channel.close()


class Rotation(unittest.TestCase):
    def serial(self, port, authority, user):
        """The certificate that a new connection to the port is shown."""
        context = ssl.create_default_context(cafile=authority.path("ca.pem"))
        context.load_cert_chain(authority.path(user + ".pem"), authority.path(user + "-key.pem"))
        context.set_alpn_protocols(["h2"])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connection:
                return connection.getpeercert()["serialNumber"]

    @staticmethod
    def put_in_place(source, target):
        shutil.copy(source, target + ".new")
        os.rename(target + ".new", target)

    def test_no_request_fails(self):
        with SecuredCluster(3) as cluster:
            authority = cluster.authority
            shows = lambda node, port: self.serial(port, authority, cluster.admin)
            fresh = Authority()
            self.addCleanup(fresh.close)
            for name in ("ca.pem", "ca-key.pem"):
                shutil.copy(authority.path(name), fresh.path(name))
            credentials = authority.credentials(cluster.admin)
            load = [Load(cluster.nodes, credentials, f"load-{i}", i % 2 == 0) for i in range(4)]
            for thread in load:
                thread.start()
            try:
                for node in cluster.nodes:
                    ports = (node.client_port, node.peer_port)
                    before = [shows(node, port) for port in ports]
                    fresh.make("node", node.id, "127.0.0.1")
                    self.put_in_place(fresh.path(f"node-{node.id}-key.pem"), cluster.key_of(node))
                    wait_until("the half is refused", lambda node=node: node.metric(FAILURES) == 1)
                    self.assertEqual([shows(node, port) for port in ports], before)
                    self.put_in_place(fresh.path(f"node-{node.id}.pem"), cluster.certificate_of(node))
                    for port, old in zip(ports, before):
                        wait_until("the whole is used", lambda node=node, port=port, old=old: shows(node, port) != old)
                    self.assertEqual(node.metric(FAILURES), 1)
                    self.assertIn("does not belong to the certificate", node.log())
                calls = sum(thread.calls for thread in load)
                wait_until("work went on", lambda: sum(thread.calls for thread in load) > calls + 50)
            finally:
                for thread in load:
                    thread.over.set()
                for thread in load:
                    thread.join(60)
            self.assertEqual([failure for thread in load for failure in thread.failures], [])
            # What is expired, garbled or gone does not replace what is in use.
            node = cluster.nodes[0]
            serial = shows(node, node.client_port)
            refused = node.metric(FAILURES)
            fresh.make("node", node.id, "127.0.0.1", "--days", "-1")
            self.put_in_place(fresh.path(f"node-{node.id}-key.pem"), cluster.key_of(node))
            self.put_in_place(fresh.path(f"node-{node.id}.pem"), cluster.certificate_of(node))
            wait_until("the expired one is refused", lambda: "certificate has expired" in node.log())
            os.remove(cluster.certificate_of(node))
            wait_until("none is refused", lambda: "cannot be read" in node.log())
            with open(cluster.certificate_of(node), "w", encoding="utf-8") as file:
                file.write("nonsense")
            wait_until("nonsense is refused", lambda: "empty or garbled" in node.log())
            self.assertGreaterEqual(node.metric(FAILURES), refused + 3)
            self.assertEqual(shows(node, node.client_port), serial)
            # The links between nodes are made with what is in use: a node that starts anew finds the others.
            cluster.nodes[1].stop()
            cluster.nodes[1].start()
            cluster.wait_connected()


if __name__ == "__main__":
    unittest.main()
