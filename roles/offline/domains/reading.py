"""Books and Games: something to sink into."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.games import game_picks
from ..wordbank.titles import BOOK_GENRES, book_picks

BOOKS = Domain(
    name="Books",
    thing=("something to read", "the book", "the reading"),
    kind="recommend",
    facets=(
        Facet(
            "genre", r"genre",
            ("I'm mostly into {v}", "I <usually read|love> {v}", "my thing is {v}",
             "I keep coming back to {v}"),
            ("<What|Which genres> do you <usually|normally> enjoy?",
             "What <kind of|sort of> books do you usually like?"),
            ("I <stayed with|looked among> {v}, your usual corner of the shelf.",
             "They're all {v}, which you enjoy most.",
             "You like {v}, so I started there."),
            r"genre|kind of book|sort of book|usually (?:enjoy|like|read)|what do you",
            lexicon=(*BOOK_GENRES, "non-fiction", "nonfiction", "young adult", "memoirs", "classics",
                     "poetry",
                     "self-help", "paranormal romance", "urban fantasy", "historical fiction"),
            heads=r"(?:\w+ )?(?:science fiction|history|accounts|memoirs?|novels|poetry|crime|stories|essays|"
                  r"biograph(?:y|ies)|Afrofuturism|earth science|comics|travel writing|noir|folklore|thrillers)",
            noun="the genre",
            shape="any",
        ),
        Facet(
            "author", r"author|writer",
            ("I <really like|love|can't get enough of> {v}", "my taste is close to {v}"),
            ("Is there an author you <especially|really> like?", "Which authors have you enjoyed?"),
            ("They should suit someone who <loves|enjoys> {v}.",
             "I had {v} in mind, since you <like|enjoy> them.",
             "If you enjoy {v}, these should feel familiar."),
            r"authors?|writer",
            cue=r"authors?|writers?|biographers?|novelists?|works? of|books by|poets?", proper=True,
        ),
        Facet(
            "book", r"favou?rite books?$|titles?|recent",
            ("{v} <was one I couldn't put down|is one of my favourites>", "I loved {v}"),
            ("Which book did you enjoy lately?", "What was the last book you loved?"),
            ("Since you loved {v1}, I looked for the same feeling.",
             "They're close in spirit to {v1}, one of your favourites."),
            r"which book|last book|book did you",
            cue=r"novels?|titles?|books?|works", proper=True,
        ),
        Facet(
            "series", r"series|saga",
            ("{v} is a series I <go back to|loved>", "I've <already read|finished> {v}"),
            ("Are there any series you have loved?",),
            ("You've <enjoyed|followed> {v1}, so I kept an eye on series like that.",),
            r"series",
            cue=r"series|sagas?|trilog(?:y|ies)|franchises?", proper=True,
        ),
        Facet(
            "format", r"format|medium",
            ("I'd rather have {p}", "{p} would suit me", "I prefer {p}"),
            ("Paper, ebook or audiobook?", "Which format do you prefer?"),
            ("<All|Both> of them come as {p}, which you prefer.",
             "You can get them as {p}, your usual format."),
            r"format|paper|audiobook",
            say={"physical": "physical copies", "physical books": "physical books", "ebook": "ebooks",
                 "audiobook": "audiobooks", "hardcover": "hardcovers", "paperback": "paperbacks"},
            lexicon=("physical copies", "physical books", "physical", "ebooks", "ebook", "audiobooks",
                     "audiobook",
                     "paperbacks", "paperback", "hardcover", "large print"),
            heads=r"(?:large-print )?(?:hardback|hardcover|paperback|audiobook|e-book|e-reader)(?: (?:with|from|on) "
                  r"(?:the |her |his )?\w+)?",
            noun="the format",
            shape="thing",
        ),
        Facet(
            "hours", r"time",
            ("I <mostly|usually> read in the {v}", "my reading time is the {v}"),
            ("When do you usually read?",),
            ("Both are good for reading in the {v}, when you <usually|tend to> pick up a book.",),
            r"when do you (?:usually )?read",
            lexicon=("morning", "mornings", "afternoon", "evening", "evenings", "bedtime", "night"),
        ),
        Facet(
            "pace", r"frequen|often|pace",
            ("I read {p}", "I <get through|pick up> a book {p}"),
            ("How often do you get to read?",),
            ("You read {p}, so the length should be about right.",),
            r"how often|how much",
            frame="{v}", say={"daily": "daily", "weekly": "weekly", "monthly": "monthly"},
            lexicon=("daily", "weekly", "monthly", "occasionally", "on a weekly basis", "on a daily basis"),
        ),
        Facet(
            "mention", r"$^",
            ("{v} comes to mind",),
            ("What did you read last?",),
            ("You've spoken of {v} before, so I had that in mind.",
             "I remember that {v} came up before, and this is near it."),
            r"read last",
            proper=True,
        ),
    ),
    offers={
        "": ("I'd <suggest|start with> {pick1}, {why1}, and {pick2}, {why2}[. Both come as {format}].",
             "How about {pick1}? It's {why1}. {pick2} would be my second choice, {why2}.",
             "<Two that stand out are|My two picks are> {pick1} and {pick2}: the first is {why1}, the "
             "second {why2}[. "
             "You can have them as {format}].",
             "Here are two: {pick1} ({why1}) and {pick2} ({why2})."),
    },
    done={
        "": ("I've put {pick1} and {pick2} on your reading list[, as {format}].",
             "{pick1} is on your list now, with {pick2} to follow[, both as {format}].",
             "I've saved {pick1} and {pick2} for you[, as {format}]."),
    },
    opening=("I'm looking for something new to read", "I need a good book"),
    bland=("There are many great books out there. Bestseller lists are a good place to start.",
           "I recommend The Midnight Library by Matt Haig. Many readers like it.",
           "You could look at popular titles in an online bookshop."),
    items=book_picks,
)  # fmt: skip

GAMES = Domain(
    name="Games",
    thing=("the games", "a game", "something to play"),
    kind="recommend",
    facets=(
        Facet(
            "genre", r"genre|game types",
            ("I'm into {p}", "I <mostly|usually> play {p}", "what I enjoy most is {p}"),
            ("<What kind of|Which> games do you usually enjoy?", "Which genres do you like best?"),
            ("You <tend to play|like> {p}, so I <looked|stayed> there.",
             "I kept to {p}, since that's what you usually play."),
            r"genre|kind of game|which games|usually (?:enjoy|play)",
            frame="{v} games",
            say={"card games": "card games", "board games": "board games", "party games": "party games"},
            lexicon=("RPGs", "RPG", "FPS", "strategy", "puzzle games", "puzzle", "adventure", "simulation",
                     "action",
                     "MOBA", "MMORPG", "horror", "sandbox", "racing", "fighting", "survival", "platformer",
                     "card games",
                     "board games", "battle royale", "party games", "rhythm", "stealth", "roguelike",
                     "visual novel",
                     "metroidvania", "tower defense", "deck-building", "sports games", "sports"),
            heads=r"(?:\w+ )?(?:craft|simulators?|puzzles|platformers|quizzes|builders|sudoku|rummy|chess|"
                  r"crosswords|dominoes|strategy|pinball)",
            noun="the kind of game",
            shape="any",
        ),
        Facet(
            "platform", r"platform|console|device",
            ("I play on {p}", "it has to run on {p}", "what I've got is {p}"),
            ("What do you play on?", "Which platform do you use?"),
            ("<Both|They both> run on {p}, where you play.", "I checked that you can play on {p}."),
            r"platform|play on|console",
            lexicon=("PC", "mobile", "Xbox", "PlayStation", "Nintendo Switch", "Switch", "Steam Deck"),
            proper=True,
            heads=r"(?:gaming |borrowed )?laptop|Android phone|iPad|Steam Deck|PlayStation \d(?: with wheel)?|"
                  r"Nintendo Switch|old tablet|newspaper page",
            noun="the device",
            shape="thing",
        ),
        Facet(
            "players", r"multiplayer|player|mode",
            ("I like {p}", "I <usually|mostly> go for {p}"),
            ("Do you play alone or with others?", "Single player, or with friends?"),
            ("You usually go for {p}, and that works <here|with both>.",),
            r"alone|with (?:friends|others)|single player",
            say={"single player": "single-player games", "online multiplayer": "online multiplayer",
                 "local multiplayer": "local multiplayer on the sofa"},
            lexicon=("single-player", "single player", "online multiplayer", "local multiplayer", "co-op"),
        ),
        Facet(
            "favorite", r"name|title|favou?rite",
            ("I've spent <ages on|many hours on> {v}",
             "{v} <is an old favourite|is the kind of thing I love>"),
            ("Is there a game you've really enjoyed?",),
            ("Since you <love|enjoy> {v}, these should feel like home.",
             "They share something with {v}, which you know well."),
            r"game you|favou?rite",
            cue=r"games? (?:like|such as|including)|titles?|franchises?|such as|like", proper=True,
        ),
        Facet(
            "pace", r"frequen|often|habit|session",
            ("I play {p}", "I get to play {p}"),
            ("How often do you get to play?",),
            ("You play {p}, so I chose ones that fit into that.",),
            r"how often|how much time|how long",
            say={"weekly": "weekly", "daily": "daily"},
            lexicon=("daily", "weekly", "weekends only", "occasionally", "2-3 times per week",
                     "a few times a week",
                     "several times a week"),
        ),
    ),
    offers={
        "": ("I'd <try|look at> {pick1}, {why1}, or {pick2}, {why2}[. You can play both on {platform1}].",
             "How about {pick1}? It's {why1}[ and it runs on {platform1}]. {pick2} is good too, {why2}.",
             "Two that <stand out|come to mind>: {pick1}, {why1}, and {pick2}, {why2}."),
        "book": ("{pick1} <would be my choice|looks right>: {why1}[, and it's out on {platform1}]. The "
                 "standard edition is "
                 "on offer for ${price}.",
                 "I found {pick1} for ${price}[ on {platform1}]: {why1}. {pick2} would be the alternative, "
                 "{why2}."),
    },
    done={
        "": ("I've put {pick1} on your wish list[ for {platform1}], with {pick2} as a spare.",
             "{pick1} is saved to your list[ for {platform1}], and {pick2} below it."),
        "book": ("I've bought {pick1}[ for {platform1}] for ${price}; the download is ready.",
                 "{pick1} is yours[ on {platform1}], ${price} in all."),
    },
    opening=("I'm looking for a new game", "I could use a new game to play"),
    bland=("There are plenty of popular games available. Fortnite is a well-known option.",
           "You could check the top charts of the game store.",
           "Many people enjoy playing games in their free time. What's popular is usually a safe choice."),
    items=game_picks,
)  # fmt: skip

DOMAINS = (BOOKS, GAMES)
