"""Readiness: does a server answer in its own protocol?

Belongs here: one small exchange per protocol, raising anything while there is no right answer.
Does not belong here: drivers, except where a driver is the cheapest exchange. (Importing the graph
and vector drivers takes seconds, which every command would pay.) No proxy of the environment is used.
"""

import importlib
import json
import socket
import urllib.request
from base64 import b64encode

TIMEOUT_SECONDS = 2.0


class NotReady(Exception):
    """The server answered, but not rightly (yet)."""


def _exchange(port: int, message: bytes, size: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS) as connection:
        connection.sendall(message)
        answer = b""
        while len(answer) < size and (part := connection.recv(size - len(answer))):
            answer += part
    return answer


def _http(url: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, body, headers or {}), timeout=TIMEOUT_SECONDS) as answer:
        content: bytes = answer.read()
    return content


def bolt(port: int) -> None:
    """A Bolt handshake that agrees on some version 5."""
    answer = _exchange(port, b"\x60\x60\xb0\x17" + b"\x00\x04\x04\x05" + bytes(12), 4)
    if len(answer) != 4 or answer[3] != 5:
        raise NotReady("no Bolt version in common")


def arcadedb(port: int, user: str, password: str, database: str) -> None:
    """A query over HTTP: the database exists and the password is right."""
    credentials = b64encode(f"{user}:{password}".encode()).decode()
    body = json.dumps({"language": "sql", "command": "SELECT 1 AS one"}).encode()
    headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
    answer = json.loads(_http(f"http://127.0.0.1:{port}/api/v1/query/{database}", body, headers))
    if answer["result"][0]["one"] != 1:
        raise NotReady("wrong answer to a query")


def redis(port: int, password: str) -> None:
    """AUTH and PING."""
    want = b"+OK\r\n+PONG\r\n"
    if _exchange(port, f"AUTH {password}\r\nPING\r\n".encode(), len(want)) != want:
        raise NotReady("no PONG (still loading, or another password)")


def s3(port: int) -> None:
    """A list of buckets."""
    if b"ListAllMyBucketsResult" not in _http(f"http://127.0.0.1:{port}/"):
        raise NotReady("no list of buckets")


def milvus(port: int) -> None:
    """GetVersion over gRPC."""
    socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS).close()
    grpc = importlib.import_module("grpc")
    options = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        call = channel.unary_unary("/milvus.proto.milvus.MilvusService/GetVersion")
        if not call(b"", timeout=TIMEOUT_SECONDS):
            raise NotReady("no version")
