//! One object, or a list of them, from one version to the other.

use jiff::Timestamp;
use model::labels::{
    PRE_RECREATE_GRACE, SYNC_CONTAINER_STATUSES, UNREADABLE_PREFIX, UNREADY_ACQUIRED,
};
use serde_json::{Map, Value, json};

use super::{UnknownVersion, Version};
use crate::crd::ContainerRecreateRequestContainerStatus;

const KIND: &str = "ContainerRecreateRequest";
const LIST_KIND: &str = "ContainerRecreateRequestList";

const SNAPSHOT: &str = "containerStatusSnapshot";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidObject {
    #[error("{field} is missing or is not {expected}")]
    Field {
        field: &'static str,
        expected: &'static str,
    },
    #[error("apiVersion {0}")]
    Version(#[from] UnknownVersion),
    #[error("kind is {0:?}; allowed are {KIND} and {LIST_KIND}")]
    Kind(String),
    #[error("items[{index}]: {source}")]
    Item { index: usize, source: Box<Self> },
}

type Object = Map<String, Value>;

/// Converts an object, or each of a list's. Returns what has to be warned of.
///
/// # Errors
/// It is no CRR of a known version, or a part that has to be converted is of another kind than it must be.
/// What is left of the object then is not to be used.
pub fn convert(object: &mut Value, to: Version) -> Result<Vec<String>, InvalidObject> {
    let object = as_object(object, "the object")?;
    let kind = text(object, "kind")?;
    match kind {
        KIND => convert_one(object, to),
        LIST_KIND => convert_list(object, to),
        other => Err(InvalidObject::Kind(other.to_owned())),
    }
}

fn convert_list(list: &mut Object, to: Version) -> Result<Vec<String>, InvalidObject> {
    let from = text(list, "apiVersion")?.to_owned();
    list.insert("apiVersion".to_owned(), json!(to.to_string()));
    let items = match list.get_mut("items") {
        Some(Value::Array(items)) => items,
        Some(Value::Null) | None => return Ok(Vec::new()),
        Some(_) => return Err(wrong("items", "a list")),
    };
    let mut warnings = Vec::new();
    for (index, item) in items.iter_mut().enumerate() {
        let converted = as_object(item, "the item").and_then(|item| {
            // An item of a typed list may leave to the list what it is.
            item.entry("apiVersion").or_insert_with(|| json!(from));
            item.entry("kind").or_insert_with(|| json!(KIND));
            match text(item, "kind")? {
                KIND => convert_one(item, to),
                other => Err(InvalidObject::Kind(other.to_owned())),
            }
        });
        warnings.extend(converted.map_err(|source| InvalidObject::Item {
            index,
            source: Box::new(source),
        })?);
    }
    Ok(warnings)
}

fn convert_one(object: &mut Object, to: Version) -> Result<Vec<String>, InvalidObject> {
    let from: Version = text(object, "apiVersion")?.parse()?;
    let warnings = match (from, to) {
        (Version::V1Alpha1, Version::V1Beta1) => promote(object)?,
        (Version::V1Beta1, Version::V1Alpha1) => {
            demote(object)?;
            Vec::new()
        }
        (Version::V1Alpha1, Version::V1Alpha1) | (Version::V1Beta1, Version::V1Beta1) => Vec::new(),
    };
    object.insert("apiVersion".to_owned(), json!(to.to_string()));
    Ok(warnings)
}

// === v1alpha1 to v1beta1 ===

/// Moves what the annotations say into the status.
fn promote(object: &mut Object) -> Result<Vec<String>, InvalidObject> {
    let mut warnings = Vec::new();
    if let Some(value) = take_annotation(object, SYNC_CONTAINER_STATUSES) {
        match read_snapshot(&value) {
            Ok(snapshot) => drop(status_of(object)?.insert(SNAPSHOT.to_owned(), snapshot)),
            Err(why) => warnings.push(put_aside(object, SYNC_CONTAINER_STATUSES, value, &why)),
        }
    }
    if let Some(value) = take_annotation(object, UNREADY_ACQUIRED) {
        match read_time(&value) {
            Ok(time) => set_grace(status_of(object)?, time)?,
            Err(why) => warnings.push(put_aside(object, UNREADY_ACQUIRED, value, &why)),
        }
    }
    if let Some(annotations) = annotations_of(object)
        && annotations.is_empty()
        && let Some(Value::Object(metadata)) = object.get_mut("metadata")
    {
        metadata.remove("annotations");
    }
    Ok(warnings)
}

/// The snapshot, if the schema of v1beta1 can hold it: what it cannot hold would make every later write fail.
fn read_snapshot(annotation: &Value) -> Result<Value, String> {
    let text = annotation.as_str().ok_or("it is not a string")?;
    serde_json::from_str::<Vec<ContainerRecreateRequestContainerStatus>>(text)
        .and_then(|_| serde_json::from_str(text))
        .map_err(|error| format!("it is not a list of container statuses: {error}"))
}

/// The time as it was written, if it has the form of RFC 3339. [`Timestamp`] parses all of ISO 8601, but the API server
/// only RFC 3339.
fn read_time(annotation: &Value) -> Result<&str, String> {
    let text = annotation.as_str().ok_or("it is not a string")?;
    let form = text.replace(|letter: char| letter.is_ascii_digit(), "0");
    let after_seconds = form.strip_prefix("0000-00-00T00:00:00").unwrap_or_default();
    let zone = after_seconds.trim_start_matches(['.', '0']);
    if matches!(zone, "Z" | "+00:00" | "-00:00") && text.parse::<Timestamp>().is_ok() {
        return Ok(text);
    }
    let expected = "a time such as 2026-01-02T15:04:05Z";
    Err(format!("{text:?} is not {expected}"))
}

/// Makes the condition say that time. One that says it already is left as it is, with all that is in it.
fn set_grace(status: &mut Object, time: &str) -> Result<(), InvalidObject> {
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let conditions = conditions.as_array_mut();
    let conditions = conditions.ok_or(wrong("status.conditions", "a list"))?;
    match conditions.iter_mut().find(|condition| is_grace(condition)) {
        Some(condition) if time_of_grace(condition) == Some(time) => {}
        Some(condition) => *condition = grace(time),
        None => conditions.push(grace(time)),
    }
    Ok(())
}

/// Keeps what cannot be read under a key of ours; returns the warning.
fn put_aside(object: &mut Object, key: &str, value: Value, problem: &str) -> String {
    let aside = aside_key(key);
    let warning = format!(
        "annotation {key} of {} cannot be read: {problem}; kept as {aside}",
        name_of(object)
    );
    if let Some(annotations) = annotations_of(object) {
        annotations.insert(aside, value);
    }
    warning
}

// === v1beta1 to v1alpha1 ===

/// Moves what v1alpha1 has no field for into annotations.
fn demote(object: &mut Object) -> Result<(), InvalidObject> {
    let mut moved = Vec::new();
    if let Some(Value::Object(status)) = object.get_mut("status") {
        if status.get(SNAPSHOT).is_some_and(Value::is_array)
            && let Some(snapshot) = status.remove(SNAPSHOT)
        {
            moved.push((SYNC_CONTAINER_STATUSES, json!(snapshot.to_string())));
        }
        if let Some(time) = take_grace(status) {
            moved.push((UNREADY_ACQUIRED, json!(time)));
        }
        // It was made for these two alone.
        if !moved.is_empty() && status.len() == 1 && status.get("phase") == Some(&json!("")) {
            object.remove("status");
        }
    }
    if !moved.is_empty() {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        let metadata = as_object(metadata, "metadata")?;
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if annotations.is_null() {
            *annotations = json!({});
        }
        let annotations = as_object(annotations, "metadata.annotations")?;
        for (key, value) in moved {
            annotations.insert(key.to_owned(), value);
        }
    }
    if let Some(annotations) = annotations_of(object) {
        for key in [SYNC_CONTAINER_STATUSES, UNREADY_ACQUIRED] {
            if !annotations.contains_key(key)
                && let Some(value) = annotations.remove(&aside_key(key))
            {
                annotations.insert(key.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// The time of the condition. It stays where it is unless [`promote`] would make it again just so: a reader of
/// v1alpha1 who writes back must not cut it short.
fn take_grace(status: &mut Object) -> Option<String> {
    let conditions = status.get_mut("conditions")?.as_array_mut()?;
    let condition = conditions.iter().find(|condition| is_grace(condition))?;
    let time = time_of_grace(condition)?.to_owned();
    if conditions.last() == Some(&grace(&time)) {
        conditions.pop();
        if conditions.is_empty() {
            status.remove("conditions");
        }
    }
    Some(time)
}

// === parts ===

/// The condition that says no more than the annotation.
fn grace(time: &str) -> Value {
    json!({
        "type": PRE_RECREATE_GRACE, "status": "True", "reason": PRE_RECREATE_GRACE,
        "message": "", "lastTransitionTime": time,
    })
}

fn is_grace(condition: &Value) -> bool {
    condition["type"] == PRE_RECREATE_GRACE
}

/// Since when the condition is true, if it is.
fn time_of_grace(condition: &Value) -> Option<&str> {
    let is_true = condition["status"] == "True";
    condition["lastTransitionTime"].as_str().filter(|_| is_true)
}

fn aside_key(key: &str) -> String {
    let name = key.rsplit('/').next().unwrap_or(key);
    format!("{UNREADABLE_PREFIX}{name}")
}

fn annotations_of(object: &mut Object) -> Option<&mut Object> {
    let metadata = object.get_mut("metadata")?;
    metadata.get_mut("annotations")?.as_object_mut()
}

fn take_annotation(object: &mut Object, key: &str) -> Option<Value> {
    annotations_of(object)?.remove(key)
}

/// The status; where there is none, one that the schema takes.
fn status_of(object: &mut Object) -> Result<&mut Object, InvalidObject> {
    let status = object.entry("status").or_insert(Value::Null);
    if status.is_null() {
        *status = json!({ "phase": "" });
    }
    as_object(status, "status")
}

fn name_of(object: &Object) -> String {
    let metadata = object.get("metadata");
    let part = |name| metadata.and_then(|metadata| metadata[name].as_str());
    let [namespace, name] = ["namespace", "name"].map(|name| part(name).unwrap_or_default());
    format!("{namespace}/{name}")
}

fn text<'a>(object: &'a Object, field: &'static str) -> Result<&'a str, InvalidObject> {
    let found = object.get(field).and_then(Value::as_str);
    found.ok_or(wrong(field, "a string"))
}

fn as_object<'a>(
    value: &'a mut Value,
    field: &'static str,
) -> Result<&'a mut Object, InvalidObject> {
    value.as_object_mut().ok_or(wrong(field, "an object"))
}

fn wrong(field: &'static str, expected: &'static str) -> InvalidObject {
    InvalidObject::Field { field, expected }
}
