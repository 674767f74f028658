//! One long-running program of the cluster: how it is started, and started again.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::{
    cgroup::Cgroups,
    command::bare,
    folders,
    folders::Folders,
    network,
    plan::{CONTROL_PLANE, NodeNumber},
    process::{Condition, Identity},
    state::State,
};

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Place {
    ControlPlane,
    Node(NodeNumber),
}

impl Place {
    /// Name of its network namespace and control group.
    pub(crate) fn namespace(self) -> String {
        match self {
            Self::ControlPlane => CONTROL_PLANE.to_owned(),
            Self::Node(node) => node.namespace(),
        }
    }
}

/// A program with its arguments; the same ones whenever it is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Daemon {
    pub name: String,
    pub place: Place,
    pub command: Vec<String>,
    pub log: PathBuf,
    /// The process, once started; it may have died since.
    pub identity: Option<Identity>,
}

impl Daemon {
    pub(crate) fn new(folders: &Folders, place: Place, program: &Path) -> Self {
        let short = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let name = match place {
            Place::ControlPlane => short,
            Place::Node(node) => format!("{}/{short}", node.name()),
        };
        let log = folders.log_of(&name);
        Self {
            name,
            place,
            command: vec![program.display().to_string()],
            log,
            identity: None,
        }
    }

    #[must_use]
    pub(crate) fn arguments<I: IntoIterator<Item = S>, S: Into<String>>(mut self, more: I) -> Self {
        self.command.extend(more.into_iter().map(Into::into));
        self
    }

    pub(crate) fn condition(&self) -> Condition {
        self.identity
            .map_or(Condition::Dead, |identity| identity.condition())
    }

    /// Starts the program and writes down who it is. It outlives us.
    pub(crate) fn start(mut self, folders: &Folders) -> Result<()> {
        let state = State::read(folders)?.context("no cluster is up")?;
        let entrance = entrance(&state, self.place)?;
        let cgroup = Cgroups::find()?.entrance(&self.place.namespace());
        let log = open_log(&self.log)?;
        let child = bare("setsid")
            .args(entrance)
            .args(in_cgroup(&cgroup))
            .args(&self.command)
            .env("PATH", state.programs.search_path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(false)
            .spawn()
            .with_context(|| format!("failed to start {}", self.name))?;
        self.identity = child.id().and_then(|pid| Identity::of(pid.cast_signed()));
        State::update(folders, |state| {
            state.daemons.insert(self.name.clone(), self);
        })
    }

    /// Fails, with the end of its log, when the program died.
    pub(crate) fn check(folders: &Folders, name: &str) -> Result<()> {
        let state = State::read(folders)?.context("no cluster is up")?;
        let daemon = state
            .daemons
            .get(name)
            .with_context(|| format!("{name} was not started"))?;
        if daemon.condition() == Condition::Dead {
            bail!("{name} died; its log ends with:\n{}", log_end(&daemon.log));
        }
        Ok(())
    }
}

/// The words by which a program is run in that place.
pub(crate) fn entrance(state: &State, place: Place) -> Result<Vec<String>> {
    let mut words = vec!["nsenter".to_owned()];
    match place {
        Place::ControlPlane => words.push(network::entrance(CONTROL_PLANE)),
        Place::Node(node) => {
            let keeper = state
                .keepers
                .get(&node.name())
                .filter(|keeper| keeper.alive());
            let keeper = keeper.with_context(|| format!("{} is down", node.name()))?;
            words.push(format!("--target={}", keeper.pid));
            words.extend(["--mount", "--uts", "--net"].map(str::to_owned));
        }
    }
    Ok(words)
}

/// The words that put a program into a control group before it starts, so that none of its
/// children is ever elsewhere.
pub(crate) fn in_cgroup(entrance: &Path) -> [String; 4] {
    let script = r#"echo $$ > "$0" && exec "$@""#;
    [
        "sh".to_owned(),
        "-c".to_owned(),
        script.to_owned(),
        entrance.display().to_string(),
    ]
}

pub(crate) fn open_log(path: &Path) -> Result<File> {
    folders::create(path.parent().unwrap_or(path))?;
    let file = File::options().create(true).append(true).open(path);
    file.with_context(|| format!("failed to open {}", path.display()))
}

fn log_end(path: &Path) -> String {
    let log = std::fs::read(path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
