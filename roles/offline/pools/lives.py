"""What lives are made of: facts by topic, each a sentence of its own.

`{S}`, `{s}`, `{p}`, `{o}` are the person as subject (at a sentence's start or not), possessor and object; `[keep]` is
a verb that follows the subject; `{3-9}` is a number; `{town}`, `{pet}` and the like come from the word lists. Behind
the bar stand marks: `+x` goes with the fact, `-x` rules it out, `?x` must be there.
"""

from __future__ import annotations

from collections.abc import Mapping

WORDS: Mapping[str, str] = {
    "town": "Aarhus, Accra, Almaty, Antwerp, Bilbao, Boise, Bologna, Brno, Bukhara, Cartagena, Chiang Mai, Cork, "
    "Cusco, Daegu, Dakar, Davao, Duluth, Faro, Galway, Gdańsk, Graz, Guadalajara, Halifax, Hanoi, Hobart, "
    "Izmir, Jaipur, Kanazawa, Kaunas, Kochi, Kumasi, La Paz, Leipzig, Lyon, Malmö, Marrakesh, Mendoza, "
    "Mombasa, Nantes, Naples, Nottingham, Oaxaca, Odense, Ohrid, Oulu, Penang, Plovdiv, Porto, Quito, Recife, "
    "Reykjavík, Rosario, Sapporo, Sarajevo, Savannah, Split, Surabaya, Tampere, Tromsø, Tucson, Turin, "
    "Valencia, Vientiane, Windhoek, Zadar",
    "place": "Barcelona, Bath, Beirut, Bergamo, Berlin, Bogotá, Bordeaux, Brighton, Bruges, Chicago, Copenhagen, "
    "Cracow, Crete, Dresden, Dublin, Edinburgh, Fukuoka, Geneva, Hamburg, Istanbul, Jerusalem, Kyoto, Lima, Madeira, "
    "Malta, Melbourne, Osaka, Prague, Rhodes, Salzburg, Seattle, Seville, Sofia, Stockholm, Tallinn, Tbilisi, Toledo, "
    "Toronto, Trieste, Vancouver, Vienna, Vilnius, Wellington, Zanzibar",
    "pet": "Biscuit, Bruno, Caramel, Cleo, Domino, Figaro, Ginger, Hector, Juno, Koko, Luna, Marble, Mochi, Nemo, "
    "Olive, Pepper, Pickle, Rocket, Saffron, Socks, Tango, Truffle, Waffles, Zorro",
    "month": "January, February, March, April, May, June, July, August, September, October, November, December",
    "day": "Mondays, Tuesdays, Wednesdays, Thursdays, Fridays, Saturdays, Sundays",
    "colour": "turquoise, crimson, mustard, olive, lilac, navy, ivory, burgundy, peach, charcoal, emerald, amber",
}

HOMES = """
a one-room flat above a laundry | +flat
a terraced house with a slate roof
a farmhouse at the end of a gravel lane | +garden
a flat on floor {5-14} of a tower block | +flat
a caravan behind the dunes
an attic with sloping walls and a skylight | +flat
a bungalow with a carport | +garden
a former schoolhouse with tall windows
a semi-detached house beside a railway | +garden
a basement flat that floods in heavy rain | +flat
a wooden house on stilts
a courtyard flat with a shared well | +flat
a converted barn | +garden
a maisonette next to a fire station | +flat
a cottage with a thatched roof | +garden
a housing cooperative with a common kitchen | +flat
a villa divided into four apartments | +flat
a brick house opposite a football ground
an apartment over a butcher's | +flat
a studio behind the bus depot | +flat
a prefabricated house by a reservoir | +garden
a corner house with a blue door
"""

JOBS = """
a beekeeper's assistant
a bus mechanic
a optician
a court clerk
a piano tuner
a plasterer
a kindergarten teacher
a customs officer
a pastry cook | -coeliac
a crane operator
a dialysis nurse
a taxidermist | -vegetarian
a proofreader
a tram driver
a veterinary receptionist
a glazier
a soil surveyor
a hotel porter
a tax consultant
a radiographer
a florist
a welder
a subtitler
a lifeguard
a locksmith
a museum guard
a cheesemaker
a bookbinder
a payroll clerk
a upholsterer
a ferry purser
a sign painter
a lab technician
a midwife
a postman's stand-in
a roofer
a speech therapist
a warehouse supervisor
a tailor
a weather observer
a mortgage broker
a gardener at a cemetery
a school caretaker
a call-centre agent
a geologist
a barber
a stagehand
a chimney sweep
a parking warden
a translator
"""

