"""An OpenAI-compatible HTTP server on 127.0.0.1 that answers by script; the real ``openai`` client talks to it."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_TOKENS, REPLY_TOKENS = 100, 50


@dataclass(frozen=True)
class Answer:
    """One reply: a chat completion of ``content``, unless ``status`` or ``raw`` says otherwise."""

    content: str = "{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    finish: str = "stop"
    delay: float = 0.0
    error: dict[str, Any] = field(default_factory=lambda: {"message": "scripted failure"})
    raw: bytes | None = None
    usage: tuple[int, int] | None = (PROMPT_TOKENS, REPLY_TOKENS)

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        if self.status != 200:
            return json.dumps({"error": self.error}).encode()
        message = {"role": "assistant", "content": self.content}
        completion: dict[str, Any] = {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 0,
            "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
        }
        if self.usage:
            counts = {"prompt_tokens": self.usage[0], "completion_tokens": self.usage[1]}
            completion["usage"] = counts | {"total_tokens": sum(self.usage)}
        return json.dumps(completion).encode()


@dataclass
class LlmServer:
    """``requests`` are the bodies received, ``headers`` theirs. The last answer of the script repeats."""

    url: str
    script: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def serving(answers: Sequence[Answer]) -> Iterator[LlmServer]:
    """A server that gives these answers in order, on a free port."""
    state = LlmServer("", list(answers))
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            received = json.loads(self.rfile.read(length))
            with lock:
                state.requests.append(received)
                state.headers.append({k.lower(): v for k, v in self.headers.items()})
                answer = state.script[min(len(state.requests), len(state.script)) - 1]
            if self.path not in ("/v1/chat/completions", "/v1/embeddings"):
                answer = Answer(status=404)
            time.sleep(answer.delay)
            body = answer.body()
            try:
                self.send_response(answer.status)
                for name, value in ({"Content-Type": "application/json"} | answer.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up waiting

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
