"""Figures: what is drawn where, from the numbers of the frames."""

import dataclasses
import json
from functools import partial

import numpy as np
import pytest
from PIL import Image

from nmt.config import Config, ReportConfig
from nmt.report import figures, publish
from nmt.report.comparison import compare_runs, only
from nmt.report.figures import draw_for_papers, draw_run
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure, spread_over_lengths
from nmt.report.lengths import (
    caption,
    details_figure,
    differences_figure,
    lengths_figure,
)
from nmt.report.runs import read_run
from nmt.report.style import draw_figure, style
from tests.helpers.run_folders import make_run


def row(source, target, number=0):
    draw = np.random.default_rng(number)
    weights = draw.dirichlet(np.ones(len(source)), len(target)).round(5).tolist()
    sides = {"source": source, "target": target}
    return {"id": number, "length": len(source) - 1, "weights": weights, **sides}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "0", pairs=60, kept=12)


def test_a_run_is_drawn_under_the_expected_names_and_again_byte_for_byte(folder, tmp_path):
    comparison = compare_runs([read_run(folder)], resamples=20)
    files = draw_run(comparison, ReportConfig(heatmaps=2, figures=["svg"]))
    kept = [json.loads(line) for line in (folder / "alignments/newstest.jsonl").open()]
    ends = [row["id"] for row in spread_over_lengths(kept, 2)]
    names = ["bleu-by-length", "by-length-details", "four", *(f"heatmap-{n}" for n in ends)]
    assert [file.name for file in files] == [f"newstest-{name}.svg" for name in names]
    assert all(file.parent == folder / "figures" for file in files)
    make = partial(lengths_figure, comparison, "newstest")
    [again] = draw_figure(make, tmp_path / "again", ["svg"])
    assert again.read_bytes() == files[0].read_bytes()


def test_without_attention_only_curves_are_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "draw_figure", lambda make, path, *_: [path])
    folder = make_run(tmp_path / "run", model="RNNencdec", pairs=40, kept=8)
    drawn = draw_run(only(read_run(folder)), ReportConfig())
    assert {path.name.removeprefix("newstest-") for path in drawn} == {
        *("bleu-by-length", "by-length-details", "differences-by-length")
    }


def test_a_picture_of_a_long_sentence_is_bounded(tmp_path):
    """It is held in memory as a whole, and a line of a test set may be of any length."""
    long = row(["a"] * 600 + ["</s>"], ["b"] * 3 + ["</s>"])
    (file,) = draw_figure(lambda: heatmap_figure(long), tmp_path / "h", ["png"])
    assert max(Image.open(file).size) < 6200


def test_figures_for_papers_fit_the_text(comparison, tmp_path):
    scores = comparison.scores[comparison.scores["set"] == "newstest"]
    small = dataclasses.replace(comparison, scores=scores, runs=comparison.runs[1:3])
    files = draw_for_papers(small, tmp_path, ["png", "pdf"])
    names = ["bleu-by-length", "by-length-details", "differences-by-length"]
    names = [f"newstest-{name}" for name in names] + ["newstest-RNNsearch-50_seed_1-four"]
    assert [file.stem for file in files[::2]] == [*names, "captions"]
    for file in files[:-1:2]:
        width = Image.open(file).width / 300  # inches
        assert 5.2 < width < 5.6
    assert b"STIXGeneral" in files[1].read_bytes()
    captions = [text.partition(":") for text in files[-1].read_text().splitlines()]
    assert [name for name, _, _ in captions] == [names[0], names[2]]
    assert captions[0][2].endswith("Search: beam size 12.")


def test_a_figure_has_curves_with_bands_buckets_and_the_training_cap(comparison):
    with style():
        figure = lengths_figure(comparison, "newstest")
        details = details_figure(comparison, "newstest")
    assert [axes.get_title() for axes in figure.axes[:4]] == [
        *("BLEU, all", "BLEU, no UNK", "Brevity penalty", "BLEU without brevity penalty")
    ]
    assert "NLL per word (nats)" in [axes.get_title() for axes in details.axes]
    drawn = [line.get_xydata() for line in figure.axes[0].get_lines()]
    curves = comparison.curves.query("set == 'newstest' and key == 'bleu' and kind == 'score'")
    buckets = comparison.by_length("newstest").query("key == 'bleu'")
    for name, runs in comparison.groups.items():
        curve = curves[curves["name"] == name]
        assert len(curve) > 5
        assert (curve["low"] < curve["value"]).all()
        assert any(np.array_equal(line, curve[["words", "value"]].to_numpy()) for line in drawn)
        points = buckets[buckets["run"].isin([run.label for run in runs])]
        means = points.groupby("from")["value"].mean().to_numpy()
        assert any(np.array_equal(line[:, 1], means) for line in drawn if len(line) == len(means))
    assert [50, 50] in [line[:, 0].tolist() for line in drawn]
    words = caption(comparison, "newstest")
    assert "Band: 95 % bootstrap interval over sentences, at each length." in words
    assert "Vertical line: the longest training sentence." in words


