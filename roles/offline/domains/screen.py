"""Media, Movies and Music: watching and listening."""

from __future__ import annotations

from ..model import Domain, Facet
from ..wordbank.screens import film_picks, show_picks
from ..wordbank.songs import MUSIC_GENRES, music_picks

_FILM_GENRES = (
    "drama", "dramas", "comedy", "comedies", "sci-fi", "science-fiction", "science fiction", "documentary",
    "documentaries", "reality", "horror", "action", "romance", "thriller", "thrillers", "fantasy", "mystery",
    "adventure",
    "animation", "anime", "historical fiction", "historical dramas", "biography", "biographies", "biopics",
    "superhero",
    "western", "crime", "war", "war movies", "coming-of-age", "period drama", "period dramas",
    "independent films",
    "foreign films", "foreign film", "foreign cinema", "musical", "musicals", "romantic comedy",
    "romantic comedies",
    "cooking shows", "history", "psychological", "family films", "epic",
)  # fmt: skip

_GENRE = Facet(
    "genre", r"genre|programme",
    ("I <like|usually go for|enjoy> {v}", "<something with|I'm in the mood for> {v}",
     "what I usually go for is {v}"),
    ("What do you <feel like|usually enjoy> watching?", "<Which|What> genres do you usually <like|enjoy>?"),
    ("You usually <go for|enjoy> {v}, so I <stayed with|kept to> that.", "It's in your usual range, {v}.",
     "I kept to {v}, since that's what you tend to watch."),
    r"genre|what do you|kind of (?:film|movie|show)|mood|usually (?:enjoy|like|watch)",
    lexicon=_FILM_GENRES,
    heads=r"(?:\w+ )?(?:reports|vlogs|explainers|documentaries|podcasts|tutorials|dramas?|comed(?:y|ies)|"
          r"tragicomedies|forecast|programmes|contests|skits|debate shows|cooking shows|classics|new wave|noir|"
          r"thrillers|science fiction|essays|horror|musicals|mysteries|heist films|concert films|animation|cinema|"
          r"westerns)",
    noun="the genre",
            shape="any",
        )  # fmt: skip

_PEOPLE = Facet(
    "people", r"actor|director|cast|star",
    ("I'll watch <anything|nearly anything> with {v}", "I'm <a big fan of|fond of> {v}", "I really like {v}"),
    ("Is there an actor or director you <like|follow>?",),
    ("I remembered that you're fond of {v}, so it should suit you.",
     "It should appeal to someone who admires {v}.",
     "If you like {v}, it should appeal to you."),
    r"actors?|directors?|anyone you",
    cue=r"actors?|actress(?:es)?|directors?|filmmakers?|films? (?:featuring|by|of|starring)|works? of|"
        r"featuring|starring",
    proper=True,
)  # fmt: skip

