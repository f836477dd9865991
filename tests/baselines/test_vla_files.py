"""What is missing of a model is listed file by file, with the command that gets it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from model_folders import make_backbone_folder, make_policy_folder, note_download, snapshot, weights

from bilevel.baselines.vla_files import BACKBONE, BACKBONE_FILES, cached, check_weights, find_model, hub_cache
from bilevel.symbolic.domain import BadInput

HUB = "lerobot/smolvla_base"
FILES = " ".join(BACKBONE_FILES)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def complaint(folder: Path | None = None) -> str:
    with pytest.raises(BadInput) as error:
        find_model(HUB, folder)
    return str(error.value)


def test_a_folder_with_everything_in_it(tmp_path: Path) -> None:
    policy = make_policy_folder(tmp_path / "policy")
    make_backbone_folder(policy / "backbone")
    files = find_model(HUB, policy)
    assert (files.policy, files.backbone) == (policy, policy / "backbone")
    assert files.digest == hashlib.sha256(weights(4, 5)).hexdigest()


def test_the_backbone_is_found_by_its_name_in_the_cache_or_as_a_folder(tmp_path: Path, cache: Path) -> None:
    policy = make_policy_folder(tmp_path / "policy", vlm_model_name="some/backbone")
    assert complaint(policy).startswith("some/backbone: missing config.json, ")
    backbone = make_backbone_folder(snapshot(cache, "some/backbone"))
    assert find_model(HUB, policy).backbone == backbone
    elsewhere = make_backbone_folder(tmp_path / "elsewhere")
    other = make_policy_folder(tmp_path / "other", vlm_model_name=str(elsewhere))
    assert find_model(HUB, other).backbone == elsewhere


def test_a_published_model_is_found_in_the_cache(cache: Path) -> None:
    policy = make_policy_folder(snapshot(cache, HUB))
    backbone = make_backbone_folder(snapshot(cache, BACKBONE))
    files = find_model(HUB)
    assert (files.policy, files.backbone) == (policy, backbone)


def test_all_that_is_missing_from_the_cache_is_listed_at_once() -> None:
    assert complaint() == (
        "lerobot/smolvla_base: missing config.json, model.safetensors, policy_preprocessor.json, "
        "policy_postprocessor.json; get them with: hf download lerobot/smolvla_base; "
        f"{BACKBONE}: missing {', '.join(BACKBONE_FILES)}; get them with: hf download {BACKBONE} {FILES}"
    )


def test_a_download_that_was_broken_off_is_not_taken_for_a_model(cache: Path) -> None:
    snapshot(cache, HUB)
    assert cached(HUB) is None
    assert "lerobot/smolvla_base: missing config.json" in complaint()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "policy_preprocessor.json", "after.safetensors"])
def test_each_file_that_a_folder_lacks_is_named(tmp_path: Path, name: str) -> None:
    policy = make_policy_folder(tmp_path / "policy")
    make_backbone_folder(policy / "backbone")
    (policy / name).unlink()
    get = f"hf download lerobot/smolvla_base --local-dir {policy}"
    assert complaint(policy) == f"{policy}: missing {name}; get them with: {get}"


def test_what_a_backbone_in_the_folder_lacks_is_named(tmp_path: Path) -> None:
    policy = make_policy_folder(tmp_path / "policy")
    backbone = make_backbone_folder(policy / "backbone")
    (backbone / "tokenizer.json").unlink()
    assert complaint(policy) == (
        f"{backbone}: missing tokenizer.json; get them with: hf download {BACKBONE} {FILES} --local-dir {backbone}"
    )


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    make = f"hf download lerobot/smolvla_base --local-dir {folder}"
    assert complaint(folder) == f"{folder}: no such folder; make it with: {make}"


def test_weights_in_the_cache_are_as_downloaded_if_their_name_is_their_digest(cache: Path) -> None:
    policy = make_policy_folder(snapshot(cache, HUB))
    make_backbone_folder(snapshot(cache, BACKBONE))
    assert not find_model(HUB).as_downloaded
    content = (policy / "model.safetensors").read_bytes()
    blob = policy.parents[1] / "blobs" / hashlib.sha256(content).hexdigest()
    blob.parent.mkdir()
    blob.write_bytes(content)
    (policy / "model.safetensors").unlink()
    (policy / "model.safetensors").symlink_to(blob)
    assert find_model(HUB).as_downloaded
    blob.write_bytes(weights(5, 4))
    assert not find_model(HUB).as_downloaded


def test_weights_in_a_folder_are_as_downloaded_if_the_note_says_so(tmp_path: Path) -> None:
    policy = make_policy_folder(tmp_path / "policy")
    make_backbone_folder(policy / "backbone")
    assert not find_model(HUB, policy).as_downloaded
    note_download(policy, weights(4, 5))
    assert find_model(HUB, policy).as_downloaded
    (policy / "model.safetensors").write_bytes(weights(5, 4))
    assert not find_model(HUB, policy).as_downloaded


@pytest.mark.parametrize(("text", "reason"), [("{", "Input data was truncated"), ("[]", "Expected `object`")])
def test_settings_that_cannot_be_read(tmp_path: Path, text: str, reason: str) -> None:
    policy = make_policy_folder(tmp_path / "policy")
    for name in ("config.json", "policy_preprocessor.json"):
        kept = (policy / name).read_text()
        (policy / name).write_text(text)
        assert complaint(policy).startswith(f"{policy / name}: {reason}")
        (policy / name).write_text(kept)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 906713296\n",
        (2).to_bytes(8, "little") + b"[]",
        weights(100)[:-1],
        (1 << 60).to_bytes(8, "little") + b"{}",
    ],
)
def test_what_is_no_weights_is_told(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"no weights, or not all of them; perhaps a Git LFS pointer .* again"):
        check_weights(file)


def test_the_cache_is_where_hugging_face_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    assert hub_cache() == Path.home() / ".cache/huggingface/hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert hub_cache() == Path("/cache/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/home")
    assert hub_cache() == Path("/home/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/hub")
    assert hub_cache() == Path("/hub")
