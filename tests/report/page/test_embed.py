"""The scripts that a page embeds."""

from __future__ import annotations

from nmt.report.page import embed


def test_the_chart_library_is_bundled_once_for_all_processes(monkeypatch, tmp_path):
    bundles = iter(["first", "second", "third"])
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda program: next(bundles))
    bundle = embed.chart_library.__wrapped__
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [bundle(), bundle()] == ["first", "first"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))  # cannot be written
    assert bundle() == "second"
