//! Why a store gave no answer, and what to do about it.
//!
//! Owns the one next step of each. None makes a store anew where there may be one elsewhere.

use baton_engine::store;

/// Made there anew, the workspace would be two; so `init` is not the way on.
const OTHER_STORE: &str = "check BATON_STORE, or `store` in your config.toml; if its database is \
                           lost: baton store restore FILE";

pub(super) fn words(error: &store::Error) -> (&'static str, String) {
    use store::Error as E;
    let (code, next) = match error {
        E::Folder { .. } => ("store_is_folder", "move that folder aside, then baton init"),
        E::Missing { .. } => ("store_missing", "baton init"),
        E::ReadOnly { path } if baton_engine::sandbox::closes(path) => {
            ("store_read_only", super::sandboxes::CLOSED)
        }
        E::ReadOnly { path } if path.to_string_lossy().starts_with("postgres") => {
            let next =
                "grant your role SELECT, INSERT, UPDATE, DELETE on all tables of schema baton";
            ("store_read_only", next)
        }
        E::ReadOnly { .. } => ("store_read_only", "make the store's folder writable for you"),
        E::Full { .. } => ("disk_full", "free some disk space, then try again"),
        E::Corrupt { .. } => {
            ("store_corrupt", "baton store restore FILE, with a backup; nothing is deleted")
        }
        E::Newer { .. } => ("store_newer", "use the newer baton that wrote it"),
        E::Older { .. } => ("store_older", "baton init, which brings it up to date"),
        E::NetworkFilesystem { .. } => {
            ("network_filesystem", "set BATON_STORE to a PostgreSQL address and run baton init")
        }
        E::TimeNamespace => ("time_namespace", "set BATON_STORE to a PostgreSQL address"),
        E::Locked { pid: 0, .. } => {
            ("locked", "end the other program's transaction on the store, then try again")
        }
        E::Locked { pid, .. } => {
            let next = format!("look what process {pid} does with the store, then try again");
            return ("locked", next);
        }
        E::Disturbed | E::Busy { pid: 0, .. } => ("busy", "try again"),
        E::Busy { pid, .. } => {
            return ("busy", format!("look at process {pid} (is it stopped?), then try again"));
        }
        E::Unreachable { .. } => ("unreachable", "check BATON_STORE and the network, then retry"),
        E::NoConnection { .. } => (
            "no_free_connection",
            "end idle sessions on the server, or raise its max_connections, then retry",
        ),
        E::NotReady { .. } => ("not_ready", "wait until the server has started, then retry"),
        E::BadAddress { .. } => ("bad_address", "write BATON_STORE=postgres://user@host/database"),
        E::NoAddress => {
            ("no_address", "set BATON_STORE to the address of the store this workspace is on")
        }
        E::OwnStore { .. } => ("own_store", "unset BATON_STORE, or use another clone for it"),
        E::OtherStore { .. } => ("other_store", OTHER_STORE),
        E::NoDatabase { .. } => (
            "no_database",
            "check BATON_STORE, or `store` in your config.toml; a new database: createdb NAME",
        ),
        E::OutcomeUnknown { .. } => {
            ("outcome_unknown", "repeat the command with the same --op-id: it tells the truth")
        }
        E::Exists { .. } => ("exists", "choose another file: nothing is overwritten"),
        E::Io { .. } => ("store_io", "check the disk, then try again"),
        E::Backend { .. } | E::Unreadable(_) => ("store", "baton journal verify"),
    };
    (code, next.to_owned())
}
