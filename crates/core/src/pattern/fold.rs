//! The comparison key of a text: two spellings some filesystem opens as the same file fold to the
//! same key (S9). Owns Unicode; knows nothing of patterns or of which platform it runs on.
//!
//! Invariant: `fold(fold(x)) == fold(x)`. The key is NFD ∘ case fold ∘ NFD (canonical caseless
//! matching, Unicode D145) over the text without its default-ignorable characters, which HFS+ and
//! case-folding ext4 skip when they compare names.
//!
//! Case folding is lower ∘ upper ∘ lower of the standard library, character by character. It
//! merges everything full case folding merges (lower first takes ẞ to ß, upper then takes ß to SS
//! and ς to Σ) and a little more (dotless ı joins i), which over-locks and never under-locks. A
//! crate with its own table would lag behind the compiler's Unicode version and add start-up
//! weight for no gain.

use unicode_normalization::UnicodeNormalization;

/// Stands for a name made only of ignorable characters, so that it still is a name.
const INVISIBLE: char = '\u{ad}';

/// The comparison key of a path or name. ASCII takes no table look-up.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut key = String::with_capacity(text.len());
    for (index, name) in text.split('/').enumerate() {
        if index > 0 {
            key.push('/');
        }
        let start = key.len();
        fold_into(name, &mut key);
        if key.len() == start && !name.is_empty() {
            key.push(INVISIBLE);
        }
    }
    key
}

/// Folds a piece of a name; a piece made of ignorable characters folds to nothing.
pub(super) fn fold_into(piece: &str, key: &mut String) {
    if piece.is_ascii() {
        key.extend(piece.chars().map(|c| c.to_ascii_lowercase()));
        return;
    }
    let visible = piece.chars().filter(|c| !is_ignorable(*c));
    key.extend(visible.nfd().flat_map(case_fold).nfd());
}

fn case_fold(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Unicode's Default_Ignorable_Code_Point. It includes every code point HFS+ ignores.
pub(super) fn is_ignorable(c: char) -> bool {
    !c.is_ascii()
        && matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All planes that hold letters, marks or ignorable characters.
    fn characters() -> impl Iterator<Item = char> {
        ('\0'..='\u{2ffff}').chain('\u{e0000}'..='\u{e0fff}')
    }

    #[test]
    fn s9_spellings_of_one_name_share_a_key() {
        for spellings in [
            &["STRASSE", "straße", "STRAẞE", "strasse", "ſtraße"][..],
            &["é.rs", "e\u{301}.rs", "É.rs", "E\u{301}.RS"],
            &["ΟΔΟΣ", "οδος", "οδοσ"],
            &["İ", "i\u{307}", "I\u{307}"],
            &["\u{212a}elvin", "kelvin", "KELVIN"],
            &["ﬃ", "ffi", "FFI"],
            &["\u{1f82}", "\u{1f02}\u{3b9}", "\u{1f02}\u{345}", "α\u{345}\u{313}\u{300}"],
            &["a\u{323}\u{302}", "a\u{302}\u{323}", "ậ", "Ậ", "a\u{302}\u{34f}\u{323}"],
            &["a\u{200c}b", "ab", "\u{feff}AB"],
            &["\u{200c}", "\u{200d}\u{200c}", "\u{ad}"],
            &["\u{ac00}", "\u{1100}\u{1161}"],
        ] {
            for spelling in spellings {
                assert_eq!(fold(spelling), fold(spellings[0]), "{spelling:?}");
            }
        }
        assert_ne!(fold("a/\u{200c}/b"), fold("a/b"));
    }

    #[test]
    fn folding_is_idempotent_for_every_character_in_context() {
        for c in characters() {
            for text in [format!("{c}"), format!("x{c}\u{345}\u{323}"), format!("{c}\u{301}a{c}")] {
                let key = fold(&text);
                assert_eq!(fold(&key), key, "{text:?}");
                assert_eq!(key.matches('/').count(), text.matches('/').count(), "{text:?}");
            }
        }
    }

    #[test]
    fn every_case_of_every_character_shares_its_key() {
        for c in characters() {
            let key = fold(&c.to_string());
            assert_eq!(fold(&c.to_lowercase().to_string()), key, "{c:?}");
            assert_eq!(fold(&c.to_uppercase().to_string()), key, "{c:?}");
        }
    }
}
