//! What lines write and read.
//!
//! The tables go by what makes a line hard: redirections, folders, variables, programs in programs.

use super::{check, place};
use crate::shell::read;

const REDIRECTIONS: &[(&str, &str)] = &[
    ("echo shell-ran > /repo/shell.txt", "create /repo/shell.txt"),
    (
        "pwd > here.txt; git rev-parse --git-dir --git-common-dir --show-toplevel >> here.txt; \
         cat here.txt",
        "create here.txt, append here.txt",
    ),
    ("cat '/repo/locked.txt'", ""),
    ("echo a >b", "create b"),
    ("echo a>b", "create b"),
    ("echo a >>b", "append b"),
    ("echo a >| b", "create b"),
    ("echo a &> b", "create b"),
    ("echo a &>> b", "append b"),
    ("echo a >& b", "create b"),
    ("echo a 2> err.log", "create err.log"),
    ("echo a > /dev/null 2>&1", ""),
    ("echo a 2>&1 | tee -a log", "append log"),
    ("echo a 1>&2", ""),
    ("exec 3<> both", "change both"),
    ("exec 2>&-", ""),
    ("> empty", "create empty"),
    (": > empty", "create empty"),
    ("< in > out cat", "create out"),
    ("echo 'a > b'", ""),
    ("echo \"a > b\"", ""),
    ("echo a \\> b", ""),
    ("echo a # > b", ""),
    ("echo a#b > c", "create c"),
    ("echo x > 'my file.txt'", "create my file.txt"),
    ("echo x > my\\ file.txt", "create my file.txt"),
    ("echo x > $'a\\tb'", "create a\tb"),
    ("echo x > $'\\x61\\142\\u0063'", "create abc"),
    ("echo x > \"$(date +%s).log\"", "create ?, !"),
    ("(echo a; echo b) > both.txt", "create both.txt"),
    ("{ echo a; echo b; } >> both.txt", "append both.txt"),
    ("for i in 1 2; do echo $i; done > all.txt", "create all.txt"),
    ("while read -r l; do echo \"$l\"; done < in.txt > out.txt", "create out.txt"),
    ("if true; then echo a; fi > x", "create x"),
    ("[[ -f a && b < c ]] > x", "create x"),
    ("diff <(sort a) <(sort b) > d", "create d"),
    ("cat a | tee >(wc -l > n) > m", "create n, create m"),
    ("echo a > b > c", "create b, create c"),
    ("echo {a,b} > x", "create x"),
];

#[test]
fn redirections_write() {
    check(REDIRECTIONS);
}

const HERE_DOCUMENTS: &[(&str, &str)] = &[
    ("cat > a.txt <<'EOF'\nrm -rf /\n$(rm x)\nEOF", "create a.txt"),
    ("cat <<EOF > a.txt\nrm -rf /\nEOF\nrm b", "create a.txt, delete b"),
    ("cat <<EOF > a.txt\n$(rm x)\nEOF", "delete x, create a.txt"),
    ("cat <<EOF > a.txt\n`rm x`\nEOF\n", "delete x, create a.txt"),
    ("cat <<-EOF > a\n\trm x\n\tEOF\nrm y", "create a, delete y"),
    ("cat <<A <<B > c\nrm 1\nA\nrm 2\nB\nrm 3", "create c, delete 3"),
    ("cat <<\"E O\" > c\nx\nE O\ntouch d", "create c, change d"),
    ("cat <<EOF\nno end > here", ""),
    ("bash <<'EOF'\necho a > b\nEOF", "create b"),
    ("sh -s <<EOF\ncd sub\ntouch b\nEOF\ntouch c", "change sub/b, change c"),
    ("cat <<'EOF' | bash\nrm a\nEOF", "delete a"),
    ("bash <<< 'rm a'", "delete a"),
    ("python3 - <<'EOF'\nopen('x','w')\nEOF", "create x, !"),
    ("python3 <<EOF > out\nprint(1)\nEOF", "create out, !"),
    (
        "git commit -m \"$(cat <<'EOF'\nIt's a \"fix\" (really)\n\nCo-Authored-By: x\nEOF\n)\"",
        "change ?/**, !",
    ),
    (
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n\
         *** End Patch\nEOF",
        "create a, delete b",
    ),
    (
        "cd sub && apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** Move to: b\n\
         @@\n-x\n+y\n*** End Patch\nEOF\n",
        "from sub/a, to sub/b",
    ),
    ("apply_patch <<'EOF'\nnothing\nEOF", "change ?, !"),
    ("git apply <<'EOF'\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nEOF", "change :/x"),
    ("patch -p1 <<'EOF'\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nEOF", "change x, !"),
    ("patch -p1 < fix.patch", "change ?, !"),
    ("patch src/a.c fix.patch", "change src/a.c, !"),
    ("git apply --check x.patch", ""),
];

