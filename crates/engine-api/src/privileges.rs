//! Who may do what, as the catalog keeps it: access lists of objects, memberships and attributes of roles.

use std::sync::Arc;

use std::collections::BTreeMap;
use std::ops::{BitAnd, BitOr};

use base::Oid;
use serde::{Deserialize, Serialize};

use crate::Catalog;
use crate::catalog::CatalogObject;

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges(pub u16);

impl Privileges {
    /// INSERT
    pub const INSERT: Privileges = Privileges(1);
    /// SELECT
    pub const SELECT: Privileges = Privileges(1 << 1);
    /// UPDATE
    pub const UPDATE: Privileges = Privileges(1 << 2);
    /// DELETE
    pub const DELETE: Privileges = Privileges(1 << 3);
    /// TRUNCATE
    pub const TRUNCATE: Privileges = Privileges(1 << 4);
    /// REFERENCES
    pub const REFERENCES: Privileges = Privileges(1 << 5);
    /// TRIGGER
    pub const TRIGGER: Privileges = Privileges(1 << 6);
    /// EXECUTE
    pub const EXECUTE: Privileges = Privileges(1 << 7);
    /// USAGE
    pub const USAGE: Privileges = Privileges(1 << 8);
    /// CREATE
    pub const CREATE: Privileges = Privileges(1 << 9);
    /// TEMPORARY
    pub const TEMPORARY: Privileges = Privileges(1 << 10);
    /// CONNECT
    pub const CONNECT: Privileges = Privileges(1 << 11);
    /// None.
    pub const NONE: Privileges = Privileges(0);
    /// Every one.
    pub const ALL: Privileges = Privileges((1 << Self::NAMES.len()) - 1);

    /// Letter and name of each, in the order in which access lists show them.
    pub const NAMES: [(char, &'static str); 12] = [
        ('a', "INSERT"),
        ('r', "SELECT"),
        ('w', "UPDATE"),
        ('d', "DELETE"),
        ('D', "TRUNCATE"),
        ('x', "REFERENCES"),
        ('t', "TRIGGER"),
        ('X', "EXECUTE"),
        ('U', "USAGE"),
        ('C', "CREATE"),
        ('T', "TEMPORARY"),
        ('c', "CONNECT"),
    ];

    /// The privilege of a name in capitals.
    pub fn named(name: &str) -> Option<Privileges> {
        let name = if name == "TEMP" { "TEMPORARY" } else { name };
        Privileges::NAMES.iter().position(|(_, known)| *known == name).map(|bit| Privileges(1 << bit))
    }

    /// The privileges one by one.
    pub fn each(self) -> impl Iterator<Item = Privileges> {
        (0..Privileges::NAMES.len()).map(|bit| Privileges(1 << bit)).filter(move |one| self.contains(*one))
    }

    /// Whether all of `other` are in it.
    pub fn contains(self, other: Privileges) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is in it.
    pub fn meets(self, other: Privileges) -> bool {
        self.0 & other.0 != 0
    }

    /// Those that are not in `other`.
    #[must_use]
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Privileges {
    type Output = Privileges;
    fn bitor(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }
}

impl BitAnd for Privileges {
    type Output = Privileges;
    fn bitand(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }
}

/// What one role has granted to another on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    /// To whom; `Oid::INVALID` is PUBLIC.
    pub grantee: Oid,
    /// By whom.
    pub grantor: Oid,
    /// What.
    pub privileges: Privileges,
    /// What the grantee may grant in turn.
    pub grantable: Privileges,
}

impl AclItem {
    /// Whether it gives a role something, or is given by it.
    pub fn names(&self, role: Oid) -> bool {
        self.grantee == role || self.grantor == role
    }
}

/// The access list of an object that has another than the one it began with. An object of the catalog of its own, so that
/// GRANT does not rewrite what it is about; its OID is made from the object's ([`PrivilegesDesc::oid_for`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivilegesDesc {
    /// Identity.
    pub oid: Oid,
    /// The object's OID as text.
    pub name: String,
    /// The object.
    pub object: Oid,
    /// Its list; `None` is the one it began with.
    pub items: Option<Vec<AclItem>>,
    /// The lists of its columns, by attribute number.
    #[serde(default)]
    pub columns: BTreeMap<i16, Vec<AclItem>>,
}

impl PrivilegesDesc {
    /// Set in OIDs that are made from other OIDs. They are never handed out.
    pub const ATTACHED: u32 = 1 << 31;

    /// The OID of an object's access list.
    pub fn oid_for(object: Oid) -> Oid {
        Oid(object.0 | PrivilegesDesc::ATTACHED)
    }

    /// The list that an object begins with.
    pub fn initial(object: Oid) -> PrivilegesDesc {
        let oid = PrivilegesDesc::oid_for(object);
        PrivilegesDesc { oid, name: object.to_string(), object, items: None, columns: BTreeMap::new() }
    }
}