MEDIA = Domain(
    name="Media",
    thing=("something to watch", "what to watch", "something for the screen"),
    kind="recommend",
    facets=(
        _GENRE,
        _PEOPLE,
        Facet(
            "favorite", r"favou?rite (?:media|shows?|films?|movies?)|titles?|media",
            ("I loved {v}", "{v} <is|was> a favourite of mine", "the sort of thing like {v}"),
            ("What have you loved recently?", "Which show did you enjoy last?"),
            ("If you liked {v1}, you'll be at home in it.",
             "It has something of {v1}, one of your favourites."),
            r"loved|which show|enjoy(?:ed)? last|favou?rite",
            cue=r"films? like|series like|shows? like|titles?|such as|like|favou?rites?", proper=True,
        ),
        Facet(
            "platform", r"platform|service|stream|channel",
            ("I've got {v}", "we <have|use> {v} here", "it should be on {v}"),
            ("Which streaming service do you use?", "Where do you usually watch?"),
            ("Both are on {v1}, where you usually watch.",
             "I <only looked|looked> on {v}, since you have that."),
            r"streaming|service|platform|where do you",
            frame="{v}",
            lexicon=("Netflix", "Hulu", "Amazon Prime Video", "Amazon Prime", "Prime Video", "Disney+",
                     "Apple TV+", "Apple TV",
                     "HBO Max", "Paramount+", "YouTube", "BBC iPlayer", "Acorn TV", "Kanopy", "Twitch",
                     "Showtime", "Viaplay",
                     "NRK TV", "Crunchyroll", "Mubi", "FuboTV", "Showmax", "Hotstar"),
            proper=True,
        ),
        Facet(
            "hours", r"slot|time|when|hour",
            ("I <usually|mostly> watch {p}", "I'd have time for it {p}"),
            ("When do you usually watch?",),
            ("That's for {v}, your usual hour.", "You'd see it {p}, when you like to watch."),
            r"when do you usually watch",
            noun="the time",
            heads=r"(?:morning|evening|night|noon|midnight|breakfast|supper)s? (?:time)?|four in the afternoon|"
                  r"before sleep|nap time",
            shape="time",
        ),
    ),
    offers={
        "": ("How about {pick1}, {why1}? {pick2} <would be|is> another good one, {why2}[; you'll find both "
             "on {platform1}].",
             "<My picks are|I'd pick> {pick1} ({why1}) and {pick2} ({why2})[, both on {platform1}].",
             "{pick1} <comes to mind first|would be my first choice>: it's {why1}. If not, {pick2} is {why2}"
             "[. <Both are|You'll find them> on {platform1}]."),
        "track": ("I've put {favorite1} on a watchlist and switched on alerts for new seasons[ on "
                  "{platform1}]. Meanwhile, "
                  "{pick1} is {why1}.",
                  "I've set up a watchlist with alerts[ on {platform1}]; {pick1} is already on it, {why1}."),
    },
    done={
        "": ("I've queued {pick1}[ on {platform1}], with {pick2} after it.",
             "{pick1} is in your queue[ on {platform1}], and {pick2} is saved for later."),
        "track": ("<All set|Done>: the watchlist is on[, alerts come from {platform1}], and {pick1} is saved.",),
    },
    opening=("I'm looking for something to watch", "I need something good to watch"),
    bland=("There is a lot to watch these days. The popular titles are a good place to start.",
           "You might enjoy The Office. It is widely available.",
           "Streaming services offer many shows and films for every taste."),
    items=show_picks,
)  # fmt: skip

