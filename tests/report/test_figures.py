import dataclasses
import errno
import json
import logging
import os
from functools import partial

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from nmt.config import Config, ReportConfig
from nmt.report import figures, publish
from nmt.report.comparison import compare_runs, only
from nmt.report.figures import draw_for_papers, draw_run
from nmt.report.heatmap import choose_four, four_figure, heatmap_figure, spread_over_lengths
from nmt.report.lengths import caption, details_figure, lengths_figure
from nmt.report.runs import find_runs, read_run
from nmt.report.style import LONGEST_STEM, draw_figure, file_name, shown, style
from tests.helpers.run_folders import make_run


def row(source, target, number=0, weights=True, length=None):
    draw = np.random.default_rng(number)
    shares = draw.dirichlet(np.ones(len(source)), len(target)).round(5).tolist()
    return {
        "id": number,
        "length": len(source) - 1 if length is None else length,
        "source": source,
        "target": target,
        "weights": shares if weights else None,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "0", pairs=60, kept=12)


def test_a_run_is_drawn_under_the_expected_names_and_again_byte_for_byte(folder, tmp_path):
    """And before its results are written."""
    report = ReportConfig(heatmaps=2, figures=["svg"])
    files = draw_run(read_run(folder), report)
    kept = [json.loads(line) for line in (folder / "alignments/newstest.jsonl").open()]
    shortest, longest = (spread_over_lengths(kept, 2)[place]["id"] for place in (0, 1))
    names = ["bleu-by-length", "by-length-details", "four"]
    names += [f"heatmap-{shortest}", f"heatmap-{longest}"]
    assert [file.name for file in files] == [f"newstest-{name}.svg" for name in names]
    assert all(file.parent == folder / "figures" and file.stat().st_size > 1000 for file in files)
    for kind in ("alignments", "translations", "scores.csv"):
        (tmp_path / kind).symlink_to(folder / kind)
    again = draw_run(dataclasses.replace(read_run(folder), folder=tmp_path), report)
    assert [file.name for file in again] == [file.name for file in files]
    assert all(one.read_bytes() == two.read_bytes() for one, two in zip(files, again, strict=True))


def test_a_figure_is_drawn_in_every_format(tmp_path):
    make = partial(heatmap_figure, row(["a", "</s>"], ["b", "</s>"]))
    files = draw_figure(make, tmp_path / "h", ["png", "svg", "pdf"])
    assert [file.name for file in files] == ["h.png", "h.svg", "h.pdf"]
    starts = (b"\x89PNG", b"<?xml", b"%PDF")
    assert all(f.read_bytes().startswith(s) for f, s in zip(files, starts, strict=True))


def test_without_attention_only_curves_are_drawn(tmp_path):
    folder = make_run(tmp_path / "run", model="RNNencdec", pairs=40, kept=8)
    files = draw_run(read_run(folder), ReportConfig(figures=["svg"]))
    assert [file.name for file in files] == [
        "newstest-bleu-by-length.svg",
        "newstest-by-length-details.svg",
    ]


@pytest.mark.parametrize("make", [heatmap_figure, lambda row: four_figure([row] * 4)])
def test_a_picture_of_a_long_sentence_is_bounded(tmp_path, make):
    """It is held in memory as a whole, and a line of a test set may be of any length."""
    long = row(["a"] * 600 + ["</s>"], ["b"] * 3 + ["</s>"])
    (file,) = draw_figure(lambda: make(long), tmp_path / "h", ["png"])
    assert max(Image.open(file).size) < 6200