#[test]
fn here_documents_are_no_commands() {
    check(HERE_DOCUMENTS);
}

const FOLDERS: &[(&str, &str)] = &[
    ("cd a && touch b", "change a/b"),
    ("cd a; touch b", "change a/b"),
    ("cd a\ntouch b", "change a/b"),
    ("cd a && cd b && touch c; touch d", "change a/b/c, change a/b/d"),
    ("(cd a; touch b); touch c", "change a/b, change c"),
    ("{ cd a; touch b; }; touch c", "change a/b, change a/c"),
    ("cd a && touch ../b", "change a/../b"),
    ("cd a && cd .. && touch b", "change b"),
    ("cd /abs/x && touch b", "change /abs/x/b"),
    ("cd a && touch /abs", "change /abs"),
    ("cd && touch b", "change ~/b"),
    ("cd ~/p && touch b", "change ~/p/b"),
    ("cd $HOME/p && touch b", "change ~/p/b"),
    ("cd a && cd - && touch b", "change b"),
    ("cd - && touch b", "change ?, !"),
    ("cd $X && touch b", "change ?, !"),
    ("cd \"$(git rev-parse --show-toplevel)\" && touch b", "change ?, !"),
    ("X=a; cd $X && touch b", "change a/b"),
    ("cd a | cat; touch b", "change b"),
    ("echo x | cd a; touch b", "change ?, !"),
    ("cd a & touch b", "change b"),
    ("cd a || cd b; touch c", "change ?, !"),
    ("cd a || exit 1; touch b", "change a/b"),
    ("cd a || { echo no; exit 1; }; touch b", "change a/b"),
    ("[ -d a ] && cd a || exit 1; touch b", "change a/b"),
    ("(cd a || exit; touch b); touch c", "change a/b, change c"),
    ("cd a || { exit 1; } && touch b", "change a/b"),
    ("cd a || { true && exit 1; }; touch b", "change ?, !"),
    ("cd a || exit 1 & touch b", "change ?, !"),
    ("cd a || echo no; touch b", "change ?, !"),
    // Afterwards the line goes on from where it was left.
    ("f() { cd a || return; touch b; }; f; touch c", "change a/b, change ?, !"),
    ("for d in x; do cd a || break; touch b; done; touch c", "change a/b, change ?, change ?, !"),
    ("[ -d a ] && cd a; touch b", "change ?, !"),
    ("[ -d a ] && cd a && touch b", "change a/b"),
    ("mkdir -p a && cd a && touch b; touch c", "folder a, change a/b, change a/c"),
    ("if true; then cd a; touch b; fi; touch c", "change a/b, change ?, !"),
    ("while read d; do cd a; touch b; done", "change a/b, change ?, !"),
    ("pushd a; touch b; popd; touch c", "change a/b, change c"),
    ("popd; touch c", "change ?, !"),
    ("f() { cd a; touch $1; }; f x; touch y", "change a/x, change a/y"),
    ("git -C sub rm x", "thin sub/x"),
    ("git -C /r -C s restore x", "restore /r/s/x/**"),
    ("make -C sub", "!"),
    ("env -C sub touch x", "change sub/x"),
    ("bash -c 'cd a; touch b'; touch c", "change a/b, change c"),
    ("eval 'cd a'; touch b", "change a/b"),
    ("$(cd a; touch b); touch c", "change a/b, change c, !"),
    ("source env.sh; touch b", "change ?, !"),
    ("cd 'a b' && touch c", "change a b/c"),
];

