//! The words of clause 4.2.2: lists of values, and the text that comments are pieces of.

use crate::rng::Rng;

/// Names of regions.
pub const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// Names of nations, with the region of each.
pub const NATIONS: [(&str, i64); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];

/// Words of a part's name.
pub const COLOURS: [&str; 92] = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "burnished",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
    "indian",
    "ivory",
    "khaki",
    "lace",
    "lavender",
    "lawn",
    "lemon",
    "light",
    "lime",
    "linen",
    "magenta",
    "maroon",
    "medium",
    "metallic",
    "midnight",
    "mint",
    "misty",
    "moccasin",
    "navajo",
    "navy",
    "olive",
    "orange",
    "orchid",
    "pale",
    "papaya",
    "peach",
    "peru",
    "pink",
    "plum",
    "powder",
    "puff",
    "purple",
    "red",
    "rose",
    "rosy",
    "royal",
    "saddle",
    "salmon",
    "sandy",
    "seashell",
    "sienna",
    "sky",
    "slate",
    "smoke",
    "snow",
    "spring",
    "steel",
    "tan",
    "thistle",
    "tomato",
    "turquoise",
    "violet",
    "wheat",
    "white",
    "yellow",
];

/// First, second and third words of a part's type.
pub const TYPES: [&[&str]; 3] = [
    &["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"],
    &["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
    &["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"],
];

/// First and second words of a container.
pub const CONTAINERS: [&[&str]; 2] =
    [&["SM", "LG", "MED", "JUMBO", "WRAP"], &["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"]];

/// Market segments of customers.
pub const SEGMENTS: [&str; 5] = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"];

/// Priorities of orders.
pub const PRIORITIES: [&str; 5] = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"];

/// What the shipper is told.
pub const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];

/// How things are shipped.
pub const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];

const NOUNS: [&str; 45] = [
    "foxes",
    "ideas",
    "theodolites",
    "pinto beans",
    "instructions",
    "dependencies",
    "excuses",
    "platelets",
    "asymptotes",
    "courts",
    "dolphins",
    "multipliers",
    "sauternes",
    "warthogs",
    "frets",
    "dinos",
    "attainments",
    "somas",
    "Tiresias'",
    "patterns",
    "forges",
    "braids",
    "hockey players",
    "frays",
    "warhorses",
    "dugouts",
    "notornis",
    "epitaphs",
    "pearls",
    "tithes",
    "waters",
    "orbits",
    "gifts",
    "sheaves",
    "depths",
    "sentiments",
    "decoys",
    "realms",
    "pains",
    "grouches",
    "escapades",
    "packages",
    "requests",
    "accounts",
    "deposits",
];
const VERBS: [&str; 40] = [
    "sleep",
    "wake",
    "are",
    "cajole",
    "haggle",
    "nag",
    "use",
    "boost",
    "affix",
    "detect",
    "integrate",
    "maintain",
    "nod",
    "was",
    "lose",
    "sublate",
    "solve",
    "thrash",
    "promise",
    "engage",
    "hinder",
    "print",
    "x-ray",
    "breach",
    "eat",
    "grow",
    "impress",
    "mold",
    "poach",
    "serve",
    "run",
    "dazzle",
    "snooze",
    "doze",
    "unwind",
    "kindle",
    "play",
    "hang",
    "believe",
    "doubt",
];
const ADJECTIVES: [&str; 29] = [
    "furious",
    "sly",
    "careful",
    "blithe",
    "quick",
    "fluffy",
    "slow",
    "quiet",
    "ruthless",
    "thin",
    "close",
    "dogged",
    "daring",
    "brave",
    "stealthy",
    "permanent",
    "enticing",
    "idle",
    "busy",
    "regular",
    "final",
    "ironic",
    "even",
    "bold",
    "silent",
    "special",
    "pending",
    "express",
    "unusual",
];
const ADVERBS: [&str; 28] = [
    "sometimes",
    "always",
    "never",
    "furiously",
    "slyly",
    "carefully",
    "blithely",
    "quickly",
    "fluffily",
    "slowly",
    "quietly",
    "ruthlessly",
    "thinly",
    "closely",
    "doggedly",
    "daringly",
    "bravely",
    "stealthily",
    "permanently",
    "enticingly",
    "idly",
    "busily",
    "regularly",
    "finally",
    "ironically",
    "evenly",
    "boldly",
    "silently",
];
const PREPOSITIONS: [&str; 20] = [
    "about",
    "above",
    "according to",
    "across",
    "after",
    "against",
    "along",
    "alongside of",
    "among",
    "around",
    "at",
    "atop",
    "before",
    "behind",
    "beneath",
    "beside",
    "besides",
    "between",
    "beyond",
    "by",
];
const AUXILIARIES: [&str; 18] = [
    "do",
    "may",
    "might",
    "shall",
    "will",
    "would",
    "can",
    "could",
    "should",
    "ought to",
    "must",
    "will have to",
    "shall have to",
    "could have to",
    "should have to",
    "must have to",
    "need to",
    "try to",
];
const TERMINATORS: [&str; 6] = [".", ";", ":", "?", "!", "--"];