def test_figures_for_papers_fit_the_text(tmp_path):
    make_run(tmp_path / "0", model="RNNencdec", pairs=60, kept=12)
    make_run(tmp_path / "1", pairs=60, kept=12)
    compared = compare_runs(find_runs([tmp_path])[0], resamples=0)
    files = draw_for_papers(compared, tmp_path / "figures", ["png", "pdf"])
    stems = ["newstest-bleu-by-length", "newstest-by-length-details", "newstest-RNNsearch-50-four"]
    names = [f"{stem}.{kind}" for stem in stems for kind in ("png", "pdf")]
    assert [file.name for file in files] == [*names, "captions.txt"]
    for file in files[:-1:2]:
        width = Image.open(file).width / 300  # inches
        assert 5.2 < width < 5.6
    assert b"STIXGeneral" in files[1].read_bytes()
    assert files[-1].read_text().splitlines() == [
        "newstest, 60 pairs; bands: 95 % bootstrap intervals; vertical: longest training sentence; "
        "search: beam 12"
    ]


def test_curves_have_the_scores_and_a_line_at_the_training_cap(tmp_path):
    for seed in (1, 2):
        make_run(tmp_path / str(seed), seed=seed, pairs=90, kept=0, max_length=30)
    runs = find_runs([tmp_path])[0]
    with style():
        alone, both = only(runs[0]), compare_runs(runs, resamples=0)
        figure, pooled = lengths_figure(alone, "newstest"), lengths_figure(both, "newstest")
        assert details_figure(alone, "newstest") is not None
    values = [
        both.scores.query("set == 'newstest'").query(
            f"run == {run.label!r} and key == 'bleu' and bucket != 'all'"
        )
        for run in runs
    ]
    values = [frame.sort_values("from")["value"].tolist() for frame in values]
    curve, cap = figure.axes[0].get_lines()[:2]
    assert curve.get_ydata().tolist() == pytest.approx(values[0])
    assert cap.get_xdata() == [2.5, 2.5]  # between the buckets 21-30 and 31-40
    mean = np.mean(values, axis=0)
    assert pooled.axes[0].get_lines()[0].get_ydata().tolist() == pytest.approx(mean.tolist())
    assert "one standard deviation about the mean over seeds" in caption(both, "newstest")
    assert figure.axes[0].get_xlim() == (-0.5, len(mean) - 0.5)


def test_runs_whose_names_differ_in_signs_alone_have_figures_of_their_own(tmp_path, monkeypatch):
    for curves in ("lengths_figure", "details_figure"):
        monkeypatch.setattr(figures, curves, lambda *_, **__: Figure())
    run = read_run(make_run(tmp_path / "run", pairs=40, kept=8))
    alike = [dataclasses.replace(run, label=label) for label in ("a b", "a/b")]
    compared = compare_runs(alike, resamples=0)
    files = draw_for_papers(compared, tmp_path / "figures", ["svg"])
    assert [file.name for file in files[2:4]] == [
        "newstest-a_b-four.svg",
        "newstest-a_b-four-2.svg",
    ]


def test_a_run_of_a_long_name_has_figures_whose_names_are_cut(tmp_path):
    folder = make_run(tmp_path / "run", pairs=40, kept=8)
    long = [dataclasses.replace(read_run(folder), label="漢" * 900 + end) for end in "ab"]
    files = draw_for_papers(compare_runs(long, resamples=0), tmp_path / "f", ["svg"])
    fours = [file for file in files if "漢" in file.name]
    assert len(set(fours)) == 2
    for file in fours:
        assert file.is_file()
        assert file.name.startswith("newstest-漢漢")
        assert file_name(file.stem) == file.stem


def test_a_figure_that_is_too_wide_is_shrunk_with_its_letters():
    wide = [row([f"w{i}" for i in range(31)], ["a", "b"], number) for number in range(4)]
    with style():
        whole, shrunk = four_figure(wide), four_figure(wide, 5.5)
        assert four_figure(wide[:1], 50.0).get_figwidth() == heatmap_figure(wide[0]).get_figwidth()
    assert shrunk.get_figwidth() == pytest.approx(5.5)
    share = 5.5 / whole.get_figwidth()
    assert shrunk.get_figheight() == pytest.approx(share * whole.get_figheight())
    sizes = [figure.axes[0].get_xticklabels()[0].get_fontsize() for figure in (whole, shrunk)]
    assert sizes == pytest.approx([7, 7 * share])


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