def test_a_control_cancels_what_is_hard_for_both(comparison):
    with style():
        figure = differences_figure(comparison, "newstest")
        assert differences_figure(only(comparison.runs[0]), "newstest") is None
    control, other = comparison.groups
    assert figure.axes[0].get_title() == f"BLEU less that of {control}"
    curves = comparison.curves.query("set == 'newstest' and key == 'bleu'").set_index("words")
    alone = {name: curves.query("kind == 'score' and name == @name") for name in (control, other)}
    values = [alone[name]["value"] for name in (other, control)]
    for kind, wanted in (("difference", values[0] - values[1]), ("ratio", values[0] / values[1])):
        curve = curves[(curves["kind"] == kind) & (curves["name"] == other)]
        assert curve["value"].tolist() == pytest.approx(wanted.dropna().tolist())
        assert (curve["low"] < curve["value"]).all()
        assert (curve["value"] < curve["high"]).all()


def test_heatmap_cells_are_square_and_grey_from_black_to_white():
    sentence = row(["a", "bb", "ccc", "</s>"], ["x", "y", "</s>"])
    with style():
        figure = heatmap_figure(sentence, "Attention: line 7")
        axes, scale = figure.axes
    assert [text.get_text() for text in figure.texts] == ["Attention: line 7"]
    assert (scale.get_ylim(), scale.get_ylabel()) == ((0, 1), "attention weight")
    [image] = axes.images
    assert np.asarray(image.get_array()).tolist() == sentence["weights"]
    assert image.get_clim() == (0, 1)
    assert image.cmap(0.0)[:3] == (0, 0, 0)
    assert image.cmap(1.0)[:3] == (1, 1, 1)
    assert [label.get_text() for label in axes.get_xticklabels()] == sentence["source"]
    assert [label.get_text() for label in axes.get_yticklabels()] == sentence["target"]
    assert axes.xaxis.get_ticks_position() == "top"
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    assert box.width * width / 4 == pytest.approx(box.height * height / 3)


def test_text_is_shown_literally_in_every_format(tmp_path, recwarn):
    """Also text that no font has; a letter without a glyph is drawn as a box, without a warning."""
    words = ["$x^2$", "<b>&amp;</b>", "\\frac{1}{2}", "_{a}", "\U0001f600", "a" * 300, "</s>"]
    written = row(words, ["Ж", "日本", "عربي", "\x00\x1b", "", "</s>"])
    rows = [written, row(["a", "</s>"], ["x", "</s>"], 1), row(["b", "</s>"], ["y", "</s>"], 2)]
    files = draw_figure(lambda: four_figure(rows), tmp_path / "a=b", ["png", "pdf", "svg"])
    assert [file.name for file in files] == ["a_b.png", "a_b.pdf", "a_b.svg"]
    starts = (b"\x89PNG", b"%PDF", b"<?xml")
    assert all(f.read_bytes().startswith(s) for f, s in zip(files, starts, strict=True))
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
    drawn = files[2].read_text(encoding="utf-8")
    for literal in ("$x^2$<", "&lt;b&gt;&amp;amp;&lt;/b&gt;", "\\frac{1}{2}", ">Ж<", ">日本<"):
        assert literal in drawn
    assert drawn.count("&lt;/s&gt;") >= 2
    assert "\x00" not in drawn
    assert [f"({letter})" in drawn for letter in "abcd"] == [True, True, True, False]


def test_four_sentences_follow_the_protocol_of_figure_3():
    def words(count, mark):
        return [f"{mark}{place}" for place in range(count)] + ["</s>"]

    rows = [row(words(5, "first"), ["</s>"], 0)]
    rows += [row(words(12, f"m{n}."), ["</s>"], n) for n in range(1, 9)]
    rows += [row(words(40, "long"), ["</s>"], 9)]
    rows[3]["target"] = ["<unk>", "</s>"]
    chosen = choose_four(rows)
    assert chosen[0] is rows[0]
    drawn = {each["id"] for each in chosen[1:]}
    assert len(drawn) == 3
    assert drawn <= {1, 2, 4, 5, 6, 7, 8}
    # the draw depends on the sentences, not on their order or on which others were kept
    assert choose_four([rows[0], *rows[:0:-1]])[1:] == chosen[1:]
    assert {each["id"] for each in choose_four(rows, known={2, 5, 7})[1:]} == {2, 5, 7}
    assert len(choose_four(rows[:2])) == 2


def test_results_are_written_where_figures_and_page_fail(folder, monkeypatch, caplog):
    written = []
    monkeypatch.setattr(publish.results, "write", lambda *given: written.append(given))
    for name in ("write_scores", "only", "compare_runs", "bleu_by_length", "log_run"):
        monkeypatch.setattr(publish, name, lambda *given: None)
    # without a comparison there is nothing to draw
    publish.publish(folder, Config(), {"train": {"updates": 1}}, [])
    assert len(written) == 1
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert [error.partition(":")[0] for error in errors] == ["figures", "report.html"]
