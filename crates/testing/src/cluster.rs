//! A PostgreSQL cluster that lives as long as the tests do.
//!
//! Owns finding the server's programs, making a cluster in a scratch folder, starting it as a user
//! who may run it, and stopping it. A watching shell holds the other end of a pipe and stops the
//! server when this process ends, however it ends: tests that are killed leave no server behind.
//! Refuses to know what the databases are for.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// An address of a cluster where tests may create databases, as a `postgres://` URL.
pub const VARIABLE: &str = "BATON_TEST_POSTGRES";

/// The password of the test user: tests search error texts for it.
pub const PASSWORD: &str = "correct-horse-battery";

const USER: &str = "baton_test";
const START_ATTEMPTS_MAX: u32 = 3;
/// A Unix socket's path has a limit of about 104 bytes, and its name takes some of them.
const SOCKET_FOLDER_BYTES_MAX: usize = 80;

#[derive(Debug)]
pub enum Error {
    /// No server programs on this machine.
    Missing,
    /// Root may not run PostgreSQL, and there is no way to become somebody else.
    Root,
    /// A cluster of somebody else cannot be copied or promoted.
    Foreign,
    /// The address in the environment is not a URL.
    BadAddress {
        address: String,
    },
    Io {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    Failed {
        program: &'static str,
        output: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(
                formatter,
                "PostgreSQL's initdb, pg_ctl and psql were not found in PATH or in the usual \
                 places. Install the server (Debian, Ubuntu: apt-get install postgresql; Fedora: \
                 dnf install postgresql-server; macOS: brew install postgresql), or set \
                 {VARIABLE} to the postgres:// URL of a cluster where tests may create databases"
            ),
            Self::Root => write!(
                formatter,
                "root may not run PostgreSQL, and neither setpriv nor runuser was found to run \
                 it as postgres or nobody: install util-linux, or set {VARIABLE}"
            ),
            Self::Foreign => write!(formatter, "this cluster was started by somebody else"),
            Self::BadAddress { address } => {
                write!(formatter, "{VARIABLE} must be a postgres:// URL, not {address:?}")
            }
            Self::Io { doing, path, source } => {
                write!(formatter, "{doing}: {}: {source}", path.display())
            }
            Self::Failed { program, output } => write!(formatter, "{program} failed: {output}"),
        }
    }
}

impl std::error::Error for Error {}

/// A running cluster. Dropped, it is stopped and its folder removed.
#[derive(Debug)]
pub struct Cluster {
    /// Everything of the URL before and after the database's name.
    before: String,
    after: String,
    psql: PathBuf,
    socket: Option<PathBuf>,
    port: u16,
    /// What runs it; none for a cluster of somebody else.
    own: Option<(Programs, PathBuf)>,
    /// The shell that stops the server when its standard input ends.
    watcher: Option<Child>,
}

/// The cluster of `BATON_TEST_POSTGRES`, or one of our own that ends with this process.
pub fn shared() -> Result<&'static Cluster, &'static Error> {
    static SHARED: OnceLock<Result<Cluster, Error>> = OnceLock::new();
    let made = SHARED.get_or_init(|| match std::env::var(VARIABLE) {
        Ok(address) if !address.is_empty() => Cluster::at(&address),
        _ => Cluster::start(&std::env::temp_dir()),
    });
    made.as_ref()
}

impl Cluster {
    /// Makes and starts a cluster in a new folder below `scratch`. When root runs the tests, the
    /// server's user must be able to pass through `scratch` (a 0700 folder stops it).
    pub fn start(scratch: &Path) -> Result<Self, Error> {
        let programs = Programs::find()?;
        let folder = scratch.join(format!("baton-pg-{}", unique()));
        create_folder(&folder)?;
        let made = Self::start_in(&programs, &folder);
        if made.is_err() {
            // The error is what matters; a folder that stays behind is only untidy.
            let _ = fs::remove_dir_all(&folder);
        }
        made
    }

    fn start_in(programs: &Programs, folder: &Path) -> Result<Self, Error> {
        programs.give(folder)?;
        let data = folder.join("data");
        let secret = folder.join("password");
        write_file(&secret, PASSWORD)?;
        programs.give(&secret)?;
        programs.make_cluster(&data, &secret)?;
        Self::run(programs, folder)
    }