MOVIES = Domain(
    name="Movies",
    thing=("the film", "a film at the cinema", "the cinema"),
    kind="recommend",
    facets=(
        _GENRE,
        _PEOPLE,
        Facet(
            "theater", r"theat(?:er|re)|cinema|screen|place",
            ("I like {p}", "{p} would be best", "I'd <rather go to|prefer> {p}"),
            ("What kind of cinema do you like?", "A standard screen, or something bigger like IMAX?"),
            ("It's {p}, as you like it.", "I chose {p}, your usual kind of screen."),
            r"kind of cinema|screen|imax|theat(?:er|re)",
            frame="a {v} screen",
            say={"standard": "a standard screen", "open-air cinema": "an open-air cinema",
                 "drive-in": "a drive-in"},
            lexicon=("IMAX", "open-air cinema", "drive-in", "standard theaters", "standard", "3D"),
            heads=r"late show at \w+|village hall screenings|open-air cinema",
            noun="the place",
            shape="thing",
        ),
        Facet(
            "hours", r"time|when|day",
            ("I <usually|mostly> go {p}", "I like going {p}", "I'd rather go {p}"),
            ("When would you like to go?", "Which time of day suits you?"),
            ("You <tend to|usually> go {p}, so I looked there first.",),
            r"when would|time of day|which time|what time",
            say={"matinee": "to a matinee", "evening": "in the evening", "late night": "late at night",
                 "weekends only": "on weekends only", "weekends": "on weekends",
                 "afternoons": "in the afternoons",
                 "mornings": "in the mornings", "holidays": "in the holidays",
                 "late afternoon": "in the late afternoon",
                 "family movie night": "for a family movie night", "weekday evenings": "on weekday evenings",
                 "early evenings": "in the early evening", "special occasions": "on special occasions",
                 "midday": "around midday", "whenever free": "on free days"},
            lexicon=("matinees", "matinee", "late night", "weekends", "weekday evenings", "evening",
                     "evenings",
                     "holidays", "family movie night", "late afternoon", "after work", "afternoons"),
            noun="the time",
        ),
        Facet(
            "seat", r"seat",
            ("I like {p}", "{p}, if <there are any|possible>", "I always look for {p}"),
            ("Where do you like to sit?", "Any wishes for the seats?"),
            ("I looked for {p}, your usual spot.", "There are still {p} left, which you like."),
            r"seats?|sit\b",
            frame="{v} seats",
            say={"middle row": "seats in the middle row", "back row": "seats in the back row",
                 "front row": "seats in the front row", "center": "seats in the center",
                 "aisle": "seats on the aisle",
                 "reclining seats": "reclining seats", "corner seats": "corner seats",
                 "double seat": "a double seat",
                 "single seat": "a single seat", "vip seating": "VIP seating", "sofa seating": "sofa seating",
                 "balcony seating": "balcony seating", "box seats": "box seats",
                 "back corner seats": "back corner seats",
                 "row with extra legroom": "a row with extra legroom",
                 "accessible seating": "accessible seating",
                 "lower level seating": "lower level seating", "higher tier seating": "higher tier seating"},
            lexicon=("middle row", "back row", "front row", "center", "aisle", "reclining seats",
                     "double seat",
                     "corner seats", "extra legroom", "balcony seating", "VIP seating"),
            noun="the seats",
        ),
        Facet(
            "language", r"language|track|subtitle",
            ("the version I like: {v}", "about the language: {v}, please"),
            ("Original or dubbed?",),
            ("It's the version you like: {v}.", "I checked the version: {v}.",),
            r"original or dubbed|language",
            noun="the language",
            heads=r"original(?: with \w+ subtitles)?|\w+ with (?:English )?(?:subtitles|captions)|dubbed|voice-over",
            shape="any",
        ),
    ),
    offers={
        "": ("{film1} is {why1}, and it's on at {venue}[ in {city}] at {hour}. {film2} would be the other "
             "choice, {why2}.",
             "How about {film1}? It's {why1}, showing at {venue}[ in {city}], {hour}[, with {seat}].",
             "<I'd go for|My pick is> {film1} at {venue}[ in {city}], {hour}: {why1}. {film2} is worth a "
             "look too, {why2}."),
        "book": ("{venue}[ in {city}] shows {film1} at {hour}, {why1}, and there are still {seat_free}.",
                 "{film1} runs at {venue}[ in {city}] at {hour}[, {theater}]; I'm holding {seat_free}. It's "
                 "{why1}."),
    },
    done={
        "": ("{film1} is on your list: {venue}, {hour}[, {seat}].",
             "I've saved {film1} at {venue}, {hour}[, with {seat}]."),
        "book": ("I've booked your tickets: {film1}, {venue}, {hour}[, {seat}].",
                 "Your tickets for {film1} are booked, {hour} at {venue}[, {seat}]."),
    },
    opening=("I'd like to see a film", "I'm thinking of going to the cinema"),
    bland=("There are several movies playing right now. Check your local cinema for times.",
           "Action films are popular at the moment, so one of those could be an option.",
           "Movie tickets can be bought online or at the box office."),
    items=film_picks,
)  # fmt: skip