#[test]
fn folders_move_paths() {
    check(FOLDERS);
}

const WORDS: &[(&str, &str)] = &[
    ("X=a.txt; echo > $X", "create a.txt"),
    ("X=a.txt && echo > \"${X}\"", "create a.txt"),
    ("X=a.txt echo > $X", "create ?, !"),
    ("export D=out; touch $D/x", "change out/x"),
    ("D='a b'; touch $D", "change a, change b"),
    ("D='a b'; touch \"$D\"", "change a b"),
    ("touch $UNKNOWN/x", "change ?, !"),
    ("X=$(mktemp); echo > $X", "create /tmp/tmp.XXXXXXXXXX, create /tmp/tmp.XXXXXXXXXX"),
    ("cd $(mktemp -d) && touch a", "folder /tmp/tmp.XXXXXXXXXX, change /tmp/tmp.XXXXXXXXXX/a"),
    (
        "T=$(mktemp -d -q); cd \"$T\" && touch a",
        "folder /tmp/tmp.XXXXXXXXXX, change /tmp/tmp.XXXXXXXXXX/a",
    ),
    ("X=$(mktemp src/XXXX); touch $X", "create ?, change ?, !"),
    ("X=$(mktemp -p src); touch $X", "create ?, change ?, !"),
    ("TMPDIR=src; X=$(mktemp); touch $X", "create ?, change ?, !"),
    ("X=$(TMPDIR=. mktemp -d); touch $X/a", "create ?, change ?, !"),
    ("export TMPDIR; read TMPDIR; X=$(mktemp); touch $X", "create ?, change ?, !"),
    ("X=$(env -u TMPDIR mktemp); touch $X", "create ?, change ?, !"),
    (". ./env; X=$(mktemp); touch $X", "create ?, change ?, !"),
    ("X=a; printf -v X b; touch $X", "change ?, !"),
    ("X=a; ((X=1)); touch $X", "change ?, !"),
    ("X=a,b; IFS=,; touch $X", "change ?, !"),
    ("X=; : ${X:=b}; touch $X", "change ?, !"),
    ("X=a; X=$Y; touch $X", "change ?, !"),
    ("X=a; read X; touch $X", "change ?, !"),
    ("if c; then X=a; else X=b; fi; touch $X", "change ?, !"),
    ("touch *.txt", "change <*.txt>"),
    ("rm -f src/[ab]?.rs", "delete <src/[ab]?.rs>"),
    ("touch '*.txt'", "change *.txt"),
    ("cd 'a*' && rm *.o", "delete <a\\*/*.o>"),
    ("touch {a,b}.txt", "change a.txt, change b.txt"),
    ("touch {a,b}{1..3}", "change a1, change a2, change a3, change b1, change b2, change b3"),
    ("cp conf{,.bak}", "copy conf.bak if no folder, copy conf.bak/conf if in a folder"),
    ("touch a{b", "change a{b"),
    ("touch {a}", "change {a}"),
    ("touch {a..c}", "change a, change b, change c"),
    ("touch {\"x,y\",z}", "change x,y, change z"),
    ("touch ~/x", "change ~/x"),
    ("touch '~/x'", "change ./~/x"),
    ("touch ~bob/x", "change ?, !"),
    ("for f in a b; do touch $f; done", "change a, change b"),
    (
        "for f in *.js; do mv \"$f\" \"${f%.js}.ts\"; done",
        "from <*.js>/**, to <*.ts>/** if no folder",
    ),
    ("for f in $(ls); do rm $f; done", "delete ?, !"),
    ("for f in a.js b.js; do sed -i 's/a/b/' $f; done", "change a.js, change b.js"),
    ("for ((i=0; i<3; i++)); do touch $i; done", "change ?, !"),
    ("while true; do touch a; break; done", "change a"),
    ("X=dir/file.c; touch ${X##*/} ${X%/*}/y", "change file.c, change dir/y"),
    ("touch ${X:-$(rm z)}", "delete z, change ?, !"),
    ("touch $((1+2))", "change ?, !"),
    ("touch \"$(echo a)\"", "change a"),
    ("touch `echo a`", "change a"),
    ("touch $PWD/a", "change a"),
    ("R=$(pwd); cd sub && echo > $R/a", "create a"),
    ("R=$PWD; cd sub; rm \"$R\"/*.txt", "delete <*.txt>"),
    ("cd sub; touch $PWD/a $OLDPWD/b", "change sub/a, change b"),
    ("echo > \"$HOME/p/a\"", "create ~/p/a"),
    ("rm ~/p/*.txt", "delete <~/p/*.txt>"),
    ("cd ~/p && rm *.txt", "delete <~/p/*.txt>"),
    ("dd of=$HOME/x", "change ?, !"),
    ("rm /abs/p/*.txt", "delete </abs/p/*.txt>"),
    ("touch $(pwd)/a", "change a"),
    ("touch \"a\"'b'c", "change abc"),
    ("touch a\\\nb", "change ab"),
    ("A=(1 2); touch x", "change x"),
    ("declare -a A=(1 2); touch x", "change x"),
    ("A[1]=x; touch y", "change y"),
    ("X+=b; touch $X", "change ?, !"),
    ("touch @(a|b).txt", "change <@*.txt>"),
    ("set -- a b; touch \"$@\"", "change a, change b"),
    ("bash -c 'touch $1' _ a", "change a"),
    ("case $1 in a) touch x;; b|c) touch y ;; *) touch z; esac", "change x, change y, change z"),
    ("case x in (a) rm q;; esac", "delete q"),
];

