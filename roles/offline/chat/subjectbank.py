"""The subjects that the offline model can chat about, and its remarks on them."""

from __future__ import annotations

from .subjects import Subject

SUBJECTS = (
    Subject(
        "pets",
        "home",
        "cattle sheep pet pets animal animals vet feed fur purr bark leash paw stray rescue rescued aquarium fish",
        "dog dogs cat cats parrot rabbit rabbits hamster horse horses pony hens goat goats tortoise budgie "
        "greyhound terrier "
        "labrador spaniel collie beagle dachshund poodle kitten puppy bees hive hives",
        (
            "<You'd think I was the one being kept|I'm only the staff here>.",
            "There's hair on every jumper I own, or something close to it.",
            "It's the first face I look for in the morning.",
            "Nobody warns you how much character fits into one small body.",
            "<I talk to animals more than to people some days|Some evenings that's all the company I need>.",
        ),
        (
            "I caught myself chatting with {thing} again this morning.",
            "{Thing} had another opinion on my plans today.",
            "It got me thinking how quiet it would be here without {thing}.",
        ),
        (
            "Animals know exactly who has a soft spot for them.",
            "Nothing brings a room to life quite like an animal.",
            "And there goes the myth that people are in charge.",
            "There's always one in the house who rules the rest.",
        ),
        (
            "Who is the boss in your place, be honest?",
            "How long has that been going on?",
            "Was it love at first sight, or did it take a while?",
            "What's the worst mischief so far?",
        ),
        ("Animals can be a source of joy.", "Many people keep animals.", "Animals need regular care and attention."),
    ),
    Subject(
        "family",
        "people",
        "family married marriage wedding divorced single relatives sibling siblings baby toddler teenage "
        "teenager pregnant child children",
        "husband wife partner boyfriend girlfriend mother father parents brother brothers sister sisters twin "
        "son sons daughter daughters "
        "grandmother grandfather grandparents aunt uncle cousin cousins niece nephew nieces nephews grandson "
        "granddaughter grandchildren",
        (
            "You don't choose them, but I might have.",
            "<There's never a dull moment|It's never quiet for long> in our family.",
            "<We're closer than we let on|We'd never say so out loud, but it matters a lot>.",
            "We have our ups and downs like everyone.",
            "Family is family.",
        ),
        (
            "There was a long message from the family this morning, and I thought of {thing} at once.",
            "I meant to say more about {thing}, but I never know where to begin.",
            "You know how it is with family; one call about {thing} and the evening's gone.",
        ),
        (
            "Families are the longest stories there are.",
            "There's a lot of history in a sentence like that.",
            "One hears how much they mean to you.",
            "That's the kind of bond one can't buy.",
        ),
        (
            "What do you like doing together?",
            "Who takes after whom in your family?",
            "Who of you is the loud one, and who's the quiet one?",
            "Is there a story that gets told at every gathering?",
        ),
        (
            "Family is important to many people.",
            "Spending time with relatives can be rewarding.",
            "Every family is different.",
        ),
    ),
    Subject(
        "friends",
        "people",
        "friendship neighbourhood party gathering company guests visit flatmates club pub cards quiz bingo",
        "friend friends neighbour neighbours flatmate roommate roommates flatmates pen-pal",
        (
            "You need somebody to be silly with.",
            "<We've known each other for ages|It feels as if it had always been like that>.",
            "I'd not want to miss those hours.",
            "Somebody always brings too many crisps.",
        ),
        (
            "I was thinking about {thing} again, and how much we leave unsaid.",
            "It's funny, {thing} came up again only today.",
        ),
        (
            "Good company is half of life.",
            "That's the kind of thing that keeps people young.",
            "It takes years to grow a thing like that.",
        ),
        (
            "How did it all begin?",
            "Do you meet at your place, or somewhere else?",
            "Who's the one that everybody waits for?",
        ),
        (
            "Friendships are valuable.",
            "Social contact is good for well-being.",
            "There are many ways to stay in touch with others.",
        ),
    ),
    Subject(
        "cooking",
        "home",
        "cook cooks cooking bake bakes baking baker recipe recipes kitchen dinner lunch breakfast meal meals "
        "soup soups stew bread sourdough cake cakes "
        "curry dumplings pasta pizza pancakes spicy vegetarian vegan food restaurant jam jams pickles "
        "ferment ferments chocolate sweets "
        "cheese noodles biscuits grill barbecue dessert potatoes rice fry sandwich sandwiches",
        "kitchen recipes",
        (
            "The smell alone is worth it.",
            "<Leftovers never live to see the next day|There are never any leftovers, and I know who's to blame>.",
            "I never measure anything, and it mostly works.",
            "Half the fun is <in the tasting|in stirring the pot>.",
            "I could think about food all day.",
        ),
        (
            "Hunger brought me back to it: {doing} has been on my mind all morning.",
            "I have to come back to the food, I'm afraid; it was one of those evenings.",
        ),
        (
            "I can almost smell it from here.",
            "That makes me hungry just reading it.",
            "Good food says more than any greeting card.",
            "There are worse ways to win people over.",
        ),
        (
            "Do you go by the book, or by instinct?",
            "Who gets the first plate?",
            "What's the dish that never fails?",
            "Is there anything you'd never put on a plate?",
        ),
        ("There are many delicious recipes.", "A varied diet is important.", "Cooking at home has many benefits."),
    ),
    Subject(
        "drinks",
        "home",
        "coffee tea espresso brew drinks drink wine beer cocoa cup pot café whisky cocktail mint lemonade",
        "teapot",
        (
            "<Before that I'm no use to anyone|Nothing starts before that>.",
            "It's a small ceremony of mine.",
            "The cup has to be the right one, too.",
        ),
        ("I'm sitting with a full cup again as I write this.", "The kettle's on, so naturally I'm back to that."),
        (
            "A day needs a first sip to hold on to.",
            "Small rituals keep the roof on.",
            "I respect anyone who takes that seriously.",
        ),
        ("Is there a favourite cup?", "Strong, or more of a gentle sort?", "What happens on a day without it?"),
        (
            "Hot drinks are popular all over the world.",
            "It is advisable to drink enough water.",
            "There are many kinds of beverages.",
        ),
    ),
    Subject(
        "garden",
        "home",
        "plant plants grow grows vegetables vegetable tomatoes tomato roses rose herbs herb flowers flower seeds "
        "seedlings balcony compost soil weeds "
        "orchard harvest trees tree mushrooms gardening orchids pumpkins houseplants courgettes",
        "garden allotment balcony greenhouse roses tomatoes orchids orchard houseplants herbs",
        (
            "The slugs and I are not on speaking terms.",
            "<It's amazing what comes up if you just wait|Something always comes up, mostly not what I sowed>.",
            "I've had soil under my nails for days.",
            "It smells of rain out there, the good sort.",
        ),
        (
            "I went to look at {thing} again before I wrote this; there is always something new.",
            "Something about {thing} keeps me at it, even in bad weather.",
        ),
        (
            "Things that grow don't care what kind of day we had.",
            "Green fingers, I see.",
            "That's patience you can look at.",
            "There's a kind of peace in it, even with mud.",
        ),
        (
            "What's doing best this year?",
            "Do you talk to them, or is that a secret?",
            "Is it for the eye, or for the plate?",
            "What would you plant if space were no matter?",
        ),
        (
            "Plants need water and light.",
            "Spending time among plants can be relaxing.",
            "There are many kinds of plants.",
        ),
    ),
    Subject(
        "music",
        "arts",
        "music sing sings singing song songs concert concerts orchestra jazz opera folk band rehearse rehearsal "
        "tune tunes instrument album albums playlist "
        "concert festival karaoke lullabies classical",
        "piano guitar cello violin flute drums trumpet accordion banjo harp ukulele saxophone clarinet choir "
        "band vinyl organ fiddle bass",
        (
            "<The neighbours have been very kind about it|The walls are thin, but nobody has complained>.",
            "Some days a single tune carries me through.",
            "I'm no star, but who cares.",
            "I hum without noticing, I'm told.",
        ),
        (
            "There's a tune I can't get rid of, so here I am again with {thing}.",
            "I had an hour with {thing} again, and time just stopped.",
        ),
        (
            "A tune can turn a whole day round.",
            "The neighbours get more for their rent than they know.",
            "That's time nobody can take from you.",
        ),
        (
            "Is there a piece you always come back to?",
            "Do you need an audience, or is it just for you?",
            "How long have you kept that up?",
            "What are you working on at the moment?",
        ),
        (
            "Music is enjoyed by people everywhere.",
            "Listening to music can be relaxing.",
            "There are many styles of music.",
        ),
    ),
    Subject(
        "reading",
        "arts",
        "read reads reading novel novels book books library bookshop author crime mystery mysteries "
        "comics newspaper crossword crosswords encyclopaedia essays magazines",
        "bookshelf",
        (
            "<I never get to bed on time because of it|One more chapter, I say, and then it's two in the morning>.",
            "The pile by the bed grows faster than it shrinks.",
            "I remember places better from pages than from photos.",
            "Paper, of course; I need to hear it turn.",
        ),
        (
            "I lost half the night to it again, pages and all.",
            "Yesterday's last page is still going round in my head.",
        ),
        (
            "A good page is a kind of travel.",
            "Somewhere a lamp is burning late, I suspect.",
            "That's company of the best sort.",
        ),
        (
            "What's on top of the pile right now?",
            "Do you finish everything, or may a bad one be dropped?",
            "Is it more for the escape, or for the words?",
            "Where's your best spot for it?",
        ),
        (
            "Reading is a popular pastime.",
            "There are many books on a variety of topics.",
            "Reading can broaden the mind.",
        ),
    ),
    Subject(
        "writing",
        "arts",
        "write writes writing poem poems poetry letter letters diary journal blog story stories postcard "
        "postcards calligraphy pen",
        "diary journal notebook",
        (
            "It clears the head, like airing a room.",
            "<I cross out more than I keep|Half of it ends in the bin>.",
            "I like the sound of a pen on paper.",
        ),
        ("My hand still aches from it: {doing}.", "Words kept me awake again last night, my own ones."),
        (
            "There's nothing like a sheet of paper that listens.",
            "What's written down stays.",
            "That's a habit worth keeping.",
        ),
        (
            "By hand, I hope, or do you type?",
            "Do you ever read the old ones again?",
            "Does it come easily, or do you cross out a lot?",
        ),
        (
            "Writing can help to organise one's thoughts.",
            "There are many forms of writing.",
            "Writing is a useful skill.",
        ),
    ),
    Subject(
        "screen",
        "arts",
        "film films movie movies series television documentary documentaries cinema theatre game games gaming "
        "videogames chess podcast podcasts radio console "
        "puzzle puzzles jigsaw jigsaws soap detective musical museum museums gallery",
        "projector",
        (
            "I always say just one, and then it's midnight.",
            "<I've strong views on endings|Don't tell me how anything ends>.",
            "It's my way to switch off.",
        ),
        ("I ended up with it again last night, and it got late.", "It's still in my head from the last time."),
        (
            "Everyone needs a way to switch off.",
            "An evening well spent, if you ask me.",
            "That's how one travels without a suitcase.",
        ),
        (
            "What was the last one that surprised you?",
            "On your own, or in company?",
            "Do you have a favourite you could go through again and again?",
        ),
        (
            "There is a wide range of entertainment.",
            "Many people enjoy such entertainment in their free time.",
            "Regular breaks are recommended.",
        ),
    ),
    Subject(
        "sport",
        "body",
        "run runs running jog jogs jogging swim swims swimming hike hikes hiking climb climbs climbing football "
        "tennis yoga gym cycle cycles marathon "
        "ski skis surf surfs row rows rowing dance dances dancing walk walks walking exercise team match fitness "
        "basketball cricket rugby badminton boxing martial "
        "judo karate skating skateboard sail sails sailing kayak kayaking fishing fish camping mountains "
        "mountain trail trails hills beach pilates volleyball "
        "golf darts bouldering lake river sea tango salsa",
        "boat kayak surfboard racket team",
        (
            "My legs complain, my head says thank you.",
            "<Rain doesn't count as an excuse|In bad weather it's even better, once you're out>.",
            "Afterwards I'm a nicer human being.",
            "I'm not fast, but I'm there.",
        ),
        (
            "My legs remind me of it again today; {doing} has its price.",
            "Every time I skip {doing}, I'm in a mood until evening.",
        ),
        (
            "Fresh air and tired legs, that's a good sort of tired.",
            "The head clears by itself that way.",
            "Getting out of the door is the hardest part, they say.",
        ),
        (
            "In all weathers, or do you have your limits?",
            "On your own, or with others?",
            "What do you think about while you're at it?",
            "How did you get into that?",
        ),
        (
            "Regular exercise is good for you.",
            "Physical activity has many benefits.",
            "It is important to warm up properly.",
        ),
    ),
    Subject(
        "crafts",
        "arts",
        "knit knits knitting sew sews sewing crochet crochets paint paints painting draw draws drawing sketch "
        "sketches pottery ceramics carve carves woodwork woodworking "
        "photograph photographs photography restore restores repair repairs build builds model quilts quilt "
        "embroidery stamps collect collects collection "
        "furniture clocks clock workshop tinker tinkers wool watercolours watercolour origami candles lego mends "
        "mend fixes jewellery antiques flea",
        "sewing-machine camera workshop sketchbook loom collection",
        (
            "I forget to eat when I'm at it.",
            "<Nothing ever turns out quite as planned|The first attempt usually goes in the bin>, and that's half "
            "the charm.",
            "My fingers need something to do.",
            "There are half-finished things all over the place.",
        ),
        (
            "There's a new half-finished thing on the table, so guess what I've been at: {doing}.",
            "I thought I was done, and then {doing} kept me up again.",
        ),
        (
            "It's good to make something that stays.",
            "Hands that are busy give the head a rest.",
            "Half-finished things have their own charm.",
        ),
        (
            "What's on the table at the moment?",
            "Do you keep the results, or give them away?",
            "Who taught you that?",
            "Does it calm you, or drive you mad at times?",
        ),
        (
            "Creative hobbies can be satisfying.",
            "There are many hobbies to choose from.",
            "Practice helps to improve one's skills.",
        ),
    ),
    Subject(
        "home",
        "home",
        "house flat apartment room rents rent lives live village town city street attic basement cottage "
        "farmhouse moved suburb suburbs born countryside "
        "island coast neighbourhood upstairs above lift floor roof studio hometown mountain clean cleans cleaning",
        "house flat apartment cottage attic caravan houseboat fireplace",
        (
            "It isn't grand, but I know every creak.",
            "<I couldn't tell you what's different here, it just is|There are prettier places, but this one's mine>.",
            "You get used to the noises.",
            "The light is good in the evenings.",
        ),
        (
            "I looked out of the window just now and thought about places again, and how one gets attached.",
            "It's funny how a place gets under your skin.",
        ),
        (
            "Places leave their marks on us.",
            "I like to know where somebody writes from.",
            "One can almost hear the sounds of the place.",
        ),
        (
            "Could you imagine living anywhere else?",
            "What do you hear when you open the window?",
            "How long did it take to feel at home?",
        ),
        (
            "Every place has its own character.",
            "It is important to feel comfortable at home.",
            "There are advantages to every place.",
        ),
    ),
    Subject(
        "travel",
        "road",
        "travel travels trip trips train trains bus buses commute commutes car drive drives van motorbike "
        "motorcycle scooter bicycle tram ferry flight fly flies abroad "
        "holiday holidays journey road suitcase passport map maps country countries licence",
        "bicycle van car motorbike scooter caravan",
        (
            "I do my best thinking on the way.",
            "<Getting there is most of it|The way there counts as much as the rest>.",
            "I always look out of the window.",
            "It's slower than it could be, and I don't mind.",
        ),
        (
            "On the way today I had to think of it again; the mind wanders so nicely.",
            "I was on the move again this morning, and of course something went wrong at once.",
        ),
        (
            "The best thoughts come on the way.",
            "It's good to be on the move and still be nowhere yet.",
            "A window seat and a thought, what more does one need?",
        ),
        (
            "What do you do on the way, look out or look down?",
            "How long does it take you?",
            "Is there a route you like best?",
        ),
        (
            "There are various means of transport.",
            "Planning ahead makes every journey easier.",
            "Travel can be enriching.",
        ),
    ),
    Subject(
        "rhythm",
        "body",
        "sleep sleeps early late morning mornings wake wakes dawn sunrise night nights evening alarm nap naps "
        "insomnia bed bedtime routine o'clock am pm midnight noon",
        "alarm routine",
        (
            "The world is a different one at that hour.",
            "<I'm simply made that way|I've stopped fighting it>.",
            "Everyone has a clock inside, and mine is set like that.",
        ),
        ("It's that hour of the day again, so you can guess what I'm up to.", "Same hour, same me, as always."),
        (
            "Everyone has a clock inside.",
            "Those hours belong to nobody else.",
            "The world sounds different at that time.",
        ),
        (
            "Have you always been like that?",
            "What do you do with those hours?",
            "Is it by choice, or does life decide?",
        ),
        ("A regular routine is important.", "Sufficient sleep is recommended.", "Everyone has different habits."),
    ),
    Subject(
        "money",
        "work",
        "money coin coins save saves saving savings budget budgets cheap bargain bargains second-hand thrift "
        "mortgage debt afford spends coupons lottery charity sells",
        "savings budget",
        (
            "You learn to look twice at a price.",
            "It adds up, one way or the other.",
            "<I keep the receipts in a drawer|There's a jar for the small change>.",
        ),
        ("I counted it all up again today, just to be sure.", "The sums came up again this week, as they do."),
        (
            "It's a skill to know what a thing is worth.",
            "Every coin tells what somebody cares for.",
            "It adds up, as they say.",
        ),
        ("Is it for something in particular?", "What would you never be stingy about?"),
        (
            "It is sensible to keep an eye on one's finances.",
            "A budget can be helpful.",
            "Everyone handles money differently.",
        ),
    ),
    Subject(
        "causes",
        "people",
        "volunteer volunteers volunteering church mosque temple synagogue faith pray prays charity shelter "
        "community scouts food-bank donate donates council committee "
        "parish union activist recycling environment climate teach teaches coach coaches mentor mentors tutors",
        "choir parish team",
        (
            "You get back more than you give.",
            "<It keeps my feet on the ground|It puts my own troubles in their place>.",
            "There's always too little time and too much to do.",
        ),
        (
            "I was there again, and as always I came home different.",
            "It's on my mind again; there's so much more one could do.",
        ),
        (
            "It's people like that who keep a place going.",
            "That's time well given.",
            "Somebody notices, even if nobody says so.",
        ),
        ("What made you start?", "Is it the people, or the cause?", "How many of you are there?"),
        (
            "Helping others can be rewarding.",
            "Community is important to many people.",
            "There are many ways to get involved.",
        ),
    ),
    Subject(
        "learning",
        "arts",
        "learn learns learning language languages spanish french italian german japanese korean welsh portuguese "
        "arabic english polish mandarin lesson lessons class classes course "
        "evening-school astronomy stars telescope history physics study studies exam sign-language museum bird "
        "birds birdwatching",
        "telescope lessons binoculars classes",
        (
            "<The more I know, the less I know|For each thing I get, I forget two>.",
            "My head feels like a sieve some days.",
            "It's good to be a beginner at something.",
        ),
        (
            "I was at it again last night, with the usual muddle in my head.",
            "I'm still a beginner, but today something clicked.",
        ),
        (
            "It keeps the mind nimble.",
            "There's nothing like the moment when it clicks.",
            "Being a beginner takes nerve.",
        ),
        ("What made you pick that?", "What's the hardest part?", "Do you practise daily, or when the mood takes you?"),
        ("Learning is a lifelong process.", "There are many courses available.", "Practice is important."),
    ),
    Subject(
        "work",
        "work",
        "work works tailor nurses nurse teacher driver engineer accountant office shift shifts boss company "
        "colleagues colleague manager hospital school factory "
        "retired retirement shop store bakery warehouse librarian mechanic electrician plumber carpenter farmer "
        "farm lawyer doctor "
        "receptionist hairdresser barber cashier postman clerk freelance freelancer employed part-time full-time "
        "career business customer "
        "customers clients translator programmer developer designer student university degree apprentice porter "
        "waiter waitress chef pharmacist "
        "paramedic firefighter vet dentist café salon",
        "job shop office workshop classroom colleagues",
        (
            "<Some days are longer than others|It's not all roses, but I'd miss it>.",
            "You see all sorts of people that way.",
            "<By Friday I know what I've done|By the end of the week I can feel it in my bones>.",
            "It pays the rent and leaves me a few stories.",
            "Somebody has to do it, and I don't mind that it's me.",
        ),
        (
            "It was one of those days again, what with {doing}.",
            "I was asked again whether I'd do anything else. No idea.",
            "There's something about {doing} that nobody tells you at the start.",
        ),
        (
            "There's more in a day like that than outsiders think.",
            "The world would notice soon enough if nobody did that.",
            "One can tell that it's more than a way to pay the rent.",
            "That takes staying power.",
        ),
        (
            "Did you slip into it, or was it always the plan?",
            "What's the best hour of such a day?",
            "How long have you been at it?",
            "Do you leave it behind when you close the door, or does it follow you home?",
        ),
        (
            "A balanced working life is important.",
            "Every occupation has its challenges.",
            "Many people find their work rewarding.",
        ),
    ),
)

