"""The recognition of languages, on texts whose language is known."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from topicloom.corpus import Corpus
from topicloom.corpus.building import _Sample
from topicloom.text import detect_language, make_tokenizer
from topicloom.text.recognition import language_shares, other_language, recognise

# Article 1 of the Universal Declaration of Human Rights.
ARTICLE = {
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
        "begabt und sollen einander im Geist der Brüderlichkeit begegnen."
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et"
        " de conscience et doivent agir les uns envers les autres dans un esprit de fraternité."
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón"
        " y conciencia, deben comportarse fraternalmente los unos con los otros."
    ),
    "it": (
        "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione e "
        "di coscienza e devono agire gli uni verso gli altri in spirito di fratellanza."
    ),
    "pt": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
        "consciência, devem agir uns para com os outros em espírito de fraternidade."
    ),
    "nl": (
        "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand"
        " en geweten, en behoren zich jegens elkander in een geest van broederschap te gedragen."
    ),
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
        "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler."
    ),
    "id": (
        "Semua orang dilahirkan merdeka dan mempunyai martabat dan hak-hak yang sama. Mereka dikaruniai akal "
        "dan hati nurani dan hendaknya bergaul satu sama lain dalam semangat persaudaraan."
    ),
    "uk": (
        "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю"
        " і повинні діяти у відношенні один до одного в дусі братерства."
    ),
    "bg": (
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и "
        "следва да се отнасят помежду си в дух на братство."
    ),
    "fa": (
        "تمام افراد بشر آزاد بدنیا میایند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل و وجدان میباشند"
        " و باید نسبت بیکدیگر با روح برادری رفتار کنند."
    ),
    "ur": (
        "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔ انہیں ضمیر اور عقل ودیعت ہوئی ہے۔ "
        "اس لئے انہیں ایک دوسرے کے ساتھ بھائی چارے کا سلوک کرنا چاہیئے۔"
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni "
        "rozumem i sumieniem i powinni postępować wobec innych w duchu braterstwa."
    ),
    "sv": (
        "Alla människor äro födda fria och lika i värde och rättigheter. De äro utrustade med förnuft och "
        "samvete och böra handla gentemot varandra i en anda av broderskap."
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím "
        "a mají spolu jednat v duchu bratrství."
    ),
    "ro": (
        "Toate ființele umane se nasc libere și egale în demnitate și în drepturi. Ele sunt înzestrate cu "
        "rațiune și conștiință și trebuie să se comporte unele față de altele în spiritul fraternității."
    ),
    "vi": (
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con "
        "người đều được tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong "
        "tình bằng hữu."
    ),
    "hu": (
        "Minden. emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és "
        "lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek."
    ),
    "da": (
        "Alle mennesker er født frie og lige i værdighed og rettigheder. De er udstyret med fornuft og "
        "samvittighed, og de bør handle mod hverandre i en broderskabets ånd."
    ),
    "nb": (
        "Alle mennesker er født frie og med samme menneskeverd og menneskerettigheter. De er utstyrt med "
        "fornuft og samvittighet og bør handle mot hverandre i brorskapets ånd."
    ),
    "fi": (
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu "
        "järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä."
    ),
    "ca": (
        "Tots els éssers humans neixen lliures i iguals en dignitat i en drets. Són dotats de raó i de "
        "consciència, i han de comportar-se fraternalment els uns amb els altres."
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है । उन्हें "
        "बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए ।"
    ),
    "el": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι "
        "προικισμένοι με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα "
        "αδελφοσύνης."
    ),
    "ru": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и "
        "совестью и должны поступать в отношении друг друга в духе братства."
    ),
    "ar": (
        "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا وعليهم أن يعامل بعضهم "
        "بعضًا بروح الإخاء."
    ),
    "en": (
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
        "conscience and should act towards one another in a spirit of brotherhood."
    ),
}
TITLES = [
    *(
        "How to sort a list in Python",
        "Rails migration fails",
        "What is the best way to parse XML?",
        "Para SQL de Oracle",
    ),
    *("Bash die on error", "Linux sed and awk", "Excel VBA macro is slow", "Hibernate mapping exception", "Qt in C++"),
    *("Why does my query not use the index?", "WordPress plugin for a menu", "LINQ to SQL", "Visual Studio crash"),
    *("Magento cart is empty after login", "Scala implicit conversion", "Drupal node view", "Haskell monad tutorial"),
    *("How do I undo the last commit?", "Ajax call returns null", "Spring bean injection in a test"),
]
CHINESE = ["北京大学的新闻与研究", "经济增长与利率的变化", "天气预报说明天有雨"]
OPEN = {"min_df": 1, "max_df": 1.0}


@pytest.mark.parametrize("language", [*ARTICLE])
def test_stop_words_tell_languages_of_one_script_apart(language):
    assert detect_language([ARTICLE[language]]) == language
    assert make_tokenizer(sample=[ARTICLE[language]]).language == language


def test_english_titles_stay_english():
    assert detect_language(TITLES) == "en"
    for seed in range(50):
        some = np.random.default_rng(seed).choice(TITLES, 5, replace=False)
        assert detect_language(some) == "en"
    assert len(language_shares(TITLES * 5)) == 1


def test_it_is_said_how_sure_the_language_is(caplog):
    found = recognise([ARTICLE["de"]])
    words = ARTICLE["de"].lower().replace(".", "").split()
    listed = make_tokenizer("de").stop_words
    hits = sum(word in listed for word in words)
    assert (found.is_sure, found.share) == (True, pytest.approx(hits / len(words)))
    with caplog.at_level(logging.INFO, "topicloom"):
        Corpus.from_texts([ARTICLE["de"]], **OPEN)
    assert caplog.records[0].levelno == logging.INFO
    assert f"German (de), recognised by its stop words, which are {100 * hits / len(words):.0f} %" in caplog.messages[0]


def test_texts_without_stop_words_are_a_guess(caplog):
    lemmas = [f"inference markov chain method {word}" for word in ("remote sense support crop yield " * 8).split()]
    lemmas = [f"{text} w{row}" for row, text in enumerate(lemmas)]  # sense is a stop word of Catalan
    assert (recognise(lemmas).language, recognise(lemmas).is_sure) == ("en", False)
    assert recognise(["Haus Baum"]).sentence.startswith("language: English (en), a guess by the script alone")
    assert recognise(["今天天气很好"]).sentence.startswith("language: Chinese (zh), recognised by its script")
    Corpus.from_texts(lemmas, **OPEN)
    assert caplog.records[0].levelno == logging.WARNING
    assert "give `language`" in caplog.messages[0]


def test_close_languages_are_not_sure():
    galician = (
        "Todos os seres humanos nacen libres e iguais en dignidade e dereitos e, dotados como están de razón e "
        "conciencia, débense comportar fraternalmente uns cos outros."
    )
    assert not recognise([galician]).is_sure  # there is no list of Galician


def test_several_languages_in_blocks_are_said_with_shares(caplog):
    texts = [*[ARTICLE["en"]] * 700, *CHINESE * 233, *[ARTICLE["de"]] * 700]
    Corpus.from_texts(texts, **OPEN)
    remark = next(each for each in caplog.messages if "several languages" in each)
    assert all(f"33 % {name}" in remark for name in ("English (en)", "German (de)", "Chinese (zh)"))
    assert "a corpus of each" in remark
    caplog.clear()
    Corpus.from_texts([*[ARTICLE["en"]] * 400, *[ARTICLE["de"]] * 4], language="en", **OPEN)
    assert not caplog.messages


def test_shares_are_those_of_the_texts():
    texts = [*[ARTICLE["fr"]] * 60, *[ARTICLE["uk"]] * 30, *[ARTICLE["ru"] + " Это было так, и она была там."] * 10]
    assert language_shares(texts) == pytest.approx({"fr": 0.6, "uk": 0.3, "ru": 0.1})
    assert [*language_shares(texts)] == ["fr", "uk", "ru"]
    assert language_shares([]) == {}
    assert language_shares(["2024", "!"]) == {}


@pytest.mark.parametrize(("given", "texts"), [("en", "de"), ("de", "en"), ("zh", "fr"), ("ru", "uk"), ("fr", "ru")])
def test_a_wrong_name_of_the_language_is_a_warning(given, texts, caplog):
    assert other_language(given, [ARTICLE[texts]] * 3) == texts
    assert other_language(texts, [ARTICLE[texts]] * 3) is None
    Corpus.from_texts([ARTICLE[texts]] * 3, language=given, **OPEN)
    assert f'({texts}), but `language="{given}"` was given' in caplog.messages[0]


def test_malay_has_the_stop_words_of_indonesian():
    assert other_language("ms", [ARTICLE["id"]] * 3) is None


def test_tags_and_addresses_are_no_words():
    assert recognise(["<div class='la de les'>la https://la.de/les/des x@des.les</div>"]).n_words == 1


@pytest.mark.parametrize("n", [0, 1, 199, 400, 401, 1600, 5003])
def test_a_sample_is_spread_over_all_texts(n):
    generator, sample, start = np.random.default_rng(n), _Sample(), 0
    while start < n:
        end = start + int(generator.integers(1, 300))
        sample.extend([str(row) for row in range(start, min(end, n))])
        start = end
    step = 1
    while len(range(0, n, step)) > 400:
        step *= 2
    assert sample.texts == [str(row) for row in range(0, n, step)]
