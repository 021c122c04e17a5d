//! Encodings of several bytes.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding as Library, GB18030, GBK, SHIFT_JIS};

use super::exceptions::{self, Exceptions};

/// Which rules say where a character ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharacterRule {
    EucJp,
    /// Two bytes from 0xa1 on.
    Euc,
    Sjis,
    /// Two bytes, whatever the second one is.
    Pairs,
    Gb18030,
}

/// An encoding's tables.
pub(super) struct Multi {
    kind: CharacterRule,
    codec: &'static Library,
    exceptions: &'static Exceptions,
    /// Characters of codes of one and two bytes; 0 is none.
    pairs: Box<[u16]>,
    /// Characters of codes of three bytes, without the first one; empty but for EUC_JP.
    triples: Box<[u16]>,
    /// Codes of the characters below U+10000; 0 is none.
    codes: Box<[u32]>,
}

impl Multi {
    pub(super) fn of(name: &str) -> Option<Multi> {
        let (kind, codec, exceptions) = match name {
            "EUC_JP" => (CharacterRule::EucJp, EUC_JP, &exceptions::EUC_JP),
            "EUC_CN" => (CharacterRule::Euc, GBK, &exceptions::EUC_CN),
            "EUC_KR" => (CharacterRule::Euc, EUC_KR, &exceptions::EUC_KR),
            "SJIS" => (CharacterRule::Sjis, SHIFT_JIS, &exceptions::SJIS),
            "BIG5" => (CharacterRule::Pairs, BIG5, &exceptions::BIG5),
            "GBK" => (CharacterRule::Pairs, GBK, &exceptions::GBK),
            "UHC" => (CharacterRule::Pairs, EUC_KR, &exceptions::UHC),
            "GB18030" => (CharacterRule::Gb18030, GB18030, &exceptions::GB18030),
            _ => return None,
        };
        let triples = if kind == CharacterRule::EucJp { vec![0; 1 << 16] } else { Vec::new() };
        let mut multi = Multi {
            kind,
            codec,
            exceptions,
            pairs: vec![0; 1 << 16].into(),
            triples: triples.into(),
            codes: vec![0; 1 << 16].into(),
        };
        multi.fill(name);
        Some(multi)
    }

    /// Lays out the tables: the codec's characters, then PostgreSQL's differences, then the way back.
    fn fill(&mut self, name: &str) {
        let codec = self.codec;
        let look = |bytes: &[u8]| {
            let text = codec.decode_without_bom_handling_and_without_replacement(bytes)?;
            let mut characters = text.chars();
            let first = characters.next()?;
            let private = ('\u{e000}'..'\u{f900}').contains(&first) && name != "GB18030";
            (characters.next().is_none() && !private).then(|| u16::try_from(u32::from(first)).ok()).flatten()
        };
        let within = |first: u8, second: u8| match name {
            "EUC_CN" => (0xa1..=0xf7).contains(&first) && second >= 0xa1,
            "EUC_KR" => first >= 0xa1 && second >= 0xa1,
            "BIG5" => (0xa1..=0xf9).contains(&first),
            "EUC_JP" => first < 0xf9,
            _ => true,
        };
        for first in 0x80..=0xffu8 {
            if self.kind == CharacterRule::Sjis {
                self.pairs[usize::from(first)] = look(&[first]).unwrap_or(0);
            }
            for second in 0x21..=0xffu8 {
                let at = usize::from(first) << 8 | usize::from(second);
                if within(first, second) {
                    self.pairs[at] = look(&[first, second]).unwrap_or(0);
                }
                let at = usize::from(second) << 8;
                if self.kind == CharacterRule::EucJp && first >= 0xa1 && second >= 0xa1 {
                    self.triples[at | usize::from(first)] = look(&[0x8f, second, first]).unwrap_or(0);
                }
            }
        }
        for &(from, to) in self.exceptions.undefined {
            (from..=to).for_each(|code| self.set(code, 0));
        }
        for &(code, character, count) in self.exceptions.decoded {
            (0..count).for_each(|i| self.set(code + i, (character + i) as u16));
        }
        self.fill_codes();
    }

    fn set(&mut self, code: u32, character: u16) {
        let table = if code < 0x1_0000 { &mut self.pairs } else { &mut self.triples };
        if let Some(place) = table.get_mut((code & 0xffff) as usize) {
            *place = character;
        }
    }

