"""Where people might go: some towns of a country, and cities for a flight."""

from __future__ import annotations

import re

_TOWNS = {
    "argentina": "Córdoba Mendoza Rosario",
    "australia": "Hobart Newcastle Geelong",
    "austria": "Graz Linz Innsbruck",
    "belgium": "Ghent Bruges Antwerp",
    "brazil": "Curitiba Salvador Paraty",
    "canada": "Kingston Halifax Québec",
    "cape verde": "Mindelo Praia Tarrafal",
    "chile": "Valparaíso Valdivia Concepción",
    "china": "Suzhou Hangzhou Xiamen",
    "colombia": "Cartagena Medellín Popayán",
    "denmark": "Aarhus Odense Ribe",
    "egypt": "Luxor Aswan Alexandria",
    "finland": "Turku Tampere Porvoo",
    "france": "Lyon Annecy Nantes",
    "germany": "Leipzig Bremen Freiburg",
    "ghana": "Kumasi Takoradi Tamale",
    "greece": "Nafplio Volos Kavala",
    "india": "Jaipur Pune Mysore",
    "indonesia": "Bandung Solo Malang",
    "ireland": "Galway Cork Kilkenny",
    "italy": "Bologna Turin Lecce",
    "japan": "Kanazawa Nara Hakodate",
    "kazakhstan": "Turkistan Shymkent Karaganda",
    "kenya": "Nakuru Kisumu Mombasa",
    "malaysia": "Ipoh Malacca Penang",
    "mexico": "Puebla Oaxaca Mérida",
    "morocco": "Fez Essaouira Tetouan",
    "netherlands": "Utrecht Leiden Groningen",
    "new zealand": "Nelson Napier Dunedin",
    "nigeria": "Ibadan Abeokuta Enugu",
    "norway": "Lillehammer Ålesund Kristiansand",
    "pakistan": "Lahore Multan Peshawar",
    "peru": "Arequipa Trujillo Cusco",
    "philippines": "Baguio Iloilo Vigan",
    "poland": "Gdańsk Wrocław Toruń",
    "portugal": "Évora Braga Coimbra",
    "romania": "Cluj Sibiu Brașov",
    "south africa": "Durban Knysna Stellenbosch",
    "south korea": "Busan Jeonju Gyeongju",
    "tonga": "Neiafu Pangai Ohonua",
    "spain": "Valencia Bilbao Cádiz",
    "sweden": "Uppsala Lund Kalmar",
    "switzerland": "Lucerne Bern Lugano",
    "thailand": "Ayutthaya Lampang Krabi",
    "turkey": "Izmir Bursa Eskişehir",
    "united kingdom": "York Bath Durham",
    "united states": "Portland Savannah Pittsburgh",
    "vietnam": "Hue Hanoi Dalat",
}
_ALIASES = {
    "scotland": "united kingdom",
    "england": "united kingdom",
    "wales": "united kingdom",
    "uk": "united kingdom",
    "usa": "united states",
    "us": "united states",
    "united states of america": "united states",
    "ontario": "canada",
    "quebec": "canada",
    "alberta": "canada",
    "türkiye": "turkey",
    "korea": "south korea",
}
_FAR = (
    "Lisbon",
    "Vienna",
    "Copenhagen",
    "Istanbul",
    "Tokyo",
    "Montréal",
    "Cape Town",
    "Barcelona",
    "Edinburgh",
    "Singapore",
)


def towns_near(country: str) -> tuple[str, ...]:
    """Give some towns of a country; none when the country is not in the bank."""
    key = country.strip().lower()
    return tuple(_TOWNS.get(_ALIASES.get(key, key), "").split())


def cities_far() -> tuple[str, ...]:
    """Give cities that one flies to."""
    return _FAR


def town_of(location: str) -> str:
    """Give the town in a location such as "Kitchen at home, Porto, Portugal": the first part that is all names."""
    parts = [re.sub(r"^(?:village near|near|centre of) ", "", part.strip()) for part in location.split(",")]
    named = (
        part
        for part in parts
        if part and all(word[:1].isupper() or word in ("of", "de", "on") for word in part.split())
    )
    return next(named, parts[0])
