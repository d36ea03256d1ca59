"""The program behind `ProxyPlugin`: a proxy of KEP-2718 in asyncio, with nothing of kubeauthn in it.

It carries bytes between two TLS connections and looks at none of them. Started by its path, in an isolated interpreter.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import socket
import ssl
import sys
import tempfile
import threading
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CHUNK_BYTES = 65536


def main() -> None:
    orders = json.loads(Path(sys.argv[1]).read_text())
    info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
    state = Path(orders["state"])
    with open(state / "runs", "a") as runs:
        runs.write(f"{os.getpid()}\n")
    (state / f"info.{os.getpid()}").write_text(json.dumps(info))
    if orders["asks"]:
        sys.stderr.write("PIN: ")
        sys.stderr.flush()
        (state / "typed").write_text(sys.stdin.readline())
    if orders["daemon"]:
        leave_daemon(orders, info)
    else:
        serve(orders, info)


def leave_daemon(orders: dict[str, Any], info: dict[str, Any]) -> None:
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        document = b"".join(iter(lambda: os.read(ready, CHUNK_BYTES), b""))
        sys.stdout.buffer.write(document)
        sys.stdout.flush()
        os._exit(0)
    os.setsid()
    os.close(ready)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    serve(orders, info, tell)


def serve(orders: dict[str, Any], info: dict[str, Any], tell: int = 1) -> None:
    state = Path(orders["state"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(state / "server.pem")
    context.load_verify_locations(state / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    cluster = info["spec"]["cluster"]
    upstream = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    if (state / "upstream.pem").exists():
        upstream.load_cert_chain(state / "upstream.pem")
    listener, url, remove = listen(orders)
    lock = info["spec"].get("lockFilePath")
    if lock:
        threading.Thread(target=end_with_the_client, args=(lock, remove), daemon=True).start()
    status: dict[str, Any] = {
        "clientCertificateData": (state / "client.crt").read_text(),
        "clientKeyData": (state / "client.key").read_text(),
        "proxyConfig": {
            "url": url,
            "certificate-authority-data": b64encode((state / "ca.pem").read_bytes()).decode(),
        },
    }
    status.update(orders["status"])
    document = {"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}
    os.write(tell, json.dumps(document).encode())
    if tell != 1:
        os.close(tell)
    (state / "serving").write_text(f"{os.getpid()} {url}")
    asyncio.run(accept(listener, context, upstream, cluster["server"]))


async def accept(listener: socket.socket, context: ssl.SSLContext, upstream: ssl.SSLContext, server: str) -> None:
    parts = urlsplit(server)

    async def carry(near: asyncio.StreamReader, near_writer: asyncio.StreamWriter) -> None:
        try:
            far, far_writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=upstream)
        except OSError:
            near_writer.close()
            return
        await asyncio.gather(pump(near, far_writer), pump(far, near_writer))

    if listener.family == socket.AF_UNIX:
        running = await asyncio.start_unix_server(carry, sock=listener, ssl=context)
    else:
        running = await asyncio.start_server(carry, sock=listener, ssl=context)
    await running.serve_forever()


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(CHUNK_BYTES):
            target.write(data)
            await target.drain()
    target.close()


def listen(orders: dict[str, Any]) -> tuple[socket.socket, str, Any]:
    if orders["form"] == "https":
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        return listener, f"https://127.0.0.1:{listener.getsockname()[1]}", lambda: None
    directory = tempfile.mkdtemp(prefix="p-")
    with open(os.path.join(orders["state"], "directories"), "a") as made:
        made.write(f"{directory}\n")
    if orders["long"]:
        directory = os.path.join(directory, "d" * 120)
        os.mkdir(directory, 0o700)
    os.chmod(directory, orders["mode"])
    path = os.path.join(directory, "s")
    listener = socket.socket(socket.AF_UNIX)
    old = os.getcwd()
    os.chdir(directory)
    os.umask(0o077)
    listener.bind("s")
    os.chdir(old)
    listener.listen(128)

    def remove() -> None:
        with contextlib.suppress(OSError):
            os.unlink(path)
            os.rmdir(directory)

    return listener, f"unix://{path}", remove


def end_with_the_client(path: str, remove: Any) -> None:
    with contextlib.suppress(FileNotFoundError), open(path, "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    remove()
    os._exit(0)


if __name__ == "__main__":
    main()
