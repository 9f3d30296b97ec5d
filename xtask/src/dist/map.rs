//! Reading the linker's map: which functions there are, and where.
//!
//! The map is lld's own (`-Map`): columns of address, load address, size and alignment, then the
//! output section, the input section or the symbol, told apart by how far each is indented. Only
//! functions in a section of their own are given: the linker can move no others.

/// A function that can be moved.
#[derive(Debug, PartialEq)]
pub(super) struct Function<'map> {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) name: &'map str,
}

const INPUT_INDENT: usize = 8;
const SYMBOL_INDENT: usize = 16;

/// In the order of their addresses, one for each address.
pub(super) fn functions(map: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let (mut in_text, mut movable) = (false, false);
    for (address, bytes, rest) in map.lines().filter_map(columns) {
        let what = rest.trim_start();
        match rest.len() - what.len() {
            0 => in_text = what == ".text",
            INPUT_INDENT => movable = what.contains(":(.text."),
            SYMBOL_INDENT if in_text && movable && bytes > 0 => {
                found.push(Function { address, bytes, name: what });
            }
            _ => {}
        }
    }
    found.sort_by_key(|function| function.address);
    found.dedup_by_key(|function| function.address);
    found
}

/// Address, size, and what stands behind the alignment with its indent.
fn columns(line: &str) -> Option<(u64, u64, &str)> {
    let mut rest = line;
    let mut column = || {
        rest = rest.trim_start();
        let (word, after) = rest.split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (address, _load, bytes, _align) = (column()?, column()?, column()?, column()?);
    let number = |word| u64::from_str_radix(word, 16).ok();
    Some((number(address)?, number(bytes)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
             VMA              LMA     Size Align Out     In      Symbol
          201000           201000   62673c  4096 .rodata
          201000           201000       18     8         a.o:(.rodata..Lanon.1)
          201000           201000       18     1                 a_constant
          a13700           a13700   eae7de    64 .text
          a13700           a13700       16     1         crt1.o:(.text)
          a13700           a13700       16     1                 _start
          a14000           a14000       40    16         b.o:(.text._ZN5baton4main17h0E)
          a14000           a14000       40     1                 _ZN5baton4main17h0E
          a14000           a14000       40     1                 another_name_of_it
          a13800           a13800       20    16         c.o:(.text.sqlite3_open)
          a13800           a13800       20     1                 sqlite3_open
          a13820           a13820        0     1                 an_end_mark
";

    #[test]
    fn functions_with_sections_of_their_own_are_found_in_order() {
        let expected = [
            Function { address: 0xa13800, bytes: 0x20, name: "sqlite3_open" },
            Function { address: 0xa14000, bytes: 0x40, name: "_ZN5baton4main17h0E" },
        ];
        assert_eq!(functions(MAP), expected);
        assert_eq!(functions("nothing of the kind\n"), []);
    }
}
