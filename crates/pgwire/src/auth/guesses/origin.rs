//! Whose guesses are counted together.

use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Peer;

/// Where a client sits, as far as it could not easily sit elsewhere: an IPv6 client has a whole network of addresses, a program of
/// this machine has all of loopback's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Network {
    /// The Unix socket.
    Socket,
    Loopback,
    Ip(IpAddr),
}

impl Network {
    pub(crate) fn of(peer: &Peer) -> Network {
        let (Peer::Tcp(address) | Peer::Tls(address, _)) = peer else { return Network::Socket };
        match address.ip().to_canonical() {
            ip if ip.is_loopback() => Network::Loopback,
            IpAddr::V6(ip) => Network::Ip(leading(ip, 4)),
            ip => Network::Ip(ip),
        }
    }

    /// What one customer of a provider usually has, several networks of it.
    pub(crate) fn site(self) -> Network {
        match self {
            Network::Ip(IpAddr::V6(ip)) => Network::Ip(leading(ip, 3)),
            Network::Ip(IpAddr::V4(ip)) => {
                let [a, b, c, _] = ip.octets();
                Network::Ip(Ipv4Addr::new(a, b, c, 0).into())
            }
            network => network,
        }
    }
}

/// An address with only its first segments, of 16 bits each.
fn leading(ip: Ipv6Addr, segments: usize) -> IpAddr {
    let mut all = ip.segments();
    all[segments..].fill(0);
    Ipv6Addr::from(all).into()
}

/// A network, and the role that is tried from there. Names come from anybody and are as long as they like, so their hash stands for them,
/// under a key that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) network: Network,
    pub(super) role: u64,
}

impl Key {
    pub(super) fn new(peer: &Peer, role: &str, names: &RandomState) -> Key {
        Key { network: Network::of(peer), role: names.hash_one(role) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> Network {
        Network::of(&Peer::Tcp(address.parse().unwrap()))
    }

    #[test]
    fn addresses_that_one_client_may_have_are_one() {
        assert_eq!(of("[2001:db8:1:2::9]:1"), of("[2001:db8:1:2:3:4:5:6]:7"));
        assert_ne!(of("[2001:db8:1:2::9]:1"), of("[2001:db8:1:3::9]:1"));
        assert_eq!(of("[2001:db8:1:2::9]:1").site(), of("[2001:db8:1:3::9]:1").site());
        assert_ne!(of("10.0.0.1:1"), of("10.0.0.2:1"));
        assert_eq!(of("10.0.0.1:1"), of("[::ffff:10.0.0.1]:1"));
        assert_eq!(of("10.0.0.1:1").site(), of("10.0.0.2:1").site());
        assert_ne!(of("10.0.0.1:1").site(), of("10.0.1.1:1").site());
        for loopback in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(of(loopback), Network::Loopback, "{loopback}");
        }
        assert_eq!(Network::of(&Peer::Unix), Network::Socket);
        assert_ne!(of("10.0.0.1:1").site(), Network::Loopback.site());
    }
}
