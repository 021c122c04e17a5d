//! From fields to a date and time, by PostgreSQL's rules.
//!
//! Fields come in any order. A mask remembers which parts are known; a field whose part is known already is an error.
//! A number without a label is guessed from its length, the parts known so far, and `DateStyle`'s order.

use super::calendar::{days_in_month, from_julian, julian};
use super::fields::{Field, FieldKind, Fields, fraction_micros, leading_i32};
use super::tokens::{Label, Word, word};
use super::zone::{Zone, named_zone, named_zone_in_text, west_at, west_of_local, zone_of_abbreviation};
use super::{Bad, Civil, MICROS_PER_DAY, MICROS_PER_SEC};
use crate::settings::{DateOrder, InputContext};

/// Which parts are known.
type Mask = u32;
const YEAR: Mask = 1;
const MONTH: Mask = 2;
const DAY: Mask = 4;
const DATE: Mask = YEAR | MONTH | DAY;
const HOUR: Mask = 8;
const MINUTE: Mask = 16;
const SECOND: Mask = 32;
const FRACTION: Mask = 64;
const SECONDS: Mask = SECOND | FRACTION;
const TIME: Mask = HOUR | MINUTE | SECONDS;
const ZONE: Mask = 128;
const SUMMER: Mask = 256;
const SUMMER_WORD: Mask = 512;
const DAY_OF_YEAR: Mask = 1024;
const HALF_DAY: Mask = 2048;
const ERA: Mask = 4096;
const WEEKDAY: Mask = 8192;
const SPECIAL: Mask = 16384;

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Decoded {
    /// A date and time, and its offset in seconds west.
    At(Civil, i32),
    Infinity,
    NegInfinity,
    /// 1970-01-01 00:00 UTC
    Epoch,
}

/// What a text means so far.
struct Decoder<'a> {
    cx: &'a InputContext<'a>,
    c: Civil,
    day_of_year: i32,
    mask: Mask,
    /// Parts set by the field at hand.
    new: Mask,
    west: i32,
    /// A year of one or two digits, to be completed.
    short_year: bool,
    julian: bool,
    bc: bool,
    pm: Option<bool>,
    month_by_name: bool,
    label: Option<Label>,
    zone: Option<Zone>,
    special: Option<Decoded>,
    /// Reading a `time`: numbers are never dates.
    time_only: bool,
}

/// Decodes a date with or without a time.
pub(crate) fn decode_timestamp(text: &str, cx: &InputContext<'_>) -> Result<Decoded, Bad> {
    let fields = Fields::split(text)?;
    let mut d = Decoder::new(cx, false);
    for i in 0..fields.len() {
        d.timestamp_field(&fields, i)?;
        d.merge()?;
    }
    d.finish_timestamp()
}

/// Decodes a time with or without a zone; the date's part of the result is not filled.
pub(crate) fn decode_time(text: &str, cx: &InputContext<'_>) -> Result<(Civil, i32), Bad> {
    let fields = Fields::split(text)?;
    if fields.len() == 0 {
        return Err(Bad::Format);
    }
    let mut d = Decoder::new(cx, true);
    for i in 0..fields.len() {
        d.time_field(&fields, i)?;
        d.merge()?;
    }
    d.finish_time()
}

/// The session's local time.
fn local_now(cx: &InputContext<'_>) -> (Civil, i32) {
    let west = west_at(cx.settings.timezone.rules(), cx.now_micros);
    (Civil::of(cx.now_micros - i64::from(west) * MICROS_PER_SEC), west)
}

/// Digits as a number; at most nine of them can matter here.
fn digits(text: &str) -> i32 {
    text.bytes().fold(0i32, |n, b| n.wrapping_mul(10).wrapping_add(i32::from(b.wrapping_sub(b'0') & 15)))
}