def test_text_is_shown_literally(tmp_path):
    words = ["$x^2$", "<b>&amp;</b>", "\\frac{1}{2}", "$", "_{a}", "</s>"]
    written = row(words, ["Ж", "日本", "عربي", "\x00\x1b", "</s>"])
    [file] = draw_figure(lambda: heatmap_figure(written), tmp_path / "h", ["svg"])
    drawn = file.read_text(encoding="utf-8")
    for literal in ("$x^2$<", "&lt;b&gt;&amp;amp;&lt;/b&gt;", "\\frac{1}{2}", ">Ж<", ">日本<"):
        assert literal in drawn
    assert drawn.count("&lt;/s&gt;") >= 2
    assert "\x00" not in drawn


def test_any_glyph_is_drawn_as_pixels_too(tmp_path, recwarn):
    odd = ["\U0001f600", "क्षि", "\ufffe", "\u200b", "", "a" * 300, "</s>"]
    files = draw_figure(lambda: heatmap_figure(row(odd, odd)), tmp_path / "odd", ["png", "pdf"])
    assert all(file.stat().st_size > 1000 for file in files)
    assert not [each for each in recwarn if "Glyph" in str(each.message)]


def test_four_panels_in_the_order_given(tmp_path):
    rows = [row([*"abc"[: n + 1], "</s>"], ["x", "</s>"], n) for n in range(3)]
    [file] = draw_figure(lambda: four_figure(rows), tmp_path / "set=four", ["svg"])
    assert file.name == "set_four.svg"
    drawn = file.read_text()
    assert [f"({letter})" in drawn for letter in "abcd"] == [True, True, True, False]


def test_four_sentences_follow_the_protocol_of_figure_3(caplog):
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
    named = choose_four(rows, "long0 long1" + "".join(f"long{n}" for n in range(2, 40)))
    assert [each["id"] for each in named] == [9, *(each["id"] for each in chosen[1:])]
    assert {each["id"] for each in choose_four(rows, known={2, 5, 7})[1:]} == {2, 5, 7}
    assert len(choose_four(rows[:2])) == 2
    assert choose_four([]) == []
    with caplog.at_level(logging.WARNING):
        assert choose_four(rows, "not there")[0] is rows[0]
    assert "report.sentence" in caplog.text


def test_without_weights_a_heatmap_is_refused():
    with pytest.raises(ValueError, match="sentence 3"):
        heatmap_figure(row(["a"], ["b"], 3, weights=False))


def test_names_and_labels():
    assert file_name("a=b/c:d é-1.x") == "a_b_c_d_é-1.x"
    assert file_name("x" * LONGEST_STEM) == "x" * LONGEST_STEM
    assert shown("x" * 30, 10) == "xxxxxxxxx…"
    assert shown("a\x1b[0m\n") == "a\N{REPLACEMENT CHARACTER}[0m\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("full", [False, True])
def test_the_page_is_made_where_figures_fail(folder, monkeypatch, caplog, full):
    """A disk that is full for figures is said to be, in one line."""
    made, written = [], []
    monkeypatch.setattr(publish.results, "write", lambda *given: written.append(given))

    def fail(*given):
        try:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if full else ValueError
        finally:
            raise AttributeError("what is left behind by a file that was cut off")

    monkeypatch.setattr(publish, "draw_run", fail)
    for name in ("write_scores", "compare_runs", "length_curve"):
        monkeypatch.setattr(publish, name, lambda *given: None)
    monkeypatch.setattr(publish, "build_page", lambda *given, **named: made.append(given))
    publish.publish(folder, Config(), {"train": {"updates": 1}}, [])
    assert len(made) == len(written) == 1
    said = "figures: No space left on device; " if full else "figures: not all could be made; "
    [error] = [record for record in caplog.records if record.levelname == "ERROR"]
    assert error.message.startswith(said)
    assert (error.exc_info is None) == full
