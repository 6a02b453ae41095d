"""`plainrisk audit`: a log that holds, and one that was changed."""

import json

from plainrisk.audit_log import AuditLog


def test_a_log_that_holds_and_one_that_was_changed(run, tmp_path):
    path = tmp_path / "log.jsonl"
    log = AuditLog(path)
    log.append({"time": f"2026-01-0{n}", "risk": n} for n in (1, 2, 3))
    log.close()
    assert "3 lines hold, 2026-01-01 to 2026-01-03" in run("audit", str(path)).stdout.replace("\n", " ")
    (found,) = json.loads(run("audit", str(path), "--json").stdout)["logs"]
    assert found["lines"] == 3
    path.write_text(path.read_text().replace('"risk":2', '"risk":9'))
    done = run("audit", str(path))
    assert done.exit_code == 2
    assert "line 3: it does not hold the hash of the line before" in done.stderr.replace("\n", " ")
