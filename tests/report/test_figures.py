"""Figures show the numbers in the comparison's data frames."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from nmt.config.schema import Config
from nmt.inference.held_out import Evaluated
from nmt.report.captions import caption
from nmt.report.comparison import compare_finished
from nmt.report.figures import curves_figure, draw_figures, lengths_figure, systems_figure
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure
from nmt.report.runs import read_run
from nmt.report.style import advise_font, save_figure
from nmt.training import publish
from tests.helpers.run_folders import make_run


def row(source, target, number=0):
    draw = np.random.default_rng(number)
    weights = draw.dirichlet(np.ones(len(source)), len(target)).round(5).tolist()
    sides = {"source": source, "target": target}
    return {
        "id": number,
        "length": len(source) - 1,
        "weights": weights,
        "reference": ["right"],
        **sides,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "0", pairs=60, kept=12)


@pytest.mark.slow
def test_figures_of_a_run_have_fixed_names_and_bytes(folder, tmp_path):
    run = read_run(folder)
    few = run.scores.query("score in ['bleu', 'nll_per_word']")
    comparison = compare_finished([replace(run, scores=few)], resamples=0)
    files = draw_figures(comparison, tmp_path / "figures", ["svg"])
    names = ["bleu-by-length", "four"]
    assert [file.name for file in files] == [f"newstest-{name}.svg" for name in names]
    chosen = choose_four(run.alignments("newstest"), run.covered("newstest"))
    [again] = save_figure(four_figure(chosen), tmp_path / "again", ["svg"])
    assert again.read_bytes() == files[-1].read_bytes()


def test_figures_of_several_runs_with_captions(comparison, tmp_path, monkeypatch):
    """Each run with attention also gets a figure of four alignments."""
    monkeypatch.setattr("nmt.report.figures.save_figure", lambda figure, path, formats: [path])
    monkeypatch.setattr("nmt.report.figures.lengths_figure", lambda *given: None)
    drawn = draw_figures(comparison, tmp_path, ["pdf"], captioned=False)
    names = [path.name.removeprefix("newstest-") for path in drawn if "newstest" in path.name]
    fours = [f"RNNsearch-50 seed {seed}-four" for seed in (1, 2)]
    assert names == ["bleu-by-length", "by-length-details", *fours]
    captions = (tmp_path / "captions.txt").read_text().splitlines()
    assert [line.partition(":")[0] for line in captions][:2] == [
        "newstest-bleu-by-length",
        "newstest-by-length-details",
    ]
    assert captions[0].endswith("Search: beam size 12.")


def test_heatmap_of_a_long_sentence_is_bounded(tmp_path):
    """Pictures are drawn in memory, so their size is limited for very long sentences."""
    long = row(["a"] * 220 + ["</s>"], ["b"] * 3 + ["</s>"])
    (file,) = save_figure(heatmap_figure(long), tmp_path / "h", ["png"])
    assert max(Image.open(file).size) < 6200


def test_systems_figure_has_a_panel_per_system(comparison, monkeypatch):
    curves = comparison.curves.query("set == 'newstest' and key == 'bleu' and kind == 'score'")
    medians = curves.groupby("name")["value"].median().sort_values(ascending=False)
    figure = systems_figure(comparison, "newstest")
    assert [axes.get_title() for axes in figure.axes] == list(medians.index)
    for axes, name in zip(figure.axes, medians.index, strict=True):
        *others, own = axes.lines
        assert len(others) == len(medians) - 1
        assert own.get_ydata() == pytest.approx(curves.loc[curves["name"] == name, "value"])
        assert own.get_color() not in {line.get_color() for line in others}
        assert len(axes.collections) == 1  # the band of the curve
    monkeypatch.setattr("nmt.report.figures.MANY", len(medians) - 1)
    assert curves_figure(comparison, "newstest").axes[0].get_title() == medians.index[0]


def test_lengths_figure_has_bands_buckets_and_the_training_cap(comparison):
    figure = lengths_figure(comparison, "newstest")
    details = lengths_figure(comparison, "newstest", ["nll_per_word"])
    assert curves_figure(comparison, "newstest").axes[0].get_title() == "BLEU, all"
    assert [axes.get_title() for axes in figure.axes[:4]] == [
        "BLEU, all",
        "BLEU, no UNK",
        "Brevity penalty",
        "BLEU without brevity penalty",
    ]
    assert 5.2 < figure.get_figwidth() < 5.6  # width of the text on a printed page, in inches
    assert details.axes[0].get_title() == "NLL per word (nats)"
    drawn = [line.get_xydata() for line in figure.axes[0].get_lines()]
    curves = comparison.curves.query("set == 'newstest' and key == 'bleu'")
    buckets = comparison.by_length("newstest").query("key == 'bleu'")
    for name, runs in comparison.groups.items():
        for kind in ("score", "constant"):
            curve = curves[(curves["name"] == name) & (curves["kind"] == kind)]
            assert len(curve) > 5
            assert (curve["low"] < curve["value"]).all()
            assert any(np.array_equal(line, curve[["words", "value"]].to_numpy()) for line in drawn)
        points = buckets[buckets["run"].isin([run.label for run in runs])]
        means = points.groupby("from")["value"].mean().to_numpy()
        assert any(np.array_equal(line[:, 1], means) for line in drawn if len(line) == len(means))
    assert [50, 50] in [line[:, 0].tolist() for line in drawn]
    heights = [bar.get_height() for bar in figure.axes[4].patches]
    assert heights == points.groupby("from")["sentences"].max().tolist()
    words = caption(comparison, "newstest")
    assert "Band: 95 % confidence interval over sentences, at each length." in words
    assert "Vertical line: the longest training sentence." in words


def test_curves_relative_to_a_control(comparison):
    control, other = comparison.groups
    curves = comparison.curves.query("set == 'newstest' and key == 'bleu'").set_index("words")
    alone = {name: curves.query("kind == 'score' and name == @name") for name in (control, other)}
    values = [alone[name]["value"] for name in (other, control)]
    curve = curves[(curves["kind"] == "difference") & (curves["name"] == other)]
    assert curve["value"].tolist() == pytest.approx((values[0] - values[1]).dropna().tolist())
    assert (curve["low"] < curve["value"]).all()
    assert (curve["value"] < curve["high"]).all()


def test_heatmap_cells_are_square_and_grey_from_black_to_white():
    sentence = row(["a", "bb", "ccc", "</s>"], ["x", "y", "</s>"])
    figure = heatmap_figure(sentence, "Attention: line 7")
    axes, scale = figure.axes
    assert [text.get_text() for text in figure.texts] == ["Attention: line 7"]
    assert (scale.get_ylim(), scale.get_ylabel()) == ((0, 1), "attention weight")
    [image] = axes.images
    assert np.asarray(image.get_array()).tolist() == sentence["weights"]
    assert image.get_clim() == (0, 1)
    assert image.cmap(0.0)[:3] == (0, 0, 0)
    assert image.cmap(1.0)[:3] == (1, 1, 1)
    words = [(text.get_text(), *text.get_position()) for text in axes.texts]
    above = [(word, x) for word, x, y in words if y < -0.5]
    beside = [(word, y) for word, x, y in words if x < -0.5]
    assert above == list(zip(sentence["source"], range(4), strict=True))
    assert beside == list(zip(sentence["target"], range(3), strict=True))
    box, (width, height) = axes.get_position(), figure.get_size_inches()
    assert box.width * width / 4 == pytest.approx(box.height * height / 3)


@pytest.mark.slow
def test_text_is_literal_in_each_format(tmp_path, recwarn):
    """A character that no font has is drawn as a box, without a warning."""
    words = ["$x^2$", "<b>&amp;</b>", "\\frac{1}{2}", "_{a}", "\U0001f600", "a" * 300, "</s>"]
    written = row(words, ["Ж", "日本", "عربي", "\x00\x1b", "", "</s>"])
    rows = [written, row(["a", "</s>"], ["x", "</s>"], 1), row(["b", "</s>"], ["y", "</s>"], 2)]
    files = save_figure(four_figure(rows), tmp_path / "a=b", ["png", "svg"])
    files += save_figure(four_figure(rows[1:]), tmp_path / "a=b", ["pdf"])
    assert [file.name for file in files] == ["a_b.png", "a_b.svg", "a_b.pdf"]
    starts = (b"\x89PNG", b"<?xml", b"%PDF")
    assert all(f.read_bytes().startswith(s) for f, s in zip(files, starts, strict=True))
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
    drawn = files[1].read_text(encoding="utf-8")
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
    # The choice does not depend on the order of the sentences after the first.
    assert choose_four([rows[0], *rows[:0:-1]])[1:] == chosen[1:]
    assert {each["id"] for each in choose_four(rows, known={2, 5, 7})[1:]} == {2, 5, 7}
    assert len(choose_four(rows[:2])) == 2
    for right in (2, 5, 6):
        rows[right]["target"] = [*rows[right]["reference"], "</s>"]
    assert {each["id"] for each in choose_four(rows)[1:]} == {2, 5, 6}


def test_run_goes_on_if_figures_and_page_fail(folder, monkeypatch, caplog):
    monkeypatch.setattr(publish, "write_scores", lambda *given: None)
    monkeypatch.setattr(publish, "draw_figures", lambda *given, **options: 1 / 0)
    run = SimpleNamespace(config=Config(), folder=SimpleNamespace(path=folder), loggers=[])
    publish.publish(run, {"train": {"updates": 1}}, Evaluated())
    [error] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "ZeroDivisionError" in error.exc_text


def test_missing_fonts_are_reported_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("nmt.report.style._installed_families", lambda: {"DejaVu Sans"})
    advise_font.cache_clear()
    weights = np.ones((1, 2)) / 2
    row = {"id": 1, "length": 1, "source": ["北京", "</s>"], "target": ["ไทย"], "weights": weights}
    for name in ("a", "b"):
        save_figure(heatmap_figure(row), tmp_path / name, ["png"])
    [advice] = [record.getMessage() for record in caplog.records]
    assert advice.startswith("no installed font has some of the characters")