impl<'a> Decoder<'a> {
    fn new(cx: &'a InputContext<'a>, time_only: bool) -> Decoder<'a> {
        Decoder {
            cx,
            c: Civil::default(),
            day_of_year: 0,
            mask: 0,
            new: 0,
            west: 0,
            short_year: false,
            julian: false,
            bc: false,
            pm: None,
            month_by_name: false,
            label: None,
            zone: None,
            special: None,
            time_only,
        }
    }

    fn merge(&mut self) -> Result<(), Bad> {
        if self.mask & self.new != 0 {
            return Err(Bad::Format);
        }
        self.mask |= self.new;
        self.new = 0;
        Ok(())
    }

    /// Are all of these parts known?
    fn has(&self, parts: Mask) -> bool {
        self.mask & parts == parts
    }

    /// The mask that says which numbers can still be dates.
    fn date_mask(&self) -> Mask {
        if self.time_only { self.mask | DATE } else { self.mask }
    }

    fn timestamp_field(&mut self, fields: &Fields, i: usize) -> Result<(), Bad> {
        let Field { text, kind } = fields.get(i);
        match kind {
            FieldKind::Date if self.label == Some(Label::Julian) => {
                let (n, rest) = leading_i32(text).ok_or(Bad::Field)?;
                if n < 0 {
                    return Err(Bad::Field);
                }
                self.set_julian(n);
                self.west = decode_offset(rest)?;
                self.new = DATE | TIME | ZONE;
                self.label = None;
                Ok(())
            }
            FieldKind::Date if self.label.is_some() || self.has(MONTH | DAY) => self.after_date(text),
            FieldKind::Date => self.date(text),
            FieldKind::Time => {
                if self.label.take().is_some_and(|l| l != Label::Time) {
                    return Err(Bad::Format);
                }
                self.time(text)?;
                let c = &self.c;
                if c.hour > 24 || (c.hour == 24 && (c.minute > 0 || c.second > 0)) {
                    return Err(Bad::Field);
                }
                Ok(())
            }
            FieldKind::Offset => self.offset(text),
            FieldKind::Number if self.label.is_some() => self.labelled(text),
            FieldKind::Number => self.unlabelled(text),
            FieldKind::Text | FieldKind::Signed => self.word(fields, i),
        }
    }

    fn time_field(&mut self, fields: &Fields, i: usize) -> Result<(), Bad> {
        let Field { text, kind } = fields.get(i);
        let last = fields.get(fields.len() - 1).kind;
        match kind {
            FieldKind::Date => {
                if i == 0 && fields.len() >= 2 && (last == FieldKind::Date || fields.get(1).kind == FieldKind::Time) {
                    return self.date(text);
                }
                if text.starts_with(|c: char| c.is_ascii_digit()) {
                    if self.has(TIME) {
                        return Err(Bad::Format);
                    }
                    self.label = None;
                    self.time_with_offset(text)
                } else {
                    self.named_zone(text)
                }
            }
            FieldKind::Time => self.time(text),
            FieldKind::Offset => self.offset(text),
            FieldKind::Number if self.label.is_some() => self.labelled(text),
            FieldKind::Number => {
                let point = text.find('.');
                match point {
                    Some(_) if i == 0 && fields.len() >= 2 && last == FieldKind::Date => self.date(text),
                    Some(at) if at > 2 => self.run_together(text, self.date_mask()),
                    Some(_) => Err(Bad::Format),
                    None if text.len() > 4 => self.run_together(text, self.date_mask()),
                    None => self.guess_number(text, self.date_mask()).map(|new| self.new = new),
                }
            }
            FieldKind::Text | FieldKind::Signed => self.word(fields, i),
        }
    }

    /// A field with separators after the date: a zone, or a time with an offset.
    fn after_date(&mut self, text: &str) -> Result<(), Bad> {
        if !text.starts_with(|c: char| c.is_ascii_digit()) && self.label.is_none() {
            return self.named_zone(text);
        }
        if self.label.take().is_some_and(|l| l != Label::Time) || self.has(TIME) {
            return Err(Bad::Format);
        }
        self.time_with_offset(text)
    }

    /// `hhmmss-zz`
    fn time_with_offset(&mut self, text: &str) -> Result<(), Bad> {
        let at = text.find('-').ok_or(Bad::Format)?;
        self.west = decode_offset(&text[at..])?;
        self.run_together(&text[..at], self.date_mask())?;
        self.new |= ZONE;
        Ok(())
    }

    fn named_zone(&mut self, text: &str) -> Result<(), Bad> {
        self.zone = Some(named_zone_in_text(text)?);
        self.new = ZONE;
        Ok(())
    }

    fn offset(&mut self, text: &str) -> Result<(), Bad> {
        self.west = decode_offset(text)?;
        self.new = ZONE;
        Ok(())
    }

    fn set_julian(&mut self, day: i32) {
        (self.c.year, self.c.month, self.c.day) = from_julian(day.into());
        self.julian = true;
    }

    /// A date with separators. Names of months are read first, so that they decide what the numbers are.
    fn date(&mut self, text: &str) -> Result<(), Bad> {
        let mut mask = self.mask;
        let mut new = 0;
        let mut by_name = false;
        if text.ends_with(|c: char| !c.is_ascii_alphanumeric()) && text.len() > 1 {
            let before = text.as_bytes()[text.len() - 2];
            // One closing separator is passed over, more are not.
            if !before.is_ascii_alphanumeric() {
                return Err(Bad::Format);
            }
        }
        for part in parts(text).filter(|p| p.as_bytes()[0].is_ascii_alphabetic()) {
            match word(part) {
                Some(Word::Filler) => continue,
                Some(Word::Month(month)) => {
                    self.c.month = month;
                    by_name = true;
                }
                _ => return Err(Bad::Format),
            }
            if mask & MONTH != 0 {
                return Err(Bad::Format);
            }
            mask |= MONTH;
            new |= MONTH;
        }
        let saved = std::mem::replace(&mut self.month_by_name, by_name);
        for part in parts(text).filter(|p| p.as_bytes()[0].is_ascii_digit()) {
            let set = self.guess_number(part, mask)?;
            if mask & set != 0 {
                return Err(Bad::Format);
            }
            mask |= set;
            new |= set;
        }
        self.month_by_name = saved;
        if mask & !(DAY_OF_YEAR | ZONE) != DATE {
            return Err(Bad::Format);
        }
        self.new = new;
        Ok(())
    }

    /// `h:m`, `h:m:s`, `h:m:s.f`, and `m:s.f`
    fn time(&mut self, text: &str) -> Result<(), Bad> {
        let (hour, minute, second, micro) = decode_clock(text)?;
        self.c.hour = i32::try_from(hour).map_err(|_| Bad::Field)?;
        (self.c.minute, self.c.second, self.c.micro) = (minute, second, micro);
        self.new = TIME;
        Ok(())
    }

    /// A number after a word that says what it is.
    fn labelled(&mut self, text: &str) -> Result<(), Bad> {
        let Some(label) = self.label.take() else { return Err(Bad::Format) };
        self.special = None;
        let (n, rest) = leading_i32(text).ok_or(Bad::Field)?;
        let fraction = rest.starts_with('.');
        if (fraction && !matches!(label, Label::Julian | Label::Time | Label::Second))
            || (!fraction && !rest.is_empty())
        {
            return Err(Bad::Format);
        }
        self.new = match label {
            Label::Year => (self.c.year = n, YEAR).1,
            Label::Month if self.has(MONTH | HOUR) => (self.c.minute = n, MINUTE).1,
            Label::Month => (self.c.month = n, MONTH).1,
            Label::Day => (self.c.day = n, DAY).1,
            Label::Hour => (self.c.hour = n, HOUR).1,
            Label::Minute => (self.c.minute = n, MINUTE).1,
            Label::Second => {
                self.c.second = n;
                if fraction {
                    self.c.micro = fraction_micros(rest)?;
                    SECONDS
                } else {
                    SECOND
                }
            }
            Label::Julian => {
                if n < 0 {
                    return Err(Bad::Field);
                }
                self.set_julian(n);
                if fraction {
                    let day: f64 = rest.parse().map_err(|_| Bad::Format)?;
                    let clock = Civil::of_time((day * MICROS_PER_DAY as f64) as i64);
                    self.c = Civil { year: self.c.year, month: self.c.month, day: self.c.day, ..clock };
                    DATE | TIME
                } else {
                    DATE
                }
            }
            Label::Time => {
                self.run_together(text, self.mask | DATE)?;
                if self.new != TIME {
                    return Err(Bad::Format);
                }
                TIME
            }
            _ => return Err(Bad::Format),
        };
        Ok(())
    }

    /// A number of which nothing is known.
    fn unlabelled(&mut self, text: &str) -> Result<(), Bad> {
        match text.find('.') {
            Some(_) if self.mask & DATE == 0 => self.date(text),
            Some(at) if at > 2 => self.run_together(text, self.mask),
            _ if text.len() >= 6 && (!self.has_any(DATE) || !self.has_any(TIME)) => self.run_together(text, self.mask),
            _ => self.guess_number(text, self.mask).map(|new| self.new = new),
        }
    }

    fn has_any(&self, parts: Mask) -> bool {
        self.mask & parts != 0
    }

    /// Decides what a number is; returns the parts that it sets.
    fn guess_number(&mut self, text: &str, mask: Mask) -> Result<Mask, Bad> {
        let (n, rest) = leading_i32(text).ok_or(Bad::Field)?;
        if rest.len() == text.len() {
            return Err(Bad::Format);
        }
        if rest.starts_with('.') {
            if text.len() - rest.len() > 2 {
                return self.run_together(text, mask | DATE).map(|()| self.new);
            }
            self.c.micro = fraction_micros(rest)?;
        } else if !rest.is_empty() {
            return Err(Bad::Format);
        }
        let len = text.len();
        if len == 3 && mask & DATE == YEAR && (1..=366).contains(&n) {
            self.day_of_year = n;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let order = self.cx.settings.date_order;
        let part = match mask & DATE {
            0 if len >= 3 || order == DateOrder::Ymd => YEAR,
            0 if order == DateOrder::Dmy => DAY,
            0 => MONTH,
            YEAR => MONTH,
            MONTH if self.month_by_name && (len >= 3 || order == DateOrder::Ymd) => YEAR,
            MONTH => DAY,
            m if m == YEAR | MONTH => {
                if self.month_by_name && len >= 3 && self.short_year {
                    // The first number was the day after all; the year is marked as known already.
                    self.c.day = self.c.year;
                    self.c.year = n;
                    self.short_year = false;
                    return Ok(DAY);
                }
                DAY
            }
            DAY => MONTH,
            m if m == MONTH | DAY => YEAR,
            DATE => return self.run_together(text, mask).map(|()| self.new),
            _ => return Err(Bad::Format),
        };
        match part {
            YEAR => {
                self.c.year = n;
                self.short_year = len <= 2;
            }
            MONTH => self.c.month = n,
            _ => self.c.day = n,
        }
        Ok(part)
    }

    /// `yyyymmdd`, `yymmdd`, `hhmmss`, `hhmm`, `hhmmss.f`
    fn run_together(&mut self, text: &str, mask: Mask) -> Result<(), Bad> {
        let mut whole = text;
        if let Some(at) = text.find('.') {
            self.c.micro = fraction_micros(&text[at..])?;
            whole = &text[..at];
        } else if mask & DATE != DATE && text.len() >= 6 {
            let (year, rest) = text.split_at(text.len() - 4);
            if year.len() > 9 {
                return Err(Bad::Field);
            }
            (self.c.year, self.c.month, self.c.day) = (digits(year), digits(&rest[..2]), digits(&rest[2..]));
            self.short_year |= year.len() == 2;
            self.new = DATE;
            return Ok(());
        }
        if mask & TIME != TIME && matches!(whole.len(), 4 | 6) {
            self.c.hour = digits(&whole[..2]);
            self.c.minute = digits(&whole[2..4]);
            self.c.second = digits(&whole[4..]);
            self.new = TIME;
            return Ok(());
        }
        Err(Bad::Format)
    }

    fn word(&mut self, fields: &Fields, i: usize) -> Result<(), Bad> {
        let text = fields.get(i).text;
        if let Some((zone, dst)) = zone_of_abbreviation(text) {
            self.new = if dst { ZONE | SUMMER } else { ZONE };
            match zone {
                Zone::West(west) => self.west = west,
                other => self.zone = Some(other),
            }
            return Ok(());
        }
        let Some(word) = word(text) else {
            self.zone = Some(named_zone(text).ok_or(Bad::Format)?);
            self.new = ZONE;
            return Ok(());
        };
        match word {
            Word::Filler => {}
            Word::Now | Word::AllBalls => self.instant_word(word),
            Word::Yesterday | Word::Today | Word::Tomorrow if !self.time_only => self.day_word(word),
            Word::Epoch | Word::Infinity | Word::NegInfinity if !self.time_only => {
                self.special = Some(match word {
                    Word::Epoch => Decoded::Epoch,
                    Word::Infinity => Decoded::Infinity,
                    _ => Decoded::NegInfinity,
                });
                self.new = SPECIAL;
            }
            Word::Month(month) if !self.time_only => {
                self.new = MONTH;
                if self.has(MONTH) && !self.month_by_name && !self.has(DAY) && (1..=31).contains(&self.c.month) {
                    // What was taken for the month was the day.
                    self.c.day = self.c.month;
                    self.new = DAY;
                }
                self.month_by_name = true;
                self.c.month = month;
            }
            Word::Dst => {
                self.new = SUMMER_WORD | SUMMER;
                self.west -= 3600;
            }
            Word::Pm(pm) => {
                self.new = HALF_DAY;
                self.pm = Some(pm);
            }
            Word::Bc(bc) => {
                self.new = ERA;
                self.bc = bc;
            }
            Word::Weekday(_) if !self.time_only => self.new = WEEKDAY,
            Word::Label(label) => self.label = Some(label),
            Word::IsoTime if self.time_only => self.label = Some(Label::Time),
            Word::IsoTime => {
                let next = (i + 1 < fields.len()).then(|| fields.get(i + 1).kind);
                if !self.has(DATE) || !matches!(next, Some(FieldKind::Number | FieldKind::Time | FieldKind::Date)) {
                    return Err(Bad::Format);
                }
                self.label = Some(Label::Time);
            }
            _ => return Err(Bad::Format),
        }
        Ok(())
    }

    fn instant_word(&mut self, word: Word) {
        self.special = None;
        if word == Word::AllBalls {
            (self.c.hour, self.c.minute, self.c.second, self.c.micro, self.west) = (0, 0, 0, 0, 0);
            self.new = TIME | ZONE;
            return;
        }
        let (now, west) = local_now(self.cx);
        if self.time_only {
            self.c = Civil { year: self.c.year, month: self.c.month, day: self.c.day, ..now };
            self.new = TIME;
        } else {
            (self.c, self.west) = (now, west);
            self.new = DATE | TIME | ZONE;
        }
    }

    fn day_word(&mut self, word: Word) {
        self.special = None;
        let (now, _) = local_now(self.cx);
        let shift = match word {
            Word::Yesterday => -1,
            Word::Tomorrow => 1,
            _ => 0,
        };
        (self.c.year, self.c.month, self.c.day) = from_julian(julian(now.year, now.month, now.day) + shift);
        self.new = DATE;
    }

    /// Completes the year, checks month and day.
    fn validate_date(&mut self) -> Result<(), Bad> {
        if self.has(YEAR) && !self.julian {
            let year = &mut self.c.year;
            if self.bc {
                if *year <= 0 {
                    return Err(Bad::Field);
                }
                *year = 1 - *year;
            } else if self.short_year {
                if *year < 70 {
                    *year += 2000;
                } else if *year < 100 {
                    *year += 1900;
                }
            } else if *year <= 0 {
                return Err(Bad::Field);
            }
        }
        if self.has(DAY_OF_YEAR) {
            let first = julian(self.c.year, 1, 1);
            (self.c.year, self.c.month, self.c.day) = from_julian(first + i64::from(self.day_of_year) - 1);
        }
        if self.has(MONTH) && !(1..=12).contains(&self.c.month) {
            return Err(Bad::MonthDay);
        }
        if self.has(DAY) && !(1..=31).contains(&self.c.day) {
            return Err(Bad::MonthDay);
        }
        if self.has(DATE) && self.c.day > days_in_month(self.c.year, self.c.month) {
            return Err(Bad::Field);
        }
        Ok(())
    }

    fn apply_half_day(&mut self) -> Result<(), Bad> {
        let Some(pm) = self.pm else { return Ok(()) };
        match self.c.hour {
            13.. => return Err(Bad::Field),
            12 if !pm => self.c.hour = 0,
            h if h != 12 && pm => self.c.hour += 12,
            _ => {}
        }
        Ok(())
    }

    /// `dst` cannot follow a zone that knows its summer time, nor stand alone.
    fn no_summer_word(&self) -> Result<(), Bad> {
        if self.has(SUMMER_WORD) { Err(Bad::Format) } else { Ok(()) }
    }

    fn finish_timestamp(mut self) -> Result<Decoded, Bad> {
        self.validate_date()?;
        self.apply_half_day()?;
        if let Some(special) = self.special {
            return Ok(special);
        }
        if !self.has(DATE) {
            return Err(Bad::Format);
        }
        if let Some(zone) = &self.zone {
            self.no_summer_word()?;
            self.west = zone.west_of_local(&self.c);
        }
        if !self.has(ZONE) {
            self.no_summer_word()?;
            self.west = west_of_local(self.cx.settings.timezone.rules(), &self.c);
        }
        Ok(Decoded::At(self.c, self.west))
    }

    fn finish_time(mut self) -> Result<(Civil, i32), Bad> {
        // A part of a date (`10:00 m2`) says nothing.
        if ![0, DATE].contains(&(self.mask & DATE)) {
            return Err(Bad::Format);
        }
        self.validate_date()?;
        self.apply_half_day()?;
        let c = self.c;
        let in_day = (0..=24).contains(&c.hour)
            && (0..60).contains(&c.minute)
            && (0..=60).contains(&c.second)
            && c.time_micros() <= MICROS_PER_DAY;
        if !in_day {
            return Err(Bad::Field);
        }
        if !self.has(TIME) {
            return Err(Bad::Format);
        }
        if let Some(zone) = self.zone.take() {
            self.no_summer_word()?;
            let dated = self.has(DATE);
            self.west = match (&zone, zone.fixed_west()) {
                (_, Some(west)) => west,
                (_, None) if dated => zone.west_of_local(&self.c),
                (Zone::Abbreviation(..), None) => zone.west_of_local(&self.today()),
                _ => return Err(Bad::Format),
            };
        }
        if !self.has(ZONE) {
            self.no_summer_word()?;
            let at = if self.has(DATE) { self.c } else { self.today() };
            self.west = west_of_local(self.cx.settings.timezone.rules(), &at);
        }
        Ok((self.c, self.west))
    }

    /// The time read, on the current day.
    fn today(&self) -> Civil {
        let (now, _) = local_now(self.cx);
        Civil { year: now.year, month: now.month, day: now.day, ..self.c }
    }
}