    /// Starts the server of a cluster that has been made in `folder`.
    fn run(programs: &Programs, folder: &Path) -> Result<Self, Error> {
        let (data, log) = (folder.join("data"), folder.join("log"));
        let mut tried = 0;
        let (port, socket) = loop {
            let port = free_port()?;
            let socket = configure(folder, &data, port)?;
            let started = programs.control(&data, &["start", "--log", &log.to_string_lossy()]);
            tried += 1;
            match started {
                Ok(()) => break (port, socket),
                // Somebody else may have taken the port in between.
                Err(_) if tried < START_ATTEMPTS_MAX => {}
                Err(error) => {
                    let told = fs::read_to_string(&log).unwrap_or_default();
                    let output = format!("{error}\n{told}");
                    return Err(Error::Failed { program: "pg_ctl", output });
                }
            }
        };
        Ok(Self {
            before: format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{port}/"),
            after: String::new(),
            psql: programs.folder.join("psql"),
            socket,
            port,
            own: Some((programs.clone(), data.clone())),
            watcher: Some(programs.watch(folder, &data)?),
        })
    }

    /// A standby that follows this cluster. Only for one of our own.
    pub fn standby(&self, scratch: &Path) -> Result<Self, Error> {
        let (programs, _) = self.own.as_ref().ok_or(Error::Foreign)?;
        let folder = scratch.join(format!("baton-pg-{}", unique()));
        create_folder(&folder)?;
        programs.give(&folder)?;
        let (address, data) = (self.address("postgres"), folder.join("data"));
        programs.run(
            "pg_basebackup",
            &[
                "--write-recovery-conf".as_ref(),
                "--checkpoint=fast".as_ref(),
                "--dbname".as_ref(),
                address.as_ref(),
                "--pgdata".as_ref(),
                data.as_os_str(),
            ],
        )?;
        Self::run(programs, &folder)
    }

    /// Makes a standby a primary.
    pub fn promote(&self) -> Result<(), Error> {
        let (programs, data) = self.own.as_ref().ok_or(Error::Foreign)?;
        programs.control(data, &["promote"])
    }

    /// A cluster that somebody else started and will stop.
    fn at(address: &str) -> Result<Self, Error> {
        let bad = || Error::BadAddress { address: address.to_owned() };
        let (scheme, rest) = address.split_once("://").ok_or_else(bad)?;
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, format!("?{query}")),
            None => (rest, String::new()),
        };
        let authority = rest.split('/').next().unwrap_or(rest);
        let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Ok(Self {
            before: format!("{scheme}://{authority}/"),
            after: query,
            psql: Programs::psql()?,
            socket: None,
            port: port.unwrap_or(5432),
            own: None,
            watcher: None,
        })
    }

    /// The URL of a database in this cluster, over TCP and with the password.
    pub fn address(&self, database: &str) -> String {
        format!("{}{database}{}", self.before, self.after)
    }

    /// The same over the Unix socket, as key=value words; none for a cluster of somebody else.
    pub fn socket_address(&self, database: &str) -> Option<String> {
        let folder = self.socket.as_ref()?.display();
        let port = self.port;
        Some(format!("host={folder} port={port} user={USER} dbname={database}"))
    }

    /// Makes a database with a new name and gives its name.
    pub fn create_database(&self) -> Result<String, Error> {
        let name = format!("baton_{}", unique());
        self.sql("postgres", &format!("create database {name}"))?;
        Ok(name)
    }

    /// Runs SQL with psql and gives what it printed, unaligned and without headings.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String, Error> {
        let mut command = Command::new(&self.psql);
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
        command.arg(self.address(database));
        checked("psql", &self.psql, &mut command)
    }

    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            // The end of its input is the watcher's signal.
            drop(watcher.stdin.take());
            let _ = watcher.wait();
        }
    }
}

/// The server's programs, and who runs them.
#[derive(Clone, Debug)]
struct Programs {
    folder: PathBuf,
    /// The words before a command that make it run as this user, when we are root.
    other_user: Option<(String, Vec<String>)>,
}

impl Programs {
    fn find() -> Result<Self, Error> {
        let whole = |folder: &PathBuf| {
            ["initdb", "pg_ctl", "postgres", "psql"].iter().all(|name| folder.join(name).is_file())
        };
        let folder = folders().into_iter().find(whole).ok_or(Error::Missing)?;
        Ok(Self { folder, other_user: other_user()? })
    }

