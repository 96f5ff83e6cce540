"""`doctor` on a real llama-server: what it says is what the server does."""

from __future__ import annotations

import json

import pytest

from react_text.cli import main

pytestmark = pytest.mark.live


def test_llama_server_passes_and_its_base_model_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json", "--model", "local"])
    report = json.loads(capsys.readouterr().out)
    checks = {check["name"]: check for check in report["checks"]}
    with capsys.disabled():
        print()
        for check in checks.values():
            print(f"{check['verdict']}  {check['name']:<15} {check['found']}")
    assert code == 0 and "gemma" in report["model"]
    # A base model has no template; llama-server makes one up.
    assert [name for name, check in checks.items() if check["verdict"] != "pass"] == ["chat template"]
    assert "4096 tokens" in checks["context"]["found"]
    assert "is refused" in checks["truncation"]["found"] and "for 4096" in checks["truncation"]["found"]
