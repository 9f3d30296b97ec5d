//! What an ELF file asks of the machine that starts it.
//!
//! Reads the few fields that tell a static binary from a dynamic one: no `file` or `readelf` is
//! needed, and what a tool prints need not be understood. 64-bit, little-endian files only.

const LOADED_BY_ANOTHER: u32 = 3; // PT_INTERP
const DYNAMIC: u32 = 2; // PT_DYNAMIC
const NEEDED: u64 = 1; // DT_NEEDED
const ANYWHERE: u16 = 3; // ET_DYN
const SYMBOL_TABLE: u32 = 2; // SHT_SYMTAB

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The kernel must load another program to load this one.
    pub(crate) interpreter: bool,
    /// How many shared libraries it asks for.
    pub(crate) libraries: usize,
    /// It may be loaded anywhere, and relocates itself at each start.
    pub(crate) relocatable: bool,
    /// The names of its functions are still inside.
    pub(crate) symbols: bool,
}

/// None if this is not such a file, or one that is cut short.
pub(crate) fn read(bytes: &[u8]) -> Option<Facts> {
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let file = File(bytes);
    let mut facts = Facts { relocatable: file.two(16)? == ANYWHERE, ..Facts::default() };
    for header in file.table(32, 54, 56)? {
        match file.four(header)? {
            LOADED_BY_ANOTHER => facts.interpreter = true,
            DYNAMIC => facts.libraries = file.needed(header)?,
            _ => {}
        }
    }
    for header in file.table(40, 58, 60)? {
        facts.symbols |= file.four(header + 4)? == SYMBOL_TABLE;
    }
    Some(facts)
}

struct File<'a>(&'a [u8]);

impl File<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..at.checked_add(N)?)?.try_into().ok()
    }

    fn two(&self, at: usize) -> Option<u16> {
        self.bytes(at).map(u16::from_le_bytes)
    }

    fn four(&self, at: usize) -> Option<u32> {
        self.bytes(at).map(u32::from_le_bytes)
    }

    fn eight(&self, at: usize) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// Where the entries of a table begin, given where the file says its place, size and count.
    fn table(&self, place: usize, size: usize, count: usize) -> Option<Vec<usize>> {
        let place = usize::try_from(self.eight(place)?).ok()?;
        let (size, count) = (usize::from(self.two(size)?), usize::from(self.two(count)?));
        (0..count).map(|index| place.checked_add(index * size)).collect()
    }

    /// Counts the libraries in the dynamic section that this program header describes.
    fn needed(&self, header: usize) -> Option<usize> {
        let place = usize::try_from(self.eight(header + 8)?).ok()?;
        let size = usize::try_from(self.eight(header + 32)?).ok()?;
        let entries = self.0.get(place..place.checked_add(size)?)?.chunks_exact(16);
        Some(entries.filter(|entry| entry[..8] == NEEDED.to_le_bytes()).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of these program headers (kind, place, size) and section kinds.
    fn file(kind: u16, programs: &[(u32, u64, u64)], sections: &[u32], tail: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[16..18].copy_from_slice(&kind.to_le_bytes());
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        let after = 64 + 56 * programs.len() as u64;
        bytes[40..48].copy_from_slice(&after.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(programs.len() as u16).to_le_bytes());
        bytes[58..60].copy_from_slice(&64_u16.to_le_bytes());
        bytes[60..62].copy_from_slice(&(sections.len() as u16).to_le_bytes());
        for (kind, place, size) in programs {
            let mut header = [0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..16].copy_from_slice(&place.to_le_bytes());
            header[32..40].copy_from_slice(&size.to_le_bytes());
            bytes.extend(header);
        }
        for kind in sections {
            let mut header = [0; 64];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            bytes.extend(header);
        }
        bytes.extend(tail);
        bytes
    }

    #[test]
    fn a_static_file_asks_for_nothing() {
        assert_eq!(read(&file(2, &[(1, 0, 0)], &[1, 3], b"")), Some(Facts::default()));
    }

    #[test]
    fn what_a_file_asks_for_is_seen() {
        let mut dynamic = [0_u8; 48];
        dynamic[0] = 1;
        dynamic[16] = 5;
        dynamic[32] = 1;
        let place = 64 + 2 * 56 + 64;
        let bytes = file(3, &[(3, 0, 0), (2, place, 48)], &[2], &dynamic);
        let expected = Facts { interpreter: true, libraries: 2, relocatable: true, symbols: true };
        assert_eq!(read(&bytes), Some(expected));
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn this_test_program_is_dynamic_or_static_as_it_was_built() {
        if cfg!(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")) {
            let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
            let facts = read(&bytes).unwrap();
            assert_eq!(facts.interpreter, !cfg!(target_feature = "crt-static"));
        }
    }
}