HARDSHIP = Subject(
    "hardship",
    "body",
    "",
    "",
    (
        "<You get used to it, mostly|One learns to live with it>.",
        "It's easier on some days than on others.",
        "I don't think about it all the time any more.",
        "People mean well, but they don't always know what to say.",
    ),
    ("It was on my mind again last night, if I'm honest.", "Some days it comes back to me, out of nowhere."),
    (
        "I'm sorry, that can't be easy.",
        "That's a lot to carry.",
        "Thank you for trusting me with that.",
        "I wish I could make it lighter for you.",
    ),
    ("How are you holding up?", "Is there somebody you can talk to about it?", "Does anything help, on the bad days?"),
    ("Everyone faces difficulties from time to time.", "It may be helpful to seek support.", "Health is important."),
)
DISLIKE = Subject(
    "dislike",
    "body",
    "",
    "",
    (
        "<Don't ask me why|I couldn't tell you where that comes from>.",
        "Other people don't seem to mind at all.",
        "I've tried to change that, without much success.",
        "I'm told I'm missing out, and I'm fine with that.",
    ),
    (
        "I was put to the test again this week, and nothing has changed.",
        "Somebody tried to convert me again yesterday, in vain.",
    ),
    (
        "Fair enough, I'd say.",
        "You're in good company there.",
        "It's good to know that about you.",
        "No arguments from me.",
    ),
    (
        "Has it always been like that?",
        "Was there one bad moment, or did it just grow?",
        "What do you do when there's no way round it?",
    ),
    ("Everyone has different preferences.", "Tastes differ.", "There are always alternatives."),
)
ORIGIN = Subject(
    "origin",
    "home",
    "",
    "",
    (
        "It feels like another life by now.",
        "You can still hear it in me, I'm told.",
        "Some of it never leaves you.",
        "I wouldn't want to have missed it.",
    ),
    (
        "I dreamt of the old days again, no idea why.",
        "Something today smelled exactly like back then, and off I went.",
    ),
    (
        "Where we come from travels along.",
        "That must have left its marks on you.",
        "So that's where some of it comes from.",
    ),
    (
        "What do you miss most about that time?",
        "Do you ever go back, if only in your thoughts?",
        "What has stayed with you from then?",
    ),
    ("Everyone has a past.", "Memories can be valuable.", "Experiences shape us in various ways."),
)
ANYTHING = Subject(
    "anything",
    "",
    "",
    "",
    (
        "<That's me in a nutshell|That's how it goes with me>.",
        "You get used to it, and then you'd miss it.",
        "It's a small thing, but it's mine.",
        "I hardly ever mention it, come to think of it.",
        "I couldn't tell you when that started.",
        "It's one of those things.",
        "Most people don't know that about me.",
        "I thought you might like to know.",
    ),
    (
        "It came up again today, just in passing.",
        "I've been turning over what I told you, and I'd say the same again.",
        "There's nothing new on that front, and that's fine by me.",
        "I noticed it again this morning, and had to think of our chat.",
    ),
    (
        "I like hearing things like that.",
        "It's the small things that make a person.",
        "I'd never have guessed, and I'm glad you said it.",
        "That tells me more than a whole form would.",
        "Now I can picture you a little better.",
    ),
    (
        "Has it always been that way?",
        "How did that come about?",
        "What's the part of it that nobody sees?",
        "Does it matter to you a lot, or is it just how things are?",
        "Would you want it any different?",
    ),
    (
        "There are many different ways of life.",
        "Everyone is different.",
        "It depends on the individual.",
        "Everyday life offers a lot of variety.",
    ),
)
