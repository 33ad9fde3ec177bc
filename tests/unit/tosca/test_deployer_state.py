"""State: private, whole at every moment, and understood or refused."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from gpufarm import history
from gpufarm.errors import GpufarmError, Locked
from gpufarm.state import MEMORY, Deployment, Store


def deployment(name: str = "a") -> Deployment:
    return Deployment(name, "/t.yaml", "/pool", secrets={"token": "hunter2"}, inputs={"n": 1})


def test_round_trip(tmp_path: Path) -> None:
    store = Store(tmp_path / "state")
    store.save(deployment())
    assert store.load("a") == deployment() or store.load("a").secrets == {"token": "hunter2"}
    assert "hunter2" not in (tmp_path / "state" / "a.json").read_text()
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    assert store.names() == ["a"]
    store.remove("a")
    assert store.load("a") is None


def test_what_operations_return_is_sealed_where_it_is_secret(tmp_path: Path) -> None:
    returned = {
        "path": "/x",
        "admin_token": "hunter3",
        "empty_password": "",
        "accounts": [{"user": "ada", "password": "hunter4"}],
    }
    kept = deployment()
    kept.steps = {"hub.configure": {"digest": "d", "attributes": dict(returned), "changed": 1}}
    store = Store(tmp_path)
    store.save(kept)
    text = (tmp_path / "a.json").read_text()
    assert "hunter" not in text and '"path": "/x"' in text
    found = store.load("a")
    assert found is not None and found.steps["hub.configure"]["attributes"] == returned
    assert kept.steps["hub.configure"]["attributes"] == returned, "saving changes nothing"


def test_what_a_run_needs_is_in_memory(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(deployment())
    with store.run_directory("a") as directory:
        assert directory == store.run_path("a") and directory.resolve().parent == MEMORY
        assert directory.resolve().stat().st_mode & 0o077 == 0
        first = directory.resolve()
        (directory / "playbook.yml").touch()
        with store.run_directory("a") as again:  # as after a kill
            assert again.resolve() != first and not first.exists()
    assert not first.exists() and list((tmp_path / "runs").iterdir()) == []


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    """Those who share the folder cannot have another's files removed or written."""
    store = Store(tmp_path / "state")
    store.save(deployment())
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("kept")
    (tmp_path / "state" / "runs" / "a").symlink_to(other)
    with store.run_directory("a") as directory:
        assert directory.resolve().parent == MEMORY
    (tmp_path / "state" / "history").mkdir()
    (tmp_path / "state" / "history" / "a.jsonl").symlink_to(other / "file")
    with pytest.raises(GpufarmError, match="history cannot be written"), history.recorded(store, "a", "x"):
        pass
    (tmp_path / "state" / ".a.json.new").symlink_to(other / "file")
    store.save(deployment())
    assert (other / "file").read_text() == "kept"


def test_a_full_disk_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.save(deployment())
    before = (tmp_path / "a.json").read_text()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(GpufarmError, match="state cannot be written: No space left on device"):
        store.save(deployment())
    assert (tmp_path / "a.json").read_text() == before


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"format": 9}', '{"format": 1, "secrets": "x"}'])
def test_damaged_state_is_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path)
    store.save(deployment())
    (tmp_path / "a.json").write_text(damage)
    with pytest.raises(GpufarmError, match=r"a\.json"):
        store.load("a")


def test_another_key_is_refused_in_a_sentence(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.save(deployment())
    (tmp_path / "key").write_text("another")
    with pytest.raises(GpufarmError, match="restore it or the key beside it"):
        Store(tmp_path).load("a")


def test_locks(tmp_path: Path) -> None:
    one, two = Store(tmp_path), Store(tmp_path)
    with one.locked("a"):
        assert two.is_locked("a") and not two.is_locked("b")
        with pytest.raises(Locked), two.locked("a"):
            pass
    assert not two.is_locked("a")


def test_one_key_for_all(tmp_path: Path) -> None:
    digests: list[str] = []
    threads = [
        threading.Thread(target=lambda: digests.append(Store(tmp_path).digest(1))) for _count in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 8 and len(set(digests)) == 1
