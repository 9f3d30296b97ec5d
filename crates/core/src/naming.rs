//! Whether a program writes files under names that its text does not have: it makes them up.
//!
//! Owns the reading of scripts of any language for that one question, by their words alone: calls
//! that write, and whether the name each is given stands there as it is. It follows a name to what
//! it is set to, and nothing else. It refuses to know files: which of them a text names is asked
//! elsewhere. An answer of `true` is no proof: it says that such a program may write anything.

mod calls;
mod words;

use crate::shell::{self, How, Place};

/// Does a program of Python, JavaScript, Ruby, Perl, PHP or Lua make up names of what it writes?
pub fn computes(text: &str) -> bool {
    let tokens = words::read(text);
    calls::Program::new(&tokens).computes()
}

/// The files that such a program is surely told to write, by names that stand there.
pub fn written(text: &str) -> Vec<(String, How)> {
    let tokens = words::read(text);
    calls::Program::new(&tokens).written()
}

/// Does a shell script, started with these words?
pub fn shell_computes(text: &str, given: &[String]) -> bool {
    let given = shell::quote(given.iter().map(String::as_str));
    let deeds = shell::read(&format!("set -- {given}\n{text}"));
    let known = format!("{text} {given}");
    let made_up = |write: &shell::Write| match &write.place {
        Place::Unknown | Place::Pattern(_) => true,
        Place::Path(path) if path == "." => write.below || write.part,
        // Put together of parts: no word of the text is its name.
        Place::Path(path) => path.rsplit('/').next().is_some_and(|name| !known.contains(name)),
        Place::Home(_) | Place::Root(_) => false,
    };
    deeds.unparsed.is_some() || deeds.writes.iter().any(made_up) || computes(text)
}

/// Do the recipes of a makefile?
pub fn recipes_compute(text: &str) -> bool {
    let set = |name: &str| {
        text.lines().find_map(|line| {
            let (left, value) = line.split_once('=')?;
            let left = left.trim_end_matches([':', '?', ' ', '\t']).trim();
            (left == name && !line.starts_with('\t')).then(|| value.trim().to_owned())
        })
    };
    let text = text.replace("\\\n", " ");
    let recipes = text.lines().filter_map(|line| line.strip_prefix('\t'));
    let shell = recipes.map(|line| with_values(line.trim_start_matches(['@', '-', '+']), &set));
    shell_computes(&shell.collect::<Vec<String>>().join("\n"), &[])
}

