//! Host rules: who may log in from where, and how (the format of PostgreSQL's `pg_hba.conf`).
//!
//! The first rule that fits a connection decides. Rules are read when the server starts, and again on SIGHUP or
//! `pg_reload_conf()`; if the file cannot be understood then, the rules stay as they are and the log says why.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::{Error, SqlState};
use engine_api::Catalog;
use pgwire::Peer;
use sql_functions::LoginRule;
use sql_parse::privileges::{Who, roles};

/// How a client has to prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Not at all.
    Trust,
    /// By its password.
    Scram,
    /// It cannot.
    Reject,
}

/// The connections that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionKind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
    /// Never: there is no GSSAPI.
    HostGss,
}

/// A word of a list of databases or users; one that was quoted has no other meaning than its name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    text: String,
    quoted: bool,
}

impl Word {
    fn is(&self, keyword: &str) -> bool {
        !self.quoted && self.text == keyword
    }
}

/// The addresses that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addresses {
    All,
    /// Those of this machine.
    SameHost,
    Network(IpAddr, u8),
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    kind: ConnectionKind,
    databases: Vec<Word>,
    users: Vec<Word>,
    addresses: Addresses,
    method: Method,
}

/// The rules of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

/// A connection that wants to log in.
#[derive(Clone, Copy, Debug)]
pub struct Applicant<'a> {
    /// Where from.
    pub peer: &'a Peer,
    /// As whom.
    pub user: &'a str,
    /// Where to.
    pub database: &'a str,
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// The line and what is wrong with it.
    pub fn parse(text: &str) -> Result<Rules, String> {
        let mut rules = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |what: String| format!("line {}: {what}", number + 1);
            let fields = fields(line).map_err(wrong)?;
            if !fields.is_empty() {
                rules.push(rule(&fields).map_err(wrong)?);
            }
        }
        Ok(Rules(rules))
    }

    /// How a connection has to prove who it is.
    ///
    /// # Errors
    /// 28000 if no rule fits, or the one that fits rejects.
    pub fn method(&self, catalog: &Catalog, applicant: Applicant<'_>) -> Result<Method, Error> {
        let found = self.0.iter().find(|rule| rule.fits(catalog, applicant));
        match found.map(|rule| rule.method) {
            Some(Method::Reject) => Err(refusal("pg_hba.conf rejects connection for", applicant)),
            Some(method) => Ok(method),
            None => Err(refusal("no pg_hba.conf entry for", applicant)),
        }
    }
}

/// Every line of a file as `pg_hba_file_rules` shows it.
pub fn lines(text: &str) -> Vec<LoginRule> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = i32::try_from(number + 1).unwrap_or(i32::MAX);
        match fields(line).and_then(|fields| if fields.is_empty() { Ok(None) } else { shown(&fields).map(Some) }) {
            Ok(None) => {}
            Ok(Some(shown)) => lines.push(LoginRule { line: number, ..shown }),
            Err(wrong) => lines.push(LoginRule { line: number, error: Some(wrong), ..LoginRule::default() }),
        }
    }
    lines
}

fn shown(fields: &[Vec<Word>]) -> Result<LoginRule, String> {
    let rule = rule(fields)?;
    let word = |at: usize| fields.get(at).and_then(|field| field.first()).map(|word| word.text.clone());
    let words = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect();
    let (address, netmask) = match rule.addresses {
        _ if rule.kind == ConnectionKind::Local => (None, None),
        Addresses::Network(address, bits) => {
            let mask = match address {
                IpAddr::V4(_) => Ipv4Addr::from_bits(prefix_mask(bits.into(), 32) as u32).to_string(),
                IpAddr::V6(_) => Ipv6Addr::from_bits(prefix_mask(bits.into(), 128)).to_string(),
            };
            (Some(address.to_string()), Some(mask))
        }
        _ => (word(3), None),
    };
    Ok(LoginRule {
        line: 0,
        kind: word(0).unwrap_or_default(),
        databases: words(&rule.databases),
        users: words(&rule.users),
        address,
        netmask,
        // The rule has no options behind its method.
        method: word(fields.len() - 1).unwrap_or_default(),
        error: None,
    })
}

