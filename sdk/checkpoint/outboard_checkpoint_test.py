"""Unit tests of outboard_checkpoint and its shell form, with a fake API server."""

import http.server
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
from unittest import mock

import outboard_checkpoint

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_PATCH(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(body)})
        status, text = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        self.server = http.server.HTTPServer(("127.0.0.1", 0), _Handler)
        self.server.requests, self.server.answer = [], (200, "{}")
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.account = directory.name
        self.write("token", "secret-1\n")
        self.write("namespace", "team-a")
        self.write("ca.crt", "")

    def write(self, name, text):
        with open(os.path.join(self.account, name), "w", encoding="utf-8") as file:
            file.write(text)

    def reporter(self, **options):
        return outboard_checkpoint.Reporter(server=self.url, pod="train-0", account=self.account, **options)

    def annotations(self, request=-1):
        body = self.server.requests[request]["body"]
        self.assertEqual(list(body), ["metadata"])
        self.assertEqual(list(body["metadata"]), ["annotations"])
        return body["metadata"]["annotations"]

    def test_patches_its_own_pod(self):
        self.assertTrue(self.reporter().written(when=1767614400.9))
        [request] = self.server.requests
        self.assertEqual(request["path"], "/api/v1/namespaces/team-a/pods/train-0")
        self.assertEqual(request["headers"]["Authorization"], "Bearer secret-1")
        self.assertEqual(request["headers"]["Content-Type"], "application/merge-patch+json")
        self.assertEqual(self.annotations(), {"outboard/checkpointing": "true",
                                              "outboard/last-checkpoint-time": "2026-01-05T12:00:00Z"})

    def test_the_end_is_written_too(self):
        self.reporter().written(when=1767614400, estimated_end=1767618000)
        self.assertEqual(self.annotations()["outboard/estimated-end"], "2026-01-05T13:00:00Z")

    def test_reports_not_too_often(self):
        reporter = self.reporter(least_interval=30)
        with mock.patch("time.monotonic", side_effect=[100, 129, 130]):
            self.assertEqual([reporter.written(), reporter.written(), reporter.written()], [True, False, True])
        self.assertEqual(len(self.server.requests), 2)

    def test_a_failed_report_is_tried_again_at_once(self):
        reporter = self.reporter()
        self.server.answer = (500, "")
        with self.assertRaises(urllib.error.HTTPError) as raised:
            reporter.written()
        raised.exception.close()
        self.server.answer = (200, "{}")
        self.assertTrue(reporter.written())

    def test_the_token_is_read_again(self):
        reporter = self.reporter(least_interval=0)
        reporter.written()
        self.write("token", "secret-2")
        reporter.written()
        self.assertEqual(self.server.requests[-1]["headers"]["Authorization"], "Bearer secret-2")

    def test_names_cannot_leave_the_path(self):
        outboard_checkpoint.Reporter(server=self.url, namespace="a/b", pod="../c?d", account=self.account).written()
        self.assertEqual(self.server.requests[-1]["path"], "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fd")

    def test_training_goes_on_if_the_server_refuses(self):
        self.server.answer = (403, '{"message": "pods \\"train-0\\" is forbidden"}')
        with mock.patch.object(outboard_checkpoint, "_default", self.reporter()):
            with self.assertLogs("outboard_checkpoint", logging.WARNING) as logs:
                self.assertFalse(outboard_checkpoint.written())
        self.assertIn("is forbidden", logs.output[0])
        self.assertNotIn("secret-1", logs.output[0])

    def test_training_goes_on_after_a_time_that_cannot_be(self):
        with mock.patch.object(outboard_checkpoint, "_default", self.reporter()):
            with self.assertLogs("outboard_checkpoint", logging.WARNING):
                self.assertFalse(outboard_checkpoint.written(when=1e300))
        self.assertEqual(self.server.requests, [])

    def test_training_goes_on_outside_of_a_pod(self):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("KUBERNETES_")}
        with mock.patch.dict(os.environ, environment, clear=True):
            with self.assertLogs("outboard_checkpoint", logging.WARNING) as logs:
                self.assertFalse(outboard_checkpoint.written())
        self.assertIn("not in a pod", logs.output[0])

    def run_shell(self, *arguments):
        environment = {**os.environ, "OUTBOARD_ACCOUNT": self.account, "OUTBOARD_API_SERVER": self.url,
                       "KUBERNETES_SERVICE_HOST": "unused.invalid", "POD_NAME": "train-0", "POD_NAMESPACE": ""}
        return subprocess.run([os.path.join(_HERE, "outboard-checkpoint.sh"), *arguments], env=environment,
                              capture_output=True, text=True, check=False)

    def test_the_shell_form_sends_the_same(self):
        self.reporter().written(when=1767614400)
        done = self.run_shell("2026-01-05T12:00:00Z")
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = self.server.requests
        self.assertEqual((first["path"], first["body"]), (second["path"], second["body"]))
        for header in ("Authorization", "Content-Type"):
            self.assertEqual(first["headers"][header], second["headers"][header])

    def test_the_shell_form_knows_the_time(self):
        self.assertEqual(self.run_shell().returncode, 0)
        self.assertRegex(self.annotations()["outboard/last-checkpoint-time"],
                         r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")

    def test_the_shell_form_fails_with_the_server_and_with_other_texts(self):
        self.server.answer = (403, "forbidden")
        self.assertEqual(self.run_shell().returncode, 1)
        self.assertEqual(self.run_shell('now"').returncode, 2)
        self.assertEqual(len(self.server.requests), 1)

    def test_the_module_is_a_program(self):
        done = subprocess.run([sys.executable, "-m", "outboard_checkpoint"], cwd=_HERE, capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"]}, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not in a pod", done.stderr)


if __name__ == "__main__":
    unittest.main()
