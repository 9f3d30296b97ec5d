//! Lines with two readings, and the one that holds where files are as they are.
//!
//! Owns the tables; what is there is said by each of them.

use super::in_short;
use crate::shell::danger::of;
use crate::shell::{Place, Seen, read};

/// `d` is a folder, `f` and `d/f` are files, and nothing else is there.
fn look(place: &Place) -> Option<Seen> {
    match place {
        Place::Path(path) => Some(match path.as_str() {
            "d" | "." => Seen::Folder,
            "f" | "d/f" => Seen::File,
            _ => Seen::Missing,
        }),
        _ => None,
    }
}

#[test]
fn what_is_there_decides() {
    for (line, wanted) in [
        ("cp f d", "copy d/f if in a folder"),
        ("cp f new", "copy new if no folder"),
        ("cp f d/f", "copy d/f if no folder"),
        ("mv f new", "from f, to new if no folder"),
        ("mv d new", "from d/**, to new/** if no folder"),
        ("mv f d", "from f, to d/f if in a folder"),
        ("rm -rf d f", "delete d/**, delete f"),
        ("git checkout -- d f", "restore d/**, restore f"),
        ("git checkout main", "change ?/**, !"),
        ("git checkout f", "change f if there, change ?/**, !"),
    ] {
        let mut deeds = read(line);
        deeds.settle(look);
        assert_eq!(in_short(&deeds), wanted, "{line}");
    }
}

#[test]
fn a_file_is_no_branch() {
    for (line, dangers) in [
        ("git checkout f", 0),
        ("git -C . checkout f", 0),
        ("git checkout x", 1),
        ("git reset f", 0),
    ] {
        let mut deeds = read(line);
        deeds.settle(look);
        assert_eq!(of(&deeds).len(), dangers, "{line}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_not_entered_for_sure() {
    for (line, wanted) in [
        ("cd d; rm f", "delete d/f"),
        ("cd gone; rm f", "delete gone/f, !"),
        ("cd gone && rm f", "delete gone/f, !"),
        ("(cd gone; echo x > f)", "create gone/f, !"),
        ("pushd gone; touch f; popd", "change gone/f, !"),
        ("mkdir -p gone/deep && cd gone && touch f", "folder gone/deep, change gone/f"),
        ("cd ~/x; touch f", "change ~/x/f"),
    ] {
        let mut deeds = read(line);
        deeds.settle(look);
        assert_eq!(in_short(&deeds), wanted, "{line}");
    }
}