STUDIES = """
forestry
dentistry
accountancy
music therapy
civil engineering
history of art
food chemistry
nursing
architecture
astronomy
social work
fashion design
"""

JOB_FRAMES = """
{S} [work] as {job}.
{S} [earn] {p} living as {job}.
{S} [have] been {job} for {3-9} years.
{S} [be] employed as {job}, {3-5} days out of seven.
"""

HOUSEHOLDS = """
{S} [share] the place with {p} spouse of {5-9} years. | +partner ?grown
{S} [have] lived alone since a divorce. | +single ?grown
{S} [have] a daughter of {4-9} and a son of {10-15}. | +children ?parent
{S} [bring] up {p} nephew, who is {6-15}. | +children ?grown
{S} [have] twin boys in primary school. | +children ?parent
{S} [have] a flatmate who plays the trombone. | +flat -partner
{S} [live] with {p} mother, who is blind. | -old
Three generations eat at {p} table. | +partner ?grown
{S} [take] in exchange students, this year one from {place}. | ?grown
{S} [be] engaged to a firefighter. | +partner -old
{S} [have] a partner who works on oil rigs and is away every other month. | +partner -old
{S} [have] a baby of {5-10} months who is teething. | +children ?parent
{S} [have] been widowed for {4-12} years. | +single ?old
{S} [have] {4-8} grandchildren, all within an hour's drive. | ?old
{S} [share] the rent with {p} elder brother. | -partner -old
{S} [have] a husband who is a ship's cook. | +partner ?grown
{S} [live] with a girlfriend who repairs violins. | +partner -old
{S} [foster] a teenager who came from {town}. | +children ?grown -old
{P} ex lives across the street. | +single ?grown
{P} grandparents raised {o} and still live next door. | -old -grown
{P} lodger, a trainee pilot, has the room upstairs. | ?grown
{P} only sister moved in after an accident.
"""