#[cold]
fn refusal(what: &str, Applicant { peer, user, database }: Applicant<'_>) -> Error {
    let (host, encryption) = match peer {
        Peer::Unix => ("[local]".to_string(), "no encryption"),
        Peer::Tcp(address) => (address.ip().to_canonical().to_string(), "no encryption"),
        Peer::Tls(address, _) => (address.ip().to_canonical().to_string(), "SSL encryption"),
    };
    let message = format!("{what} host \"{host}\", user \"{user}\", database \"{database}\", {encryption}");
    Error::fatal(SqlState::INVALID_AUTHORIZATION_SPECIFICATION, message)
}

impl Rule {
    fn fits(&self, catalog: &Catalog, applicant: Applicant<'_>) -> bool {
        let address = match (applicant.peer, self.kind) {
            (Peer::Unix, ConnectionKind::Local) => None,
            (Peer::Tcp(address), ConnectionKind::Host | ConnectionKind::HostNoSsl) => Some(address.ip().to_canonical()),
            (Peer::Tls(address, _), ConnectionKind::Host | ConnectionKind::HostSsl) => {
                Some(address.ip().to_canonical())
            }
            _ => return false,
        };
        address.is_none_or(|address| self.addresses.contain(address))
            && self.databases.iter().any(|word| database_fits(catalog, word, applicant))
            && self.users.iter().any(|word| user_fits(catalog, word, applicant.user))
    }
}

/// Whether a role is a member of another; superusers only of those they are really in.
fn is_member(catalog: &Catalog, user: &str, role: &str) -> bool {
    let (Some(user), Some(role)) = (catalog.role(user), catalog.role(role)) else { return false };
    let who = Who { role: user.oid, database: base::Oid::INVALID };
    roles::is_member_without_power(catalog, who, role.oid)
}

fn database_fits(catalog: &Catalog, word: &Word, applicant: Applicant<'_>) -> bool {
    if word.is("all") {
        return true;
    }
    if word.is("sameuser") {
        return applicant.database == applicant.user;
    }
    if word.is("samerole") || word.is("samegroup") {
        return is_member(catalog, applicant.user, applicant.database);
    }
    !word.is("replication") && word.text == applicant.database
}

fn user_fits(catalog: &Catalog, word: &Word, user: &str) -> bool {
    match word.text.strip_prefix('+').filter(|_| !word.quoted) {
        Some(role) => is_member(catalog, user, role),
        None => word.is("all") || word.text == user,
    }
}

impl Addresses {
    fn contain(self, address: IpAddr) -> bool {
        match self {
            Addresses::All => true,
            Addresses::SameHost => address.is_loopback(),
            Addresses::Network(network, bits) => match (network, address) {
                (IpAddr::V4(n), IpAddr::V4(a)) => same_prefix(n.to_bits().into(), a.to_bits().into(), 32, bits),
                (IpAddr::V6(n), IpAddr::V6(a)) => same_prefix(n.to_bits(), a.to_bits(), 128, bits),
                _ => false,
            },
        }
    }
}

fn same_prefix(a: u128, b: u128, width: u8, bits: u8) -> bool {
    let rest = u32::from(width - bits);
    a.checked_shr(rest).unwrap_or(0) == b.checked_shr(rest).unwrap_or(0)
}

/// The fields of a line: each a list of words with commas between them. `#` begins a comment.
fn fields(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut fields: Vec<Vec<Word>> = Vec::new();
    let mut rest = line.trim_start();
    let mut joins = false;
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (text, after) = quoted.split_once('"').ok_or("a quote is not closed")?;
                (Word { text: text.to_string(), quoted: true }, after)
            }
            None => {
                let end = rest.find(|c: char| c.is_whitespace() || ",#\"".contains(c)).unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                (Word { text: text.to_string(), quoted: false }, after)
            }
        };
        match fields.last_mut().filter(|_| joins) {
            Some(list) => list.push(word),
            None => fields.push(vec![word]),
        }
        joins = after.starts_with(',');
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
    }
    Ok(fields)
}