    fn psql() -> Result<PathBuf, Error> {
        let mut found = folders().into_iter().map(|folder| folder.join("psql"));
        found.find(|psql| psql.is_file()).ok_or(Error::Missing)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = match &self.other_user {
            Some((_, words)) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]).arg(program);
                command
            }
            None => Command::new(program),
        };
        // The folder we were started in may be closed to the other user, and initdb looks at it.
        command.current_dir("/").env("LC_ALL", "C");
        command
    }

    fn run(&self, program: &'static str, arguments: &[&OsStr]) -> Result<(), Error> {
        let path = self.folder.join(program);
        let mut command = self.command(&path);
        command.args(arguments);
        checked(program, &path, &mut command).map(drop)
    }

    /// Runs pg_ctl and waits until it is done.
    fn control(&self, data: &Path, arguments: &[&str]) -> Result<(), Error> {
        let path = self.folder.join("pg_ctl");
        let mut command = self.command(&path);
        command.args(arguments).args(["--wait", "--silent", "--pgdata"]).arg(data);
        // The server keeps these open as long as it lives: a pipe would never end.
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        checked("pg_ctl", &path, &mut command).map(drop)
    }

    fn make_cluster(&self, data: &Path, secret: &Path) -> Result<(), Error> {
        let mut arguments: Vec<&OsStr> = vec![
            "--pgdata".as_ref(),
            data.as_os_str(),
            "--username".as_ref(),
            USER.as_ref(),
            "--pwfile".as_ref(),
            secret.as_os_str(),
            "--auth-local=trust".as_ref(),
            "--auth-host=scram-sha-256".as_ref(),
            "--encoding=UTF8".as_ref(),
            "--locale=C".as_ref(),
        ];
        // A collation unlike byte order, so that a forgotten COLLATE "C" is noticed. Servers before
        // version 15, and those built without ICU, do not know it and get on without.
        let plain = arguments.len();
        arguments.extend(["--locale-provider=icu", "--icu-locale=en"].map(OsStr::new));
        self.run("initdb", &arguments).or_else(|_| self.run("initdb", &arguments[..plain]))
    }

    /// Hands a file or folder to the user who runs the server.
    fn give(&self, path: &Path) -> Result<(), Error> {
        let Some((user, _)) = &self.other_user else { return Ok(()) };
        let mut command = Command::new("chown");
        command.arg(format!("{user}:")).arg(path);
        checked("chown", path, &mut command).map(drop)
    }

    /// Ctrl-C goes to every process of the terminal: the watcher must outlive it.
    fn watch(&self, folder: &Path, data: &Path) -> Result<Child, Error> {
        let script = "trap '' HUP INT TERM; cat >/dev/null; \
                      \"$1\" stop -m immediate -s -D \"$2\"; rm -rf -- \"$3\"";
        let mut command = self.command(Path::new("/bin/sh"));
        command.args(["-c", script, "sh"]);
        command.arg(self.folder.join("pg_ctl")).arg(data).arg(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C goes to the whole group of the terminal: the watcher must outlive it to act on it.
        command.process_group(0);
        command.spawn().map_err(|source| Error::Io {
            doing: "starting the watcher of the server",
            path: folder.to_owned(),
            source,
        })
    }
}

/// Where the programs may be: PATH first, then where distributions put them, newest first.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut versions: Vec<PathBuf> = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"]
        .iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path()))
        .filter(|path| path.to_string_lossy().contains("postgresql"))
        .map(|path| path.join("bin"))
        .collect();
    versions.sort_by_key(|path| std::cmp::Reverse(version_in(path)));
    folders.extend(versions);
    folders.push(PathBuf::from("/usr/pgsql/bin"));
    folders
}

