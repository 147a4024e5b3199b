"""Forms of English verbs: the plain form of a third person, and the -ing form."""

from __future__ import annotations

from functools import cache

_BASES = frozenset(
    """
    babysit binge code farm graze fetch haggle hitchhike jot knead misplace mumble oversee pedal pester
    procrastinate quarrel reheat scrub skim slice sneak snooze squeeze steer stream swear tease thrive
    transcribe whisper whittle wink yodel accept accompany ache act adapt add admire admit adopt adore advise
    aim allow answer apologise appreciate argue arrange arrive ask assemble attend avoid bake barter bathe
    battle be bear beat become beg begin believe belong bet bike bind bite blame blog blow board boast boil
    borrow bottle bounce bowl box brag break breathe breed brew bring browse brush build bury buy call camp can
    care carry carve catch celebrate change chase chat check cheer choose chop clean climb coach collect comb
    come comment commute compete complain complete compose compost confess connect consider consult consume
    contribute control convince cook cope copy count cover crave create crochet cross cry cultivate curate cut
    cycle dance dare darn date deal decide decorate defend delight deliver depend design despise detest develop
    devote devour die dig dine disagree discover discuss dislike distrust dive do doodle doubt draw dread dream
    dress drink drive drop dry dwell earn eat edit embrace embroider encourage end enjoy enter entertain envy
    escape exercise expect experiment explain explore express face fail fall fancy fasten favour fear feed feel
    ferment fetch fiddle fidget fight fill film find finish fish fit fix fly fold follow forage forget forgive
    frame freeze fret fry garden gather get give go grab greet grill grow grumble guess guide hand handle hang
    harvest hate haunt have hear help hide hike hire hoard hold hope host hum hunt hurry ignore illustrate
    imagine improve insist invent invest invite iron jog join joke judge juggle jump keep kayak kick kiss kneel
    knit know lack last laugh lead lean learn leave lend let lie lift light like listen litter live load loathe
    long look lose love make manage march mark marry master match matter mean measure meditate meet mend mention
    message milk mind miss mix model mop move mow muck name nap navigate need nibble notice nurse nurture obey
    observe offer open operate order organise organize overthink overwater owe own pack paddle paint park
    participate pass patch pay peel perform phone photograph pick pickle pitch plan plant play plough polish pop
    post pot pour practice practise praise pray prefer prepare preserve press pretend promise prune pull push
    put quilt quit quote race raise read rearrange rebuild receive recite recognise record recycle refuse regret
    rehearse relax rely remain remember remind rent repair repeat reply rescue research resent respect rest
    restore return reuse rewatch reread ride ring rise roam roast roll row run rush sail save say scribble scour
    scuba sculpt search see seek seem sell send serve set settle sew shake share sharpen shave shine shoot shop
    shout show shower sign sing sip sit skate sketch ski skip slam sleep slip smile smoke smell snack snore
    snowboard soak socialise solve sort sow speak spend spin split spoil spot stack stand stare start stay steal
    steam stick stitch stock stop store stretch strike stroll struggle study stumble substitute suffer suggest
    supervise support suppose surf survive suspect sweat sweep swim swing take talk tap taste teach tell tend
    test text thank think throw tick tidy tie tinker toast tolerate train translate travel treat treasure trim
    trust try tune turn tutor type understand unwind update use vacuum value visit volunteer vote wait wake walk
    wander want warm wash waste watch water wave wear weave weed weigh welcome whistle win wish wonder work
    worry worship worry wrap wrestle write yearn yell yield
    """.split()
)
_NOUNISH = frozenset(
    """
    answer bake bet board bottle box brush call camp care change chat check coach comb comment cook copy count
    cover cross cry cut cycle dance date deal delight design dish dive doodle drawing dream dress drink drive
    drop end escape exercise experiment face fear film finish fish fit fight garden guess guide hand handle
    harvest help hike hope host hunt iron jog joke judge jump kayak kick kiss last laugh lead lift light litter
    look love march mark match mind mix model move name nap need notice nurse offer order paint park pass patch
    phone photograph pick pickle pitch plan plant play polish pop post pot practice press promise quilt quote
    race record regret rent repair rescue research respect rest return ride ring rise roast roll row run rush
    sail search set shake share shop show shower sign sketch ski skip sleep slip smile smoke smell snack sort
    spot stack stand start stay steam stick stitch stock stop store stretch strike stroll struggle study support
    surf sweat swim swing talk tap taste test text thank tie toast train travel treat trim trust try tune turn
    tutor type update use value visit volunteer vote wait wake walk wash waste watch water wave welcome whistle
    win wish work worry
    """.split()
)
_IRREGULAR = {"is": "am", "has": "have", "does": "do", "goes": "go", "was": "was", "lies": "lie", "ties": "tie"}
_IRREGULAR |= {"dies": "die", "isn't": "am not", "doesn't": "don't", "hasn't": "haven't", "wasn't": "wasn't"}
_DOUBLED = frozenset(
    """
    beg begin bet brag can chat chop commit cut dig drop fit get grab hum jog knit let mop nap pat pet plan pop
    put quit rub run set shop sit skip slip spin split spot step stop swim tap tip trim win wrap forget hug swap
    scan sip
    """.split()
)


@cache
def plain_form(word: str) -> str:
    """Give the form that goes with "I" for one that goes with "she": `works` -> `work`, `is` -> `am`."""
    low = word.lower().replace("’", "'")
    if low in _IRREGULAR:
        return _IRREGULAR[low]
    if not low.endswith("s") or low.endswith("ss") or len(low) < 4:
        return word
    if low.endswith("ies"):
        return word[:-3] + "y"
    if low[:-1] in _BASES:
        return word[:-1]
    if low.endswith(("sses", "shes", "ches", "xes", "zes", "oes")):
        return word[:-2]
    return word[:-1]


def known_third_person(word: str) -> bool:
    """Tell whether a word is the third person of a known verb."""
    low = word.lower().replace("’", "'")
    return low in _IRREGULAR or (low.endswith("s") and not low.endswith("ss") and plain_form(low) in _BASES)


def may_be_noun(word: str) -> bool:
    """Tell whether a third person form is as well the plural of a common noun: `walks`, `plants`."""
    return plain_form(word.lower()) in _NOUNISH


def is_plain_form(word: str) -> bool:
    """Tell whether a word is the plain form of a known verb."""
    return word.lower() in _BASES


@cache
def ing_form(word: str) -> str:
    """Give the -ing form of a plain form: `run` -> `running`, `am` -> `being`."""
    low = word.lower()
    if low in ("am", "be", "are", "is"):
        return "being"
    if low.endswith("ie"):
        return low[:-2] + "ying"
    if low in _DOUBLED:
        return low + low[-1] + "ing"
    if low.endswith("c"):
        return low + "king"
    if low.endswith("e") and not low.endswith(("ee", "oe", "ye")):
        return low[:-1] + "ing"
    if low == "travel":
        return "travelling"
    return low + "ing"
