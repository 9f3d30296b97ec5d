//! The end of a stream, bounded.
//!
//! Owns that memory does not grow with what a command writes.

use baton_core::once::{OUTPUT_BYTES_MAX, Output};

#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: Vec<u8>,
    cut: bool,
}

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moved only now and then, so that many small pieces cost little.
        if self.bytes.len() > 2 * OUTPUT_BYTES_MAX {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        let surplus = self.bytes.len().saturating_sub(OUTPUT_BYTES_MAX);
        self.bytes.drain(..surplus);
        self.cut |= surplus > 0;
    }

    /// As text: what is no UTF-8 is replaced, and a character cut in two is left out.
    pub(super) fn into_output(mut self) -> Output {
        self.shorten();
        let half = self.bytes.iter().take_while(|byte| **byte & 0xc0 == 0x80).count();
        let bytes = if self.cut { &self.bytes[half.min(3)..] } else { &self.bytes[..] };
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // A replaced byte is longer than the byte.
        if text.len() > OUTPUT_BYTES_MAX {
            let surplus = text.len() - OUTPUT_BYTES_MAX;
            let from = (surplus..text.len()).find(|at| text.is_char_boundary(*at));
            text.drain(..from.unwrap_or(0));
            self.cut = true;
        }
        Output { text, cut: self.cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_whole_and_a_long_one_its_end() {
        let mut tail = Tail::default();
        tail.push(b"one\n");
        tail.push("zw\u{f6}lf\n".as_bytes());
        let whole = tail.into_output();
        assert_eq!((whole.text.as_str(), whole.cut), ("one\nzw\u{f6}lf\n", false));
        let mut tail = Tail::default();
        for _ in 0..OUTPUT_BYTES_MAX {
            tail.push("\u{20ac}x".as_bytes());
        }
        let end = tail.into_output();
        assert!(end.cut && end.text.len() <= OUTPUT_BYTES_MAX && end.text.ends_with("\u{20ac}x"));
        assert!(end.text.len() > OUTPUT_BYTES_MAX - 4 && !end.text.contains('\u{fffd}'));
        let mut tail = Tail::default();
        tail.push(&vec![0xff; OUTPUT_BYTES_MAX]);
        let odd = tail.into_output();
        assert!(odd.cut && odd.text.len() <= OUTPUT_BYTES_MAX);
    }
}
