"""What the assistants say around the facts."""

from __future__ import annotations

MEMORY_LEAD = (
    "I remember <a few things|a thing or two> from last time.",
    "Going by what you've <liked|chosen> before, I have <something|an idea>.",
    "I've looked at what you usually choose.",
    "Happy to, and I think I know what suits you.",
    "Of course. I still have your habits in mind.",
    "<Sure, let|Let> me build on what worked before.",
    "<With pleasure|Gladly>. I've gone by your past requests.",
    "Right away, and in your usual style.",
    "Gladly.",
    "Of course.",
    "Sure thing.",
    "I <think|believe> I know your taste by now.",
    "<Good that you ask|Right>, here's what I'd do for you.",
    "As I know you a little by now, this was quick.",
    "Happy to.",
    "On it.",
)
PLAIN_LEAD = (
    "Happy to help<| with that>.",
    "Sure, let's sort that out.",
    "Of course.",
    "Gladly.",
    "Let's find something that suits you.",
    "With pleasure.",
    "Certainly.",
    "Good idea.",
    "Sure thing.",
    "Leave it to me.",
    "I'm on it.",
    "Let's get that done.",
    "Sure.",
    "Right away.",
    "<Let|Just let> me have a look.",
)
KEPT = (
    "I have {all} in mind, as usual.",
    "I remember {all} from before.",
    "I'll remember {all} for you.",
    "I've kept a note of this: {all}.",
)
# For remembered words that fit no sentence of their kind.
OWN_WORDS = (
    "I haven't forgotten this: {v}.",
    "I kept in mind what you once said: {v}.",
    "I also went by your own words: {v}.",
)
# Guesses about a person nobody has described, marked as guesses; right for some.
GUESS: dict[str, tuple[str, ...]] = {
    "Alarm": ("I've assumed weekdays, tell me if not.", "I've put it on weekdays to begin with."),
    "Books": ("I'd guess you like physical books, they're easy to get.", "Both make good evening reading, I'd say."),
    "Buses": ("I took a window seat as a guess.", "I went for a morning departure, as a guess."),
    "Calendar": (
        "I've put the reminder 1 day before, as a guess.",
        "I set a reminder for 30 minutes before, just in case.",
    ),
    "Events": ("I kept to weekends, I hope that's right.", "I took it that you'd come with a small group."),
    "Finance": (
        "I'd expect technology to matter to you, so it's in there.",
        "I left out social media and kept to company reports.",
    ),
    "Flights": ("I looked at non-stop flights first, most people like those.", "I took a window seat as a guess."),
    "Games": ("I assumed a PC, most of these run there.", "They work well as single player games, too."),
    "Hotels": ("There's WiFi and a gym, I checked that just in case.", "I assumed the city center is best."),
    "Media": ("I looked on Netflix first, as most people have it.",),
    "Messaging": ("I kept it casual, say so if it should be otherwise.",),
    "Movies": ("I assumed the evening suits you.", "I looked at a standard screen."),
    "Music": ("I assumed Spotify, tell me if you use something else.",),
    "Rental Cars": ("I added GPS, just in case.", "I assumed a gasoline engine."),
    "Restaurants": ("I took a casual place as a safe guess.", "I kept the prices moderate."),
    "Services": ("I looked near home, to make it easy.", "I took a morning slot as a guess."),
    "Shopping": ("I kept it mid-range, as a guess.",),
    "Sports": ("I listed what you can watch live.",),
    "Train": ("I took a window seat as a guess.", "There's WiFi on board, by the way."),
    "Travel": ("I pictured you going as a couple, tell me if not.", "I'd go in summer, I think."),
}
ACKNOWLEDGE = (
    "Noted: {p}.",
    "Got it, {p}.",
    "Good to know: {p}.",
    "Thanks, that helps: {p}.",
    "Understood, {p} it is.",
    "I'll go by that: {p}.",
    "Right, {p}.",
    "Lovely, {p}.",
    "Okay, {p}, I've got that.",
)
# The thing was done already when the wish came.
ADAPTED = (
    "No problem, I've changed that: {p}.",
    "That can still be changed. It's noted now: {p}.",
    "I've passed that on: {p}.",
    "Easily done, I've added {p}.",
    "Not too late at all: {p}, and it's corrected.",
)
WHAT_ABOUT = (
    "Gladly. What is it about?",
    "Of course. What can I do for you exactly?",
    "Happy to help. What do you have in mind?",
    "Sure. Tell me a little more, what do you need?",
)
REVISED = (
    "Then I'd change the plan a little.",
    "Let me adjust that.",
    "That narrows it down.",
    "In that case, here's a better fit.",
    "With that in mind:",
)
DONE_LEAD = ("Great.", "Perfect.", "Good choice.", "Consider it done.", "Very good.", "Lovely.", "Here we go.", "")
MOVE_ON = (
    "What's next?",
    "Is there anything else on the list?",
    "Tell me if you'd like anything changed.",
    "Shall we go on?",
    "You can change it at any time.",
    "Anything else I should take care of?",
)
ASK_MORE = (
    "Does that suit you?",
    "Is that right for you?",
    "Would you like anything changed?",
    "Is there anything you'd like different?",
)
GO_AHEAD = {
    "": (
        "Shall I save these for you?",
        "Does that sound like you?",
        "Would you like me to note them down?",
        "Shall I put that on your list?",
        "Is that the right direction?",
    ),
    "book": (
        "Shall I book it?",
        "Would you like me to reserve it?",
        "Shall I go ahead with that?",
        "Can I book that for you?",
    ),
    "deliver": ("Shall I place the order?", "Would you like me to order that?"),
    "Restaurants": ("Shall I book a table there?", "Would you like me to reserve it?", "Does that sound good?"),
    "Events": ("Shall I keep that in your list?", "Is one of them for you?"),
    "Movies": ("Shall I note that down?", "Is that the right sort of film?"),
    "Hotels": ("Shall I hold the room?", "Would you like me to book it?"),
    "Rental Cars": ("Shall I reserve it?", "Would you like me to hold it for you?"),
    "Music": ("Shall I save both to your library?", "Is that the right direction?"),
    "Finance": ("Would you like more detail on that?", "Shall I keep an eye on it?"),
    "plan": ("Shall I save the plan?", "Does that pace suit you?", "Would you like me to keep that?"),
    "compare": ("Shall I keep that in your notes?", "Would you like more detail on one of them?"),
}
NEEDS = {
    "dest": ("Where are you going?", "Where would you like to go?", "Which destination do you have in mind?"),
    "date": ("Which day should I look at?", "Which date is it for?"),
    "recipient": ("Who should get it, and what should it say?", "Who is it for, and what shall I write?"),
    "event": ("What's the event called, so that I can enter it?", "What should I put in?"),
    "service": ("What kind of appointment is it?", "Which service do you need, a haircut for example?"),
    "more": ("What matters most to you here?", "Is there anything you already have in mind?"),
}
RECAP = (
    "You're very welcome.",
    "My pleasure.",
    "Gladly.",
    "With pleasure.",
    "Always happy to help.",
    "You're welcome!",
    "Any time.",
    "Don't mention it.",
    "Glad that's done.",
    "It was no trouble.",
    "Happy that it suits you.",
)
CONTEXT = (
    "I've <sent the details to|put the details on> your {device}.",
    "It's all on your {device} as well.",
    "That still fits into your {day} {part}.",
    "It should make for a <calm|pleasant> {day} {part}.",
    "I looked around {city} first.",
    "It's <all|everything is> within reach in {city}.",
)
SUMMARY = (
    "So that's {all}.",
    "Everything is in place: {all}.",
    "You now have {all}.",
    "To sum up, there's {all}.",
    "That gives you {all}.",
)
SHORT: dict[str, tuple[str, ...]] = {
    "Alarm": ("the {time} alarm",),
    "Books": ("{pick1} to read", "{pick1} on your list"),
    "Games": ("{pick1} on your list", "{pick1} to play"),
    "Calendar": ("{event} in the calendar", "{event} at {hour}"),
    "Messaging": ("the message to {recipient}", "a word to {recipient}"),
    "Media": ("{pick1} in the queue", "{pick1} to watch"),
    "Movies": ("{film1} at {venue}",),
    "Music": ("{pick1} to listen to", "the music, from {pick1} on"),
    "Restaurants": ("a meal from {place}", "{place} for dinner"),
    "Events": ("{event1}", "a place at {event1}"),
    "Sports": ("the match {fixture}",),
    "Flights": ("the {dep} flight to {dest}",),
    "Train": ("the {dep} train to {dest}",),
    "Buses": ("the {dep} bus to {dest}",),
    "Hotels": ("a room at {hotel}",),
    "Rental Cars": ("{car} to drive",),
    "Travel": ("{sight1} in {dest}", "a plan for {dest}"),
    "Finance": ("the alerts for {company_or}", "the watchlist"),
    "Services": ("{service} at {provider}",),
    "Shopping": ("{item1} in the basket",),
}
WISH: dict[str, tuple[str, ...]] = {
    "Alarm": ("Sleep well until {time}.", "Good night, and an easy start at {time}.", "May {time} feel late enough."),
    "Books": ("Enjoy {pick1}.", "I hope {pick1} grips you.", "Happy reading!", "Tell me how you liked {pick1}."),
    "Games": ("Have fun with {pick1}.", "Enjoy {pick1}!", "I'm curious how you'll like {pick1}."),
    "Calendar": (
        "I hope {event} goes well.",
        "Good luck with {event}.",
        "You won't miss {event} now.",
        "Your calendar will take care of the rest.",
    ),
    "Messaging": ("I'll tell you when an answer comes.", "I hope you hear back soon.", "Give my best to {recipient}."),
    "Media": ("Enjoy {pick1}.", "Lean back and enjoy.", "I hope {pick1} is your kind of thing.", "Popcorn ready?"),
    "Movies": ("Enjoy {film1}.", "Have a good time at {venue}.", "I hope {film1} is worth the trip."),
    "Music": ("Enjoy the music.", "Start with {pick1}, loud.", "I hope {pick1} stays with you."),
    "Restaurants": (
        "Enjoy the {dish}.",
        "Have a good meal at {place}.",
        "I hear the {dish} is worth it.",
        "Bon appétit!",
    ),
    "Events": ("Enjoy {event1}.", "Have a good time at {event1}.", "I hope {event1} is fun."),
    "Sports": ("I hope {team} win.", "Fingers crossed for {team}.", "Enjoy the match."),
    "Flights": ("Have a good flight to {dest}.", "Safe travels to {dest}.", "Enjoy {dest}."),
    "Train": ("Have a good journey to {dest}.", "Enjoy the ride to {dest}.", "Safe travels!"),
    "Buses": ("Have a good trip to {dest}.", "Enjoy {dest}.", "Safe travels!"),
    "Hotels": ("Enjoy your stay at {hotel}.", "Sleep well at {hotel}.", "I hope {hotel} feels right."),
    "Rental Cars": ("Drive safely.", "Enjoy the drive.", "Have a good trip in your car."),
    "Travel": ("Enjoy {dest}.", "I hope {sight1} is as good as they say.", "Have a lovely time in {dest}."),
    "Finance": ("I'll keep an eye on {company_or} for you.", "You'll hear from me on {day}.", "No surprises, I hope."),
    "Services": (
        "I hope {service} goes well.",
        "They know you're coming at {provider}.",
        "Don't forget {day} at {hour}.",
    ),
    "Shopping": ("I hope it serves you well.", "Tell me how you like it.", "I'll tell you if the price changes."),
}
CLOSE = (
    "Enjoy!",
    "Have a good time.",
    "Take care!",
    "I hope it turns out well.",
    "Just say so if anything changes.",
    "All the best!",
    "Let me know how it goes.",
    "Until next time!",
)

# What is used when nothing is known and nothing was said, by domain.
DEFAULTS: dict[str, dict[str, str]] = {
    "Alarm": {"time": "7:00 AM", "sound": "a soft chime"},
    "Media": {"favorite1": "the new releases"},
    "Sports": {},
}

GENERIC_OPEN = (
    "I can help you with that!",
    "Sure, I can assist you with this.",
    "Thank you for your request.",
    "Of course, I'd be happy to help.",
    "Certainly! Here is some information.",
    "Thanks for reaching out!",
)
GENERIC_MORE = (
    "There are many options available.",
    "It depends on what you are looking for.",
    "Please let me know if you have any questions.",
    "You can find more information online.",
    "I hope this helps!",
    "Feel free to ask if you need anything else.",
)
GENERIC_AGAIN = (
    "I understand.",
    "Thank you for the information.",
    "Okay, thank you for sharing that.",
    "I see.",
    "Noted.",
)
GENERIC_CLOSE = (
    "You're welcome! Have a great day!",
    "You're welcome. Let me know if you need anything else.",
    "Glad I could help. Goodbye!",
    "Thank you for chatting with me. Have a nice day!",
    "You're welcome! I'm always here to help.",
)
