"""A network that can be cut: each node in a network namespace of its own, joined by one bridge.

All of it lies in namespaces that the test made, so that it is gone with the test, however that ends.
"""

import os
import shutil
import subprocess
import sys

from cluster import skip

_INSIDE = "TEST_INSIDE_NAMESPACE"  # how the test knows that it was started again, inside


def enter():
    """Starts this test again in namespaces of its own, or skips it where that cannot be. Call first, before any thread."""
    if _INSIDE in os.environ:
        _do("ip", "link", "set", "lo", "up")
        return
    for tool in ("unshare", "nsenter", "ip", "nft"):
        if not shutil.which(tool):
            skip(f"there is no `{tool}`")
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "--mount", "true"], check=False).returncode != 0:
        skip("network namespaces cannot be made here")
    os.environ[_INSIDE] = "1"
    # The parent waits: its death must be the death of what is inside, too.
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv])


def _do(*words, stdin=None):
    subprocess.run(words, check=True, input=stdin, text=True)


class Network:
    """Hosts 10.77.0.1, 10.77.0.2, …; the test itself reaches all of them, whatever is cut."""

    def __init__(self, hosts):
        _do("mount", "-t", "tmpfs", "tmpfs", "/run/netns") if os.path.isdir("/run/netns") else self._make_directory()
        _do("ip", "link", "add", "bridge", "type", "bridge")
        _do("ip", "address", "add", "10.77.0.254/24", "dev", "bridge")
        _do("ip", "link", "set", "bridge", "up")
        for number in range(1, hosts + 1):
            self._add(number)
        self.heal()

    @staticmethod
    def _make_directory():
        _do("mount", "-t", "tmpfs", "tmpfs", "/run")
        os.makedirs("/run/netns")

    def _add(self, number):
        name = f"host{number}"
        _do("ip", "netns", "add", name)
        _do("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        _do("ip", "link", "set", name, "master", "bridge", "up")
        inside = ["nsenter", f"--net=/run/netns/{name}", "ip"]
        _do(*inside, "link", "set", "lo", "up")
        _do(*inside, "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        _do(*inside, "link", "set", "eth0", "up")

    @staticmethod
    def address(number):
        return f"10.77.0.{number}"

    @staticmethod
    def on(number):
        """What a program is started through to run on that host."""
        return ["nsenter", f"--net=/run/netns/host{number}"]

    def cut(self, one, other, one_way=False):
        """No packet passes from the hosts `one` to `other`, nor back unless `one_way`."""
        rules = [(a, b) for a in one for b in other]
        if not one_way:
            rules += [(b, a) for a, b in rules]
        lines = "".join(f"ip saddr {self.address(a)} ip daddr {self.address(b)} drop\n" for a, b in rules)
        _do("nft", "-f", "-", stdin="table bridge cuts { chain cut { type filter hook forward priority 0;\n" + lines + "}\n}\n")

    @staticmethod
    def heal():
        """All packets pass again."""
        _do("nft", "-f", "-", stdin="table bridge cuts\ndelete table bridge cuts\n")