TOPICS: Mapping[str, str] = {
    "animals": """
A tabby called {pet} sleeps on the radiator.
{P} terrier, {pet}, is scared of umbrellas.
{S} [keep] {3-7} hens and [give] the eggs to neighbours. | ?garden
An aquarium of guppies hums in the hallway.
{S} [walk] a rescued greyhound named {pet} before breakfast.
{S} [have] a tortoise, {pet}, that is older than {s} [be]. | -old
{P} budgerigars are called {pet} and Button.
A hedgehog spends the winter under {p} woodpile. | ?garden
{S} [share] a pony named {pet} with two other riders. | -old
{P} guinea pigs eat the carrot peel.
{S} [be] allergic to cat hair and [keep] stick insects.
{P} parrot imitates the doorbell.
{S} [feed] crows on the windowsill, and one of them takes nuts from the hand.
A three-legged spaniel called {pet} follows {o} everywhere.
{S} [look] after a neighbour's poodle on {day}.
A rabbit with one ear, {pet}, has the run of the corridor.
""",
    "food": """
{S} [be] vegetarian and [cook] chickpeas in {5-9} ways. | +vegetarian -meat
{S} [grill] mackerel on the windowsill in summer. | +meat -vegetarian
{P} favourite dish is mushroom risotto with sage.
{S} [put] chilli flakes on everything, scrambled eggs included.
{S} [be] lactose intolerant and [drink] oat milk. | -cheese
{S} [have] pizza delivered on {day}, always with anchovies. | +meat -vegetarian -coeliac
Lunch is a bowl of noodles from the stall downstairs. | -coeliac
{S} [pickle] cucumbers, beetroot and quail eggs.
{S} [bake] rye bread from a starter that is {6-14} years old. | -coeliac
{S} [have] coeliac disease and [carry] {p} own biscuits. | +coeliac
{S} [eat] porridge with cardamom at five in the morning. | -coeliac
{S} [cook] goulash in a cauldron outdoors. | +meat -vegetarian
{S} [buy] goat's cheese from a van that comes once a fortnight. | +cheese
{S} [eat] nothing after six in the evening.
A drawer full of liquorice is {p} secret supply.
{S} [make] {p} grandmother's dumplings with plums every {month}. | -coeliac
{S} [keep] halal and [know] every butcher in the quarter. | +meat -vegetarian +muslim -alcohol -christian -jewish
{S} [roast] a chicken and [live] on it for three days. | +meat -vegetarian
{S} [order] the same lamb kebab at the station. | +meat -vegetarian
{S} [steam] rice in an old cooker that has lost its lid.
{S} [freeze] rhubarb and [have] it for dessert all winter.
""",
    "sport": """
{S} [row] in an eight at dawn. | -old
{S} [play] table tennis in the second division.
{S} [lift] weights in a garage with {p} cousin. | -old
{S} [swim] {20-60} lengths at the leisure centre. | -wheels
{S} [climb] indoors and [fear] the overhang. | -old
{S} [play] bowls with pensioners on {day}. | ?old
{S} [train] for a half marathon in {month}. | -old
{S} [do] yoga in front of a video at sunrise.
{S} [fence] with the sabre, left-handed.
{S} [referee] youth handball matches.
{S} [skate] round the lake when it is frozen. | -old
{S} [go] to judo and [have] a brown belt. | -old
{S} [dance] flamenco in a community hall.
{S} [support] a hockey team that has not won a title since 1987.
{S} [walk] exactly ten thousand steps and [write] them down.
{S} [play] badminton with a colleague and always [lose].
{S} [go] orienteering in pine forests with a compass.
{S} [canoe] down a river with {p} godfather every summer. | -old
""",
    "craft": """
{S} [carve] spoons out of birch.
{S} [restore] pinball machines in the cellar.
{S} [sew] quilts for hospitals.
{S} [paint] watercolours of bridges.
{S} [fold] paper cranes in every waiting room.
{S} [build] kites and [fly] them on the beach.
{S} [brew] stout in a bathtub. | +alcohol -muslim -coeliac
{S} [make] candles from the stubs of a monastery.
{S} [embroider] maps of invented islands.
{S} [play] the bassoon in an amateur orchestra.
{S} [sing] bass-line parts in a gospel group on {day}.
{S} [develop] black-and-white photographs in the bathroom.
{S} [solder] synthesizers out of scrap.
{S} [crochet] hats for premature babies.
{S} [write] haiku on the back of receipts.
{S} [dye] wool with onion skins and walnut shells.
{S} [throw] pots on a wheel and [sell] the crooked ones.
{S} [tie] flies for trout and [give] them away.
{S} [assemble] ships in bottles under a magnifier.
{S} [play] the harmonica on the balcony.
""",
    "collection": """
{S} [collect] snow globes and [own] {30-90} of them.
{S} [collect] tram tickets from four continents.
{S} [own] {40-99} cookery books and [follow] none.
A shelf of antique locks stands in the corridor.
{S} [press] ferns between the pages of an encyclopedia.
{S} [collect] vinyl records of brass bands.
{S} [keep] every theatre programme since 1998. | -young
{S} [swap] football stickers with pupils at the bus stop.
{S} [own] {12-30} fountain pens and [write] in green.
Fossils from a quarry lie on the windowsill.
{S} [collect] beer mats and [pin] them to the ceiling. | +alcohol -muslim
{S} [save] sugar sachets from motorway cafés.
{S} [hunt] for mechanical clocks at flea markets.
{S} [have] a cabinet of minerals with handwritten labels.
""",
    "culture": """
{S} [watch] Korean dramas with subtitles until midnight.
{S} [listen] to shipping forecasts on long wave.
{S} [read] biographies of polar explorers.
{S} [subscribe] to a comic about a detective duck.
{S} [go] to the opera on the cheapest seats.
{S} [play] chess online against a stranger in {place}.
{S} [know] every episode of a hospital series by heart.
{S} [be] in a reading circle that is on its third Russian novel.
{S} [listen] to heavy metal while ironing.
{S} [do] the crossword in ink.
{S} [run] a quiz night at the pub on {day}. | -teen +alcohol -muslim
{S} [play] a farming game on an old console.
{S} [see] each new superhero film on its first night.
{S} [visit] a jazz cellar once a month.
{S} [follow] snooker tournaments on the radio.
{S} [learn] Portuguese from songs.
{S} [listen] to podcasts about unsolved burglaries.
{S} [borrow] {4-8} thrillers a month from the mobile library.
""",
    "purchase": """
{S} bought a second-hand dishwasher in {month}.
{S} [be] paying off a sofa in {12-24} instalments.
{S} ordered a telescope, which arrived with a cracked lens.
{S} won a food processor in a raffle and sold it.
{S} bought a waterproof jacket in {colour} for half the price.
{S} [have] a new hearing aid that whistles. | ?old
{S} bought an electric scooter and rode it into a hedge. | -old
{S} spent last year's bonus on a mattress. | -retired -student
{S} inherited a grandfather clock that strikes thirteen.
{S} replaced the {colour} curtains with blinds.
{S} [save] coins in a jar for a hammock.
{S} bought a rice cooker on the internet and got two.
{S} traded a guitar for a sewing machine.
{S} [own] one suit, bought for a wedding in {month}.
{S} [wear] {colour} wellingtons from autumn to spring.
{S} bought a used camera with somebody else's holiday on it.
{S} found a leather armchair on the pavement and had it covered in {colour}.
{S} ordered spectacles with {colour} frames in {month}.
""",
    "health": """
{S} [have] asthma and [carry] an inhaler.
{S} broke {p} collarbone in {month}.
{S} [wear] a night guard against grinding teeth.
{S} [see] a physiotherapist for a stiff neck.
{S} [take] iron tablets on doctor's orders.
{S} [give] blood {2-4} times a year. | -old
{S} [be] colour-blind and [label] {p} socks.
{S} had {p} appendix removed in {month}.
{S} [get] migraines when the wind turns.
{S} [have] been off cigarettes for {2-9} years. | -teen
{S} [have] a pacemaker that was fitted in {month}. | ?old
{S} [have] hay fever from {month} on.
{S} [sleep] five hours and [nap] on the couch at noon.
{S} [wear] an insole because one leg is shorter.
{S} [be] deaf in the left ear since a firework.
{S} had two wisdom teeth out and lived on yoghurt. | -old
""",
    "plans": """
{S} [be] going to {place} by train in {month}.
{S} [plan] to knock down the kitchen wall next year. | ?grown
{S} [have] booked a sailing course for {month}. | -old
{S} [mean] to plant an orchard of {5-12} trees. | ?garden
{S} [be] waiting for a residence permit.
{S} [want] to see the northern lights in {month}.
{S} [be] invited to a wedding in {place} and [have] no shoes for it.
{S} [have] an appointment to view a houseboat.
{S} [save] for a pilgrimage on foot. | -old
{S} [plan] a reunion of {p} old class in {place}. | -teen
{S} [take] the theory test for a motorbike licence in {month}. | -old
{S} [hope] to get an allotment after {2-6} years on the list. | ?flat
{S} [be] about to swap homes with a couple from {place}. | ?grown
{S} never [miss] the carnival in {place}.
{S} [rent] the same hut in the mountains each {month}.
{S} [have] tickets for a festival in {place}.
""",
    "transport": """
{S} [ride] a folding bicycle to the station.
{S} [drive] a hatchback with {140-290} thousand kilometres on it. | +car -nocar -teen
{S} [have] no driving licence and [know] all bus timetables. | +nocar -car
{S} [cross] the bay by ferry on weekdays. | -retired
{S} [share] a car with {3-6} households. | +car -nocar
{P} moped only starts downhill.
{S} [take] the cable car up to the district.
{S} [be] restoring a convertible from 1971. | +car -nocar -teen
{S} [cycle] with a trailer, even through snow. | -old
{P} parking space is rented out to a baker. | +nocar -car
{S} [fly] paper-thin budget airlines and [get] sick on each flight.
{S} [walk] to work along a disused canal. | -retired -student
{P} tricycle has a basket for shopping. | ?old
{S} [have] a season ticket for the railway and [sleep] on board.
""",
    "relatives": """
{P} father runs a hardware shop in {town}. | -old
{P} sister is an air-traffic controller in {place}.
{S} [send] money to an uncle in {town}. | -student -old
{S} [ring] {p} grandmother at noon. | -old
{P} twin emigrated to {place} in {month}.
{P} brother-in-law is the mayor of a village.
{S} [visit] an aunt in a nursing home on {day}. | -old
{P} parents separated last winter. | -old
{S} [have] {5-9} siblings and [be] the fourth. | -twin
{P} stepfather taught {o} how to solder pipes.
{P} cousin sings on cruise ships.
{P} niece stays over during the school holidays.
{S} grew up in {place} and left at {7-17}.
{P} mother grows tobacco near {town}. | -old
{P} godchild was christened in {month}. | +christian -muslim -jewish
""",
    "mishaps": """
{S} lost a wallet on the tram and got it back by post.
{S} locked {o}self out in pyjamas in {month}.
The boiler gave up in {month}, so {s} [wash] at the gym.
Moths have eaten {p} winter coat.
A burst pipe ruined {p} parquet.
{S} dropped {p} phone in a pond.
{P} bicycle was stolen in front of the police station.
{S} [have] mice in the pantry and [refuse] to set traps.
{S} [be] in dispute with the landlord about mould.
{S} missed a flight to {place} by four minutes.
A hailstorm broke {3-8} of {p} windowpanes.
{S} set off the smoke alarm with caramel.
{S} fell off a ladder while picking cherries. | ?garden
{S} sprained an ankle at a christening.
The lift has been out of order since {month}. | ?flat
""",
    "routine": """
{S} [get] up at {4-6}, alarm or not.
{S} [volunteer] at a soup kitchen on {day}.
{S} [go] to mass on feast days only. | +christian -muslim
{S} [meditate] for {10-25} minutes on a cushion.
{S} [write] three postcards every month.
{S} [have] a haircut on the first of the month.
{S} [iron] shirts while the news is on.
{S} [sit] in the sauna on {day}.
{S} [sort] the recycling into {6-9} boxes.
{S} [shower] cold, winter and summer.
{S} [keep] a diary in pencil.
{S} [buy] tulips for the kitchen on {day}.
{S} [meet] {p} old crew for cards on {day}. | -teen
{S} [pray] on a small carpet before sunrise. | +muslim -christian -alcohol
{S} [turn] off the telephone from Friday dusk to Saturday dusk. | +jewish -christian -muslim
{S} [water] the neighbours' plants for {2-5} euros a week.
{S} [skip] breakfast and [have] two espressos.
""",
    "garden": """
{S} [grow] tomatoes in buckets on the balcony. | ?flat
A fig tree in a tub blocks {p} front door.
{S} [rake] leaves for the whole street in {month}. | ?garden
{S} [compost] coffee grounds in the cellar.
{S} [have] {8-20} orchids and [mist] them at night.
{P} pumpkins took third prize at a show. | ?garden
{S} [raise] chillies under a lamp.
{S} [prune] an old pear tree with a bread knife. | ?garden
Sunflowers stand along {p} fence, {3-9} of them. | ?garden
{S} [cultivate] shiitake on logs behind the shed. | ?garden
A cactus, a present from {place}, is all that survives in {p} rooms.
Mint and coriander grow on {p} windowsill.
{S} [rent] a strip of field and [dig] potatoes there.
""",
    "society": """
{S} [belong] to the volunteer fire brigade. | -old
{S} [teach] newcomers to ride a bicycle. | -old
{S} [sit] on the board of the allotment society. | ?grown
{S} [be] treasurer of a puppet theatre. | -teen
{S} [repair] toasters for strangers at a repair café.
{S} [count] swallows for a bird society in {month}.
{S} [be] a scout leader with {12-24} cubs. | -old
{S} [stand] at the market for a refugee charity on {day}.
{S} [dress] up as a pirate for the children's ward.
{S} [judge] jam at the county fair.
{S} [translate] letters for neighbours at the counter of the town hall.
{S} [ring] the church bells with {5-7} others. | +christian -muslim -jewish
{S} [coach] girls at basketball.
{S} [play] the accordion at the care home on {day}.
""",
}
"""Facts by topic; a person has at most one of each."""