MUSIC = Domain(
    name="Music",
    thing=("the music", "a playlist", "something to listen to"),
    kind="recommend",
    facets=(
        Facet(
            "genre", r"genre|style",
            ("I <mostly|usually> listen to {v}", "I'm <a|really a> {v} person", "I <love|grew up with> {v}"),
            ("What do you usually listen to?", "Which genres do you like?"),
            ("I <kept to|stayed near> {v}, which you <play most|love>.",
             "You listen to a lot of {v}, so I began there."),
            r"genre|usually listen|kind of music|what do you",
            lexicon=(*MUSIC_GENRES, "classic rock", "hip-hop", "funk", "disco", "R&B", "world music", "indie",
                     "gospel"),
            heads=r"(?:\w+ )?(?:techno|rock|[\w-]*pop|highlife|choir|hymns|jazz|folk|soul|sevdalinka|chanson|"
                  r"ambient|quartets|fiddle|violin|brass band|metal|morna|choral|samba|reggae|blues|harp|shamisen|"
                  r"electroclash|alté)",
            noun="the style",
            shape="any",
        ),
        Facet(
            "artist", r"artist|singer|musician",
            ("I'm <fond of|a fan of> {v}", "I've always liked {v}", "I never tire of {v}"),
            ("Which artists do you like?", "Is there anyone you play all the time?"),
            ("It sits well next to {v}, whom you <love|like>.",
             "I <started from|thought of> {v1}, one of your favourites."),
            r"artists?|anyone you|singers?|who do you",
            cue=r"artists?|singers?|musicians?|composers?|like|similar to", proper=True,
        ),
        Facet(
            "band", r"band|group",
            ("I'm into {v}", "I play a lot of {v}"),
            ("Any bands you love?",),
            ("If you like {v}, this should land well.", "You play {v} a lot, and you can hear that here."),
            r"bands?",
            cue=r"bands?|groups?", proper=True,
        ),
        Facet(
            "album", r"album|record",
            ("{v} <is my favourite album|never leaves my playlist>", "I keep playing {v}"),
            ("Which album do you keep going back to?",),
            ("{v1} is in there, naturally.", "I took {v1} as the measure, since you love that album."),
            r"albums?",
            cue=r"albums?|records?", proper=True,
        ),
        Facet(
            "platform", r"platform|service|app\b",
            ("I use {v}", "I <listen|play everything> on {v}"),
            ("Where do you listen, which app?", "Which service do you use?"),
            ("It's all on {v1}, where you listen.", "I've made it for {v1}, your usual app."),
            r"where do you listen|which (?:app|service)|platform",
            lexicon=("Spotify", "Apple Music", "YouTube Music", "Amazon Music", "Tidal", "Deezer", "Pandora",
                     "SoundCloud",
                     "Qobuz", "Bandcamp"),
            proper=True,
        ),
        Facet(
            "quality", r"quality|audio",
            ("I'd like it in {p}", "{p} matters to me"),
            ("How much does sound quality matter to you?",),
            ("It plays in {p}, as you like it.",),
            r"quality",
            frame="{v} quality", say={"lossless": "lossless quality", "high definition": "high definition"},
            lexicon=("lossless", "high definition", "high-fidelity"),
        ),
        Facet(
            "playlist", r"playlist|mood",
            ("I like {p}", "my <usual lists are|favourites are> {p}"),
            ("What <mood|occasion> is it for?",),
            ("It follows your {v} lists.", "I matched it to your {v} playlists."),
            r"mood|occasion|playlist for",
            frame="{v} playlists",
            lexicon=("workout", "relaxation", "relaxing", "nostalgic", "instrumental", "focus", "study",
                     "road trip", "party",
                     "chill"),
        ),
        Facet(
            "moment", r"moment|occasion|during",
            ("I listen mostly {p}", "I usually have music on {p}"),
            ("When do you listen?",),
            ("I pictured you listening {p}.", "It's made for when you listen, {p}."),
            r"when do you listen",
            noun="the moment",
            heads=r"after [\w ]{3,20}(?:shift|lunch|bath|work)|(?:morning|evening) commute|cooking (?:dinner|on "
                  r"Sundays)|jogging",
            shape="time",
        ),
    ),
    offers={
        "": ("I'd <start with|try> {pick1}, {why1}, and then {pick2}, {why2}[. Both are on {platform1}].",
             "Have a listen to {pick1}: {why1}. {pick2} <goes well with it|would be next>, {why2}[. You'll "
             "find them on "
             "{platform1}].",
             "<Two ideas|Two to start with>: {pick1}, {why1}, and {pick2}, {why2}."),
        "setup": ("I've made a playlist[ on {platform1}] of twenty-five tracks[ for {occasion}]: it opens "
                  "with {pick1}, "
                  "{why1}, and moves on to {pick2}.",
                  "Your playlist[ for {occasion}] is ready[ on {platform1}]: {pick1} to begin, {why1}, then "
                  "{pick2}."),
    },
    done={
        "": ("I've saved {pick1} and {pick2} to your library[ on {platform1}][, in {quality}].",
             "{pick1} and {pick2} are in your library now[, in {quality}]."),
        "setup": ("Your playlist is saved[ on {platform1}][, in {quality}], from {pick1} to {pick2}.",),
    },
    opening=("I'd like some new music", "I need something new to listen to"),
    bland=("There is so much great music to explore. The current charts are a good start.",
           "I've created a playlist with today's top hits.",
           "Music apps have playlists for every mood, so you could pick one of those."),
    items=music_picks,
)  # fmt: skip

DOMAINS = (MEDIA, MOVIES, MUSIC)