/// The parts of a date between its separators.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        let first = *rest.as_bytes().first()?;
        let alpha = first.is_ascii_alphabetic();
        let end = rest
            .find(|c: char| if alpha { !c.is_ascii_alphabetic() } else { !c.is_ascii_digit() })
            .unwrap_or(rest.len());
        let part = &rest[..end];
        // The byte that ends a part is dropped, whatever it is.
        rest = rest.get(end + 1..).unwrap_or("");
        Some(part)
    })
}

/// Hours, minutes, seconds and microseconds; a lone `m:s.f` is minutes and seconds.
pub(crate) fn decode_clock(text: &str) -> Result<(i64, i32, i32, i32), Bad> {
    let (mut hour, rest) = super::fields::leading_i64(text).ok_or(Bad::Field)?;
    let rest = rest.strip_prefix(':').ok_or(Bad::Format)?;
    let (mut minute, rest) = leading_i32(rest).ok_or(Bad::Field)?;
    let (mut second, mut micro) = (0, 0);
    if rest.starts_with('.') {
        micro = fraction_micros(rest)?;
        second = minute;
        minute = i32::try_from(hour).map_err(|_| Bad::Field)?;
        hour = 0;
    } else if let Some(rest) = rest.strip_prefix(':') {
        let (s, rest) = leading_i32(rest).ok_or(Bad::Field)?;
        second = s;
        if !rest.is_empty() {
            micro = fraction_micros(rest)?;
        }
    } else if !rest.is_empty() {
        return Err(Bad::Format);
    }
    let valid = hour >= 0
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..=MICROS_PER_SEC as i32).contains(&micro);
    if valid { Ok((hour, minute, second, micro)) } else { Err(Bad::Field) }
}

/// An offset (`+hh`, `-hhmm`, `+hh:mm:ss`) in seconds west.
pub(crate) fn decode_offset(text: &str) -> Result<i32, Bad> {
    let negative = match text.as_bytes().first() {
        Some(b'+') => false,
        Some(b'-') => true,
        _ => return Err(Bad::Format),
    };
    let (mut hours, mut rest) = leading_i32(&text[1..]).ok_or(Bad::Displacement)?;
    let (mut minutes, mut seconds) = (0, 0);
    if let Some(after) = rest.strip_prefix(':') {
        (minutes, rest) = leading_i32(after).ok_or(Bad::Displacement)?;
        if let Some(after) = rest.strip_prefix(':') {
            (seconds, rest) = leading_i32(after).ok_or(Bad::Displacement)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (minutes, hours) = (hours % 100, hours / 100);
    }
    if !(0..=15).contains(&hours) || !(0..60).contains(&minutes) || !(0..60).contains(&seconds) {
        return Err(Bad::Displacement);
    }
    if !rest.is_empty() {
        return Err(Bad::Format);
    }
    let east = (hours * 60 + minutes) * 60 + seconds;
    Ok(if negative { east } else { -east })
}
