//! The portals of a session by name. The unnamed one, which most statements run through, has a place of its own: finding
//! it costs no hashing.

use rustc_hash::FxHashMap;

use super::portal::Portal;

/// The portals that are open.
#[derive(Default)]
pub(super) struct Portals {
    unnamed: Option<Box<Portal>>,
    named: FxHashMap<String, Box<Portal>>,
}

impl Portals {
    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.unnamed.is_none() && self.named.is_empty()
    }

    /// The portal of that name.
    pub fn get(&self, name: &str) -> Option<&Portal> {
        if name.is_empty() { self.unnamed.as_deref() } else { self.named.get(name).map(|portal| &**portal) }
    }

    /// Whether there is one of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Enters a portal in the place of one of that name.
    pub fn insert(&mut self, name: &str, portal: Box<Portal>) {
        if name.is_empty() {
            self.unnamed = Some(portal);
        } else if let Some(place) = self.named.get_mut(name) {
            *place = portal;
        } else {
            self.named.insert(name.to_owned(), portal);
        }
    }

    /// Takes the portal of that name out.
    pub fn remove(&mut self, name: &str) -> Option<Box<Portal>> {
        if name.is_empty() { self.unnamed.take() } else { self.named.remove(name) }
    }

    /// Ends all but those that `keep` wants.
    pub fn retain(&mut self, keep: impl Fn(&Portal) -> bool) {
        if self.unnamed.as_ref().is_some_and(|portal| !keep(portal)) {
            self.unnamed = None;
        }
        if !self.named.is_empty() {
            self.named.retain(|_, portal| keep(portal));
        }
    }

    /// All, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Portal)> {
        let named = self.named.iter().map(|(name, portal)| (name.as_str(), &**portal));
        self.unnamed.iter().map(|portal| ("", &**portal)).chain(named)
    }

    /// All, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Portal> {
        self.unnamed.iter_mut().chain(self.named.values_mut()).map(|portal| &mut **portal)
    }
}
