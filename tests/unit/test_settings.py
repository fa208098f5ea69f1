"""Settings from the environment: what is wrong is said in a sentence, and no secret with it."""

import pytest
from sluice.settings import Settings, load, load_for

PASSWORDS = {"SLUICE_KAFKA_PASSWORD": "hush", "SLUICE_REDIS": "redis://:hush@127.0.0.1/0"}


@pytest.fixture(autouse=True)
def _passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PASSWORDS.items():
        monkeypatch.setenv(name, value)


def test_what_is_no_text_is_written_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_CELLS", '{"default": 0, "gpu": 1}')
    monkeypatch.setenv("SLUICE_APPLICATIONS", '["Job"]')
    monkeypatch.setenv("SLUICE_HTTP", "[::1]:8080")
    settings = load()
    assert (settings.cells, settings.applications) == ({"default": 0, "gpu": 1}, ("Job",))
    assert settings.http_address == ("::1", 8080)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("SLUICE_CELLS", "{default: 0}", "this is no JSON"),
        ("SLUICE_CELLS", "{}", "at least 1"),
        ("SLUICE_CELLS", '{"a": -1}', "greater than or equal to 0"),
        ("SLUICE_CELLS", '{"a": 0, "b": 0}', "two cells share a partition"),
        ("SLUICE_CELLS", '{"a/b": 0}', "match pattern"),
        ("SLUICE_CLUSTERS", '["moon"]', "must contain this service's own cluster 'local'"),
        ("SLUICE_APPLICATIONS", '["Pipeline"]', "Pipeline is no kind that is known; there are "),
        ("SLUICE_HTTP", "nowhere", "write host:port"),
        ("SLUICE_HTTP", "127.0.0.1:99999", "write host:port"),
        ("SLUICE_TOPIC_REPLICAS", "0", "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str, why: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match="2"):
        load()
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{name}: ")
    assert why in line
    assert "hush" not in line


def test_help_names_every_setting_and_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sluice-watcher", "--help"])
    with pytest.raises(SystemExit, match="0"):
        load_for("sluice-watcher", "Watches.")
    told = capsys.readouterr().out
    for name in Settings.model_fields:
        assert f"\nSLUICE_{name.upper()}=" in told
    assert "hush" not in told