/// Bytes of the text that comments are cut out of.
const POOL_BYTES: usize = 1 << 20;

/// One of several words.
pub fn pick<'w>(rng: &mut Rng, words: &[&'w str]) -> &'w str {
    words[rng.uniform(0, words.len() as i64 - 1) as usize]
}

/// The text that all comments of a load are pieces of.
pub struct Text(String);

impl Text {
    /// Sentences of clause 4.2.2.14, the same for every seed: comments differ by where they begin.
    pub fn new() -> Text {
        let mut rng = Rng::new(0, 0);
        let mut text = String::with_capacity(POOL_BYTES + 200);
        while text.len() < POOL_BYTES {
            sentence(&mut text, &mut rng);
        }
        Text(text)
    }

    /// A piece of `low` to `high` bytes.
    pub fn piece(&self, rng: &mut Rng, low: i64, high: i64) -> &str {
        let length = rng.uniform(low, high) as usize;
        let at = rng.uniform(0, (self.0.len() - length) as i64) as usize;
        &self.0[at..at + length]
    }
}

fn sentence(text: &mut String, rng: &mut Rng) {
    let shape = rng.uniform(1, 10);
    noun_phrase(text, rng);
    verb_phrase(text, rng);
    match shape {
        1..=3 => {}
        4..=6 => prepositional_phrase(text, rng),
        7 | 8 => noun_phrase(text, rng),
        9 => {
            prepositional_phrase(text, rng);
            noun_phrase(text, rng);
        }
        _ => {
            prepositional_phrase(text, rng);
            verb_phrase(text, rng);
            prepositional_phrase(text, rng);
        }
    }
    text.pop();
    text.push_str(pick(rng, &TERMINATORS));
    text.push(' ');
}

fn word(text: &mut String, rng: &mut Rng, words: &[&str], end: &str) {
    text.push_str(pick(rng, words));
    text.push_str(end);
}

fn noun_phrase(text: &mut String, rng: &mut Rng) {
    match rng.uniform(1, 4) {
        1 => {}
        2 => word(text, rng, &ADJECTIVES, " "),
        3 => {
            word(text, rng, &ADJECTIVES, ", ");
            word(text, rng, &ADJECTIVES, " ");
        }
        _ => {
            word(text, rng, &ADVERBS, " ");
            word(text, rng, &ADJECTIVES, " ");
        }
    }
    word(text, rng, &NOUNS, " ");
}

fn verb_phrase(text: &mut String, rng: &mut Rng) {
    let shape = rng.uniform(1, 4);
    if shape == 2 || shape == 4 {
        word(text, rng, &AUXILIARIES, " ");
    }
    word(text, rng, &VERBS, " ");
    if shape >= 3 {
        word(text, rng, &ADVERBS, " ");
    }
}

fn prepositional_phrase(text: &mut String, rng: &mut Rng) {
    word(text, rng, &PREPOSITIONS, " the ");
    noun_phrase(text, rng);
}
