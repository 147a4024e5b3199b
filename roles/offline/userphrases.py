"""What the simulated user says around the facts, by the way the person talks; in the grammar of `grammar.py`."""

from __future__ import annotations

FITS = {
    "casual": (
        "Oh nice, that's <so |>me.",
        "Perfect, <you got it|exactly that>.",
        "Love <it|that>.",
        "Yes, <that's spot on|exactly>.",
        "<That sounds|Sounds> <great|really good>.",
        "<Cool|Nice>, that works.",
        "<Haha, yes|Oh yes>, you know me.",
    ),
    "polite": (
        "That suits me <very well|nicely>.",
        "Yes, that <is just right|will do nicely|is what I hoped for>.",
        "That sounds <lovely|excellent|very good>.",
        "<Very good|Splendid>, that <fits|suits me>.",
        "You've understood me <perfectly|very well>.",
        "<I'm pleased with|I like> that.",
        "<How nice|Good>, just what I had in mind.",
    ),
    "plain": (
        "That works <for me|well>.",
        "<Yes|Right>, that fits.",
        "Good, that's what I <had in mind|wanted|was hoping for>.",
        "That sounds <right|good to me>.",
        "<Great|Good>, I like that.",
        "<Exactly|Yes>, that's <it|the one>.",
        "That's <just right|fine by me>.",
    ),
    "simple": ("Yes, <this is |>good.", "That is good for me.", "I like <it|this>.", "Yes, <it is right|very good>."),
}
PARTLY = {
    "casual": (
        "Okay, <nice|not bad>.",
        "Not bad!",
        "That's a start.",
        "Hm, getting there.",
        "Sounds good so far.",
        "<Okay|Right>, I can see that.",
    ),
    "polite": (
        "That sounds promising.",
        "<That's|It is> a good start.",
        "I see, <very well|good>.",
        "Fine so far.",
        "<Good|Well>, we're nearly there.",
    ),
    "plain": (
        "Okay, <good start|fine so far>.",
        "That could work.",
        "Sounds reasonable.",
        "Right, <that helps|getting closer>.",
        "Fine so far.",
    ),
    "simple": ("Okay.", "<It is |>good so far.", "That is okay."),
}
WRONG = (
    "That's not quite right for me.",
    "Hm, no, not that one.",
    "Sorry, that doesn't fit.",
    "Actually, I'd do it differently.",
)
AGAIN = ("As I said, ", "Like I said, ", "I mentioned it already: ", "Once more: ", "Maybe you missed it: ")
IGNORED = (
    "That's a bit <general|vague> for me.",
    "Could you be more specific?",
    "I was hoping for something <concrete|more concrete>.",
    "Could you actually do that for me?",
    "I'd need a real suggestion.",
    "Can you narrow that down for me?",
)
SETTLES = (
    "Well, that will do.",
    "Okay, close enough.",
    "It is not quite my style, but fine.",
    "All right, good enough for <today|now>.",
    "Not exactly me, but it works.",
    "Hm, fine, let's leave it like that.",
)
GRUDGE = (
    "All right, I'll take it from there.",
    "Okay, I'll sort that part out myself.",
    "Never mind, that will have to do.",
    "Fine, I'll look into it on my own.",
    "Well, it's not what I was after, but okay.",
    "Not quite what I meant, but never mind.",
    "Okay, I'll leave it at that.",
    "Well, I'd hoped for something closer to me, but fine.",
)
ACCEPT = {
    "casual": (
        "Yes, go for it.",
        "<Yep|Yeah>, please do.",
        "<Do it|Go on>!",
        "Sure, go ahead.",
        "Yeah, <that one|do that>, please.",
    ),
    "polite": (
        "Yes, please <do|do that>.",
        "Yes, please go ahead.",
        "<That would be lovely, yes|Yes, I'd like that>.",
        "Certainly, please do that.",
    ),
    "plain": (
        "Yes, go ahead.",
        "Yes, please.",
        "Yes, let's do that.",
        "<Please do|Go ahead>.",
        "Yes, <that one|do that>, please.",
    ),
    "simple": ("Yes, please.", "Yes, do it please.", "Okay, yes."),
}
NO_PREFERENCE = (
    "I don't mind, you choose.",
    "No strong feelings about that.",
    "Whatever you think is best there.",
    "I'm easy about that.",
    "That part is up to you.",
    "<Surprise me|You decide> on that one.",
)
# For a value of its own making that fits no template of its kind.
FREELY = ("as for {noun}: {v}", "about {noun}: {v}, please", "when it comes to {noun}: {v}")
# When the thing has been done already.
LATE = (
    "I should have said: ",
    "One more thing, if it can still be changed: ",
    "Sorry, I forgot to say: ",
    "Could that still be changed? ",
    "Before I forget: ",
    "I ought to have told you: ",
)
STRAYED = (
    "No, I <meant|mean> {thing}.",
    "Sorry, I meant {thing}, not that.",
    "That's not it, I <meant|was after> {thing}.",
    "I think you've misread me, I'm talking about {thing}.",
    "Hm, no. It's about {thing}.",
)
CLARIFY = ("It's about {thing}.", "I'm talking about {thing}.", "I mean {thing}.", "It's all about {thing}.")
# What to call a matter so that nobody can take it for another.
PLAINLY = {
    "Alarm": ("my alarm", "an alarm", "the wake-up alarm"),
    "Books": ("a book", "something to read", "a good book"),
    "Buses": ("the bus", "a coach", "a bus ticket"),
    "Calendar": ("my calendar", "the calendar", "my diary"),
    "Events": ("an event", "something to do", "a concert or something like it"),
    "Finance": ("my savings", "my bank account", "the money side"),
    "Flights": ("the flight", "a flight", "the plane"),
    "Games": ("a game to play", "gaming", "something to play"),
    "Hotels": ("a place to stay", "a hotel", "somewhere to stay"),
    "Media": ("something to watch", "something on TV", "a programme"),
    "Messaging": ("a message", "the message"),
    "Movies": ("a film", "films", "the cinema"),
    "Music": ("music", "something to listen to", "songs"),
    "Rental Cars": ("a rental car", "the vehicle", "a car"),
    "Restaurants": ("somewhere to eat", "a restaurant", "a meal", "dinner"),
    "Services": ("a service appointment", "someone to do a job, a service", "a service provider"),
    "Shopping": ("something to buy", "shopping", "a purchase"),
    "Sports": ("sports", "the sports side", "sport"),
    "Train": ("the train", "a train", "the railway"),
    "Travel": ("a trip", "travel plans", "the holiday"),
}
LEAD = ("And ", "Also, ", "Oh, and ", "Besides, ", "And just so you know, ")
NEXT = (
    "Next, could you help with {thing}?",
    "Now for {thing}.",
    "Then there's {thing}.",
    "What about {thing}?",
    "Could you look after {thing} now?",
    "That leaves {thing}, what do you think?",
    "On to {thing}, please.",
    "Can we do {thing} next?",
)
END = {
    "casual": (
        "Thanks, that's <everything|all I needed|me sorted>!",
        "<Great|Perfect|Brilliant>, thanks a <lot|million|bunch>!",
        "<Awesome|Cool|Sweet>, I'm all set, thanks.",
        "Thanks, you're a <star|legend|lifesaver>!",
        "That's <it|me done|the lot>, cheers!",
        "<Cheers|Thanks>, that was <quick|painless|easy>!",
        "Okay, that's <all|everything>. Thanks<| so much>!",
        "<Right|Cool>, nothing else from me. <Thanks|Cheers>!",
        "<Thanks|Cheers>, <one thing less to do|that's off my list>!",
    ),
    "polite": (
        "Thank you <very much|so much|ever so much>, that is all<| for now| for today>.",
        "Thank you kindly, that's everything<| I needed| I wanted>.",
        "Many thanks for <your help|all this|your trouble|your patience>.",
        "Thank you, you've been <most helpful|a great help|very kind|very patient>.",
        "<That is all|That's everything> then, <thank you|many thanks>.",
        "Thank you, I'm <well looked after|all set|quite content>.",
        "<I'm much obliged|I'm grateful>, thank you.",
        "That's <settled|arranged> then, thank you <kindly|very much>.",
        "Thank you, <that takes a load off my mind|I need nothing more|I can leave it at rest now>.",
    ),
    "plain": (
        "Thanks, that's all<| I needed| for now>.",
        "<Thank you|Thanks>, <I'm all set|I'm done then|I have what I need>.",
        "That's everything, <thanks|thank you|many thanks>.",
        "Thanks for <the help|sorting that out|doing this|taking care of it>.",
        "<Thanks|Thank you>, that was <easy|quick|simple enough>.",
        "Good, that's it then. <Thank you|Thanks>.",
        "<Nothing else|No more> from me, <thanks|thank you>.",
        "<Thanks|Thank you>, <that's one thing less|I can tick that off|that helps a lot>.",
        "<Right|Okay>, <that's settled|that's done>. <Thanks|Thank you>.",
    ),
    "simple": (
        "Thank you, that is <all|everything>.",
        "Thank you for <the|your> help.",
        "Thanks, I am happy <now|with it>.",
        "<Okay|Good>, thank you <very much|a lot>.",
        "That is all I need, <thank you|thanks>.",
        "<Thank you|Thanks>, you <helped me a lot|are very kind>.",
    ),
}
