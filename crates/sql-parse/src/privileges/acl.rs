//! Access lists: what objects begin with, how they are shown, what GRANT and REVOKE do to them.

use base::{Error, Oid, Result, SqlState};
use engine_api::{AclItem, Catalog, Privileges};

use super::Class;
use crate::names::quote_name_in_list;

/// The list that an object of a kind begins with.
pub fn initial(class: Class, owner: Oid) -> Vec<AclItem> {
    let everybody = match class {
        Class::Database => Privileges::TEMPORARY | Privileges::CONNECT,
        Class::Function => Privileges::EXECUTE,
        Class::Type | Class::Language => Privileges::USAGE,
        _ => Privileges::NONE,
    };
    let own = if class == Class::Column { Privileges::NONE } else { class.all() };
    let item = |grantee, privileges| AclItem { grantee, grantor: owner, privileges, grantable: Privileges::NONE };
    let items = [item(Oid::INVALID, everybody), item(owner, own)];
    items.into_iter().filter(|item| !item.privileges.is_empty()).collect()
}

/// An item as access lists show it: `grantee=arw*d/grantor`.
pub fn text_of(catalog: &Catalog, item: &AclItem) -> String {
    let name = |oid: Oid| match catalog.role_by_oid(oid) {
        Some(role) => quote_name_in_list(&role.name),
        None => oid.to_string(),
    };
    let mut text = if item.grantee.is_valid() { name(item.grantee) } else { String::new() };
    text.push('=');
    for (bit, (letter, _)) in Privileges::NAMES.iter().enumerate() {
        let one = Privileges(1 << bit);
        if (item.privileges | item.grantable).contains(one) {
            text.push(*letter);
        }
        if item.grantable.contains(one) {
            text.push('*');
        }
    }
    text.push('/');
    text.push_str(&name(item.grantor));
    text
}

/// What GRANT or REVOKE changes for one grantee.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// For whom.
    pub grantee: Oid,
    /// In whose name.
    pub grantor: Oid,
    /// Privileges given or taken.
    pub privileges: Privileges,
    /// Grant options given or taken.
    pub grantable: Privileges,
    /// GRANT.
    pub is_grant: bool,
    /// CASCADE: what others granted on the strength of a grant option that goes, goes too.
    pub cascade: bool,
}

/// The grant options that a role has by a list, what it has by its memberships among them.
type Options<'a> = &'a dyn Fn(&[AclItem], Oid) -> Privileges;

/// Applies a change to a list. `options` says what roles may grant by a list.
///
/// # Errors
/// 2BP01 if grants of others depend on what is revoked; 0LP01 if a grant option would go back to where it came from.
pub fn apply(items: &mut Vec<AclItem>, owner: Oid, change: Change, options: Options<'_>) -> Result<()> {
    if change.is_grant && !change.grantable.is_empty() && change.grantee.is_valid() {
        check_circle(items, owner, change, options)?;
    }
    let at = items.iter().position(|item| item.grantee == change.grantee && item.grantor == change.grantor);
    let at = match at {
        Some(at) => at,
        None if change.is_grant => {
            items.push(AclItem {
                grantee: change.grantee,
                grantor: change.grantor,
                privileges: Privileges::NONE,
                grantable: Privileges::NONE,
            });
            items.len() - 1
        }
        None => return Ok(()),
    };
    let item = &mut items[at];
    let before = item.grantable;
    if change.is_grant {
        item.privileges = item.privileges | change.privileges;
        item.grantable = item.grantable | change.grantable;
    } else {
        item.privileges = item.privileges.without(change.privileges);
        item.grantable = item.grantable.without(change.grantable);
    }
    let (grantee, lost) = (item.grantee, before.without(item.grantable));
    if item.privileges.is_empty() && item.grantable.is_empty() {
        items.remove(at);
    }
    if lost.is_empty() || !grantee.is_valid() {
        return Ok(());
    }
    revoke_dependents(items, owner, grantee, lost, change.cascade, options)
}

/// Takes away what `grantor` has granted by a grant option that it has no longer.
fn revoke_dependents(
    items: &mut Vec<AclItem>,
    owner: Oid,
    grantor: Oid,
    lost: Privileges,
    cascade: bool,
    options: Options<'_>,
) -> Result<()> {
    // The owner can always grant.
    if grantor == owner {
        return Ok(());
    }
    let lost = lost.without(options(items, grantor));
    while let Some(item) = items.iter().find(|i| i.grantor == grantor && i.privileges.meets(lost)).copied() {
        if !cascade {
            return Err(Error::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, "dependent privileges exist")
                .hint("Use CASCADE to revoke them too."));
        }
        let change =
            Change { grantee: item.grantee, grantor, privileges: lost, grantable: lost, is_grant: false, cascade };
        apply(items, owner, change, options)?;
    }
    Ok(())
}