/// A recipe as the shell has it. What a rule makes stands in the text itself.
fn with_values(line: &str, set: &dyn Fn(&str) -> Option<String>) -> String {
    let mut made = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        let letter = after.chars().next().unwrap_or('$');
        let after = after.strip_prefix(letter).unwrap_or(after);
        rest = after;
        match letter {
            '$' => made.push('$'),
            '(' | '{' => {
                let (name, behind) = after.split_once([')', '}']).unwrap_or((after, ""));
                rest = behind;
                match set(name).filter(|value| !value.contains('$')) {
                    Some(value) => made.push_str(&value),
                    None => made.push_str("$unknown"),
                }
            }
            _ => made.push_str("made"),
        }
    }
    made + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_made_up_are_told_from_names_that_stand_there() {
        for text in [
            "for f in glob.glob('*.txt'):\n    open(f, 'w').write('x')",
            "name = 'he' + 'ld.txt'\nopen(name, 'w')",
            "open('he' 'ld.txt', 'w')",
            "open(''.join(['h', 'eld']), mode='a')",
            "open(f'{part}.txt', 'w')",
            "open('%s.txt' % part, 'w')",
            "open('\\x68eld.txt', 'w')",
            "from pathlib import Path\nfor p in Path('.').rglob('*'):\n    p.write_text('x')",
            "def put(path):\n    with open(path, 'wb') as f:\n        f.write(b'')",
            "for d, _, fs in os.walk('.'):\n  for f in fs:\n    os.remove(os.path.join(d, f))",
            "open(names[0], 'w')",
            "exec(base64.b64decode(b'b3Blbg=='))",
            "subprocess.run(['sed', '-i', 's/a/b/', name])",
            "os.system(f'echo x > {name}')",
            "for (const f of fs.readdirSync('.')) fs.writeFileSync(f, 'x')",
            "fs.writeFileSync(`${a}${b}.txt`, '')",
            "Dir.glob('*').each { |f| File.write(f, 'x') }",
            "Dir['*'].each do |f|\n  File.write f, 'x'\nend",
            "for my $f (glob '*') { open(my $o, '>', $f); print $o 'x' }",
            "open my $o, \">$f\" or die;",
            "foreach (glob('*') as $f) file_put_contents($f, 'x');",
            "local h = io.open(name, 'w')",
        ] {
            assert!(computes(text), "{text}");
        }
        for text in [
            "open('out.txt', 'w').write('x')",
            "out = 'out.txt'\nwith open(out, 'w') as f:\n    f.write(str(n))",
            "open(name).read()",
            "open(name, encoding='utf-8')",
            "open(name, 'rb')",
            "for f in glob.glob('*'):\n    print(f)",
            "Path('out.txt').write_text(text)",
            "p = Path(__file__).parent / 'out.txt'\np.write_text(text)",
            "open(os.path.join('build', 'out.txt'), 'w')",
            "open(sys.argv[1], 'w')",
            "open(os.path.join(tempfile.mkdtemp(), 'x'), 'w')",
            "# open(name, 'w')\nprint('done')",
            "subprocess.run(['cargo', 'test', name])",
            "const out = path.join(__dirname, 'out.txt');\nfs.writeFileSync(out, data);",
            "fs.writeFileSync(__dirname + '/out.txt', data)",
            "fs.writeFileSync(`${__dirname}/out.txt`, data)",
            "const m = pattern.exec(line); console.log(m)",
            "File.write('out.txt', text)",
            "open(my $o, '>', 'out.txt')",
            "print('done')",
            "",
        ] {
            assert!(!computes(text), "{text}");
        }
    }

    #[test]
    fn what_a_program_is_told_to_write_is_known_where_its_name_stands_there() {
        let found = |text: &str| {
            let all = written(text).into_iter().map(|(file, how)| format!("{file} {how:?}"));
            all.collect::<Vec<_>>().join(", ")
        };
        for (text, files) in [
            ("open('a.txt', 'w').write('x')", "a.txt Create"),
            ("with open('a.txt', mode='a') as f: f.write('x')", "a.txt Append"),
            ("open(\"a.txt\", \"r+\")", "a.txt Change"),
            ("name = 'a.txt'\nopen(name, 'wb')", "a.txt Create"),
            ("from pathlib import Path; Path('a.txt').write_text('x')", "a.txt Create"),
            (
                "import os; os.remove('a.txt'); os.rename('b', 'c')",
                "a.txt Delete, b Delete, c Create",
            ),
            ("require('fs').writeFileSync('a.txt', 'x')", "a.txt Create"),
            ("fs.appendFileSync('a.txt', 'x')", "a.txt Append"),
            ("File.write('a.txt', 'x')", "a.txt Create"),
            ("open(my $f, '>>', 'a.txt')", "a.txt Append"),
            ("print(open('a.txt').read())", ""),
            ("open(name, 'w'); open('a' + '.txt', 'w'); open(f'{x}.txt', 'w')", ""),
            ("# open('a.txt', 'w')", ""),
        ] {
            assert_eq!(found(text), files, "{text}");
        }
    }

    #[test]
    fn scripts_of_a_shell_are_read_as_lines_are() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for text in [
            "for f in *; do echo x > \"$f\"; done",
            "for f in $(git ls-files); do sed -i s/a/b/ \"$f\"; done",
            "a=he\nb=$(printf ld)\necho x > $a$b.txt",
            "find . -name '*.txt' -exec sed -i s/a/b/ {} +",
            "ls | while read -r f; do echo x >> $f; done",
            "python3 - <<'EOF'\nfor f in glob.glob('*'):\n    open(f, 'w')\nEOF",
            "echo x > $1",
        ] {
            assert!(shell_computes(text, &[]), "{text}");
        }
        for text in [
            "sleep 5",
            "cargo test && echo done > out.log",
            "for f in *; do cat \"$f\"; done",
            "set -e\nmkdir -p build\ncc -o build/x x.c 2>&1 | tee build/log",
            "echo x > \"$1\"",
        ] {
            assert!(!shell_computes(text, &words("other.txt")), "{text}");
        }
        assert!(recipes_compute("all:\n\tfor f in *; do echo x > $$f; done\n"));
        assert!(recipes_compute("F = $(wildcard *)\nall:\n\tsed -i s/a/b/ $(F)\n"));
        assert!(!recipes_compute("OUT := o.txt\nall: o.txt\n\techo x > $(OUT)\n\tsort x > $@\n"));
    }
}