fn version_in(path: &Path) -> u32 {
    let text = path.to_string_lossy();
    let digits = text.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

fn other_user() -> Result<Option<(String, Vec<String>)>, Error> {
    let id = |arguments: &[&str]| Command::new("id").args(arguments).output().ok();
    let root = id(&["-u"]).is_some_and(|output| output.stdout.trim_ascii() == b"0");
    if !root {
        return Ok(None);
    }
    let known = |user: &&str| id(&["-u", user]).is_some_and(|output| output.status.success());
    let user = ["postgres", "nobody"].into_iter().find(known).ok_or(Error::Root)?.to_owned();
    let there = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let words = if there("setpriv") {
        vec![
            "setpriv".to_owned(),
            format!("--reuid={user}"),
            format!("--regid={}", group_of(&user)),
            "--clear-groups".to_owned(),
            "--".to_owned(),
        ]
    } else if there("runuser") {
        vec!["runuser".to_owned(), "-u".to_owned(), user.clone(), "--".to_owned()]
    } else {
        return Err(Error::Root);
    };
    Ok(Some((user, words)))
}

fn group_of(user: &str) -> String {
    let output = Command::new("id").args(["-g", user]).output();
    let group = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    group.unwrap_or_else(|_| user.to_owned())
}

/// Writes the settings; gives the folder of the Unix socket when its path is short enough.
fn configure(folder: &Path, data: &Path, port: u16) -> Result<Option<PathBuf>, Error> {
    let short = folder.as_os_str().len() <= SOCKET_FOLDER_BYTES_MAX;
    let socket = short.then(|| folder.to_owned());
    let sockets = socket.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let settings = format!(
        "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{sockets}'\n\
         max_connections = 200\nshared_buffers = '64MB'\nfsync = on\nautovacuum = on\n\
         log_min_messages = 'warning'\n"
    );
    // Appended: the last word counts, and a standby's settings stand before it.
    let path = data.join("postgresql.auto.conf");
    let written = fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(settings.as_bytes()));
    written.map_err(|source| Error::Io { doing: "writing the settings", path, source })?;
    Ok(socket)
}

fn free_port() -> Result<u16, Error> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let path = PathBuf::from("127.0.0.1");
    found.map(|address| address.port()).map_err(|source| Error::Io {
        doing: "finding a free port",
        path,
        source,
    })
}

fn create_folder(folder: &Path) -> Result<(), Error> {
    let made = fs::create_dir(folder)
        .and_then(|()| fs::set_permissions(folder, fs::Permissions::from_mode(0o755)));
    made.map_err(|source| Error::Io {
        doing: "making the cluster's folder",
        path: folder.to_owned(),
        source,
    })
}

fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let written = fs::File::create(path).and_then(|mut file| {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|source| Error::Io { doing: "writing", path: path.to_owned(), source })
}

fn checked(program: &'static str, path: &Path, command: &mut Command) -> Result<String, Error> {
    let Output { status, stdout, stderr } = command.output().map_err(|source| Error::Io {
        doing: "running a program",
        path: path.to_owned(),
        source,
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
    }
    let output = format!("{status}: {}", String::from_utf8_lossy(&stderr).trim());
    Err(Error::Failed { program, output })
}

/// Different in every call of every process.
fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}_{:x}_{count:x}", std::process::id(), nanos & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_answers_and_its_databases_differ() {
        let cluster = shared().unwrap();
        let (one, two) = (cluster.create_database().unwrap(), cluster.create_database().unwrap());
        assert_ne!(one, two);
        assert_eq!(cluster.sql(&one, "select current_database()").unwrap(), one);
        assert!(cluster.sql(&one, "select nothing").is_err());
    }

    #[test]
    fn an_address_given_from_outside_keeps_its_parts() {
        let cluster = Cluster::at("postgres://me:secret@db:5433/postgres?sslmode=require").unwrap();
        assert_eq!(cluster.address("x"), "postgres://me:secret@db:5433/x?sslmode=require");
        assert!(matches!(Cluster::at("host=x"), Err(Error::BadAddress { .. })));
    }

    #[test]
    fn the_newest_version_is_found_first() {
        assert!(
            version_in(Path::new("/usr/lib/postgresql/15/bin"))
                < version_in(Path::new("/usr/lib/postgresql/17/bin"))
        );
    }

    /// Ctrl-C ends everything in the terminal's group; a watcher in it could stop no server.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_watcher_is_in_a_group_of_its_own() {
        let cluster = Cluster::start(&std::env::temp_dir()).unwrap();
        let watcher = cluster.watcher.as_ref().unwrap().id().to_string();
        let told = fs::read_to_string(format!("/proc/{watcher}/stat")).unwrap();
        // After the name in brackets: state, parent, group.
        let group = told.rsplit(')').next().unwrap().split_whitespace().nth(2);
        assert_eq!(group, Some(watcher.as_str()));
    }
}
