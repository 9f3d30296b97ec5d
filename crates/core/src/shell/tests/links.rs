//! Links that a line makes and writes through.
//!
//! What a link of the same line leads to is written with it, also where only its folder is known.

use super::check;

const LINKS: &[(&str, &str)] = &[
    (
        "ln -s a.rs l && echo x > l",
        "copy l if no folder, copy l/a.rs if in a folder, create l, create a.rs",
    ),
    ("ln -sT a.rs l; echo x >> ./l", "copy l, append l, append a.rs"),
    ("ln a.rs d/ && echo x > d/a.rs", "copy d/a.rs, create d/a.rs, create a.rs"),
    // What a link says is read from its own folder; a hard one has none.
    ("ln -s ../a.rs d/ && echo x > d/a.rs", "copy d/a.rs, create d/a.rs, create d/../a.rs"),
    ("cd e && ln -sr a.rs d/ && echo x > d/a.rs", "copy e/d/a.rs, create e/d/a.rs, create e/a.rs"),
    ("cp -l a.rs d/ && sed -i s/x/y/ d/a.rs", "copy d/a.rs, change d/a.rs, change a.rs"),
    ("cp -as src d/ && touch d/src/x", "copy d/src/**, change d/src/x, change src/x"),
    // It leads to itself.
    ("ln -s src d/ && cd d/src && touch x", "copy d/src, change d/src/x"),
    ("ln -sT src d && cd d && touch x", "copy d, change d/x, change src/x"),
    ("ln -s /r/a.rs /t/ && echo x > /t/a.rs", "copy /t/a.rs, create /t/a.rs, create /r/a.rs"),
    ("ln -s /r/a.rs d/ && echo x > /w/d/a.rs", "copy d/a.rs, create /w/d/a.rs, create /r/a.rs"),
    ("ln -s /r/a /w/d/ && touch d/a/x", "copy /w/d/a, change d/a/x, change /r/a/x"),
    (
        "ln -s /r/a d/ && ln -s /w/d/a e/ && touch e/a",
        "copy d/a, copy e/a, change e/a, change /w/d/a, change /r/a",
    ),
    ("ln -s $X d/l && touch d/l", "copy d/l if no folder, change d/l, change ?, !"),
    ("ln -s src/* d/ && touch x", "copy <d/*>, change x, change ?, !"),
    ("ln -s /r/a d/ && touch d/*", "copy d/a, change <d/*>, change ?, !"),
    // The link itself goes, or is replaced.
    ("ln -s /r/a d/ && rm d/a", "copy d/a, delete d/a"),
    ("ln -s /r/a d/ && ln -sf /r/a d/", "copy d/a, copy d/a"),
    ("ln -s /r/a d/ && rm d/a/x", "copy d/a, delete d/a/x, delete /r/a/x"),
    ("ln -s /r/a d/ && touch x", "copy d/a, change x"),
];

#[test]
fn a_write_at_a_link_is_one_at_its_end() {
    check(LINKS);
}

#[test]
fn links_in_a_circle_and_too_many_of_them_end() {
    let deeds = crate::shell::read("ln -s a/b a; ln -s b c/a; ln -s c/a b; touch a/x b");
    assert!(!deeds.harmless, "{deeds:?}");
    let many: String = (0..200).map(|at| format!("ln -s /r/{at} d/; ")).collect();
    let deeds = crate::shell::read(&format!("{many} touch x"));
    assert!(!deeds.harmless);
}