    /// A character with several codes has the first one; in SJIS the last one, which is IBM's.
    fn fill_codes(&mut self) {
        let triples = self.triples.iter().enumerate().map(|(at, c)| (0x8f_0000 | at as u32, *c));
        let all = self.pairs.iter().enumerate().map(|(at, c)| (at as u32, *c)).chain(triples);
        for (code, character) in all.filter(|(_, character)| *character != 0) {
            let place = &mut self.codes[usize::from(character)];
            if *place == 0 || self.kind == CharacterRule::Sjis {
                *place = code;
            }
        }
        for &(character, code, count) in self.exceptions.encoded {
            for i in 0..count {
                if let Some(place) = self.codes.get_mut((character + i) as usize) {
                    *place = if code == 0 { 0 } else { code + i };
                }
            }
        }
    }

    /// The bytes that the character at the start of `bytes`, which is not ASCII, seems to have.
    pub(super) fn announced(&self, bytes: &[u8]) -> usize {
        let (first, second) = (bytes.first().copied().unwrap_or(0), bytes.get(1).copied());
        match (self.kind, first) {
            (_, ..0x80) => 1,
            (CharacterRule::EucJp | CharacterRule::Euc, 0x8f) => 3,
            (CharacterRule::Sjis, 0xa1..=0xdf) => 1,
            (CharacterRule::Gb18030, _) if second.is_some_and(|b| b.is_ascii_digit()) => 4,
            _ => 2,
        }
    }

    /// The bytes of the character at the start of `bytes`; `None` if it is none.
    pub(super) fn verify(&self, bytes: &[u8]) -> Option<usize> {
        let length = self.announced(bytes);
        let bytes = bytes.get(..length)?;
        let high = |b: u8| (0xa1..=0xfe).contains(&b);
        let holds = match (self.kind, bytes) {
            (CharacterRule::EucJp, [0x8e, second]) => (0xa1..=0xdf).contains(second),
            (CharacterRule::EucJp, [0x8f, second, third]) => high(*second) && high(*third),
            (CharacterRule::EucJp | CharacterRule::Euc, [first, second]) => high(*first) && high(*second),
            (CharacterRule::Sjis, [_]) => true,
            (CharacterRule::Sjis, [first, second]) => {
                matches!(first, 0x81..=0x9f | 0xe0..=0xfc) && matches!(second, 0x40..=0x7e | 0x80..=0xfc)
            }
            (CharacterRule::Pairs, [0x8d, b' ']) => false,
            (CharacterRule::Pairs, [_, second]) => *second != 0,
            (CharacterRule::Gb18030, [first, second]) => {
                (0x81..=0xfe).contains(first) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
            }
            (CharacterRule::Gb18030, [first, _, third, fourth]) => {
                (0x81..=0xfe).contains(first) && (0x81..=0xfe).contains(third) && fourth.is_ascii_digit()
            }
            _ => false,
        };
        holds.then_some(length)
    }

    /// The character of a verified code.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<char> {
        let pair = |bytes: &[u8]| bytes.iter().fold(0, |code, byte| code << 8 | usize::from(*byte));
        let character = match bytes {
            [_] | [_, _] => self.pairs[pair(bytes)],
            [_, rest @ ..] if bytes.len() == 3 => self.triples.get(pair(rest)).copied().unwrap_or(0),
            _ => return self.decode_four(bytes),
        };
        (character != 0).then(|| char::from_u32(u32::from(character))).flatten()
    }

    /// GB18030's codes of four bytes.
    fn decode_four(&self, bytes: &[u8]) -> Option<char> {
        let code = bytes.iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
        let runs = self.exceptions.encoded.iter();
        let moved = runs.filter(|run| run.1 > 0xffff).find(|run| (run.1..run.1 + run.2).contains(&code));
        if let Some((character, first, _)) = moved {
            return char::from_u32(character + (code - first));
        }
        let text = self.codec.decode_without_bom_handling_and_without_replacement(bytes)?;
        text.chars().next()
    }

    /// The code of a character.
    pub(super) fn code(&self, c: char) -> Option<u32> {
        let known = self.codes.get(c as usize).copied().filter(|code| *code != 0);
        if known.is_some() || self.kind != CharacterRule::Gb18030 {
            return known;
        }
        let mut buffer = [0; 4];
        let (bytes, _, failed) = self.codec.encode(c.encode_utf8(&mut buffer));
        let bytes: [u8; 4] = bytes.as_ref().try_into().ok()?;
        (!failed).then(|| u32::from_be_bytes(bytes))
    }
}
