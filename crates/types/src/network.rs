//! Addresses of networks and hosts: `inet`, `cidr`.
//!
//! Responsible for: their text forms, their order, their arithmetic.
//! Not responsible for: which function SQL calls by which name (`sql-functions`).
//! Invariants: a prefix is at most as long as the address; a value of `cidr` has no bit set behind its prefix.
//! Source: what PostgreSQL reads and writes, which stems from BIND's `inet_net_pton` and `inet_net_ntop`.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::{Error, Result, SqlState, work};

use crate::io::invalid_syntax;

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, Debug)]
pub struct Inet {
    address: IpAddr,
    prefix: u8,
    is_network: bool,
}

/// What follows an address in its text form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The prefix unless it is the whole address.
    IfShorter,
    /// The prefix.
    Always,
    /// Nothing.
    Never,
}

fn out_of_range() -> Error {
    Error::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl Inet {
    /// An address within a network; `None` if the prefix is longer than the address.
    pub fn new(address: IpAddr, prefix: u8, is_network: bool) -> Option<Inet> {
        let value = Inet { address, prefix, is_network };
        (prefix <= value.width()).then_some(value)
    }

    /// A host.
    pub fn host(address: IpAddr) -> Inet {
        let whole = Inet { address, prefix: 0, is_network: false };
        Inet { prefix: whole.width(), ..whole }
    }

    /// Reads the text form of `inet` or `cidr`.
    ///
    /// # Errors
    /// 22P02
    pub fn parse(text: &str, is_network: bool) -> Result<Inet> {
        let name = if is_network { "cidr" } else { "inet" };
        let mut rest = Rest(text.as_bytes());
        let read = match text.contains(':') {
            true => rest.v6()?.map(|(address, prefix)| (IpAddr::V6(address), prefix)),
            false if is_network => rest.v4_network()?.map(|(address, prefix)| (IpAddr::V4(address), prefix)),
            false => rest.v4()?.map(|(address, prefix)| (IpAddr::V4(address), prefix)),
        };
        let value = read.and_then(|(address, prefix)| Inet::new(address, prefix, is_network));
        let value = value.ok_or_else(|| invalid_syntax(name, text))?;
        if is_network && value.has_host_bits() {
            let error = Error::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("invalid cidr value: \"{text}\""));
            return Err(error.detail("Value has bits set to right of mask."));
        }
        Ok(value)
    }

    /// The address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bits of the prefix.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether it is a value of `cidr`.
    pub fn is_network(&self) -> bool {
        self.is_network
    }

    /// As a value of `inet` or of `cidr`, which has no bits behind its prefix.
    pub fn of_type(self, is_network: bool) -> Inet {
        let value = Inet { is_network, ..self };
        if is_network { value.with(value.number() & value.mask()) } else { value }
    }

    /// 4 or 6.
    pub fn family(&self) -> u8 {
        if self.address.is_ipv4() { 4 } else { 6 }
    }

    /// Bits of the address.
    pub fn width(&self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn number(&self) -> u128 {
        match self.address {
            IpAddr::V4(address) => u32::from(address).into(),
            IpAddr::V6(address) => address.into(),
        }
    }

    /// All bits of the address.
    fn ones(&self) -> u128 {
        u128::MAX >> (128 - u32::from(self.width()))
    }

    /// The bits of the prefix.
    fn mask(&self) -> u128 {
        // A shift by all bits is none.
        self.ones() & !self.ones().checked_shr(self.prefix.into()).unwrap_or(0)
    }

    /// Another address of the same kind.
    fn with(self, number: u128) -> Inet {
        let address = match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(number as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        };
        Inet { address, ..self }
    }

    fn has_host_bits(&self) -> bool {
        self.number() & !self.mask() != 0
    }

    /// What values are compared and hashed by.
    fn key(&self) -> (u8, u128, u8, u128) {
        (self.family(), self.number() & self.mask(), self.prefix, self.number())
    }

    /// The order as the number that `network_cmp` answers: the difference of the first bytes that differ, and of prefixes.
    pub fn order(&self, other: &Inet) -> i32 {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        self.write_address(&mut a);
        other.write_address(&mut b);
        let common = usize::from(self.prefix.min(other.prefix) / 8);
        let whole = crate::cmp::difference(&a[..common.min(b.len())], &b[..common.min(a.len())]);
        match self.cmp(other) {
            Ordering::Equal => 0,
            order if self.family() != other.family() => order as i32,
            _ if whole != 0 => whole,
            _ if !self.overlaps(other) => self.cmp(other) as i32,
            _ if self.prefix != other.prefix => i32::from(self.prefix) - i32::from(other.prefix),
            _ => crate::cmp::difference(&a, &b),
        }
    }

    /// Appends bytes in the order of the values; those of no value are a prefix of another's.
    pub(crate) fn write_key(&self, out: &mut Vec<u8>) {
        let bytes = usize::from(self.width() / 8);
        out.push(self.family());
        out.extend_from_slice(&(self.number() & self.mask()).to_be_bytes()[16 - bytes..]);
        out.push(self.prefix);
        out.extend_from_slice(&self.number().to_be_bytes()[16 - bytes..]);
    }

    /// Appends the form in rows: prefix, address. Of which of both types it is the column says.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.prefix);
        self.write_address(out);
    }

    pub(crate) fn write_address(&self, out: &mut Vec<u8>) {
        match self.address {
            IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
        }
    }

    /// Reads what [`Inet::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8], is_network: bool) -> Option<Inet> {
        let (prefix, address) = bytes.split_first()?;
        Inet::new(address_of(address)?, *prefix, is_network)
    }

    /// Appends the text form.
    pub fn write(&self, shown: Shown, out: &mut Vec<u8>) {
        match self.address {
            IpAddr::V4(address) => push(out, format_args!("{address}")),
            IpAddr::V6(address) => write_v6(address.segments(), out),
        }
        if shown == Shown::Always || shown == Shown::IfShorter && self.prefix < self.width() {
            push(out, format_args!("/{}", self.prefix));
        }
    }

    /// Appends a network as briefly as it can be read.
    pub fn write_brief(&self, out: &mut Vec<u8>) {
        match self.address {
            IpAddr::V4(_) if self.prefix == 0 => out.push(b'0'),
            IpAddr::V4(_) => {
                let octets = (((self.number() & self.mask()) as u32).to_be_bytes(), self.prefix.div_ceil(8));
                for (i, octet) in octets.0.iter().take(octets.1.into()).enumerate() {
                    push(out, format_args!("{}{octet}", if i > 0 { "." } else { "" }));
                }
            }
            IpAddr::V6(_) if self.prefix == 0 => out.extend_from_slice(b"::"),
            IpAddr::V6(_) => write_brief_v6(Ipv6Addr::from(self.number() & self.mask()), self.prefix, out),
        }
        push(out, format_args!("/{}", self.prefix));
    }

    /// With another prefix, -1 for the whole address.
    ///
    /// # Errors
    /// 22023
    pub fn with_prefix(self, bits: i32) -> Result<Inet> {
        let prefix = if bits == -1 { i32::from(self.width()) } else { bits };
        let wrong = || invalid(format!("invalid mask length: {bits}"));
        let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix <= self.width()).ok_or_else(wrong)?;
        Ok(Inet { prefix, ..self })
    }

    /// The network that it is in.
    pub fn network(self) -> Inet {
        self.of_type(true)
    }

    /// The last address of its network.
    pub fn broadcast(self) -> Inet {
        Inet { is_network: false, ..self }.with(self.number() | (self.ones() & !self.mask()))
    }

    /// Its prefix as an address.
    pub fn netmask(self) -> Inet {
        Inet { prefix: self.width(), is_network: false, ..self }.with(self.mask())
    }

    /// What is behind its prefix as an address.
    pub fn hostmask(self) -> Inet {
        Inet { prefix: self.width(), is_network: false, ..self }.with(self.ones() & !self.mask())
    }

    /// Whether the network of `other` is this one or in it.
    pub fn contains(&self, other: &Inet) -> bool {
        self.prefix <= other.prefix && self.overlaps(other)
    }

    /// Whether the network of `other` is in this one, and smaller.
    pub fn contains_smaller(&self, other: &Inet) -> bool {
        self.prefix < other.prefix && self.overlaps(other)
    }

    /// Whether one network is in the other.
    pub fn overlaps(&self, other: &Inet) -> bool {
        let mask = self.mask() & other.mask();
        self.family() == other.family() && self.number() & mask == other.number() & mask
    }

    /// The smallest network that both are in.
    ///
    /// # Errors
    /// 22023 for addresses of different families.
    pub fn merge(self, other: Inet) -> Result<Inet> {
        if self.family() != other.family() {
            return Err(invalid("cannot merge addresses from different families"));
        }
        let differing = (self.number() ^ other.number()) << (128 - u32::from(self.width()));
        let prefix = (differing.leading_zeros() as u8).min(self.prefix).min(other.prefix);
        Ok(Inet { prefix, ..self }.network())
    }

    /// Bit by bit.
    ///
    /// # Errors
    /// 22023 for addresses of different families.
    pub fn combine(self, other: Inet, verb: &str, combine: fn(u128, u128) -> u128) -> Result<Inet> {
        if self.family() != other.family() {
            return Err(invalid(format!("cannot {verb} inet values of different sizes")));
        }
        let prefix = self.prefix.max(other.prefix);
        Ok(Inet { prefix, is_network: false, ..self }.with(combine(self.number(), other.number())))
    }

    /// All bits turned round.
    pub fn inverted(self) -> Inet {
        Inet { is_network: false, ..self }.with(self.ones() & !self.number())
    }

    /// The address so many further.
    ///
    /// # Errors
    /// 22003
    pub fn plus(self, addend: i128) -> Result<Inet> {
        let number = self.number().checked_add_signed(addend).filter(|number| *number <= self.ones());
        Ok(Inet { is_network: false, ..self }.with(number.ok_or_else(out_of_range)?))
    }

    /// How many addresses lie between two.
    ///
    /// # Errors
    /// 22023 for addresses of different families, 22003
    pub fn minus(self, other: Inet) -> Result<i64> {
        if self.family() != other.family() {
            return Err(invalid("cannot subtract inet values of different sizes"));
        }
        // Of 128 bits without a sign the difference is right if it is small.
        let (difference, is_less) = self.number().overflowing_sub(other.number());
        let small = i64::try_from(difference as i128).ok().filter(|small| (*small < 0) == is_less);
        small.ok_or_else(out_of_range)
    }
}

