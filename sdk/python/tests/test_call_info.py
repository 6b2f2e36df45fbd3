"""Which pod and attempt log records and spans of plugins name."""

import contextvars
import io
import logging
import threading
import types
import unittest
import unittest.mock

from outboard_plugin import CallFilter, CallInfo, call_info, current_call, server

UID = "0af76519-16cd-43dd-8448-eb211c80319c"
POD = types.SimpleNamespace(namespace="shop", name="web-0", uid=UID)


class CallInfoTest(unittest.TestCase):
    # The same examples as proto/trace_context/trace_context_test.cc.
    def test_the_trace_context_follows_the_contract(self):
        self.assertEqual(call_info.trace_id(UID), "0af7651916cd43dd8448eb211c80319c")
        self.assertEqual(call_info.trace_id(UID.upper()), call_info.trace_id(UID))
        for uid in ("", "abc", "00000000-0000-0000-0000-000000000000", UID + "0", UID[:-1], UID[:-1] + "g", UID.replace("-", "")):
            self.assertEqual(call_info.trace_id(uid), "", uid)
            self.assertEqual(CallInfo("shop", "web-0", uid, 1).traceparent, "", uid)
        expected = "00-0af7651916cd43dd8448eb211c80319c-fedcba9876543210-01"
        self.assertEqual(CallInfo("shop", "web-0", UID, 0xFEDCBA9876543210).traceparent, expected)
        self.assertEqual(CallInfo("shop", "web-0", UID).traceparent, "")

    def test_a_call_is_known_until_it_ends(self):
        with call_info.scope():
            self.assertIsNone(current_call())
            call_info.enter(POD, 17)
            self.assertEqual(current_call(), CallInfo("shop", "web-0", UID, 17))
            with call_info.scope():
                self.assertIsNone(current_call())
            self.assertEqual(current_call(), CallInfo("shop", "web-0", UID, 17))
        self.assertIsNone(current_call())
        with self.assertRaises(KeyError), call_info.scope():
            call_info.enter(POD, 17)
            raise KeyError
        self.assertIsNone(current_call())

    def test_a_thread_has_the_call_in_a_copy_of_the_context(self):
        seen = []

        def note():
            seen.append(current_call())

        with call_info.scope():
            call_info.enter(POD, 17)
            copy = contextvars.copy_context()
        for target in (note, lambda: copy.run(note)):
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        self.assertEqual(seen, [None, CallInfo("shop", "web-0", UID, 17)])


class CallFilterTest(unittest.TestCase):
    def setUp(self):
        self.out = io.StringIO()
        self.handler = logging.StreamHandler(self.out)
        self.handler.addFilter(CallFilter())
        self.logger = logging.Logger("a.library")
        self.logger.addHandler(self.handler)

    def printed(self, line_format):
        self.out.truncate(0)
        self.out.seek(0)
        self.handler.setFormatter(logging.Formatter(line_format))
        self.logger.warning("%s", "text")
        return self.out.getvalue()

    def test_records_name_the_call(self):
        fields = "%(pod)s|%(pod_uid)s|%(attempt)s|%(traceparent)s"
        with call_info.scope():
            self.assertEqual(self.printed("%(message)s%(call)s"), "text\n")
            self.assertEqual(self.printed(fields), "|||\n")
            call_info.enter(POD, 17)
            self.assertEqual(self.printed("%(message)s%(call)s"), f"text [pod shop/web-0, uid {UID}, attempt 17]\n")
            traceparent = "00-0af7651916cd43dd8448eb211c80319c-0000000000000011-01"
            self.assertEqual(self.printed(fields), f"shop/web-0|{UID}|17|{traceparent}\n")
            call_info.enter(POD)
            self.assertEqual(self.printed("%(message)s%(call)s"), f"text [pod shop/web-0, uid {UID}]\n")
            self.assertEqual(self.printed(fields), f"shop/web-0|{UID}||\n")


class MetricsTest(unittest.TestCase):
    def test_they_are_served_on_loopback_only(self):
        client = types.SimpleNamespace(start_http_server=unittest.mock.Mock())
        with unittest.mock.patch.dict("sys.modules", prometheus_client=client):
            server.start_metrics("127.0.0.1:9101")
            client.start_http_server.assert_called_once_with(9101, addr="127.0.0.1")
            server.start_metrics("[::1]:9102")
            client.start_http_server.assert_called_with(9102, addr="::1")
            client.start_http_server.reset_mock()
            for address in ("0.0.0.0:9101", "9101", ":9101", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"):
                with self.assertRaisesRegex(ValueError, "must be 127.0.0.1:PORT"):
                    server.start_metrics(address)
            client.start_http_server.assert_not_called()

    def test_they_require_a_package(self):
        with unittest.mock.patch.dict("sys.modules", prometheus_client=None), self.assertRaisesRegex(ValueError, "prometheus_client"):
            server.start_metrics("127.0.0.1:9101")


if __name__ == "__main__":
    unittest.main()
