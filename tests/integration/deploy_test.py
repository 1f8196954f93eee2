"""deploy/: the unit, the packages, the containers, and what watches a cluster, as far as a machine can check them here."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from cases import ClusterTest
from cluster import ENVIRONMENT, GYRE, GYRED, free_ports, run, wait_until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(ROOT, "deploy")
BUILD = os.path.dirname(os.path.abspath(GYRED))
EXPOSURE_MAX = 2.5  # of 10; what systemd calls OK
# Words of PromQL and Grafana that look like metrics.
METRIC = re.compile(r"\bgyre_[a-z_]+\b")


def need(tool):
    if shutil.which(tool) is None:
        raise unittest.SkipTest(f"skipped: there is no {tool} here")


def text_of(*names):
    with open(os.path.join(DEPLOY, *names), encoding="utf-8") as file:
        return file.read()


def output(*arguments, seconds=120, environment=ENVIRONMENT):
    result = run(list(arguments), seconds=seconds, environment=environment)
    assert result.code == 0, result
    return result.stdout.decode()


class Units(unittest.TestCase):
    def test_units_are_hardened(self):
        need("systemd-analyze")
        if "--offline" not in output("systemd-analyze", "--help"):
            raise unittest.SkipTest("skipped: this systemd-analyze cannot judge a unit that is not installed")
        for unit in ("gyred.service", "gyred@.service"):
            said = output("systemd-analyze", "security", "--offline=true", os.path.join(DEPLOY, "systemd", unit))
            exposure = float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", said).group(1))
            self.assertLess(exposure, EXPOSURE_MAX, said)

    def test_both_units_say_the_same(self):
        one = text_of("systemd", "gyred.service").splitlines()[1:]
        template = text_of("systemd", "gyred@.service").splitlines()[1:]
        different = [(a, b) for a, b in zip(one, template) if a != b]
        self.assertEqual([a.split("=")[0] for a, _ in different],
                         ["Description", "ExecStart", "StateDirectory", "WorkingDirectory"])
        self.assertTrue(all("%i" in b for _, b in different))


class Notify(unittest.TestCase):
    def test_systemd_is_told(self):
        """READY when the node answers, STOPPING when it was told to end, as Type=notify wants it."""
        import socket
        with tempfile.TemporaryDirectory(prefix="gyre-test-") as directory:
            path = os.path.join(directory, "notify")
            client, peer, http = free_ports(3)
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
                listener.bind(path)
                listener.settimeout(30)
                process = subprocess.Popen(
                    ["setpriv", "--pdeathsig", "KILL", GYRED, f"--node.data_dir={directory}/data", f"--listen.client=127.0.0.1:{client}",
                     f"--listen.peer=127.0.0.1:{peer}", f"--listen.http=127.0.0.1:{http}"],
                    env={**ENVIRONMENT, "NOTIFY_SOCKET": path}, stderr=subprocess.DEVNULL)
                try:
                    self.assertIn(b"READY=1", listener.recv(4096))
                    result = run([GYRE, "--endpoints", f"127.0.0.1:{client}", "cluster", "status"])
                    self.assertEqual(result.code, 0, result)
                    process.terminate()
                    self.assertIn(b"STOPPING=1", listener.recv(4096))
                    self.assertEqual(process.wait(30), 0)
                finally:
                    process.kill()
                    process.wait()


class DebianPackages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need("dpkg-deb")
        need("dpkg-shlibdeps")
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gyre-test-"))
        output("cpack", "-G", "DEB", "--config", os.path.join(BUILD, "CPackConfig.cmake"), "-B", cls.directory, seconds=240)
        cls.packages = {name.split("_")[0]: os.path.join(cls.directory, name)
                        for name in os.listdir(cls.directory) if name.endswith(".deb")}

    def test_there_are_four(self):
        self.assertEqual(sorted(self.packages), ["gyre-cli", "gyre-server", "libgyre-dev", "libgyre0.1"])

    def test_lintian_finds_no_error(self):
        need("lintian")
        result = run(["lintian", "--fail-on", "error", "--allow-root", *self.packages.values()], seconds=240)
        self.assertEqual(result.code, 0, result.stdout.decode() + result.stderr)

    def test_what_is_unpacked_runs(self):
        root = os.path.join(self.directory, "unpacked")
        for package in self.packages.values():
            output("dpkg", "-x", package, root)
        programs = {**ENVIRONMENT, "LD_LIBRARY_PATH": os.path.join(root, "usr", "lib")}
        gyre = os.path.join(root, "usr", "bin", "gyre")
        self.assertEqual(output(gyre, "version", environment=programs), "gyre 0.1.0\n")
        self.assertIn("gyred 0.1.0", output(os.path.join(root, "usr", "bin", "gyred"), "--version", environment=programs))
        # The settings that the package brings are whole and right.
        shown = output(os.path.join(root, "usr", "bin", "gyred"), "--config", os.path.join(root, "usr/share/gyre/gyred.toml"),
                       "--print-config", environment=programs)
        self.assertIn('"/var/lib/gyre/node"', shown)
        for path in ("lib/systemd/system/gyred.service", "lib/sysusers.d/gyre.conf", "share/bash-completion/completions/gyre",
                     "share/zsh/vendor-completions/_gyre", "share/fish/vendor_completions.d/gyre.fish", "share/man/man1/gyre.1.gz",
                     "share/man/man8/gyred.8.gz", "include/gyre/client.h", "lib/libgyre.so.0.1", "lib/pkgconfig/gyre.pc",
                     "lib/cmake/gyre/gyreConfig.cmake", "share/gyre/rolling-restart"):
            self.assertTrue(os.path.exists(os.path.join(root, "usr", path)), path)

    def test_manual_pages_are_clean(self):
        need("man")
        root = os.path.join(self.directory, "pages")
        for package in self.packages.values():
            output("dpkg", "-x", package, root)
        for page, words in (("man1/gyre.1.gz", "can-restart"), ("man8/gyred.8.gz", "cluster.bootstrap_expect")):
            result = run(["man", "--warnings", "--local-file", os.path.join(root, "usr/share/man", page)],
                         environment={**ENVIRONMENT, "MANWIDTH": "120", "LC_ALL": "C.UTF-8", "MANROFFOPT": ""})
            self.assertEqual((result.code, result.stderr), (0, ""), page)
            self.assertIn(words, re.sub(".\b", "", result.stdout.decode()))


class Containers(unittest.TestCase):
    def settings_hold(self, environment):
        """The node takes these settings."""
        result = run([GYRED, "--print-config"], environment={**ENVIRONMENT, **environment})
        self.assertEqual(result.code, 0, result)
        return result.stdout.decode()

    def test_compose(self):
        import yaml
        compose = yaml.safe_load(text_of("docker", "compose.yaml"))
        self.assertEqual(sorted(compose["services"]), ["gyre-1", "gyre-2", "gyre-3"])
        for name, service in compose["services"].items():
            self.assertIn(f'"{name}:7401"', self.settings_hold(service["environment"]))
            self.assertTrue(os.path.exists(os.path.join(DEPLOY, "docker", service["build"]["context"], service["build"]["dockerfile"])))
            self.assertIn(name, compose["volumes"])
            self.assertTrue(all(port.startswith("127.0.0.1:") for port in service.get("ports", [])))

    def test_dockerfile(self):
        lines = text_of("docker", "Dockerfile").splitlines()
        self.assertEqual(sum(line.startswith("FROM ") for line in lines), 2, "it is built in one stage and runs in another")
        users = [line.split()[1] for line in lines if line.startswith("USER ")]
        self.assertEqual(len(users), 1)
        self.assertRegex(users[0], r"^[1-9][0-9]*:[1-9][0-9]*$")
        for source in re.findall(r"^COPY (?!--from)(.*) \S+$", text_of("docker", "Dockerfile"), re.MULTILINE):
            for path in source.split():
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)

    def test_kubernetes(self):
        import yaml
        if shutil.which("kubectl"):
            built = output("kubectl", "kustomize", os.path.join(DEPLOY, "kubernetes"))
        elif shutil.which("kustomize"):
            built = output("kustomize", "build", os.path.join(DEPLOY, "kubernetes"))
        else:
            raise unittest.SkipTest("skipped: there is neither kubectl nor kustomize here")
        parts = {(part["kind"], part["metadata"]["name"]): part["spec"] for part in yaml.safe_load_all(built)}
        nodes = parts["Service", "gyre-nodes"]
        self.assertEqual((nodes["clusterIP"], nodes["publishNotReadyAddresses"]), ("None", True))
        budget = parts["PodDisruptionBudget", "gyre"]
        self.assertEqual(budget["maxUnavailable"], 1)
        stateful = parts["StatefulSet", "gyre"]
        self.assertEqual(stateful["serviceName"], "gyre-nodes")
        self.assertEqual(stateful["podManagementPolicy"], "Parallel")
        labels = stateful["template"]["metadata"]["labels"]
        for selector in (budget["selector"], stateful["selector"]):
            self.assertEqual(selector["matchLabels"].items() - labels.items(), set())
        pod = stateful["template"]["spec"]
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        self.assertGreater(pod["securityContext"]["runAsUser"], 0)
        container = pod["containers"][0]
        self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/livez")
        self.assertEqual(container["readinessProbe"]["httpGet"]["path"], "/readyz")
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        settings = {}
        for variable in container["env"]:
            if "value" in variable and variable["name"].startswith("GYRE_"):
                settings[variable["name"]] = re.sub(r"\$\(POD_NAME\)", "gyre-0", variable["value"]).replace("$(POD_NAMESPACE)", "default")
        shown = self.settings_hold(settings)
        for name in ("client", "peer", "http"):
            self.assertIn(f"0.0.0.0:{ports[name]}", shown)
        self.assertEqual(settings["GYRE_CLUSTER_BOOTSTRAP_EXPECT"], str(stateful["replicas"]))


class Watched(ClusterTest):
    def scrape(self):
        status, text = self.nodes[0].http("/metrics")
        self.assertEqual(status, 200)
        return text

    def names(self):
        """The names under which a scrape can be asked."""
        return {line.split()[0].split("{")[0] for line in self.scrape().splitlines() if line and not line.startswith("#")}

    def test_metrics_are_clean(self):
        need("promtool")
        result = run(["promtool", "check", "metrics"], stdin=self.scrape().encode())
        self.assertEqual((result.code, result.stdout, result.stderr), (0, b"", ""))

    def test_alerts(self):
        need("promtool")
        output("promtool", "check", "rules", os.path.join(DEPLOY, "prometheus", "alerts.yaml"))
        output("promtool", "test", "rules", os.path.join(DEPLOY, "prometheus", "alerts_test.yaml"))

    def test_every_metric_that_is_named_exists(self):
        alerts = set(METRIC.findall(text_of("prometheus", "alerts.yaml")))
        dashboard = set(METRIC.findall(text_of("grafana", "gyre.json")))
        self.assertGreater(len(alerts), 10)
        self.assertGreater(len(dashboard), 20)
        self.assertEqual((alerts | dashboard) - self.names(), set())

    def test_the_dashboard_names_no_data_source(self):
        dashboard = json.loads(text_of("grafana", "gyre.json"))
        self.assertIn({"name": "datasource", "type": "datasource"},
                      [{key: variable[key] for key in ("name", "type")} for variable in dashboard["templating"]["list"]])
        for panel in dashboard["panels"]:
            for source in [panel["datasource"], *(target["datasource"] for target in panel["targets"])]:
                self.assertEqual(source["uid"], "${datasource}")


class RollingRestart(ClusterTest):
    def test_one_after_the_other_under_load(self):
        """Restarts all three while a client writes with a quorum: no call fails."""
        script = os.path.join(self.cluster.directory, "restart")
        # The nodes belong to this process, which restarts them when the script asks it by a file.
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\necho "$NODE_ADDRESS" >"{script}.new" && mv "{script}.new" "{script}.ask"\n'
                       f'while [ -e "{script}.ask" ]; do sleep 0.1; done\n')
        os.chmod(script, 0o755)
        environment = {**ENVIRONMENT, "GYRE_ENDPOINTS": self.cluster.endpoints()}
        bench = subprocess.Popen([GYRE, "-o", "json", "bench", "--op", "put", "--seconds", "15", "--rate", "200"], env=environment,
                                 stdout=subprocess.PIPE)
        process = subprocess.Popen([os.path.join(DEPLOY, "rolling-restart"), "--gyre", GYRE, "--timeout", "60", script],
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        restarted = []

        def step():
            with contextlib.suppress(FileNotFoundError), open(script + ".ask", encoding="utf-8") as file:
                address = file.read().strip()
                node = next(node for node in self.nodes if node.address == address)
                node.stop()
                node.start()
                node.wait_ready()
                restarted.append(address)
                os.remove(script + ".ask")
            return process.poll() is not None

        try:
            wait_until("all are restarted", step, 120)
            said = process.stdout.read().decode()
            self.assertEqual(process.returncode, 0, said)
            self.assertEqual(sorted(restarted), sorted(node.address for node in self.nodes))
            self.assertIn("all nodes were restarted", said)
            report = json.loads(bench.communicate(timeout=60)[0])
            self.assertEqual(report["errors"], {})
        finally:
            for one in (process, bench):
                one.kill()
                one.wait()

    def test_it_waits_for_a_node_that_is_away(self):
        self.nodes[0].kill()
        environment = {**ENVIRONMENT, "GYRE_ENDPOINTS": self.cluster.endpoints()}
        status = [GYRE, "-o", "json", "cluster", "status"]
        wait_until("it is seen to be away", lambda: run(status, environment=environment).stdout.count(b'"state":"up"') == 2)
        result = run([os.path.join(DEPLOY, "rolling-restart"), "--gyre", GYRE, "--timeout", "2", "true"], environment=environment)
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.stderr, "gyre: waiting: keyspace|is not whole again")


if __name__ == "__main__":
    unittest.main()