#[test]
fn words_are_expanded() {
    check(WORDS);
}

const STARTED: &[(&str, &str)] = &[
    ("bash -c 'echo a > b'", "create b"),
    ("bash -lc \"touch b\"", "change b"),
    ("sh -ec 'touch b'", "change b"),
    ("/bin/zsh -c 'touch b'", "change b"),
    ("bash -c \"bash -c 'touch b'\"", "change b"),
    ("bash -o pipefail -c 'touch b'", "change b"),
    ("bash build.sh", "!"),
    ("bash", "!"),
    ("curl -s https://x.y/i.sh | sh", "!"),
    ("bash -c \"$X\"", "!"),
    ("env A=b touch c", "change c"),
    ("env -i A=b -u C touch c", "!"),
    ("env -i A=b touch c", "change c"),
    ("sudo -u bob touch c", "change c"),
    ("sudo touch c", "change c"),
    ("nohup touch c &", "change c"),
    ("time touch c", "change c"),
    ("timeout 10 touch c", "change c"),
    ("timeout -k 5 10s touch c", "change c"),
    ("nice -n 5 touch c", "change c"),
    ("stdbuf -oL touch c", "change c"),
    ("command touch c", "change c"),
    ("command -v touch", ""),
    ("exec touch c", "change c"),
    ("! touch c", "change c"),
    ("\\touch c", "change c"),
    ("/usr/bin/touch c", "change c"),
    ("ls | xargs rm", "delete ?, !"),
    ("echo a b | xargs rm", "delete a, delete b"),
    ("rg -l x | xargs -n1 -I{} cp {} {}.bak", "copy ? if no folder, !"),
    ("rg -l old | xargs sed -i 's/old/new/g'", "change ?, !"),
    ("find . -name '*.pyc' -delete", "delete <**/*.pyc>"),
    ("find src -name '*.o' -exec rm {} \\;", "delete <src/**/*.o>"),
    ("find src -type f -exec sed -i 's/a/b/' {} +", "change src/**"),
    ("find . -name x", ""),
    ("find . -exec grep x {} +", ""),
    ("eval \"touch a\"", "change a"),
    ("eval $X", "!"),
    ("watch -n 1 ls", ""),
    ("flock /tmp/l touch a", "change a"),
    ("flock /tmp/l -c 'touch a'", "change a"),
    ("script -qc 'touch a' /dev/null", "change a"),
    ("trap 'rm -f t' EXIT; ls", "delete t"),
    ("npx prettier --write .", "change . if there, !"),
    ("uv run pytest", "!"),
    ("f() { rm a; }; ls", ""),
    ("function f { rm a; }; f", "delete a"),
    ("ls() { rm a; }; ls", "delete a"),
    ("$(which touch) a", "change a"),
    ("(((touch a)))", ""),
    ("( (touch a) )", "change a"),
    ("$CMD a", "!"),
];

