"""Keys with names, that change without a restart; rates, request ids, the audit log, TLS."""

import base64
import hashlib
import http.client
import json
import logging
import os
import ssl
import subprocess
import sys

import pytest
from starlette.testclient import TestClient

from plainrisk.audit_log import verify_log
from plainrisk.errors import PlainriskError
from plainrisk.serve import Settings, make_app
from plainrisk.serve.keys import Keys, Rate

from .test_process import PATIENCE, until

KEYS = {"alice": "a" * 32, "batch": "b" * 32}


def write(path, keys):
    text = "".join(f'{name} = "{hashlib.sha256(key.encode()).hexdigest()}"\n' for name, key in keys.items())
    other = path.with_suffix(".new")
    other.write_text(text)
    os.replace(other, path)


@pytest.fixture
def key_file(tmp_path):
    write(tmp_path / "keys.toml", KEYS)
    return tmp_path / "keys.toml"


@pytest.fixture
def locked(paths, key_file):
    with TestClient(make_app(Settings(models=paths[:1], keys=str(key_file))), "http://localhost") as found:
        yield found


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def test_each_key_opens_and_the_log_names_it(locked, rows, caplog):
    with caplog.at_level(logging.INFO, "plainrisk.serve"):
        for name, key in KEYS.items():
            found = locked.post(
                "/score", json={"rows": rows[:1]}, headers={**bearer(key), "x-request-id": f"id-{name}"}
            )
            assert found.status_code == 200
            assert found.headers["x-request-id"] == f"id-{name}"
        assert locked.get("/model", headers={**bearer("wrong"), "x-request-id": "bad id\t"}).status_code == 401
    said = [record.getMessage() for record in caplog.records]
    assert any("testclient alice id-alice POST /score 200 1 rows" in line for line in said)
    assert any("testclient batch id-batch POST /score 200 1 rows" in line for line in said)
    (refused,) = [line for line in said if " 401 " in line]
    assert "testclient - " in refused
    assert "bad id" not in refused
    assert not any(key in line for key in KEYS.values() for line in said)


def test_without_a_key_it_is_said_how_to_send_one_and_which_request_it_was(locked):
    """Defect: 401 came without WWW-Authenticate and without an id, and was counted as status 0."""
    found = locked.get("/model")
    assert found.headers.get_list("www-authenticate") == ['Bearer realm="plainrisk"', 'Basic realm="plainrisk"']
    assert len(found.headers["x-request-id"]) == 16
    metrics = locked.get("/metrics", headers=bearer(KEYS["alice"])).text
    assert 'status="401"' in metrics
    assert 'status="0"' not in metrics


def test_a_browser_opens_the_page(locked):
    """Defect: with a key the page could not be opened in a browser."""
    sent = base64.b64encode(b"anybody:" + KEYS["alice"].encode()).decode()
    assert locked.get("/", headers={"authorization": f"Basic {sent}"}).status_code == 200
    for wrong in ("Basic !!!", "Basic " + base64.b64encode(b"alice").decode(), "Digest a", ""):
        assert locked.get("/", headers={"authorization": wrong}).status_code == 401


def test_keys_change_without_a_restart(key_file):
    keys = Keys(Settings(models=("m.json",), keys=str(key_file), key="k" * 32))
    assert keys.name_of(b"Bearer " + b"k" * 32) == "key"
    write(key_file, {"carol": "c" * 32})
    keys.refresh()
    assert keys.name_of(b"Bearer " + b"c" * 32) == "carol"
    assert keys.name_of(b"Bearer " + b"a" * 32) is None
    assert keys.name_of(b"Bearer " + b"k" * 32) == "key"
    for damaged in ('carol = "short"', "carol", "", "carol = 1"):
        key_file.write_text(damaged)
        keys.refresh()
        assert keys.name_of(b"Bearer " + b"c" * 32) == "carol"
    key_file.unlink()
    keys.refresh()
    assert keys.name_of(b"Bearer " + b"c" * 32) == "carol"


@pytest.mark.parametrize(
    ("text", "words"),
    [('a = "b"', "64 digits"), ("", "is empty"), ("# nothing", "holds no key"), ("a", "not valid TOML")],
)
def test_a_file_that_holds_no_keys(tmp_path, text, words):
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(PlainriskError, match=words):
        Keys(Settings(models=("m.json",), keys=str(path)))


