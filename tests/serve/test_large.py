"""Large answers: they block nobody, come in pieces, and a client that does not take them loses its connection."""

import asyncio
import http.client
import json
import socket
import threading
import time

import pytest
import uvicorn

from plainrisk.serve import Settings, make_app
from plainrisk.serve.replies import Pieces


@pytest.fixture(scope="module")
def port(paths):
    """A service behind real sockets, which gives a client two seconds to take an answer."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = make_app(Settings(models=paths[:1], seconds=2.0, max_rows=5000))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, http="h11", ws="none", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(60)


def post(port, verb, rows):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", f"/{verb}", json.dumps({"rows": rows}), {"content-type": "application/json"})
    return connection, connection.getresponse()


@pytest.mark.parametrize("verb", ["score", "explain", "reasons", "decide"])
def test_an_answer_in_pieces_is_that_of_its_parts(client, rows, verb):
    many = (rows * 20)[:1000]
    whole = client.post(f"/{verb}", json={"rows": many}).json()
    parts = [client.post(f"/{verb}", json={"rows": many[i : i + 50]}).json() for i in range(0, 1000, 50)]
    assert whole["rows"] == [row for part in parts for row in part["rows"]]
    assert whole["model"] == parts[0]["model"]
    assert whole["values"].get("Purpose", {}) == {}


def test_answers_come_in_pieces_made_when_they_are_asked_for(rows, port):
    """Defect: JSON of a large answer was written where requests are read, and nobody else was answered meanwhile."""
    connection, answer = post(port, "explain", rows * 8)
    assert answer.getheader("transfer-encoding") == "chunked"
    assert len(json.loads(answer.read())["rows"]) == 400
    connection.close()


def test_a_client_that_takes_nothing_loses_the_connection(rows, port):
    """Defect: the whole answer was held for it, for ever."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        body = json.dumps({"rows": rows * 100}).encode()
        kind = "content-type: application/json"
        head = f"POST /explain HTTP/1.1\r\nhost: localhost\r\n{kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        time.sleep(6)
        client.settimeout(60)
        taken = 0
        while piece := client.recv(2**16):
            taken += len(piece)
    connection, answer = post(port, "explain", rows)
    whole = 100 * len(answer.read())
    connection.close()
    assert 0 < taken < whole / 2


def test_pieces_wait_for_the_client():
    """The next piece is made only after the last was sent."""
    made, sent = [], []

    def make(at):
        made.append(at)
        return b"x", at + 1 if at < 3 else None

    async def send(message):
        assert len(made) == len(sent)
        sent.append(message)

    async def run():
        await Pieces(make, 5.0, "text/plain")({"type": "http"}, None, send)

    asyncio.run(run())
    assert made == [0, 1, 2, 3]
    assert [message.get("more_body") for message in sent] == [None, True, True, True, False]