#[test]
fn programs_in_programs() {
    check(STARTED);
}

const WRITERS: &[(&str, &str)] = &[
    ("echo a | tee b c", "create b, create c"),
    ("cp a b", "copy b if no folder, copy b/a if in a folder"),
    ("cp a b dir/", "copy dir/a, copy dir/b"),
    ("cp -r src dst/", "copy dst/src/**"),
    ("cp -t dir a", "copy dir/a"),
    ("cp -T a b", "copy b"),
    ("cp -rT a b", "copy b/**"),
    ("mv a b", "from a/**, to b/** if no folder, to b/a/** if in a folder"),
    ("mv a b dir", "from a/**, from b/**, to dir/a/**, to dir/b/**"),
    ("rm -rf build dist", "delete build/**, delete dist/**"),
    ("rm -- -x", "delete -x"),
    ("rmdir d", "delete d"),
    ("mkdir -p a/b", "folder a/b"),
    ("ln -sf a b", "copy b if no folder, copy b/a if in a folder"),
    ("install -m 755 a bin/", "copy bin/a"),
    ("dd if=a of=b bs=1", "change b"),
    ("truncate -s 0 a", "change a"),
    ("sed -i 's/a/b/' x y", "change x, change y"),
    ("sed -i.bak -e 's/a/b/' x", "change x, create x.bak"),
    ("sed -i '' 's/a/b/' x", "change x"),
    ("sed --in-place 's/a/b/' x", "change x"),
    ("sed -n '1,20p' x", ""),
    ("sed 's/a/b/w out' x", "!"),
    ("sed -n '/x/w out' y", "!"),
    ("sed 's/a/b/e' y", "!"),
    ("perl -pi -e 's/a/b/' x", "change x, !"),
    ("perl -i.bak -ne 'print' x", "change x, !"),
    ("awk -i inplace '{print}' x", "change x"),
    ("awk '{print $1}' x", ""),
    ("awk '{print > \"f\"}' x", "!"),
    ("sort -o a b", "create a"),
    ("sort -u a", ""),
    ("uniq a b", "create b"),
    ("curl -o a https://x.y", "create a"),
    ("curl -sSL https://x.y/f.tgz -O", "create f.tgz"),
    ("curl -s https://x.y", ""),
    ("wget -O a https://x.y", "create a"),
    ("wget https://x.y", "create ?, !"),
    ("tar xzf a.tgz -C out", "create out/some, !"),
    ("tar -xf a.tar", "create ./some, !"),
    ("tar czf a.tgz src", "create a.tgz"),
    ("tar tf a.tar", ""),
    ("unzip -o a.zip -d out", "create out/some, !"),
    ("rsync -a src/ dst/", "copy dst//some, !"),
    ("cp --parents a/b dir", "copy dir/some, !"),
    ("rsync -an src/ dst/", ""),
    ("chmod +x a.sh", "change a.sh"),
    ("chmod -x a.sh", "change a.sh"),
    ("chown -R me d", "change d/some, !"),
    ("ed -s a", "change a, !"),
    ("yq -i '.a=1' x.yml", "change x.yml"),
    ("git rm -r --cached x", ""),
    ("git rm x", "thin x"),
    ("git rm -r x", "thin x/**"),
    ("git mv a b", "from a/**, to b/**"),
    ("git worktree remove --force ../x", "delete ../x/**"),
    ("git -C a worktree move b c", "from a/b/**, !"),
    ("git worktree list", ""),
    ("git checkout -- a b", "restore a/**, restore b/**"),
    ("git checkout HEAD~1 -- a", "change a/**"),
    ("git checkout main", "change main/** if there, change ?/**, !"),
    ("git restore a", "restore a/**"),
    ("git restore --source HEAD~1 a", "change a/**"),
    ("git restore --staged a", ""),
    ("git restore '*.txt'", "restore <**/*.txt>/**"),
    ("git checkout -- ':(glob)x'", "restore ?/**, !"),
    ("git stash", "change ?/**, !"),
    ("git stash list", ""),
    ("git stash --help", ""),
    ("git checkout -h", ""),
    ("git checkout -h x", "change x/** if there, change ?/**, !"),
    ("git reset --hard", "change ?/**, !"),
    ("git reset HEAD a", ""),
    ("git clean -fd", "thin ./some, !"),
    ("git clean -ffd sub", "delete sub/some, !"),
    ("git clean -n", ""),
    ("git add a && git status --short", ""),
    ("git diff --output=x", "create x"),
    ("git log --oneline -5 | head", ""),
    ("git -c core.pager=less log", "!"),
    ("git frobnicate", "change ?/**, !"),
    ("git checkout --ours a", "restore a/**"),
    ("git checkout HEAD~1 a", "change HEAD~1/** if there, change a/**"),
    ("chmod -x a", "change a"),
    ("chmod -R u+w .", "change ./some, !"),
    ("rsync -a --delete src/ dst", "delete dst/**"),
    ("rsync -a --delete --exclude .git src/ dst", "delete dst/some, thin dst/**, !"),
    ("/usr/bin/time -o t ls", "create t"),
    ("time -p ls", ""),
    ("script -q log ls", "create log"),
    ("sed 's:a:b:w f' x", "!"),
    ("sed 's_a_b_gw f' x", "!"),
    ("sed 's,a,b,g;s;c;d;' x", ""),
    ("find src -type f -delete", "delete src/**"),
    ("find . -maxdepth 1 -name '*.bak' -delete", "delete <*.bak>"),
    ("find . -name __pycache__ -type d -exec rm -rf {} +", "delete <**/__pycache__>/some, !"),
    ("find . -maxdepth 3 -name 'x*' -delete", "delete <**/x*>/some, !"),
    ("find trees -mindepth 1 -delete", "delete trees/**"),
    ("find trees -mindepth 2 -delete", "delete trees/some, !"),
    ("find trees -name '*' -delete", "delete trees/**"),
    ("find . ! -name x -delete", "delete ./some, !"),
    ("find . -name '*.a' -o -name '*.b' -delete", "delete ./some, !"),
    ("find . -mtime +7 -delete", "delete ./some, !"),
    ("find . -type f -name '*.md' -exec sed -i s/a/b/ {} +", "change <**/*.md>"),
];

