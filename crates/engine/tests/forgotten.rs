//! A test file that no module names would silently never run.

use std::path::Path;

#[test]
fn no_test_file_is_forgotten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut missing = Vec::new();
    look(&root, &root.join("all.rs"), &mut missing);
    assert!(missing.is_empty(), "no `mod` names these: {missing:?}");
}

fn look(folder: &Path, parent: &Path, missing: &mut Vec<String>) {
    let named = std::fs::read_to_string(parent).unwrap_or_default();
    for found in std::fs::read_dir(folder).unwrap() {
        let path = found.unwrap().path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            look(&path, &path.with_extension("rs"), missing);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && stem != "all"
            && !named
                .lines()
                .any(|line| line.trim_start_matches("pub(crate) ") == format!("mod {stem};"))
        {
            missing.push(path.display().to_string());
        }
    }
}