def test_rates_are_for_each_key(paths, key_file, rows, monkeypatch):
    now = [100.0]
    monkeypatch.setattr("plainrisk.serve.keys.time.monotonic", lambda: now[0])
    rate = Rate(2.0)
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    assert rate.allows("b")
    now[0] += 0.5
    assert [rate.allows("a") for _ in range(2)] == [True, False]
    now[0] += 100
    assert [rate.allows("a") for _ in range(3)] == [True, True, False]
    settings = Settings(models=paths[:1], keys=str(key_file), rate=1.0)
    with TestClient(make_app(settings), "http://localhost") as client:
        statuses = [client.get("/v2", headers=bearer(KEYS["alice"])).status_code for _ in range(2)]
        assert statuses == [200, 429]
        assert client.get("/v2", headers=bearer(KEYS["alice"])).headers["retry-after"] == "1"
        assert client.get("/v2", headers=bearer(KEYS["batch"])).status_code == 200
        assert client.get("/health/live").status_code == 200


# ---- the audit log


@pytest.mark.parametrize("values", [False, True])
def test_what_is_answered_stands_in_the_audit_log(paths, rows, tmp_path, values):
    settings = Settings(models=paths[:1], audit=str(tmp_path / "audit"), audit_values=values)
    with TestClient(make_app(settings), "http://localhost") as client:
        decided = client.post("/decide", json={"rows": rows[:20]}, headers={"x-request-id": "first"}).json()
        client.post("/score", json={"rows": rows[:1]})
        client.post("/score", json={"rows": [{}]})
        infer = client.get("/openapi.json").json()["paths"]["/v2/models/german/infer"]["post"]["requestBody"]
        client.post("/v2/models/german/infer", json=infer["content"]["application/json"]["example"])
    log = tmp_path / "audit" / "worker0.jsonl"
    assert verify_log(log).lines == 22
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    for i, (entry, row) in enumerate(zip(entries[:20], decided["rows"], strict=True)):
        assert (entry["request"], entry["row"], entry["verb"]) == ("first", i, "decide")
        assert entry["model"] == decided["model"]["sha256"]
        assert {name: entry[name] for name in ("risk", "decision", "reasons")} == {
            name: row[name] for name in ("risk", "decision", "reasons")
        }
        assert ("inputs" in entry) == values
        if values:
            assert entry["inputs"] == rows[i]
            packed = json.dumps(entry["inputs"], separators=(",", ":"), ensure_ascii=False)
            assert hashlib.sha256((entry["salt"] + packed).encode()).hexdigest() == entry["inputs_sha256"]
    assert [entry["verb"] for entry in entries[20:]] == ["score", "infer"]
    if not values:
        assert "A43" not in log.read_text()


def test_what_cannot_be_logged_is_not_answered(paths, rows, tmp_path, monkeypatch):
    settings = Settings(models=paths[:1], audit=str(tmp_path))
    with TestClient(make_app(settings), "http://localhost") as client:

        def full(file, data):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("plainrisk.audit_log.os.write", full)
        found = client.post("/score", json={"rows": rows[:1]})
        assert found.status_code == 503
        assert "risk" not in found.text


# ---- TLS


@pytest.mark.skipif(os.name != "posix", reason="the test stops the service by a signal")
def test_tls_by_certificate_files(paths, tmp_path):
    certificate, key = self_signed(tmp_path)
    command = [sys.executable, "-c", "from plainrisk_command import main; main()", "serve", paths[0], "--port", "0"]
    log = tmp_path / "log"
    options = ["--tls-certificate", str(certificate), "--tls-key", str(key)]
    with log.open("wb") as file:
        process = subprocess.Popen([*command, *options], stderr=file, stdout=file)
    try:
        until(lambda: "certificate valid" in log.read_text())
        port = int(log.read_text().partition("https://127.0.0.1:")[2].partition("/")[0])
        context = ssl.create_default_context(cafile=str(certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context)
        connection.request("GET", "/health/ready")
        assert connection.getresponse().status == 200
        connection.close()
    finally:
        process.kill()
        process.wait()
    done = subprocess.run(
        [*command, "--tls-certificate", paths[0], "--tls-key", str(key)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert "cannot be used for TLS" in done.stderr


def self_signed(folder):
    """A certificate for 127.0.0.1 and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "plainrisk")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, private = folder / "cert.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return certificate, private