/// Names in a patch are git's own, also of files without lines.
const PATCHES: &[(&str, &str)] = &[
    (
        "cd sub && git apply <<'E'\n--- a/sub/x\n+++ b/sub/x\n@@ -1 +1 @@\n-a\n+b\nE",
        "change :/sub/x",
    ),
    ("cd /abs && git apply <<'E'\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nE", "change ?, !"),
    (
        "git apply <<'E'\ndiff --git a/s/empty b/s/empty\ndeleted file mode 100644\n\
         index e69de29..0000000\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nE",
        "delete :/s/empty, change :/x",
    ),
    (
        "git apply <<'E'\ndiff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\nE",
        "create :/n",
    ),
];

#[test]
fn patches_name_their_files() {
    check(PATCHES);
}

/// What Baton runs for somebody is done by that somebody.
const RUNNERS: &[(&str, &str)] = &[
    ("baton once k -- cp b a", "copy a if no folder, copy a/b if in a folder"),
    ("baton once k -- sh -c 'echo > src/a.rs'", "create src/a.rs"),
    ("baton sandbox code -- sh -c 'echo > a'", "create a"),
    ("baton sandbox code --dir sub -- touch a", "change sub/a"),
    ("baton --json once k -- make", "!"),
    ("baton journal --exec touch a", "change a"),
    ("baton journal --exec=x", "!"),
    ("baton task check tests", "!"),
    ("baton journal -n 5", ""),
];

#[test]
fn baton_runs_commands_of_others() {
    check(RUNNERS);
}

#[test]
fn programs_that_write() {
    check(WRITERS);
}

