"""French conjugation in the simple tenses of the corpus, for je, il, nous, vous and ils."""

from __future__ import annotations

import re
from typing import NamedTuple

# Irregular verbs: present of je, il, nous and ils, stem of the future, past participle.
# Verbs with a prefix (comprendre) are conjugated like the longest entry that they end with (prendre).
_IRREGULAR = {
    ending: forms.split()
    for ending, forms in {
        "être": "suis est sommes sont ser été",
        "avoir": "ai a avons ont aur eu",
        "aller": "vais va allons vont ir allé",
        "faire": "fais fait faisons font fer fait",
        "dire": "dis dit disons disent dir dit",
        "lire": "lis lit lisons lisent lir lu",
        "écrire": "écris écrit écrivons écrivent écrir écrit",
        "rire": "ris rit rions rient rir ri",
        "uire": "uis uit uisons uisent uir uit",
        "boire": "bois boit buvons boivent boir bu",
        "croire": "crois croit croyons croient croir cru",
        "voir": "vois voit voyons voient verr vu",
        "cevoir": "çois çoit cevons çoivent cevr çu",
        "savoir": "sais sait savons savent saur su",
        "devoir": "dois doit devons doivent devr dû",
        "pouvoir": "peux peut pouvons peuvent pourr pu",
        "vouloir": "veux veut voulons veulent voudr voulu",
        "venir": "viens vient venons viennent viendr venu",
        "tenir": "tiens tient tenons tiennent tiendr tenu",
        "mourir": "meurs meurt mourons meurent mourr mort",
        "courir": "cours court courons courent courr couru",
        "ouvrir": "ouvre ouvre ouvrons ouvrent ouvrir ouvert",
        "offrir": "offre offre offrons offrent offrir offert",
        "souffrir": "souffre souffre souffrons souffrent souffrir souffert",
        "cueillir": "cueille cueille cueillons cueillent cueiller cueilli",
        "dormir": "dors dort dormons dorment dormir dormi",
        "servir": "sers sert servons servent servir servi",
        "mentir": "mens ment mentons mentent mentir menti",
        "partir": "pars part partons partent partir parti",
        "sortir": "sors sort sortons sortent sortir sorti",
        "prendre": "prends prend prenons prennent prendr pris",
        "mettre": "mets met mettons mettent mettr mis",
        "battre": "bats bat battons battent battr battu",
        "rompre": "romps rompt rompons rompent rompr rompu",
        "indre": "ins int ignons ignent indr int",
        "suivre": "suis suit suivons suivent suivr suivi",
        "vivre": "vis vit vivons vivent vivr vécu",
        "vaincre": "vaincs vainc vainquons vainquent vaincr vaincu",
        "aître": "ais aît aissons aissent aîtr u",
    }.items()
}
_VOUS = {"être": "êtes", "faire": "faites", "dire": "dites"}
_DOUBLING = ("appeler", "jeter")
_IMPERFECT = ("ais", "ait", "ions", "iez", "aient")
_FUTURE = ("ai", "a", "ons", "ez", "ont")

Five = tuple[str, str, str, str, str]


class Forms(NamedTuple):
    """The forms of a French verb; a `Five` has the forms for je, il, nous, vous and ils."""

    infinitive: str
    present: Five
    imperfect: Five
    future: Five
    conditional: Five
    participle: tuple[tuple[str, str], tuple[str, str]]  # [feminine][plural]


def _first_group(infinitive: str) -> list[str]:
    """Returns the principal parts of a regular verb that ends in -er."""
    stem = infinitive[:-2]
    heavy = stem  # the stem if it is stressed, as in j'appelle
    future = infinitive
    if infinitive.endswith(_DOUBLING):
        heavy = stem + stem[-1]
        future = heavy + "er"
    elif stem.endswith(("oy", "uy", "ay")):
        heavy = stem[:-1] + "i"
        future = "enverr" if infinitive == "envoyer" else heavy + "er"
    elif re.search(r"e[^aeéèiouy]$", stem):
        heavy = stem[:-2] + "è" + stem[-1]
        future = heavy + "er"
    elif match := re.search(r"é([^aeéèiouy]|g[nu]|[bcdfgpt][lr]|qu)$", stem):
        heavy = stem[: match.start()] + "è" + match.group(1)
    soft = stem
    if stem.endswith("g"):
        soft = stem + "e"
    elif stem.endswith("c"):
        soft = stem[:-1] + "ç"
    return [heavy + "e", heavy + "e", soft + "ons", heavy + "ent", future, stem + "é"]


def _principal(infinitive: str) -> tuple[list[str], str | None]:
    """Returns the forms in the order of `_IRREGULAR`, and the form for vous if it is irregular."""
    matches = [
        ending
        for ending in _IRREGULAR
        if infinitive == ending or (ending != "aller" and infinitive.endswith(ending))
    ]
    if matches:
        ending = max(matches, key=len)
        prefix = infinitive.removesuffix(ending)
        vous = _VOUS.get(ending)
        return [prefix + form for form in _IRREGULAR[ending]], vous and prefix + vous
    if infinitive.endswith("er"):
        return _first_group(infinitive), None
    stem = infinitive[:-2]
    if infinitive.endswith("ir"):
        forms = ["is", "it", "issons", "issent", "ir", "i"]
    else:
        assert infinitive.endswith("re"), infinitive
        forms = ["s", "", "ons", "ent", "r", "u"]
    return [stem + form for form in forms], None


def conjugate(infinitive: str) -> Forms:
    """Returns all forms of a verb, given its infinitive without a reflexive pronoun."""
    (je, il, nous, ils, future, participle), vous = _principal(infinitive)
    stem = "ét" if infinitive == "être" else nous[:-3]  # stem of the imperfect
    short = stem  # the stem before i: mang-ions, but mange-ais
    if infinitive.endswith("ger"):
        short = stem[:-1]
    elif infinitive.endswith("cer"):
        short = stem[:-1] + "c"
    imperfect = tuple((short if ending.startswith("i") else stem) + ending for ending in _IMPERFECT)
    vous = vous or short + "ez"
    base = "du" if participle == "dû" else participle
    plural = participle if participle.endswith("s") else base + "s"
    return Forms(
        infinitive,
        (je, il, nous, vous, ils),
        imperfect,  # type: ignore[arg-type]
        tuple(future + ending for ending in _FUTURE),  # type: ignore[arg-type]
        tuple(future + ending for ending in _IMPERFECT),  # type: ignore[arg-type]
        ((participle, plural), (base + "e", base + "es")),
    )