impl Catalog {
    /// The access list of an object, if it is not the one it began with.
    pub fn privileges(&self, object: Oid) -> Option<&PrivilegesDesc> {
        if object.0 & PrivilegesDesc::ATTACHED != 0 {
            return None;
        }
        match &**self.get(PrivilegesDesc::oid_for(object))? {
            CatalogObject::Privileges(privileges) => Some(privileges),
            _ => None,
        }
    }

    /// A role by OID.
    pub fn role_by_oid(&self, oid: Oid) -> Option<&RoleDesc> {
        match &**self.get(oid)? {
            CatalogObject::Role(role) => Some(role),
            _ => None,
        }
    }
}

/// That a role is a member of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The other.
    pub role: Oid,
    /// Who granted it.
    pub grantor: Oid,
    /// WITH ADMIN OPTION: it may grant the membership.
    pub admin: bool,
}

/// What objects that a role creates begin with (ALTER DEFAULT PRIVILEGES).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultPrivileges {
    /// In this database; `Oid::INVALID` is each, as those say that were written before databases had their own.
    #[serde(default)]
    pub database: Oid,
    /// Only in this schema; `Oid::INVALID` is everywhere in the database.
    pub schema: Oid,
    /// `r` tables, `S` sequences, `f` functions, `T` types, `n` schemas.
    pub kind: char,
    /// Everywhere: the list instead of the usual one. In a schema: what comes on top.
    pub items: Vec<AclItem>,
}

impl DefaultPrivileges {
    /// Whether they are a database's.
    pub fn is_in(&self, database: Oid) -> bool {
        self.database == database || !self.database.is_valid()
    }

    /// Whether they give a role something, or are given by it.
    pub fn names(&self, role: Oid) -> bool {
        self.items.iter().any(|item| item.names(role))
    }
}

/// A setting with which sessions of a role begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoleSetting {
    /// In this database; `Oid::INVALID` is any.
    pub database: Oid,
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}

/// A role.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoleDesc {
    /// Identity.
    pub oid: Oid,
    /// Name.
    pub name: String,
    /// May log in.
    pub login: bool,
    /// Bypasses all checks.
    pub superuser: bool,
    /// SCRAM-SHA-256 verifier, if it has a password.
    pub password: Option<String>,
    /// Has the privileges of roles it is a member of.
    #[serde(default = "yes")]
    pub inherit: bool,
    /// May create databases.
    #[serde(default)]
    pub create_database: bool,
    /// May create roles.
    #[serde(default)]
    pub create_role: bool,
    /// REPLICATION: kept and shown.
    #[serde(default)]
    pub replication: bool,
    /// BYPASSRLS: kept and shown.
    #[serde(default)]
    pub bypass_row_security: bool,
    /// CONNECTION LIMIT; -1 for none.
    #[serde(default = "unlimited")]
    pub connection_limit: i32,
    /// VALID UNTIL, in microseconds since 2000-01-01: the password is good for nothing afterwards.
    #[serde(default)]
    pub valid_until: Option<i64>,
    /// The roles it is a direct member of, in the order of granting.
    #[serde(default)]
    pub member_of: Vec<Membership>,
    /// What its objects begin with.
    #[serde(default)]
    pub default_privileges: Vec<DefaultPrivileges>,
    /// What its sessions begin with.
    #[serde(default)]
    pub settings: Vec<RoleSetting>,
    /// Of the first role only: what the sessions of all roles begin with (ALTER ROLE ALL).
    #[serde(default)]
    pub settings_of_all: Vec<RoleSetting>,
    /// Of the first role only: what is configured by ALTER SYSTEM.
    #[serde(default)]
    pub settings_of_system: Vec<RoleSetting>,
    /// COMMENT ON ROLE.
    #[serde(default)]
    pub comment: Option<Arc<str>>,
}

fn yes() -> bool {
    true
}

fn unlimited() -> i32 {
    -1
}

impl RoleDesc {
    /// A role as CREATE ROLE makes it without options.
    pub fn new(oid: Oid, name: impl Into<String>) -> RoleDesc {
        RoleDesc {
            oid,
            name: name.into(),
            login: false,
            superuser: false,
            password: None,
            inherit: true,
            create_database: false,
            create_role: false,
            replication: false,
            bypass_row_security: false,
            connection_limit: -1,
            valid_until: None,
            member_of: Vec::new(),
            default_privileges: Vec::new(),
            settings: Vec::new(),
            settings_of_all: Vec::new(),
            settings_of_system: Vec::new(),
            comment: None,
        }
    }

    /// The role that exists from the start and may do everything.
    pub fn first(oid: Oid, name: impl Into<String>) -> RoleDesc {
        RoleDesc {
            login: true,
            superuser: true,
            create_database: true,
            create_role: true,
            replication: true,
            bypass_row_security: true,
            ..RoleDesc::new(oid, name)
        }
    }
}