impl Ord for Inet {
    fn cmp(&self, other: &Inet) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Inet {
    fn partial_cmp(&self, other: &Inet) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Inet {
    fn eq(&self, other: &Inet) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Inet {}

impl Hash for Inet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// The address that so many bytes are.
fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("bytes in memory take what is written");
}

/// The longest row of zeros, the first of equal ones: where, how many.
fn longest_zeros(words: &[u16; 8]) -> (usize, usize) {
    let (mut longest, mut len) = ((0, 0), 0);
    for (i, word) in words.iter().enumerate() {
        len = if *word == 0 { len + 1 } else { 0 };
        if len > longest.1 {
            longest = (i + 1 - len, len);
        }
    }
    longest
}

fn write_v6(words: [u16; 8], out: &mut Vec<u8>) {
    let (from, len) = longest_zeros(&words);
    let zeros = if len < 2 { 8..8 } else { from..from + len };
    for (i, word) in words.iter().enumerate() {
        if zeros.contains(&i) {
            if i == zeros.start {
                out.push(b':');
            }
            continue;
        }
        if i > 0 {
            out.push(b':');
        }
        // An address of IPv4 within.
        if i == 6 && zeros.start == 0 && (zeros.len() == 6 || zeros.len() == 5 && words[5] == 0xffff) {
            let [a, b] = words[6].to_be_bytes();
            let [c, d] = words[7].to_be_bytes();
            return push(out, format_args!("{a}.{b}.{c}.{d}"));
        }
        push(out, format_args!("{word:x}"));
    }
    if zeros.start < 8 && zeros.end == 8 {
        out.push(b':');
    }
}

/// As many words as the prefix has, two at least. How the rows of zeros are counted is PostgreSQL's: one that is not longer than
/// those before it is not ended by what follows it.
fn write_brief_v6(address: Ipv6Addr, prefix: u8, out: &mut Vec<u8>) {
    let words = address.segments();
    let count = usize::from(prefix.div_ceil(16)).max(2);
    let (mut zeros, mut row) = ((0, 0), (0, 0));
    for (i, word) in words.iter().enumerate().take(count) {
        if *word == 0 {
            row = if row.1 == 0 { (i, 1) } else { (row.0, row.1 + 1) };
        } else if row.1 > zeros.1 {
            zeros = row;
            row.1 = 0;
        }
    }
    if row.1 > zeros.1 {
        zeros = row;
    }
    let last = words[7].to_be_bytes();
    let is_v4 = zeros.1 != count
        && zeros.0 == 0
        && (zeros.1 == 6 || zeros.1 == 5 && words[5] == 0xffff || zeros.1 == 7 && last[0] != 0 && last[1] != 1);
    let start = out.len();
    for (i, word) in words.iter().enumerate().take(count) {
        if zeros.1 > 0 && (zeros.0..zeros.0 + zeros.1).contains(&i) {
            for _ in [i == zeros.0, i == count - 1].iter().filter(|is| **is) {
                out.push(b':');
            }
        } else if is_v4 && i > 5 {
            let [high, low] = word.to_be_bytes();
            push(out, format_args!("{}{high}", if i == 6 { ":" } else { "." }));
            // The last octet is there if the prefix reaches it.
            if i != 7 || prefix > 120 {
                push(out, format_args!(".{low}"));
            }
        } else {
            push(out, format_args!("{}{word:x}", if out.len() > start { ":" } else { "" }));
        }
    }
}

/// What is left to read of a text.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn takes(&mut self, wanted: u8) -> bool {
        let takes = self.peek() == Some(wanted);
        if takes {
            self.next();
        }
        takes
    }

