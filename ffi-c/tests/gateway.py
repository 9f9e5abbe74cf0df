#!/usr/bin/env python3
"""Drives the example gateway with real connections: gateway.py PROGRAM [ARGUMENT…]"""

import signal
import socket
import subprocess
import sys
import threading


def ask(port, host="127.0.0.1", pieces=(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",)):
    with socket.create_connection((host, port), timeout=30) as peer:
        for piece in pieces:
            peer.sendall(piece)
        data = b""
        while chunk := peer.recv(4096):
            data += chunk
    head, _, body = data.decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body


server = subprocess.Popen([*sys.argv[1:], "0", "10/h"], stdout=subprocess.PIPE, text=True)
try:
    port = int(server.stdout.readline())
    status, headers, body = ask(port)
    assert (status, body) == (200, "hello\n"), (status, body)
    assert headers["X-RateLimit-Remaining"] == "9" and "Retry-After" not in headers, headers
    assert ask(port, pieces=(b"GET / HT", b"TP/1.1\r\n", b"\r\n"))[0] == 200
    answers, lock = [], threading.Lock()

    def many():
        for _ in range(5):
            answer = ask(port)
            with lock:
                answers.append(answer)

    threads = [threading.Thread(target=many) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    allowed = [answer for answer in answers if answer[0] == 200]
    denied = [answer for answer in answers if answer[0] == 429]
    assert len(allowed) == 8 and len(denied) == 32, (len(allowed), len(denied))
    for _, headers, body in denied:
        assert (1 <= int(headers["Retry-After"]) <= 360
                and headers["X-RateLimit-Remaining"] == "0"), headers
        assert headers["RateLimit-Policy"] == '"10/h";q=10;w=3600' and body == "too many requests\n"
    # Another peer has its own. A peer that only connects, or hangs up half-way, disturbs none.
    socket.create_connection(("127.0.0.1", port)).close()
    try:
        assert ask(port, "::1")[0] == 200
    except OSError:
        print("gateway: no IPv6 here; another peer was left out")
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0
finally:
    server.kill()
