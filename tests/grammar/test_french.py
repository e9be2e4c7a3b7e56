"""French word forms, elision and contraction."""

import pytest

from nmt.grammar import french, french_verbs
from nmt.grammar.french import Links


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        ("petit", "petit petits petite petites"), ("beau", "beau beaux belle belles"),
        ("vieux", "vieux vieux vieille vieilles"), ("blanc", "blanc blancs blanche blanches"),
        ("gros", "gros gros grosse grosses"), ("heureux", "heureux heureux heureuse heureuses"),
        ("national", "national nationaux nationale nationales"), ("bleu", "bleu bleus bleue bleues"),
        ("actif", "actif actifs active actives"), ("cher", "cher chers chère chères"),
        ("rouge", "rouge rouges rouge rouges"), ("bon", "bon bons bonne bonnes"),
        ("secret", "secret secrets secrète secrètes"), ("long", "long longs longue longues"),
        ("jaloux", "jaloux jaloux jalouse jalouses"), ("muet", "muet muets muette muettes"),
        ("italien", "italien italiens italienne italiennes"), ("frais", "frais frais fraîche fraîches"),
    ],
)  # fmt: skip
def test_adjectives_agree(adjective: str, forms: str) -> None:
    (male, males), (female, females) = french.agree(adjective)
    assert f"{male} {males} {female} {females}" == forms


def test_plurals_of_nouns() -> None:
    plurals = {
        "cheval": "chevaux", "festival": "festivals", "château": "châteaux", "feu": "feux",
        "souris": "souris", "prix": "prix", "œuf": "œufs", "général": "généraux",
    }  # fmt: skip
    assert {noun: french.noun_plural(noun) for noun in plurals} == plurals


@pytest.mark.parametrize(
    ("derived", "written"),
    [
        ("de ~le roi", "du roi"), ("à ~le marché", "au marché"), ("de ~les amis", "des amis"),
        ("à ~les amis", "aux amis"), ("de ~le ami", "de l' ami"), ("à ~la reine", "à la reine"),
        ("de ~la eau", "de l' eau"), ("~le hibou", "le hibou"), ("~la hache", "la hache"),
        ("~le homme", "l' homme"), ("~la héroïne", "l' héroïne"), ("~le héros", "le héros"),
        ("ne la a pas", "ne l' a pas"), ("ne aime", "n' aime"), ("que il", "qu' il"),
        ("de le voir", "de le voir"), ("à les voir", "à les voir"), ("si il", "s' il"),
        ("si elle", "si elle"), ("~ce ami", "cet ami"), ("~ce roi", "ce roi"),
        ("~sa amie", "son amie"), ("~sa mère", "sa mère"), ("~ma école", "mon école"),
        ("un ~beau homme", "un bel homme"), ("un ~vieux arbre", "un vieil arbre"),
        ("un ~nouveau projet", "un nouveau projet"), ("~le ~nouveau hôtel", "le nouvel hôtel"),
        ("je ai", "j' ai"), ("près de ~le lac", "près du lac"), ("parce que Anne", "parce qu' Anne"),
        ("de Hélène", "d' Hélène"), ("me a vu", "m' a vu"), ("se est levé", "s' est levé"),
    ],
)  # fmt: skip
def test_elision_and_contraction(derived: str, written: str) -> None:
    words = derived.split()
    joined, links = french.join(words, [Links((i,)) for i in range(len(words))])
    assert " ".join(joined) == written
    assert sorted(i for link in links for i in link.sure) == list(range(len(words)))


def test_contraction_keeps_both_links() -> None:
    links = [Links((0,)), Links((1,), (0,)), Links((2,)), Links((3,))]
    assert french.join(["près", "de", "~le", "lac"], links) == (
        ["près", "du", "lac"],
        [Links((0,)), Links((1, 2), (0,)), Links((3,))],
    )


@pytest.mark.parametrize(
    ("verb", "present", "imperfect", "future", "participle"),
    [
        ("manger", "mange mange mangeons mangez mangent", "mangeait mangions", "mangera", "mangé"),
        ("commencer", "commence commence commençons commencez commencent",
         "commençait commencions", "commencera", "commencé"),
        ("acheter", "achète achète achetons achetez achètent", "achetait achetions", "achètera", "acheté"),
        ("appeler", "appelle appelle appelons appelez appellent", "appelait appelions", "appellera", "appelé"),
        ("jeter", "jette jette jetons jetez jettent", "jetait jetions", "jettera", "jeté"),
        ("espérer", "espère espère espérons espérez espèrent", "espérait espérions", "espérera", "espéré"),
        ("nettoyer", "nettoie nettoie nettoyons nettoyez nettoient", "nettoyait nettoyions", "nettoiera", "nettoyé"),
        ("envoyer", "envoie envoie envoyons envoyez envoient", "envoyait envoyions", "enverra", "envoyé"),
        ("emballer", "emballe emballe emballons emballez emballent", "emballait emballions", "emballera", "emballé"),
        ("finir", "finis finit finissons finissez finissent", "finissait finissions", "finira", "fini"),
        ("vendre", "vends vend vendons vendez vendent", "vendait vendions", "vendra", "vendu"),
        ("surprendre", "surprends surprend surprenons surprenez surprennent",
         "surprenait surprenions", "surprendra", "surpris"),
        ("dire", "dis dit disons dites disent", "disait disions", "dira", "dit"),
        ("peindre", "peins peint peignons peignez peignent", "peignait peignions", "peindra", "peint"),
        ("reconnaître", "reconnais reconnaît reconnaissons reconnaissez reconnaissent",
         "reconnaissait reconnaissions", "reconnaîtra", "reconnu"),
        ("être", "suis est sommes êtes sont", "était étions", "sera", "été"),
        ("avoir", "ai a avons avez ont", "avait avions", "aura", "eu"),
        ("aller", "vais va allons allez vont", "allait allions", "ira", "allé"),
        ("décevoir", "déçois déçoit décevons décevez déçoivent", "décevait décevions", "décevra", "déçu"),
        ("accueillir", "accueille accueille accueillons accueillez accueillent",
         "accueillait accueillions", "accueillera", "accueilli"),
        ("voir", "vois voit voyons voyez voient", "voyait voyions", "verra", "vu"),
    ],
)  # fmt: skip
def test_conjugation(verb: str, present: str, imperfect: str, future: str, participle: str) -> None:
    forms = french_verbs.conjugate(verb)
    assert " ".join(forms.present) == present
    assert f"{forms.imperfect[1]} {forms.imperfect[2]}" == imperfect
    assert forms.future[1] == future
    assert forms.conditional[4] == future[:-1] + "aient"
    assert forms.participle[0][0] == participle


def test_participle_agrees() -> None:
    assert french_verbs.conjugate("prendre").participle == (("pris", "pris"), ("prise", "prises"))
    assert french_verbs.conjugate("voir").participle == (("vu", "vus"), ("vue", "vues"))