/// A grant option must not depend on itself.
fn check_circle(items: &[AclItem], owner: Oid, change: Change, options: Options<'_>) -> Result<()> {
    if change.grantor == owner {
        return Ok(());
    }
    // Without what the grantee may grant, could the grantor still?
    let mut rest = items.to_vec();
    let without = Change {
        grantee: Oid::INVALID,
        grantor: owner,
        privileges: change.grantable,
        grantable: change.grantable,
        is_grant: false,
        cascade: true,
    };
    while let Some(item) = rest.iter().find(|i| i.grantee == change.grantee && i.grantable.meets(change.grantable)) {
        let (grantee, grantor) = (item.grantee, item.grantor);
        apply(&mut rest, owner, Change { grantee, grantor, ..without }, options)?;
    }
    if options(&rest, change.grantor).contains(change.grantable) {
        return Ok(());
    }
    Err(Error::new(SqlState::INVALID_GRANT_OPERATION, "grant options cannot be granted back to your own grantor"))
}

/// The list of an object that goes from one owner to another: the old one's grants and what was granted to it are the new
/// one's (`aclnewowner`).
pub fn change_owner(items: &[AclItem], old: Oid, new: Oid) -> Vec<AclItem> {
    let moved = |oid: Oid| if oid == old { new } else { oid };
    let mut out: Vec<AclItem> = Vec::with_capacity(items.len());
    for item in items {
        let item = AclItem { grantee: moved(item.grantee), grantor: moved(item.grantor), ..*item };
        match out.iter_mut().find(|o| o.grantee == item.grantee && o.grantor == item.grantor) {
            Some(same) => {
                same.privileges = same.privileges | item.privileges;
                same.grantable = same.grantable | item.grantable;
            }
            None => out.push(item),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Oid = Oid(1);
    const ANN: Oid = Oid(2);
    const BOB: Oid = Oid(3);

    /// Of roles that are members of none.
    fn by_itself(items: &[AclItem], role: Oid) -> Privileges {
        items.iter().filter(|item| item.grantee == role).fold(Privileges::NONE, |sum, item| sum | item.grantable)
    }

    fn grant(grantor: Oid, grantee: Oid, with_option: bool) -> Change {
        let grantable = if with_option { Privileges::SELECT } else { Privileges::NONE };
        Change { grantee, grantor, privileges: Privileges::SELECT, grantable, is_grant: true, cascade: false }
    }

    fn revoke(grantor: Oid, grantee: Oid, cascade: bool) -> Change {
        Change { is_grant: false, cascade, ..grant(grantor, grantee, true) }
    }

    #[test]
    fn what_rests_on_a_grant_option_goes_with_it() {
        let mut items = initial(Class::Table, OWNER);
        apply(&mut items, OWNER, grant(OWNER, ANN, true), &by_itself).unwrap();
        apply(&mut items, OWNER, grant(ANN, BOB, true), &by_itself).unwrap();
        let circle = apply(&mut items.clone(), OWNER, grant(BOB, ANN, true), &by_itself).unwrap_err();
        assert_eq!(circle.code(), SqlState::INVALID_GRANT_OPERATION);
        let restricted = apply(&mut items.clone(), OWNER, revoke(OWNER, ANN, false), &by_itself).unwrap_err();
        assert_eq!(restricted.code(), SqlState::DEPENDENT_OBJECTS_STILL_EXIST);
        apply(&mut items, OWNER, revoke(OWNER, ANN, true), &by_itself).unwrap();
        assert_eq!(items, initial(Class::Table, OWNER));
    }

    #[test]
    fn a_new_owner_takes_over_what_the_old_one_had() {
        let mut items = initial(Class::Table, OWNER);
        apply(&mut items, OWNER, grant(OWNER, ANN, false), &by_itself).unwrap();
        let moved = change_owner(&items, OWNER, ANN);
        assert_eq!(moved.len(), 1);
        assert_eq!((moved[0].grantee, moved[0].grantor, moved[0].privileges), (ANN, ANN, Class::Table.all()));
    }
}