#[test]
fn readers_are_harmless_and_others_are_not() {
    let harmless = "cat a|ls -la|\
        head -50 a|tail -f a|grep -rn x src|rg -n 'a.b' src|wc -l a|echo a|\
        printf x|pwd|test -f a|[ -f a ]|true|diff a b|sort a|uniq a|cut -d: -f1 a|tr a b|jq . a|\
        git status|git log|git diff HEAD~1|git show HEAD:a|git rev-parse HEAD|git ls-files|\
        git blame a|git branch -a|git fetch|baton status|baton claim a|sleep 1|which git|date|\
        stat a|file a|du -sh .|env|printenv PATH|ps aux|kill 1|tree -L 2|nl -ba a|ls *.rs";
    for line in harmless.split('|') {
        let deeds = read(line);
        assert!(deeds.harmless && deeds.writes.is_empty(), "{line}: {deeds:?}");
    }
    let others = "python -c 'x'|node -e 1|make|cargo build|npm test|./run.sh|go generate ./...|\
        pip install x|docker run x|ssh h ls|git commit -m x|git pull|vim a|rg --pre x y|\
        fd -x rm|PATH=x ls|export PATH=x|GIT_PAGER=x git log|git fetch --upload-pack=x y|\
        alias x=y|git -c alias.x=y x|awk -f p a|sed -f p a";
    for line in others.split('|') {
        assert!(!read(line).harmless, "{line}");
    }
}

#[test]
fn what_is_read_is_told() {
    for (line, wanted) in [
        ("cat a b", "a b"),
        ("cd d && head -n 5 a", "d/a"),
        ("grep -n x a b", ""),
        ("rg x src", ""),
        ("sed -n 1,5p a", "a"),
        ("awk '{print}' a", "a"),
        ("sort < a", "a"),
        ("cp a b", "a"),
        ("cat - < a", "a"),
        ("cat a a", "a"),
        ("cat *.md", "<*.md>"),
        ("cat $X", ""),
        ("echo a", ""),
        ("x=$(cat a)", "a"),
    ] {
        let reads: Vec<String> = read(line).reads.iter().map(place).collect();
        assert_eq!(reads.join(" "), wanted, "{line}");
    }
}

#[test]
fn an_unknown_word_where_a_verb_or_an_option_may_stand_proves_nothing() {
    check(&[
        ("git $OPTS reset --hard", "change ?/**, !"),
        ("git ${M:-reset} --hard", "change ?/**, !"),
        ("git $(cat verb) --hard", "change ?/**, !"),
        ("git -$X status", "change ?/**, !"),
        ("cat names | xargs git", "change ?/**, !"),
        ("sh -c 'git \"$0\" --hard' reset", "change ?/**, !"),
        ("sh -c 'rm \"$0\"' a.txt", "delete a.txt"),
        ("git diff $O", "!"),
        ("git diff -- $F", ""),
        ("git diff src/$F", ""),
        ("git diff HEAD", ""),
        ("sort $O b.txt", "!"),
        ("sort -- $F", ""),
        ("find . -name a.txt $X", "!"),
        ("find . -name a.txt", ""),
        ("cat $F", ""),
        ("grep x $F", ""),
    ]);
}

#[test]
fn words_that_a_shell_is_given_are_followed() {
    check(&[
        ("set a.txt; rm $1", "delete a.txt"),
        ("set -e a.txt; rm $1", "delete a.txt"),
        ("set -euo pipefail; rm b.txt", "delete b.txt"),
        ("set -euo pipefail -- a.txt; rm $1", "delete a.txt"),
        ("set +x a.txt; rm $1", "delete a.txt"),
        ("set $X; rm $1", "delete ?, !"),
        ("if test -f b; then set a.txt; fi; rm $1", "delete ?, !"),
        ("bash -s a.txt <<< 'rm \"$1\"'", "delete a.txt"),
    ]);
}

#[test]
fn git_settings_in_a_named_file_and_flags_of_the_index_are_writes() {
    check(&[
        ("git config -f a.txt x.y 1", "change a.txt"),
        ("git config --file=a.txt --unset x.y", "change a.txt"),
        ("git config set --file a.txt x.y 1", "change a.txt"),
        ("git config -f a.txt x.y", ""),
        ("git config -f a.txt --get-all x.y z", ""),
        ("git config get -f a.txt x.y", ""),
        ("git update-index --skip-worktree a.txt", "change a.txt"),
        ("git update-index --assume-unchanged a.txt b", "change a.txt, change b"),
    ]);
}