fn single(field: &[Word]) -> Result<&str, String> {
    match field {
        [word] => Ok(&word.text),
        _ => Err("one word is expected where there are several".to_string()),
    }
}

fn rule(fields: &[Vec<Word>]) -> Result<Rule, String> {
    let mut fields = fields.iter();
    let mut next = |what: &str| fields.next().ok_or_else(|| format!("end of line before {what}"));
    let kind = match single(next("the type")?)? {
        "local" => ConnectionKind::Local,
        "host" | "hostnogssenc" => ConnectionKind::Host,
        "hostssl" => ConnectionKind::HostSsl,
        "hostnossl" => ConnectionKind::HostNoSsl,
        "hostgssenc" => ConnectionKind::HostGss,
        other => return Err(format!("unknown type \"{other}\"")),
    };
    let databases = names(next("the database")?)?;
    let users = names(next("the role")?)?;
    let mut addresses = Addresses::All;
    if kind != ConnectionKind::Local {
        let address = single(next("the address")?)?;
        addresses = match address {
            "all" => Addresses::All,
            "samehost" => Addresses::SameHost,
            "samenet" => return Err("\"samenet\" is not supported: name the network".to_string()),
            text => match text.split_once('/') {
                Some((ip, bits)) => network(ip, bits)?,
                None => masked(text, single(next("the address mask")?)?)?,
            },
        };
    }
    let method = match single(next("the authentication method")?)? {
        "trust" => Method::Trust,
        "reject" => Method::Reject,
        // As with PostgreSQL, "md5" takes SCRAM where that is what the password is stored for.
        "scram-sha-256" | "md5" => Method::Scram,
        other => return Err(format!("authentication method \"{other}\" is not supported")),
    };
    match fields.next() {
        Some(option) => Err(format!("authentication option \"{}\" is not supported", single(option)?)),
        None => Ok(Rule { kind, databases, users, addresses, method }),
    }
}

fn names(field: &[Word]) -> Result<Vec<Word>, String> {
    match field.iter().find(|word| !word.quoted && word.text.starts_with(['@', '/'])) {
        Some(word) => Err(format!("\"{}\" is not supported: name what is meant", word.text)),
        None => Ok(field.to_vec()),
    }
}

fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| format!("\"{text}\" is not an IP address, and host names are not supported"))
}

fn network(address: &str, bits: &str) -> Result<Addresses, String> {
    let address = ip(address)?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let wrong = || format!("invalid CIDR mask \"{bits}\"");
    let bits: u8 = bits.parse().ok().filter(|&bits| bits <= width).ok_or_else(wrong)?;
    Ok(Addresses::Network(address, bits))
}

/// An address and a mask such as 255.255.0.0.
fn masked(address: &str, mask: &str) -> Result<Addresses, String> {
    let bits = match ip(mask)? {
        IpAddr::V4(mask) if Ipv4Addr::from_bits(prefix_mask(mask.to_bits().leading_ones(), 32) as u32) == mask => {
            mask.to_bits().leading_ones()
        }
        IpAddr::V6(mask) if Ipv6Addr::from_bits(prefix_mask(mask.to_bits().leading_ones(), 128)) == mask => {
            mask.to_bits().leading_ones()
        }
        _ => return Err(format!("\"{mask}\" is not a mask")),
    };
    network(address, &bits.to_string())
}

