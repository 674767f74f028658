//! Objects as `-o` asks for them.

use std::io::{self, Write};

use k8s_api::crd::ContainerRecreateRequest;
use kube::ResourceExt;
use serde::Serialize;

use crate::{
    args::{DryRun, Format},
    failure::Failure,
};

/// The kind and name of a request, as kubectl takes and prints it.
pub(crate) fn kind_and_name(request: &ContainerRecreateRequest) -> String {
    format!(
        "containerrecreaterequest.apps.kruise.io/{}",
        request.name_any()
    )
}

/// Prints one line.
pub(crate) fn say(line: &str) -> Result<(), Failure> {
    Ok(writeln!(io::stdout(), "{line}")?)
}

/// How a request was made, as kubectl says it.
pub(crate) fn made(request: &ContainerRecreateRequest, dry_run: Option<DryRun>) -> String {
    let made = match dry_run {
        None => "created",
        Some(DryRun::Client) => "created (dry run)",
        Some(DryRun::Server) => "created (server dry run)",
    };
    format!("{} {made}", kind_and_name(request))
}

/// Prints one request.
pub(crate) fn print(request: &ContainerRecreateRequest, format: Format) -> Result<(), Failure> {
    match format {
        Format::Name => say(&kind_and_name(request)),
        Format::Json | Format::Yaml => print_object(request, format),
    }
}

/// Prints many requests as one list.
pub(crate) fn print_all(
    requests: &[ContainerRecreateRequest],
    format: Format,
) -> Result<(), Failure> {
    if format == Format::Name {
        return requests
            .iter()
            .try_for_each(|request| print(request, format));
    }
    let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": requests });
    print_object(&list, format)
}

/// Prints something as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    print_object(value, Format::Json)
}

fn print_object(object: &impl Serialize, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Yaml => serde_yaml_ng::to_string(object).map_err(io::Error::other)?,
        Format::Json | Format::Name => {
            serde_json::to_string_pretty(object).map_err(io::Error::other)?
        }
    };
    say(text.trim_end())
}
