"""Errors of calls."""

from __future__ import annotations

from typing import Optional

import grpc

from outboard_plugin.proto import pb

GRPC_CODES = {
    "STALE": grpc.StatusCode.FAILED_PRECONDITION,
    "ATTEMPT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "SESSION_UNKNOWN": grpc.StatusCode.FAILED_PRECONDITION,
    "WRONG_INSTANCE": grpc.StatusCode.FAILED_PRECONDITION,
    "NOT_CONFIGURED": grpc.StatusCode.FAILED_PRECONDITION,
    "INVALID": grpc.StatusCode.INVALID_ARGUMENT,
    "OBJECT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "DRAINING": grpc.StatusCode.UNAVAILABLE,
    "INTERNAL": grpc.StatusCode.INTERNAL,
}


MAX_TEXT_BYTES = 1024


def cut(text: str) -> str:
    """Truncates a message to the contract's limit; it may quote a request of any size."""
    return text.encode(errors="replace")[:MAX_TEXT_BYTES].decode(errors="ignore")


class CallFailed(Exception):
    """`reason` is the name of a CallError.Reason without its prefix; call.proto defines the caller's reaction."""

    def __init__(
        self, reason: str, message: str, have_version: int = 0, code: Optional[grpc.StatusCode] = None
    ) -> None:
        super().__init__(cut(message))
        self.reason = reason
        self.error = pb.CallError(
            reason=pb.CallError.Reason.Value("REASON_" + reason), message=cut(message), have_version=have_version
        )
        self.code = code if code is not None else GRPC_CODES[reason]