    /// A number of at least one digit; one that is too large is none.
    fn number(&mut self, most: u32) -> Result<Option<u32>> {
        let (mut value, mut any) = (0u32, false);
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            work::step(1)?;
            self.next();
            value = value * 10 + u32::from(digit - b'0');
            any = true;
            if value > most {
                return Ok(None);
            }
        }
        Ok(any.then_some(value))
    }

    /// A number without zeros in front.
    fn plain_number(&mut self, most: u32) -> Result<Option<u32>> {
        let has_zero = matches!(self.0, [b'0', b'0'..=b'9', ..]);
        Ok(self.number(most)?.filter(|_| !has_zero))
    }

    /// The end, or a prefix and the end: `None` if neither follows.
    fn prefix(&mut self) -> Result<Option<Option<u8>>> {
        if self.0.is_empty() {
            return Ok(Some(None));
        }
        if !self.takes(b'/') {
            return Ok(None);
        }
        let bits = self.number(32)?;
        Ok(bits.filter(|_| self.0.is_empty()).map(|bits| Some(bits as u8)))
    }

    /// An `inet` of IPv4.
    fn v4(&mut self) -> Result<Option<(Ipv4Addr, u8)>> {
        let (mut octets, mut len) = ([0; 4], 0);
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            let (Some(octet), true) = (self.number(255)?, len < 4) else { return Ok(None) };
            octets[len] = octet as u8;
            len += 1;
            if !self.takes(b'.') {
                break;
            }
        }
        let Some(prefix) = self.prefix()? else { return Ok(None) };
        let prefix = prefix.or((len == 4).then_some(32)).filter(|prefix| len > 0 && usize::from(*prefix) / 8 <= len);
        Ok(prefix.map(|prefix| (octets.into(), prefix)))
    }

    /// A `cidr` of IPv4, which may be abbreviated or hexadecimal.
    fn v4_network(&mut self) -> Result<Option<(Ipv4Addr, u8)>> {
        let (mut octets, mut len) = ([0; 4], 0);
        if let [b'0', b'x' | b'X', digit, ..] = self.0
            && digit.is_ascii_hexdigit()
        {
            self.0 = &self.0[2..];
            let mut digits = 0;
            while let Some(digit) = self.peek().and_then(|b| char::from(b).to_digit(16)) {
                if digits == 8 {
                    return Ok(None);
                }
                self.next();
                octets[digits / 2] |= (digit as u8) << if digits % 2 == 0 { 4 } else { 0 };
                digits += 1;
            }
            len = digits.div_ceil(2);
        } else {
            loop {
                let (Some(octet), true) = (self.number(255)?, len < 4) else { return Ok(None) };
                octets[len] = octet as u8;
                len += 1;
                if !self.takes(b'.') {
                    break;
                }
            }
        }
        let Some(prefix) = self.prefix()? else { return Ok(None) };
        let of_class = || {
            let bits = match octets[0] {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            let bits = bits.max(len as u8 * 8);
            if bits == 8 && octets[0] == 224 { 4 } else { bits }
        };
        Ok(Some((octets.into(), prefix.unwrap_or_else(of_class))))
    }

    /// The prefix of an IPv6 address: nothing may follow.
    fn v6_prefix(&mut self) -> Result<Option<u8>> {
        let bits = self.plain_number(128)?;
        Ok(bits.filter(|_| self.0.is_empty()).map(|bits| bits as u8))
    }

    /// An IPv4 address at the end of one of IPv6, and the prefix behind it.
    fn v4_within(&mut self) -> Result<Option<([u8; 4], Option<u8>)>> {
        let (mut octets, mut len) = ([0; 4], 0);
        loop {
            let (Some(octet), true) = (self.plain_number(255)?, len < 4) else { return Ok(None) };
            octets[len] = octet as u8;
            len += 1;
            match self.next() {
                None => return Ok(Some((octets, None))),
                Some(b'.') => {}
                Some(b'/') => return Ok(self.v6_prefix()?.map(|prefix| (octets, Some(prefix)))),
                Some(_) => return Ok(None),
            }
        }
    }

    /// An address of IPv6.
    fn v6(&mut self) -> Result<Option<(Ipv6Addr, u8)>> {
        let (mut bytes, mut len) = ([0u8; 16], 0);
        // Where `::` stands.
        let mut gap = None;
        let mut prefix = None;
        if self.takes(b':') && self.peek() != Some(b':') {
            return Ok(None);
        }
        loop {
            let word = self.0;
            let digits = word.iter().take_while(|b| b.is_ascii_hexdigit()).count();
            if digits > 4 {
                return Ok(None);
            }
            let value = word[..digits]
                .iter()
                .fold(0u16, |sum, b| sum << 4 | char::from(*b).to_digit(16).map_or(0, |digit| digit as u16));
            self.0 = &word[digits..];
            let next = self.next();
            if next == Some(b'.') && len + 4 <= 16 {
                self.0 = word;
                let Some((octets, bits)) = self.v4_within()? else { return Ok(None) };
                bytes[len..len + 4].copy_from_slice(&octets);
                len += 4;
                prefix = bits;
                break;
            }
            if digits > 0 {
                let Some(place) = bytes.get_mut(len..len + 2) else { return Ok(None) };
                place.copy_from_slice(&value.to_be_bytes());
                len += 2;
            }
            match next {
                None => break,
                Some(b':') if digits > 0 && self.0.is_empty() => return Ok(None),
                Some(b':') if digits > 0 => {}
                Some(b':') if gap.is_none() => gap = Some(len),
                Some(b'/') => {
                    prefix = self.v6_prefix()?;
                    if prefix.is_none() {
                        return Ok(None);
                    }
                    break;
                }
                Some(_) => return Ok(None),
            }
        }
        match gap {
            Some(_) if len == 16 => return Ok(None),
            Some(gap) => {
                bytes.copy_within(gap..len, 16 - (len - gap));
                bytes[gap..16 - (len - gap)].fill(0);
            }
            None if len < 16 => return Ok(None),
            None => {}
        }
        Ok(Some((bytes.into(), prefix.unwrap_or(128))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, is_network: bool) -> String {
        let mut out = Vec::new();
        let value = Inet::parse(text, is_network).unwrap_or_else(|error| panic!("{text}: {error}"));
        value.write(if is_network { Shown::Always } else { Shown::IfShorter }, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_are_read_and_written() {
        for (text, written) in [
            ("192.168.1.5", "192.168.1.5"),
            ("10.1/9", "10.1.0.0/9"),
            ("::", "::"),
            ("::1/64", "::1/64"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
            ("::102:304/120", "::1.2.3.4/120"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ] {
            assert_eq!(shown(text, false), written);
        }
        for (text, written) in
            [("10", "10.0.0.0/8"), ("192.168", "192.168.0.0/24"), ("0xa", "160.0.0.0/16"), ("224", "224.0.0.0/4")]
        {
            assert_eq!(shown(text, true), written);
        }
        for text in ["", "1.2.3", "1.2.3.256", "1.2.3.4/33", "1:2", ":1::", "1::2::3", "12345::", "::/129", "::/01"] {
            assert!(Inet::parse(text, false).is_err(), "{text}");
        }
    }

    #[test]
    fn keys_order_as_values_do() {
        let texts = ["0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/16", "10.0.0.1/16", "10.0.0.0", "11.0.0.0/8", "::/0", "::1"];
        let values: Vec<Inet> = texts.iter().map(|text| Inet::parse(text, false).unwrap()).collect();
        let key = |value: &Inet| {
            let mut out = Vec::new();
            value.write_key(&mut out);
            out
        };
        for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
            assert_eq!(a.cmp(b), key(a).cmp(&key(b)), "{a:?} {b:?}");
        }
        assert!(values.is_sorted());
    }

    #[test]
    fn differences_are_those_of_the_numbers() {
        let value = |text| Inet::parse(text, false).unwrap();
        assert_eq!(value("::1").minus(value("::3")).unwrap(), -2);
        assert_eq!(value("ffff::").minus(value("::")).unwrap_err().code(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE);
        assert_eq!(value("255.255.255.255").minus(value("0.0.0.0")).unwrap(), u32::MAX.into());
        assert!(value("255.255.255.255").plus(1).is_err());
        assert!(value("::").plus(-1).is_err());
    }
}
