//! The superuser's password from a file.

use std::path::Path;

use base::{Error, Result, SqlState};
use engine::Shard;
use engine_api::{CatalogObject, Engine as _, TxnOptions};
use pgwire::scram::Verifier;

use crate::backend::SUPERUSER;
use crate::{definitions, host};

/// The password in a file: its first line.
///
/// # Errors
/// What is wrong, in one line.
pub fn read(path: &Path) -> Result<String, String> {
    let text =
        std::fs::read_to_string(path).map_err(|e| format!("cannot read password file {}: {e}", path.display()))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_string()),
        _ => Err(format!("password file {} is empty", path.display())),
    }
}

/// Makes `password` the superuser's, durably, unless it is already.
///
/// # Errors
/// Those of a commit.
pub async fn set(shard: &Shard, password: &str) -> Result<()> {
    let catalog = shard.catalog();
    let missing = || Error::new(SqlState::UNDEFINED_OBJECT, format!("role \"{SUPERUSER}\" does not exist"));
    let mut role = catalog.role(SUPERUSER).cloned().ok_or_else(missing)?;
    let is_set = |stored: &str| stored == password || Verifier::parse(stored).is_some_and(|v| v.matches(password));
    if role.password.as_deref().is_some_and(is_set) {
        return Ok(());
    }
    role.password = Some(host::verifier(password)?);
    let mut txn = shard.begin(TxnOptions::default());
    txn.begin_command();
    definitions::put(&mut *txn, &CatalogObject::Role(role)).await?;
    definitions::commit(shard, &mut *txn).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        let with = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(with("secret\n"), Ok("secret".to_string()));
        assert_eq!(with(" two words \r\nmore\n"), Ok(" two words ".to_string()));
        assert!(with("\nsecret").unwrap_err().ends_with("is empty"));
        assert!(with("").is_err());
        assert!(read(&dir.path().join("none")).unwrap_err().starts_with("cannot read password file"));
    }
}