/// So many ones, followed by zeros up to `width`.
fn prefix_mask(ones: u32, width: u32) -> u128 {
    match ones {
        0 => 0,
        _ => (u128::MAX >> (128 - ones)) << (width - ones),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine_api::{CatalogObject, Membership, RoleDesc};
    use std::sync::Arc;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let group = RoleDesc::new(base::Oid(100), "staff");
        let membership = Membership { role: group.oid, grantor: group.oid, admin: false };
        let ann = RoleDesc { member_of: vec![membership], ..RoleDesc::new(base::Oid(101), "ann") };
        let bob = RoleDesc::new(base::Oid(102), "bob");
        for role in [group, ann, bob] {
            catalog.put(Arc::new(CatalogObject::Role(role)));
        }
        catalog
    }

    fn method(rules: &str, from: &str, user: &str, database: &str) -> String {
        let peer = match from {
            "local" => Peer::Unix,
            address => Peer::Tcp(address.parse().unwrap()),
        };
        let applicant = Applicant { peer: &peer, user, database };
        match Rules::parse(rules).unwrap().method(&catalog(), applicant) {
            Ok(method) => format!("{method:?}"),
            Err(error) => error.fields().message.clone(),
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = "
            # who   where
            local   all            all                      trust
            host    shop,\"all\"   ann    127.0.0.1/32      scram-sha-256
            host    all            +staff 10.0.0.0/8        scram-sha-256 # staff
            host    sameuser       all    192.168.0.0 255.255.0.0 trust
            host    samerole       all    samehost          trust
            hostssl all            all    all               trust
            host    all            bob    ::1/128           reject";
        assert_eq!(method(rules, "local", "bob", "x"), "Trust");
        assert_eq!(method(rules, "127.0.0.1:5", "ann", "shop"), "Scram");
        assert_eq!(method(rules, "127.0.0.1:5", "ann", "all"), "Scram");
        assert_eq!(method(rules, "127.0.0.1:5", "ann", "staff"), "Trust");
        assert_eq!(method(rules, "10.9.9.9:5", "ann", "any"), "Scram");
        assert_eq!(method(rules, "192.168.7.7:5", "bob", "bob"), "Trust");
        assert_eq!(method(rules, "[::ffff:10.1.1.1]:5", "ann", "any"), "Scram");
        let message =
            |what: &str, host: &str| format!("{what} host \"{host}\", user \"bob\", database \"any\", no encryption");
        assert_eq!(method(rules, "10.9.9.9:5", "bob", "any"), message("no pg_hba.conf entry for", "10.9.9.9"));
        assert_eq!(method(rules, "[::1]:5", "bob", "any"), message("pg_hba.conf rejects connection for", "::1"));
        assert_eq!(method("", "local", "bob", "any"), message("no pg_hba.conf entry for", "[local]"));
    }

    #[test]
    fn lines_are_shown_as_they_are() {
        let text = [
            "# none",
            "local all postgres,+staff trust",
            "host \"a b\" all 10.0.0.0/8 md5",
            "host all all ::1 ffff:ffff:: reject",
            "host all all samehost scram-sha-256 # here",
            "host all",
        ];
        let text = text.join(
            "
",
        );
        let shown: Vec<String> = lines(&text)
            .iter()
            .map(|l| {
                let (address, mask) = (l.address.as_deref().unwrap_or("-"), l.netmask.as_deref().unwrap_or("-"));
                let error = l.error.as_deref().unwrap_or("-");
                let (databases, users) = (l.databases.join(","), l.users.join(","));
                format!("{} {} {databases} {users} {address} {mask} {} {error}", l.line, l.kind, l.method)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "2 local all postgres,+staff - - trust -",
                "3 host a b all 10.0.0.0 255.0.0.0 md5 -",
                "4 host all all ::1 ffff:ffff:: reject -",
                "5 host all all samehost - scram-sha-256 -",
                "6    - -  end of line before the role",
            ]
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_line() {
        for (text, wrong) in [
            ("\nhots all all all trust", "line 2: unknown type \"hots\""),
            ("host all all trust", "line 1: end of line before the address mask"),
            ("host all all 10.0.0.0/33 trust", "line 1: invalid CIDR mask \"33\""),
            ("host all all 10.0.0.0 255.0.255.0 trust", "line 1: \"255.0.255.0\" is not a mask"),
            ("local all all", "line 1: end of line before the authentication method"),
            ("local all all peer", "line 1: authentication method \"peer\" is not supported"),
            ("local all all trust map=x", "line 1: authentication option \"map=x\" is not supported"),
            ("local all @file trust", "line 1: \"@file\" is not supported: name what is meant"),
            ("local \"all all trust", "line 1: a quote is not closed"),
        ] {
            assert_eq!(Rules::parse(text).unwrap_err(), wrong, "{text}");
        }
    }
}
