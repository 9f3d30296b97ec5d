//! Every test of the command line, in one binary: the real `baton`, real git, real processes.

mod bad_input;
mod claims;
mod demo;
mod guide;
mod harness;
mod history;
mod reference;
mod sessions;

#[test]
fn no_test_file_is_forgotten() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = std::fs::read_to_string(here.join("all.rs")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "all") else { continue };
        assert!(listed.contains(&format!("mod {stem};")), "tests/{name} is not in tests/all.rs");
    }
}
